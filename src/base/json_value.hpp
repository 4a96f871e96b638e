/// JSON from outside (RFC 8259), read whole. Strict where readers differ, so that no two of them
/// see two things in one text: a name stands once in an object, text is UTF-8 without lone
/// surrogates, nothing stands behind the value.
///
///     const auto body = JsonValue::parse(text, {.depth = 4});
///     const auto* amount = body ? body->find("amount") : nullptr;
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace sluice {

class JsonValue {
 public:
  struct Limits {
    std::size_t bytes = 64 * 1024;
    std::size_t depth = 8;      ///< of arrays and objects within each other
    std::size_t members = 128;  ///< of an object
  };
  using Array = std::vector<JsonValue>;
  using Object = std::vector<std::pair<std::string, JsonValue>>;  // in their order

  /// What is wrong, and where: "'amount' stands twice", "byte 17: this is no JSON".
  static std::expected<JsonValue, std::string> parse(std::string_view text, Limits limits);

  JsonValue() = default;
  explicit JsonValue(bool value) : value_(value) {}
  explicit JsonValue(std::int64_t value) : value_(value) {}
  explicit JsonValue(double value) : value_(value) {}
  explicit JsonValue(std::string value) : value_(std::move(value)) {}
  explicit JsonValue(Array value) : value_(std::move(value)) {}
  explicit JsonValue(Object value) : value_(std::move(value)) {}

  /// Null: it is of another kind. A number is an integer where it is written as one and has 63
  /// bits, else a double; `5.0` and `5e0` are no integers.
  const bool* as_bool() const noexcept { return std::get_if<bool>(&value_); }
  const std::int64_t* as_integer() const noexcept { return std::get_if<std::int64_t>(&value_); }
  const double* as_double() const noexcept { return std::get_if<double>(&value_); }
  const std::string* as_text() const noexcept { return std::get_if<std::string>(&value_); }
  const Array* as_array() const noexcept { return std::get_if<Array>(&value_); }
  const Object* as_object() const noexcept { return std::get_if<Object>(&value_); }
  bool is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }

  /// A member; null: this is no object, or has none of that name.
  const JsonValue* find(std::string_view name) const noexcept;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

/// What parse() says of a file's `text`, to stand behind its name: ":3:14: this is no JSON" of
/// "byte 40: this is no JSON", ": 'a' stands twice" of what has no place.
std::string behind_file(std::string_view text, const std::string& why);

}  // namespace sluice
