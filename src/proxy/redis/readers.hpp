/// Where requests and replies of Redis end, and the elements that a reply is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/protocol/protocol.hpp"
#include "resp/request_parser.hpp"

namespace sluice::proxy {

class RedisRequestReader final : public RequestReader {
 public:
  /// `strict`: a typed line is refused, and a bad request ends the connection without a reply, as
  /// in twemproxy.
  RedisRequestReader(resp::RequestLimits limits, bool strict) : parser_(limits), strict_(strict) {
    parser_.set_by_bytes(strict);
  }

  State read(std::string_view buffer) override;
  Words words() const noexcept override { return parser_.words(); }
  std::size_t size() const noexcept override { return parser_.size(); }
  /// The parser takes an array in one form alone, that of Redis's own clients. A typed line becomes
  /// one.
  std::string_view wire(std::string_view buffer) override;
  std::size_t missing() const noexcept override { return parser_.missing(); }
  void distrust() noexcept override { parser_.set_authenticated(false); }
  std::size_t memory() const noexcept override { return parser_.memory(); }
  std::string error_reply() const override;

 private:
  resp::RequestParser parser_;
  bool strict_;
  std::string wire_;  // of a typed line
};

/// One element of a reply: a string or a number, or the header of an aggregate.
struct Element {
  enum class State : std::uint8_t { whole, cut, bad };
  State state = State::bad;
  char type = 0;
  bool null = false;
  /// Length of a string, count of an aggregate (a map's: pairs), value of an integer.
  std::int64_t number = 0;
  /// Bytes of the element: of a string with its content, of an aggregate its header.
  std::size_t size = 0;
  std::size_t missing = 1;   ///< of a cut one: at least so many bytes
  std::size_t children = 0;  ///< elements that follow and belong to it

  bool is_error() const noexcept { return type == '-' || type == '!'; }
};

/// The element at the front of `bytes`. Streamed strings and aggregates, and what no server sends,
/// are bad. `scanned`: of a cut line, how far it has been
/// read; kept by the caller.
Element element_at(std::string_view bytes, std::size_t& scanned) noexcept;
/// Of a reply that a reader has found whole.
inline Element element_at(std::string_view bytes) noexcept {
  std::size_t scanned = 0;
  return element_at(bytes, scanned);
}
/// What the string at the front of `bytes` says. Empty: there is no string.
std::string_view string_at(std::string_view bytes) noexcept;

/// REQUIRES: `bytes` begins with a whole reply that a reader has found. The size of its first
/// value, with the attributes before it.
std::size_t reply_size(std::string_view bytes) noexcept;
/// The same without the attributes at its front.
std::string_view without_attributes(std::string_view reply) noexcept;

/// A reply is over when as many elements have come as its headers have promised. So one number
/// stands for all the aggregates that are open, however deep, and there is nothing that nesting
/// could exhaust.
class RedisReplyReader final : public ReplyReader {
 public:
  explicit RedisReplyReader(std::size_t size_limit) : size_limit_(size_limit) {}

  State read(std::string_view buffer) override;
  std::size_t size() const noexcept override { return at_; }
  std::size_t missing() const noexcept override { return missing_; }
  bool is_push() const noexcept override { return push_; }
  bool is_too_long() const noexcept override { return too_long_; }

 private:
  void start();

  std::size_t size_limit_;
  State state_ = State::incomplete;
  std::size_t at_ = 0;       // all before is done
  std::size_t scanned_ = 0;  // of the element at at_: how far its line has been read
  std::size_t left_ = 1;     // elements
  std::size_t missing_ = 1;
  bool at_front_ = true;  // only attributes so far
  bool push_ = false;
  bool too_long_ = false;
};

}  // namespace sluice::proxy
