/// The answers of a server, read strictly and bit by bit, as they come.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::load {

struct HttpAnswer {
  int status = 0;
  bool keeps_alive = true;  ///< the server takes another request on this connection
  std::optional<std::chrono::seconds> retry_after;  ///< an hour at most
  std::string body;
};

/// Reads one answer after another. A length must be said: an answer that ends with the connection,
/// or comes in chunks, cannot be told from one that was cut off, and is refused. So is what HTTP
/// forbids, and what is larger than the limits.
///
///     used = reader.consume(bytes);
///     if (reader.is_bad()) ...why();  else if (reader.is_complete()) answer = reader.take();
class ResponseReader {
 public:
  static constexpr std::size_t largest_head = 16 << 10;
  static constexpr std::size_t largest_body = 1 << 20;

  /// Takes what belongs to the answer in hand from the front of `bytes`; gives how much that was.
  /// Nothing of the next answer, and nothing once this one is complete or bad.
  std::size_t consume(std::string_view bytes);

  bool is_complete() const noexcept { return state_ == State::complete; }
  bool is_bad() const noexcept { return state_ == State::bad; }
  /// A part of an answer has come.
  bool has_begun() const noexcept { return !head_.empty(); }
  /// What is wrong with a bad one.
  const std::string& why() const noexcept { return why_; }
  /// The complete one; the next begins. REQUIRES: is_complete().
  HttpAnswer take();
  /// Forgets what has come.
  void reset();

 private:
  enum class State : std::uint8_t { head, body, complete, bad };

  std::size_t consume_head(std::string_view bytes);
  std::size_t consume_body(std::string_view bytes);
  void read_head();
  bool read_status(std::string_view line);
  bool read_field(std::string_view line);
  bool read_known_field(std::string_view name, std::string_view value);
  bool refuse(std::string why);

  State state_ = State::head;
  std::string head_;
  std::optional<std::size_t> length_;
  HttpAnswer answer_;
  std::string why_;
};

}  // namespace sluice::load
