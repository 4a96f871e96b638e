/// A client of a server in a benchmark: the pieces of which each way to serve clients is made, and
/// where their sockets are waited for.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "engine/embedded/locked_engine.hpp"
#include "net/server_socket.hpp"
#include "resp/request_parser.hpp"

namespace sluice::bench {

/// No function blocks but write(), when the client does not read. Threads: one at a time.
class Conversation {
 public:
  explicit Conversation(net::Socket socket) : socket_(std::move(socket)) {}

  int descriptor() const noexcept { return socket_.descriptor(); }
  /// Takes what has come, and looks for the first request in it.
  void read();
  bool has_request() const noexcept { return has_request_; }
  bool has_ended() const noexcept { return ended_; }
  /// The request that was found, and all behind it. REQUIRES: has_request().
  void execute(engine::LockedEngine::Section& section);
  void write();

  // Of the executor:
  bool is_away = false;   ///< its requests are with the thread that executes
  bool has_come = false;  ///< something came meanwhile
  std::size_t home = 0;   ///< the thread that it belongs to

 private:
  void parse();

  net::Socket socket_;
  resp::RequestParser parser_;
  engine::Session session_{.database = 0, .protocol = 2};
  std::array<char, std::size_t{16} << 10> in_;
  std::size_t begin_ = 0, end_ = 0;  // of what was not executed
  std::string out_;
  bool has_request_ = false;
  bool ended_ = false;
};

/// Waits for the sockets of conversations, edge-triggered, and owns these.
class Poller {
 public:
  Poller();

  /// Any thread.
  void add(std::unique_ptr<Conversation> conversation);
  void add(int descriptor);
  /// Conversations that something came for; null: the descriptor that is none.
  const std::vector<Conversation*>& wait();
  static void end(Conversation* conversation) { delete conversation; }

 private:
  Descriptor epoll_;
  std::vector<Conversation*> ready_;
};

}  // namespace sluice::bench
