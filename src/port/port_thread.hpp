/// One thread of a port: a loop, and the connections that it has accepted.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/rare_line.hpp"
#include "engine/embedded/locked_engine.hpp"
#include "loop/loop.hpp"
#include "net/server_socket.hpp"
#include "net/tls.hpp"
#include "port/connection.hpp"
#include "port/users.hpp"
#include "resp/request_parser.hpp"

namespace sluice::port {

class Port;

class PortThread {
 public:
  PortThread(Port& port, const std::vector<net::ServerSocket>& listeners);
  ~PortThread();
  void start();
  /// Closes all connections; what was asked is answered. Before one of the threads is destroyed all
  /// have stopped.
  void stop();

  Port& port() noexcept { return port_; }
  loop::Loop& loop() noexcept { return loop_; }
  bool is_here() const noexcept { return here_ == this; }

  /// The engine's lock, which this thread takes when it first needs it and has until leave().
  engine::LockedEngine::Section& section();
  void leave();

  Users& users() noexcept { return users_; }
  /// Replies to the connection in hand.
  std::string& out() noexcept { return out_; }
  Connection* in_hand() const noexcept { return in_hand_; }
  void take_in_hand(Connection* connection) noexcept { in_hand_ = connection; }
  std::unique_ptr<resp::RequestParser>& parser() noexcept { return parser_; }

  std::unique_ptr<resp::RequestParser> new_parser() const;

  /// The connection says nothing more until the log has this position; the end of the turn commits
  /// it.
  void await_commit(Connection& connection, std::uint64_t position);
  bool is_committed(std::uint64_t position) noexcept;
  /// Any thread: a call of a connection of this thread has its reply.
  void take_served(std::uint64_t id, std::shared_ptr<engine::WaitingCall> call);
  /// In this thread.
  void end_pause();

  /// Null: it is gone.
  Connection* find(std::uint64_t id) noexcept;
  /// A client has come: the thread whose turn it is has it.
  void deal(net::Socket socket, bool tls);
  void accept(net::Socket socket, bool tls);
  void remove(Connection& connection);
  /// Any thread: a connection of this thread is closed in its next turn.
  void close_soon(std::uint64_t id);
  /// Any thread: a connection of this thread has mail.
  void fetch_mail(std::uint64_t id);

 private:
  class Acceptor;

  void serve();
  void tick();
  void commit();

  Port& port_;
  loop::Loop loop_;
  Users users_;
  net::TlsFailure tls_failed_;
  RareLine tls_told_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::optional<engine::LockedEngine::Section> section_;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<engine::WaitingCall>>> served_;
  std::string out_;
  Connection* in_hand_ = nullptr;
  std::unique_ptr<resp::RequestParser> parser_;
  std::uint64_t awaited_ = 0;               // position in the log
  std::vector<std::uint64_t> uncommitted_;  // ids of connections that have something to say then
  std::atomic<bool> ending_{false};
  std::thread thread_;
  inline static thread_local const PortThread* here_ = nullptr;
};

}  // namespace sluice::port
