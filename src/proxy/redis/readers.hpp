/// Where requests and replies of Redis end.
#pragma once

#include <string>

#include "proxy/protocol/protocol.hpp"
#include "resp/request_parser.hpp"

namespace sluice::proxy {

class RedisRequestReader final : public RequestReader {
 public:
  /// `strict`: a typed line is refused, and a bad request ends the connection without a reply, as
  /// in twemproxy.
  RedisRequestReader(resp::RequestLimits limits, bool strict) : parser_(limits), strict_(strict) {}

  State read(std::string_view buffer) override;
  Words words() const noexcept override { return parser_.words(); }
  std::size_t size() const noexcept override { return parser_.size(); }
  std::size_t missing() const noexcept override { return parser_.missing(); }
  std::string error_reply() const override;

 private:
  resp::RequestParser parser_;
  bool strict_;
};

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
