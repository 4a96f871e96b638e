/// The simplest RESP client: one blocking socket, one command at a time. For tests that look at a
/// server from the side; shares only the codec with the product's own client.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "resp/reply_parser.hpp"
#include "sluice/value.hpp"

namespace sluice::test {

/// Every call throws std::system_error when the connection fails, is closed, or says nothing for
/// `patience`.
class PlainClient {
 public:
  explicit PlainClient(std::uint16_t port, const std::string& host = "127.0.0.1");
  explicit PlainClient(const std::string& socket_path);
  ~PlainClient();
  PlainClient(PlainClient&& other) noexcept;
  PlainClient& operator=(PlainClient&&) = delete;

  /// Sends a command and reads one reply; an error reply is a Value.
  Value command(std::initializer_list<std::string_view> words);
  Value command(std::span<const std::string_view> words);
  Value command(std::span<const std::string> words);

  void send(std::string_view bytes);
  /// The next reply or push.
  Value read();
  /// The same, or nothing when `patience` passes without one.
  std::optional<Value> read_for(std::chrono::milliseconds patience);
  /// Bytes as they come, at most `most`; empty: the server closed. Not to be mixed with read().
  std::string read_raw(std::size_t most = 65536);
  /// Closes the sending side, as a client does that has said all.
  void finish_sending();

  std::chrono::milliseconds patience{60'000};

 private:
  bool wait_readable(std::chrono::milliseconds how_long) const;
  std::size_t receive(char* into, std::size_t most) const;

  int socket_ = -1;
  resp::ReplyParser parser_;
  std::string input_;
  std::size_t used_ = 0;
};

}  // namespace sluice::test
