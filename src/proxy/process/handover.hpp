/// An upgrade: the process starts its binary anew and hands it the listening sockets, channels for
/// its clients (flow/handover.hpp), and a pipe on which the successor tells that it serves.
///
/// Meanwhile both accept from the same queues, so that no client is refused. The numbers of the
/// descriptors travel in the environment, as JSON:
///   SLUICE_PROXY_HERITAGE={"ready": 5, "pools": {"127.0.0.1:22121": [6, 7]},
///                          "doors": {"admin /run/p.sock": 8}, "clients": [9, 10],
///                          "generation": 1, "process": 4711}
/// On the pipe comes one byte: the version by which the successor takes clients over. 0, from one
/// that does not: they stay here until they are closed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "proxy/flow/proxy.hpp"
#include "proxy/process/listening_socket.hpp"

namespace sluice::proxy::process {

/// The descriptors to hand on.
struct Handover {
  std::map<std::string, std::vector<int>> pools;  ///< by `listen` as written
  std::map<std::string, int> services;            ///< by service_name()
  std::size_t channels = 0;                       ///< for clients: one for each worker
  std::uint64_t generation = 0;                   ///< how many processes were before the successor
};

struct Successor {
  int process = 0;
  std::vector<Descriptor> channels;  ///< for clients; none: it takes none
  char version = 0;                  ///< by which it takes them over
};

/// "admin /run/p.sock"
std::string service_name(std::string_view what, const net::Endpoint& endpoint);

/// What the successor was given.
class InheritedSockets {
 public:
  /// Empty when this process is no successor. Throws Error{bad_argument} for a malformed variable.
  static InheritedSockets take();

  bool is_successor() const noexcept { return ready_.is_open(); }
  InheritedListeners take_pools() noexcept { return std::move(pools_); }
  std::vector<Descriptor> take_channels() noexcept { return std::move(channels_); }
  /// How many processes were before this one.
  std::uint64_t generation() const noexcept { return generation_; }
  /// Of the one before; 0: it does not tell.
  int predecessor() const noexcept { return predecessor_; }
  /// An OpenSocket: the predecessor's socket, else a new one.
  ListeningSocket open(std::string_view what, const net::Endpoint& endpoint);
  /// Tells the predecessor that this process serves.
  void ready() noexcept;

 private:
  Descriptor ready_;
  InheritedListeners pools_;
  std::map<std::string, ListeningSocket> services_;
  std::vector<Descriptor> channels_;
  bool gets_clients_ = false;
  std::uint64_t generation_ = 0;
  int predecessor_ = 0;
};

/// Starts `path` with these arguments as the successor and waits until it serves. Throws
/// Error when it cannot be started, ends, or does not serve in time: it is gone then, and this
/// process goes on.
Successor start_successor(const std::string& path, const std::vector<std::string>& arguments,
                          const Handover& handover);

}  // namespace sluice::proxy::process
