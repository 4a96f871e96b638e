#include "base/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"

namespace sluice {
namespace {

/// It stands in a JSON text as it is.
bool is_plain(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (;;) {
    const auto plain =
        static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char c = text.front();
    const std::size_t length = utf8_length(text);
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
  out += '"';
}

}  // namespace

Json::Json(double value) : text_(std::isfinite(value) ? fmt::format("{}", value) : "null") {}
Json::Json(std::string_view value) : text_{} { append_quoted(text_, value); }

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
  const char closing = open_end();
  append_quoted(text_, key);
  text_ += ':';
  text_ += value.text_;
  text_ += closing;
  return *this;
}

Json& Json::add(const Json& item) {
  const char closing = open_end();
  text_ += item.text_;
  text_ += closing;
  return *this;
}

char Json::open_end() {
  const char closing = text_.back();
  text_.pop_back();
  if (text_.size() > 1) text_ += ',';
  return closing;
}

}  // namespace sluice
