/// A client of the administration, or of a server: one command at a time, for `sluice proxy ...`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/socket.hpp"
#include "net/tls.hpp"
#include "resp/reply_parser.hpp"
#include "sluice/error.hpp"
#include "sluice/value.hpp"

namespace sluice::proxy::process {

/// Threads: one.
class AdminClient {
 public:
  /// Of whom its errors speak.
  enum class Peer : std::uint8_t { administration, server };

  /// How a connection speaks TLS; empty: plainly.
  using Tls = std::function<std::unique_ptr<net::Transport>(net::Socket, const net::TlsFailure&)>;

  /// Connects to "host:port" or "/path", within `patience`. Throws Error{bad_argument} or
  /// {connection}.
  explicit AdminClient(const std::string& address,
                       std::chrono::milliseconds patience = std::chrono::seconds{10},
                       Peer peer = Peer::administration, const Tls& tls = {});
  AdminClient(const AdminClient&) = delete;
  AdminClient& operator=(const AdminClient&) = delete;

  /// The reply; an error reply is a Value. Throws Error{connection} or {timeout}, with an unknown
  /// effect: the command may have been carried out.
  Value ask(std::span<const std::string_view> words);
  /// The replies to so many commands at once.
  std::vector<Value> ask_all(std::string_view commands, std::size_t count);

 private:
  void wait_for(net::Transport::Wants wants);
  void write(std::string_view bytes);
  [[noreturn]] void fail(std::string_view why, sluice::Effect effect) const;

  Peer peer_;
  std::string address_;
  std::chrono::milliseconds patience_;
  std::string tls_failed_;  // why
  net::TlsFailure note_tls_failure_ = [this](const Error& why) { tls_failed_ = why.message(); };
  std::unique_ptr<net::Transport> transport_;
  resp::ReplyParser parser_{{.depth = 16}};
};

}  // namespace sluice::proxy::process
