#include "sluice/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "base/integer.hpp"
#include "resp/reply_parser.hpp"

namespace sluice {
namespace {

std::string_view name_of(Value::Type type) {
  static constexpr std::string_view names[] = {
      "null",        "boolean",         "integer", "double", "big number", "simple string",
      "bulk string", "verbatim string", "error",   "array",  "set",        "map",
      "push"};
  return names[static_cast<std::size_t>(type)];
}

constexpr std::size_t most_shown = 1000;

[[noreturn]] void not_a(std::string_view wanted, const Value& value) {
  throw Error{Errc::protocol,
              fmt::format("expected {} in a reply, found {} {}", wanted, name_of(value.type()),
                          to_string(value, most_shown)),
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

/// What is no aggregate.
void append_leaf(std::string& out, const Value& value) {
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
    case Value::Type::push: return;
  }
}

bool is_nest(const Value& value) {
  return value.is_aggregate() && std::ranges::any_of(value.as_items(), [](const Value& item) {
           return item.is_aggregate() && !item.as_items().empty();
         });
}

}  // namespace

Value::Value(const Value& other) : type_(other.type_) {
  if (!other.is_aggregate()) {
    content_ = other.content_;
    return;
  }
  // Where each copy goes stays in its place: the room for all items is made before.
  std::vector<std::pair<const Items*, Items*>> left;
  const auto begin = [&left](const Value& from, Value& to) {
    const auto& items = from.as_items();
    auto& copies = to.content_.emplace<Items>();
    copies.reserve(items.size());
    if (!items.empty()) left.emplace_back(&items, &copies);
  };
  begin(other, *this);
  while (!left.empty()) {
    const auto [items, copies] = left.back();
    left.pop_back();
    for (const Value& item : *items) {
      if (item.is_aggregate()) {
        Value& copy = copies->emplace_back();
        copy.type_ = item.type_;
        begin(item, copy);
      } else {
        copies->push_back(item);
      }
    }
  }
}

/// Takes aggregates within aggregates out of each other, so that no end of one ends another.
void Value::take_apart() noexcept {
  std::vector<Value> nests;
  const auto take = [&nests](Items& items) {
    for (Value& item : items)
      if (is_nest(item)) nests.push_back(std::move(item));
  };
  try {
    take(std::get<Items>(content_));
    while (!nests.empty()) {
      Value nest = std::move(nests.back());
      nests.pop_back();
      take(std::get<Items>(nest.content_));
    }
  } catch (const std::bad_alloc&) {  // then they end inside each other
  }
}

bool operator==(const Value& one, const Value& other) {
  const auto same_but_items = [](const Value& a, const Value& b) {
    if (a.type_ != b.type_ || a.content_.index() != b.content_.index()) return false;
    return a.is_aggregate() ? a.as_items().size() == b.as_items().size() : a.content_ == b.content_;
  };
  if (!same_but_items(one, other)) return false;
  if (!one.is_aggregate()) return true;
  std::vector<std::pair<const Value::Items*, const Value::Items*>> left{
      {&one.as_items(), &other.as_items()}};
  while (!left.empty()) {
    const auto [a, b] = left.back();
    left.pop_back();
    for (std::size_t i = 0; i < a->size(); ++i) {
      if (!same_but_items((*a)[i], (*b)[i])) return false;
      if ((*a)[i].is_aggregate()) left.emplace_back(&(*a)[i].as_items(), &(*b)[i].as_items());
    }
  }
  return true;
}

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

std::string to_string(const Value& value, std::size_t most) {
  struct Open {
    const Value::Items& items;
    std::size_t next;
  };
  std::string text;
  std::vector<Open> open;
  const auto show = [&](const Value& one) {
    if (!one.is_aggregate()) return append_leaf(text, one);
    if (one.type() != Value::Type::array) text += name_of(one.type());
    text += '[';
    open.push_back({one.as_items(), 0});
  };
  show(value);
  while (!open.empty() && text.size() <= most) {
    auto& [items, next] = open.back();
    if (next == items.size()) {
      text += ']';
      open.pop_back();
      continue;
    }
    if (next > 0) text += ", ";
    show(items[next++]);
  }
  if (text.size() <= most) return text;
  text.resize(most);
  return text + "...";
}

namespace {

/// One line that a terminal may be shown, of a length for a message.
std::string one_line(std::string_view reply) {
  constexpr std::size_t longest = 4096;
  std::string text{reply.substr(0, longest)};
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return reply.size() > longest ? text + "..." : text;
}

}  // namespace

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
  // What a proxy says of a request that it could not send, or whose reply it never got.
  static constexpr std::string_view unsent[] = {"ERR Connection refused", "ERR Host is down"};
  static constexpr std::string_view unanswered[] = {"ERR Connection timed out",
                                                    "ERR Connection reset by peer", "ERR unknown"};
  if (reply.starts_with(resp::beyond_a_limit))  // the server has answered
    return {Errc::protocol, one_line(reply.substr(reply.find(' ') + 1)), Effect::done};
  for (const auto beginning : {resp::unreached, resp::unanswered})
    if (reply.starts_with(beginning))
      return {Errc::connection, one_line(reply.substr(beginning.size())),
              beginning == resp::unreached ? Effect::none : Effect::unknown};
  // Since 7.0 a script's error ends with " script: SHA, on @user_script:LINE."; that tail is for
  // programs. What the script wrote before the error stays.
  // Redis 6 begins with "ERR Error running script (call to f_SHA): ".
  const auto tail = reply.rfind(" script: ");
  const bool in_script = tail != std::string_view::npos ||
                         reply.find("@user_script:") != std::string_view::npos ||
                         reply.starts_with("ERR Error running script");
  std::string text = one_line(reply.substr(0, tail));
  auto code = reply;
  if (const auto at = reply.find(": -");
      reply.starts_with("ERR Error running script") && at != std::string_view::npos)
    code.remove_prefix(at + 3);  // what the script's call was answered
  for (const auto& row : rows)
    if (code.starts_with(row.beginning))
      return {row.errc, std::move(text),
              in_script && !row.before_any_write ? Effect::unknown : Effect::none};
  if (std::ranges::find(unsent, reply) != std::end(unsent))
    return {Errc::connection, "a proxy says of its server: " + text, Effect::none};
  if (std::ranges::find(unanswered, reply) != std::end(unanswered))
    return {Errc::connection, "a proxy says of its server: " + text, Effect::unknown};
  const bool is_unanswered = reply == "ERR the server's reply is beyond reply_size_limit";
  return {in_script ? Errc::script : Errc::server, std::move(text),
          in_script || is_unanswered ? Effect::unknown : Effect::none};
}

}  // namespace sluice
