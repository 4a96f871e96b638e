/// A client of the administration: one command at a time, for `sluice proxy ...`.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "net/socket.hpp"
#include "resp/reply_parser.hpp"
#include "sluice/error.hpp"
#include "sluice/value.hpp"

namespace sluice::proxy::process {

/// Threads: one.
class AdminClient {
 public:
  /// Connects to "host:port" or "/path", within `patience`. Throws Error{bad_argument} or
  /// {connection}.
  explicit AdminClient(const std::string& address,
                       std::chrono::milliseconds patience = std::chrono::seconds{10});

  /// The reply; an error reply is a Value. Throws Error{connection} or {timeout}, with an unknown
  /// effect: the command may have been carried out.
  Value ask(std::span<const std::string_view> words);

 private:
  void wait_for(short events);
  void write(std::string_view bytes);
  [[noreturn]] void fail(std::string_view why, sluice::Effect effect) const;

  std::string address_;
  std::chrono::milliseconds patience_;
  net::Socket socket_;
  resp::ReplyParser parser_{{.depth = 16}};
};

}  // namespace sluice::proxy::process
