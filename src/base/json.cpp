#include "base/json.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/text.hpp"

namespace sluice {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
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
