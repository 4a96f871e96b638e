#include "base/json.hpp"

#include <fmt/format.h>

#include <cmath>

namespace sluice {
namespace {

/// How many bytes the UTF-8 character at the front of `text` has; 0: there is none.
std::size_t length_of_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  const std::size_t length = first < 0x80                     ? 1
                             : first >= 0xc2 && first <= 0xdf ? 2
                             : first >= 0xe0 && first <= 0xef ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // Longer than need be, a surrogate, or above U+10FFFF.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = length_of_character(text);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default:
        if (length == 0)
          out += "\xef\xbf\xbd";
        else if (static_cast<unsigned char>(c) < 0x20)
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
          out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

}  // namespace

Json::Json(double value) : text_(std::isfinite(value) ? fmt::format("{}", value) : "null") {}
Json::Json(std::string_view value) : text_(quoted(value)) {}

Json Json::raw(std::string text) {
  Json json;
  json.text_ = std::move(text);
  return json;
}

Json Json::object(std::initializer_list<Member> members) {
  Json json = raw("{}");
  for (const auto& [key, value] : members) json.add(key, value);
  return json;
}

Json Json::array(std::initializer_list<Json> items) {
  Json json = raw("[]");
  for (const Json& item : items) json.add(item);
  return json;
}

Json& Json::add(std::string_view key, const Json& value) {
  append(quoted(key) + ':' + value.text_);
  return *this;
}

Json& Json::add(const Json& item) {
  append(item.text_);
  return *this;
}

void Json::append(std::string_view piece) {
  const char closing = text_.back();
  text_.pop_back();
  if (text_.size() > 1) text_ += ',';
  text_ += piece;
  text_ += closing;
}

}  // namespace sluice
