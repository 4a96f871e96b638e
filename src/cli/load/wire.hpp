/// The connections of a crowd: sends what it asks, at most so many at a time, and gives it what
/// comes.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/load/crowd.hpp"
#include "loop/loop.hpp"
#include "net/endpoint.hpp"
#include "net/tls_client.hpp"

namespace sluice::load {

/// A server that is asked.
struct LoadTarget {
  net::Endpoint endpoint;
  net::Address address;
};

struct WireOptions {
  std::size_t connections = 256;
  std::chrono::nanoseconds timeout = std::chrono::seconds{10};  ///< of one answer
  /// Those who send slowly need so long for a request.
  std::chrono::nanoseconds slow_time = std::chrono::seconds{2};
  std::shared_ptr<net::TlsClient> tls;  ///< null: without
};

/// Threads: one.
class Wire {
 public:
  /// REQUIRES: at least one target; the clock lives longer.
  Wire(Clock& clock, std::vector<LoadTarget> targets, WireOptions options);
  ~Wire();

  /// Sends what is due and waits for what comes, `patience` at most.
  void turn(Crowd& crowd, std::chrono::milliseconds patience);
  /// Closes what waits for an answer: the next turn may be another crowd's.
  void drop_unanswered();
  std::size_t busy() const noexcept { return busy_; }

 private:
  class Connection;
  friend class Connection;

  bool has_place() const noexcept { return busy_ < options_.connections; }
  void send_what_is_due(Crowd& crowd);
  void send(Ask ask);
  Connection& connection_for(std::uint64_t buyer);
  Connection& connect(std::size_t target);
  void answered(Connection& connection, HttpAnswer answer);
  void broke(Connection& connection, std::string why);
  void forget(Connection& connection);

  const std::vector<LoadTarget> targets_;
  const WireOptions options_;
  net::TlsFailure tls_failed_;
  std::string tls_trouble_;
  loop::Loop loop_;
  Crowd* crowd_ = nullptr;                      // of the turn
  std::vector<std::vector<Connection*>> idle_;  // by target; the last one was used last
  std::list<std::unique_ptr<Connection>> connections_;
  std::vector<SteadyTime> rests_until_;  // by target: connections to it broke
  std::size_t busy_ = 0;
};

}  // namespace sluice::load
