/// Replies as they come off the wire, RESP2 and RESP3, in pieces of any size.
///
/// The parser takes all bytes and keeps its place: each byte is read once, however the reply is
/// cut, and the caller keeps none. Long strings go straight into their Value. Attributes are
/// skipped. Streamed strings and aggregates, which no server sends, are refused.
///
/// A reply that is RESP and passes a limit is passed over to its end: an error that begins with
/// `beyond_a_limit` stands for it, for a push an empty push, and the connection goes on. While it
/// is passed over, nothing is kept of it but how much is to come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/value.hpp"

namespace sluice::resp {

/// How much memory a server may make the client use.
struct ReplyLimits {
  std::size_t bulk = 512 << 20;     ///< bytes of one string (Redis: proto-max-bulk-len)
  std::size_t line = 64 << 10;      ///< bytes of a simple string or error; of an error so many are
                                    ///< kept. A longer number is no RESP
  std::size_t items = 0x7fff'ffff;  ///< elements of one aggregate; more is no RESP
  std::size_t depth = 10'000;       ///< aggregates inside aggregates; scripts of Redis answer up to
                                    ///< 8,000
  std::size_t whole = std::size_t{4} << 30;  ///< bytes of one reply, as it came and as a Value
  /// Bytes of a string that is passed over, and elements of such a reply; more is no RESP.
  std::size_t passed_over = std::size_t{1} << 40;
};

/// So begin the errors of items of a batch whose node of a cluster was not reached, or was lost
/// before its reply.
constexpr std::string_view unreached = "ERR a node of the cluster was not reached: ";
constexpr std::string_view unanswered = "ERR a node of the cluster has not answered: ";

constexpr std::string_view beyond_a_limit = "ERR the reply is beyond a limit of this client: ";

class ReplyParser {
 public:
  explicit ReplyParser(ReplyLimits limits = {}) : limits_(limits) {}

  /// Takes bytes from the front of `input`: up to the end of one reply or push, which it gives, or,
  /// giving nothing, all of them. Throws Error{protocol} for bytes that are not RESP; the
  /// connection is of no more use then, nor is the parser until reset().
  std::optional<Value> next(std::string_view& input);

  /// True between replies: nothing has begun.
  bool idle() const noexcept { return line_.empty() && frames_.empty() && !bulk_type_ && !excess_; }
  /// What has begun is a push.
  bool is_in_push() const noexcept;
  /// What has begun is none, and no attribute.
  bool is_in_reply() const noexcept;
  void reset();

 private:
  struct Frame {
    Value::Type type;
    bool attribute;
    std::size_t left;
    Value::Items items;
  };
  /// A reply that is passed over.
  struct Excess {
    std::string why;
    std::optional<bool> is_push;  // nothing: an attribute before it is in hand
    std::uint64_t elements;       // to come, in all aggregates together
    std::uint64_t bytes = 0;      // of the string in hand
    bool in_string = false;
  };
  enum class Got { nothing, value, opened };

  Got element(std::string_view& input, Value& value);
  Got open(Value::Type type, bool attribute, std::string_view count, std::size_t per_count,
           Value& value);
  Got begin_bulk(Value::Type type, std::string_view length, std::string_view& input, Value& value);
  Got go_on_with_bulk(std::string_view& input, Value& value);
  Value whole_bulk(Value::Type type, std::string_view text) const;
  bool place(Value& value);
  Excess& exceed(std::string why, Value::Type type, bool attribute = false);
  Got pass_over(std::string_view& input, Value& value);
  bool pass_over_string(std::string_view& input);
  bool pass_over_head(std::string_view& input);
  std::uint64_t held() const noexcept { return taken_ - began_ + items_ * sizeof(Value); }

  std::optional<std::string_view> take_line(std::string_view& input);
  std::optional<std::string_view> take_long_line(std::string_view piece, bool ends);
  std::size_t length(std::string_view digits, std::size_t most, std::string_view what) const;
  template <class Number>
  Number number(std::string_view text, std::string_view what) const;
  [[noreturn]] void refuse(const std::string& what) const;

  ReplyLimits limits_;
  std::vector<Frame> frames_;
  std::unique_ptr<Excess> excess_;
  std::string line_;                      // a line that was cut, or is too long: its beginning
  bool line_done_ = false;                // ... has been used, and goes with the next one
  bool line_too_long_ = false;            // the rest of it is dropped
  char line_last_ = 0;                    // ... of which this was the last byte
  std::optional<Value::Type> bulk_type_;  // a string that was cut:
  std::string bulk_;                      // what is there of it
  std::size_t bulk_left_ = 0;             // what is missing, with its line end
  std::uint64_t items_ = 0;               // of the reply in hand, in all its aggregates
  std::uint64_t began_ = 0;               // where the reply in hand did
  std::uint64_t offset_ = 0;  // of the element in hand, since the connection began; for messages
  std::uint64_t taken_ = 0;   // bytes before the ones in hand
};

}  // namespace sluice::resp
