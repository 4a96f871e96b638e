/// Where the locks of a play are: one server or several, and what happens to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lock/chaos/findings.hpp"
#include "sluice/store.hpp"

namespace sluice::chaos {

/// What a Deployment uses of the play that it is in.
class Stage {
 public:
  virtual ~Stage() = default;

  /// Uniform in [0, most].
  virtual std::uint64_t up_to(std::uint64_t most) = 0;
  Stamp between(std::chrono::milliseconds least, std::chrono::milliseconds most) {
    return least +
           std::chrono::milliseconds{up_to(static_cast<std::uint64_t>((most - least).count()))};
  }
  virtual void later(Stamp delay, std::function<void()> what) = 0;
  /// A trouble, which lasts until end() of its number.
  virtual std::size_t begin(Trouble::Kind kind, std::string text) = 0;
  virtual void end(std::size_t trouble) = 0;
  /// What was done at servers is over: the next such deed may come.
  virtual void servers_are_well() = 0;
};

class Deployment {
 public:
  struct Deed {
    int weight;
    bool at_server;  ///< one at a time; it ends with Stage::servers_are_well()
    const char* name;
    std::function<void()> play;
  };

  virtual ~Deployment() = default;

  /// Starts, and returns when all is well.
  virtual void set_up() = 0;
  virtual std::vector<Deed> deeds() = 0;
  /// By which the worker in that place reaches it.
  virtual std::string url(std::size_t place) const = 0;
  /// When all is well. Throws Error.
  virtual std::unique_ptr<Store> open_calmly() const = 0;
  /// Ports of the servers that have keys, when all is well.
  virtual std::vector<std::uint16_t> masters() const = 0;

 protected:
  /// By a connection of its own. Throws std::system_error.
  static Value tell(std::uint16_t port, std::initializer_list<std::string_view> words);
  /// Whether clients may call WAIT there.
  static void allow_wait(std::uint16_t port, bool allowed);
  /// Permits that were lost are there again.
  static void set_permits(Store& store);
};

/// A redis-server with a replica, which workers reach by two lines. A promotion turns one of them a
/// while before the other, so that the old server goes on beside the new one.
std::unique_ptr<Deployment> make_replicated_server(Stage& stage);
/// A Redis Cluster of three masters with a replica each, which half of the workers reach by TLS.
/// `has_network`: this process is inside of a Partition.
std::unique_ptr<Deployment> make_cluster(Stage& stage, bool has_network);

}  // namespace sluice::chaos
