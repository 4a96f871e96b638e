/// JSON that is written, never read: a value becomes text when it is made.
///
///     Json::object({{"ok", true}, {"names", Json::array({"a", "b"})}}).text()
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

/// Text that is not UTF-8 gets U+FFFD for each byte that is wrong; a number that is not finite
/// becomes null. An integer is written in full: readers that keep 53 bits want text instead.
class Json {
 public:
  using Member = std::pair<std::string_view, Json>;

  Json() : text_("null") {}
  template <std::same_as<bool> Bool>
  Json(Bool value) : text_(value ? "true" : "false") {}
  template <std::integral Number>
    requires(!std::same_as<Number, bool>)
  Json(Number value) : text_(std::to_string(value)) {}
  Json(double value);
  Json(std::string_view value);
  Json(const std::string& value) : Json(std::string_view{value}) {}
  Json(const char* value) : Json(std::string_view{value}) {}

  static Json object(std::initializer_list<Member> members = {});
  static Json array(std::initializer_list<Json> items = {});
  /// REQUIRES: `text` is JSON.
  static Json raw(std::string text);

  /// Appends a member. REQUIRES: this is an object; `key` is new.
  Json& add(std::string_view key, const Json& value);
  /// Appends an item. REQUIRES: this is an array.
  Json& add(const Json& item);

  const std::string& text() const noexcept { return text_; }

 private:
  char open_end();  // takes the closing bracket away, so that a piece can go in front of it

  std::string text_;
};

}  // namespace sluice
