#include "sluice/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/integer.hpp"

namespace sluice {
namespace {

std::string_view name_of(Value::Type type) {
  static constexpr std::string_view names[] = {
      "null",        "boolean",         "integer", "double", "big number", "simple string",
      "bulk string", "verbatim string", "error",   "array",  "set",        "map",
      "push"};
  return names[static_cast<std::size_t>(type)];
}

[[noreturn]] void not_a(std::string_view wanted, const Value& value) {
  throw Error{Errc::protocol,
              fmt::format("expected {} in a reply, found {} {}", wanted, name_of(value.type()),
                          to_string(value)),
              Effect::done};
}

void append_text(std::string& out, std::string_view text) {
  constexpr std::size_t longest = 200;
  out += '"';
  for (const char c : text.substr(0, longest)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
  if (text.size() > longest) out += fmt::format("... ({} bytes)", text.size());
}

void append(std::string& out, const Value& value) {
  switch (value.type()) {
    case Value::Type::null: out += "(nil)"; return;
    case Value::Type::boolean: out += value.as_boolean() ? "true" : "false"; return;
    case Value::Type::integer: out += fmt::format("(integer) {}", value.as_integer()); return;
    case Value::Type::number: out += fmt::format("(double) {}", value.as_number()); return;
    case Value::Type::error: out += "(error) " + value.as_text(); return;
    case Value::Type::simple_string: out += value.as_text(); return;
    case Value::Type::big_number:
    case Value::Type::bulk_string:
    case Value::Type::verbatim: append_text(out, value.as_text()); return;
    case Value::Type::array:
    case Value::Type::set:
    case Value::Type::map:
    case Value::Type::push: break;
  }
  out += value.type() == Value::Type::array ? "[" : fmt::format("{}[", name_of(value.type()));
  bool first = true;
  for (const auto& item : value.as_items()) {
    if (!first) out += ", ";
    first = false;
    append(out, item);
  }
  out += ']';
}

}  // namespace

std::int64_t Value::as_integer() const {
  if (const auto* number = std::get_if<std::int64_t>(&content_)) return *number;
  if (const auto* text = std::get_if<std::string>(&content_); text && !is_error())
    if (const auto parsed = parse_integer<std::int64_t>(*text)) return *parsed;
  not_a("an integer", *this);
}

double Value::as_number() const {
  if (const auto* number = std::get_if<double>(&content_)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&content_))
    return static_cast<double>(*number);
  if (const auto* text = std::get_if<std::string>(&content_); text && !is_error())
    if (const auto parsed = parse_decimal(*text)) return *parsed;
  not_a("a number", *this);
}

const std::string& Value::as_text() const {
  if (const auto* text = std::get_if<std::string>(&content_)) return *text;
  not_a("text", *this);
}

std::string& Value::as_text() {
  if (auto* text = std::get_if<std::string>(&content_)) return *text;
  not_a("text", *this);
}

bool Value::as_boolean() const {
  if (const auto* flag = std::get_if<bool>(&content_)) return *flag;
  if (const auto* number = std::get_if<std::int64_t>(&content_)) return *number != 0;
  not_a("a boolean", *this);
}

const Value::Items& Value::as_items() const {
  if (const auto* items = std::get_if<Items>(&content_)) return *items;
  not_a("an array", *this);
}

Value::Items& Value::as_items() {
  if (auto* items = std::get_if<Items>(&content_)) return *items;
  not_a("an array", *this);
}

std::string to_string(const Value& value) {
  std::string text;
  append(text, value);
  return text;
}

Error error_of_reply(std::string_view reply) {
  struct Row {
    std::string_view beginning;
    Errc errc;
    bool before_any_write = true;
  };
  // A server refuses a script's call for the state that the server is in (read-only, full, without
  // replicas) only while the script has written nothing; afterwards it lets the script finish.
  static constexpr Row rows[] = {
      {"WRONGTYPE ", Errc::wrong_type, false},
      {"NOAUTH ", Errc::authentication},
      {"WRONGPASS ", Errc::authentication},
      {"NOPERM ", Errc::authentication, false},
      {"ERR AUTH ", Errc::authentication},  // a password for a server that has none
      {"ERR invalid password", Errc::authentication},
      {"ERR The user executing the script can't ", Errc::authentication, false},
      {"ERR ACL failure in script: ", Errc::authentication, false},  // since 7.2
      {"READONLY ", Errc::read_only},
      {"NOREPLICAS ", Errc::read_only},
      {"OOM ", Errc::out_of_space},
      {"MISCONF ", Errc::out_of_space},
      {"NOSCRIPT ", Errc::script},
  };
  // What a proxy says of a request whose reply it never got.
  static constexpr std::string_view unanswered[] = {
      "ERR Connection timed out", "ERR Connection reset by peer", "ERR unknown",
      "ERR the server's reply is beyond reply_size_limit"};
  // Since 7.0 a script's error ends with " script: SHA, on @user_script:LINE."; that tail is for
  // programs. What the script wrote before the error stays.
  // Redis 6 begins with "ERR Error running script (call to f_SHA): ".
  const auto tail = reply.rfind(" script: ");
  const bool in_script = tail != std::string_view::npos ||
                         reply.find("@user_script:") != std::string_view::npos ||
                         reply.starts_with("ERR Error running script");
  std::string text{reply.substr(0, tail)};
  auto code = reply;
  if (const auto at = reply.find(": -");
      reply.starts_with("ERR Error running script") && at != std::string_view::npos)
    code.remove_prefix(at + 3);  // what the script's call was answered
  for (const auto& row : rows)
    if (code.starts_with(row.beginning))
      return {row.errc, std::move(text),
              in_script && !row.before_any_write ? Effect::unknown : Effect::none};
  const bool is_unanswered = std::ranges::find(unanswered, reply) != std::end(unanswered);
  return {in_script ? Errc::script : Errc::server, std::move(text),
          in_script || is_unanswered ? Effect::unknown : Effect::none};
}

}  // namespace sluice
