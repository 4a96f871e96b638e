/// One loop of the server, with its thread and its connections.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/rare_line.hpp"
#include "http/connection.hpp"
#include "http/counts.hpp"
#include "http/introduction.hpp"
#include "http/limits.hpp"
#include "http/networks.hpp"
#include "http/places.hpp"
#include "http/routes.hpp"
#include "loop/loop.hpp"
#include "net/server_socket.hpp"
#include "net/tls.hpp"

namespace sluice::http {

/// What the loops of a server have in common. Nothing of it changes but the places.
struct Shared {
  Routes routes;
  Limits limits;
  Networks trusted;
  Networks balancers;  // that speak the PROXY protocol
  std::string vary;    // see ServerOptions
  Places places;
};

class Worker final : private Mailbox::Owner, private loop::EventHandler {
 public:
  Worker(Clock& clock, Shared& shared, std::optional<net::TlsContext> tls,
         net::ServerSocket listener);
  /// Ends at once.
  ~Worker();

  void start();
  /// Any thread: after `notice` it drains, after `within` it ends, or before if no client is left.
  void stop(std::chrono::nanoseconds notice, std::chrono::nanoseconds within);
  /// Any thread: for connections from now on.
  void replace(const net::TlsContext& tls);
  /// Waits for the end that stop() has asked for.
  void join();
  const Counts& counts() const noexcept { return counts_; }

  // For connections, in the loop's thread.
  loop::Loop& loop() noexcept { return loop_; }
  const Limits& limits() const noexcept { return shared_.limits; }
  const Routes& routes() const noexcept { return shared_.routes; }
  const Networks& trusted() const noexcept { return shared_.trusted; }
  std::string_view vary() const noexcept { return shared_.vary; }
  Counts& counts() noexcept { return counts_; }
  const std::shared_ptr<Mailbox>& mailbox() const noexcept { return mailbox_; }
  bool is_draining() const noexcept { return is_draining_; }
  /// Of the Date field.
  std::string_view date();
  /// Empty text to write into, and to clear.
  std::string& scratch() noexcept { return scratch_; }
  /// The connection waits for something else from now on.
  void enter(Connection& connection, Phase phase);
  void forget(Connection& connection);

  // For introductions, which they end.
  void introduced(Introduction& introduction);
  void turn_away(Introduction& introduction, std::string_view why);
  /// Without a byte.
  void left(Introduction& introduction);

 private:
  void ready(Readiness readiness) override;
  void deliver(Mailbox::Letter letter) override;
  void wake() override;
  void at_end_of_turn(std::function<void()> call) override;
  void flush() override;

  void serve();
  void accept(net::Socket socket);
  void await_introduction(net::Socket socket, std::string balancer);
  net::Socket end(Introduction& introduction);
  void admit(net::Socket socket, std::string client);
  bool enters(const std::string& place);
  std::string place_of(const std::string& client) const;
  void report_unserved(const std::exception& error);
  void welcome(net::Socket socket, std::string client, const std::string& place);
  void close_listener();
  void close_all();
  void rest();
  void drain();
  void tick();
  std::chrono::nanoseconds time_of(Phase phase) const noexcept;
  std::list<Connection*>& waiting_for(Phase phase) noexcept {
    return waiting_[static_cast<std::size_t>(phase)];
  }

  Shared& shared_;
  std::optional<net::TlsContext> tls_;
  Counts counts_;
  const net::TlsFailure tls_failed_;
  loop::Loop loop_;
  std::shared_ptr<Mailbox> mailbox_;
  net::ServerSocket listener_;
  loop::Loop::TimerId resting_{};
  RareLine failures_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::list<std::unique_ptr<Introduction>> introductions_;  // the oldest in front
  // By what they wait for, those that have waited longest in front: each has the same time.
  std::array<std::list<Connection*>, phases> waiting_;
  std::vector<std::function<void()>> at_end_of_turn_;
  std::vector<std::function<void()>> ending_;
  std::string scratch_;
  std::string date_;
  SteadyTime date_ends_{};
  bool is_draining_ = false;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace sluice::http
