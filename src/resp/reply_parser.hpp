/// Replies as they come off the wire, RESP2 and RESP3, in pieces of any size.
///
/// The parser takes all bytes and keeps its place: each byte is read once, however the reply is
/// cut, and the caller keeps none. Long strings go straight into their Value. Attributes are
/// skipped. Streamed strings and aggregates, which no server sends, are refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/value.hpp"

namespace sluice::resp {

/// How much memory a server may make the client use. Smaller: a broken or hostile server is refused
/// sooner.
struct ReplyLimits {
  std::size_t bulk = 512 << 20;     ///< bytes of one string (Redis: proto-max-bulk-len)
  std::size_t line = 64 << 10;      ///< bytes of a simple string, an error, a number
  std::size_t items = 0x7fff'ffff;  ///< elements of one aggregate
  std::size_t depth = 128;          ///< aggregates inside aggregates
};

class ReplyParser {
 public:
  explicit ReplyParser(ReplyLimits limits = {}) : limits_(limits) {}

  /// Takes bytes from the front of `input`: up to the end of one reply or push, which it gives, or,
  /// giving nothing, all of them. Throws Error{protocol} for bytes that are not RESP or pass a
  /// limit; the connection is of no more use then, nor is the parser until reset().
  std::optional<Value> next(std::string_view& input);

  /// True between replies: nothing has begun.
  bool idle() const noexcept { return line_.empty() && frames_.empty() && !bulk_type_; }
  void reset();

 private:
  struct Frame {
    Value::Type type;
    bool attribute;
    std::size_t left;
    Value::Items items;
  };
  enum class Got { nothing, value, opened };

  Got element(std::string_view& input, Value& value);
  Got open(Value::Type type, bool attribute, std::string_view count, std::size_t per_count,
           Value& value);
  Got begin_bulk(Value::Type type, std::string_view length, std::string_view& input, Value& value);
  Got go_on_with_bulk(std::string_view& input, Value& value);
  Value whole_bulk(Value::Type type, std::string_view text) const;
  bool place(Value& value);

  std::optional<std::string_view> take_line(std::string_view& input);
  std::size_t length(std::string_view digits, std::size_t most, std::string_view what) const;
  template <class Number>
  Number number(std::string_view text, std::string_view what) const;
  [[noreturn]] void refuse(const std::string& what) const;

  ReplyLimits limits_;
  std::vector<Frame> frames_;
  std::string line_;                      // a line that was cut
  bool line_done_ = false;                // ... has been used, and goes with the next one
  std::optional<Value::Type> bulk_type_;  // a string that was cut:
  std::string bulk_;                      // what is there of it
  std::size_t bulk_left_ = 0;             // what is missing, with its line end
  std::uint64_t offset_ = 0;  // of the element in hand, since the connection began; for messages
  std::uint64_t taken_ = 0;   // bytes before the ones in hand
};

}  // namespace sluice::resp
