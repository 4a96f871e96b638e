/// A reply of a Store, whatever it came from: RESP2, RESP3 or the embedded engine.
///
/// Aggregates may be nested as deep as memory allows: nothing here calls itself for what lies
/// inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sluice/error.hpp"

namespace sluice {

class Value {
 public:
  enum class Type : std::uint8_t {
    null,
    boolean,
    integer,
    number,         ///< RESP3 double
    big_number,     ///< text
    simple_string,  ///< "+OK"
    bulk_string,
    verbatim,  ///< text, without the three-letter format
    error,     ///< text, code first: "WRONGTYPE Operation ..."
    array,
    set,
    map,  ///< items alternate key, value
    push,
  };
  using Items = std::vector<Value>;

  Value() = default;
  Value(const Value& other);
  Value(Value&& other) noexcept = default;
  Value& operator=(const Value& other) { return *this = Value{other}; }
  Value& operator=(Value&& other) noexcept = default;
  ~Value() {
    if (is_aggregate()) take_apart();
  }
  static Value boolean(bool value) { return {Type::boolean, value}; }
  static Value integer(std::int64_t value) { return {Type::integer, value}; }
  static Value number(double value) { return {Type::number, value}; }
  static Value simple_string(std::string text) { return {Type::simple_string, std::move(text)}; }
  static Value bulk_string(std::string text) { return {Type::bulk_string, std::move(text)}; }
  static Value error(std::string text) { return {Type::error, std::move(text)}; }
  static Value array(Items items) { return {Type::array, std::move(items)}; }
  /// `type` is big_number, simple_string, bulk_string, verbatim or error.
  static Value text(Type type, std::string text) { return {type, std::move(text)}; }
  /// `type` is array, set, map or push.
  static Value aggregate(Type type, Items items) { return {type, std::move(items)}; }

  Type type() const noexcept { return type_; }
  bool is_null() const noexcept { return type_ == Type::null; }
  bool is_error() const noexcept { return type_ == Type::error; }
  bool is_text() const noexcept { return std::holds_alternative<std::string>(content_); }
  bool is_aggregate() const noexcept { return std::holds_alternative<Items>(content_); }

  /// An integer, or text that is one. Throws Error{protocol}, naming what was found.
  std::int64_t as_integer() const;
  /// A double, an integer, or text that is one.
  double as_number() const;
  /// Text of any kind (errors too).
  const std::string& as_text() const;
  std::string& as_text();
  bool as_boolean() const;
  const Items& as_items() const;
  Items& as_items();

  friend bool operator==(const Value& one, const Value& other);

 private:
  void take_apart() noexcept;

  template <class Content>
  Value(Type type, Content content) : type_(type), content_(std::move(content)) {}

  Type type_ = Type::null;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Items> content_;
};

/// As redis-cli would show it, on one line; for messages and tests. Long text is cut at 200 bytes,
/// and the whole behind `most`.
std::string to_string(const Value& value, std::size_t most = std::string::npos);

/// The Error that an error reply stands for ("-WRONGTYPE ...", "-NOAUTH ..."). Effect: none, but
/// unknown for an error in the middle of a script, unless it is one of those (READONLY, OOM,
/// NOREPLICAS, MISCONF) that a server gives only before a script has written anything; done for a
/// reply that is beyond the client's limits. An error that a script has made itself looks like one
/// of a command: error_of_item() tells them apart. The message is one line of 4 KiB at most.
Error error_of_reply(std::string_view reply);

}  // namespace sluice
