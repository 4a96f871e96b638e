#include "support/wire_dump.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>
#include <stdexcept>
#include <string_view>

namespace sluice::test {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Redisson's "never", as a score.
constexpr double never = 922337203685477;

const std::string hex = "[0-9a-f]";
const std::string uuid = hex + "{8}-" + hex + "{4}-" + hex + "{4}-" + hex + "{4}-" + hex + "{12}";

/// Rounded up, and the longer the coarser, so that a slow machine sees the same: to 5 s from 10 s
/// on, to 1 s from 2 s on, else to 0.5 s.
std::string rounded_up(microseconds time) {
  const double seconds = std::chrono::duration<double>{time}.count();
  const double grain = seconds > 10 ? 5 : seconds > 2 ? 1 : 0.5;
  return fmt::format("{}s", std::ceil(seconds / grain) * grain);
}

/// A time as seen from `now`.
std::string time_class(microseconds from_now) {
  if (from_now > microseconds{0}) return "now+" + rounded_up(from_now);
  return from_now > std::chrono::seconds{-5} ? "now" : "past";
}

/// A wall time in milliseconds or microseconds, between the years 2001 and 2286.
std::optional<microseconds> wall_time(double score) {
  if (score == never || score < 1e12) return std::nullopt;
  if (score < 1e13) return milliseconds{static_cast<std::int64_t>(score)};
  if (score < 1e15 || score > 1e16) return std::nullopt;
  return microseconds{static_cast<std::int64_t>(score)};
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

std::string escaped(const std::string& text) {
  return is_printable(text) ? text : to_string(Value::bulk_string(text));
}

std::string letter_of(std::size_t number) {
  std::string text(1, static_cast<char>('A' + number % 26));
  return number < 26 ? text : text + std::to_string(number / 26);
}

}  // namespace

std::string IdLetters::letter(Letters& known, std::string_view id,
                              const std::function<std::string(std::size_t)>& next) {
  const auto found = known.find(id);
  if (found != known.end()) return found->second;
  return known.emplace(id, next(known.size())).first->second;
}

std::string IdLetters::in(std::string_view text) {
  static const std::regex ids{"(" + uuid + ":[0-9]+)|(" + uuid + ")|(" + hex + "{32}(?:-[0-9]+)?)"};
  std::string result;
  const std::string whole{text};
  std::size_t done = 0;
  for (std::sregex_iterator it{whole.begin(), whole.end(), ids}, end; it != end; ++it) {
    const auto& found = *it;
    result += whole.substr(done, static_cast<std::size_t>(found.position()) - done);
    done = static_cast<std::size_t>(found.position() + found.length());
    if (found[1].matched)
      result += letter(owners_, found.str(), letter_of);
    else if (found[2].matched)
      result += "client " + letter(clients_, found.str(), letter_of);
    else
      result +=
          letter(requests_, found.str(), [](std::size_t n) { return fmt::format("R{}", n + 1); });
  }
  return result + whole.substr(done);
}

std::string IdLetters::permit(std::string_view bytes) {
  return letter(permits_, bytes, [](std::size_t n) { return fmt::format("P{}", n + 1); });
}

WireDump::WireDump(std::uint16_t port, Show show) : show_(show), side_(port), ear_(port) {
  ear_.command({"PSUBSCRIBE", "*"});
}

bool WireDump::hides(std::string_view name) const {
  return show_ == Show::redisson && name.starts_with("sluice");
}

std::string WireDump::step() {
  const Value time = side_.command({"TIME"});
  now_ = std::chrono::seconds{time.as_items().at(0).as_integer()} +
         microseconds{time.as_items().at(1).as_integer()};
  std::string text;
  for (const auto& key : keys()) text += dump(key);
  return text + messages();
}

std::vector<WireDump::Key> WireDump::keys() {
  const Value found = side_.command({"KEYS", "*"});
  std::vector<std::string> names;
  for (const Value& name : found.as_items())
    if (!hides(name.as_text())) names.push_back(name.as_text());
  std::ranges::sort(names);
  std::vector<Key> keys;
  for (auto& name : names) keys.push_back({name, letters_.in(name)});
  std::ranges::stable_sort(keys, {}, &Key::shown);
  return keys;
}

std::string WireDump::dump(const Key& key) {
  if (key.name.starts_with("redisson_lock_token:"))
    return fmt::format("{} = {}{}\n", key.shown, counter(key.name), ttl_class(key.name));
  const std::string type = side_.command({"TYPE", key.name}).as_text();
  if (type == "string")
    return fmt::format("{} = {}{}\n", key.shown, text(key.name), ttl_class(key.name));
  const auto inside = content(key.name, type);
  return fmt::format("{} {}{}\n{}", key.shown, type, ttl_class(key.name), inside);
}

std::string WireDump::content(const std::string& key, std::string_view type) {
  struct Form {
    std::string_view type;
    std::string (WireDump::*show)(std::string_view key);
  };
  static constexpr Form forms[] = {{"hash", &WireDump::hash},
                                   {"list", &WireDump::list},
                                   {"set", &WireDump::set},
                                   {"zset", &WireDump::sorted_set}};
  const auto* const form = std::ranges::find(forms, type, &Form::type);
  if (form == std::end(forms))
    throw std::runtime_error{fmt::format("{} is a {}, which no dump shows", key, type)};
  return (this->*form->show)(key);
}

std::string WireDump::ttl_class(const std::string& key) {
  const auto left = side_.command({"PTTL", key}).as_integer();
  return left < 0 ? "" : ", ttl " + rounded_up(milliseconds{left});
}

std::string WireDump::counter(const std::string& key) {
  const auto count = static_cast<std::uint64_t>(side_.command({"GET", key}).as_integer());
  const auto before = counters_.emplace(key, count - 1).first->second;
  return fmt::format("counter {}", count - before);
}

std::string WireDump::text(std::string_view key) {
  return shown_member(side_.command({"GET", key}).as_text());
}

std::string WireDump::hash(std::string_view key) {
  const Value fields = side_.command({"HGETALL", key});
  std::vector<std::string> lines;
  for (std::size_t i = 0; i + 1 < fields.as_items().size(); i += 2) {
    const auto& field = fields.as_items()[i].as_text();
    if (hides(field)) continue;
    const auto name = shown_member(field);
    lines.push_back(
        fmt::format("  {} = {}\n", name, shown_member(fields.as_items()[i + 1].as_text())));
  }
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, ""));
}

std::string WireDump::list(std::string_view key) {
  const Value members = side_.command({"LRANGE", key, "0", "-1"});
  std::string lines;
  for (const auto& member : members.as_items())
    lines += fmt::format("  {}\n", shown_member(member.as_text()));
  return lines;
}

std::string WireDump::set(std::string_view key) {
  const Value members = side_.command({"SMEMBERS", key});
  std::vector<std::string> lines;
  for (const auto& member : members.as_items())
    lines.push_back(fmt::format("  {}\n", shown_member(member.as_text())));
  std::ranges::sort(lines);
  return fmt::format("{}", fmt::join(lines, ""));
}

std::string WireDump::sorted_set(std::string_view key) {
  const Value members = side_.command({"ZRANGE", key, "0", "-1", "WITHSCORES"});
  std::string lines;
  for (std::size_t i = 0; i + 1 < members.as_items().size(); i += 2) {
    const auto member = shown_member(members.as_items()[i].as_text());
    lines += fmt::format("  {} at {}\n", member, shown_score(members.as_items()[i + 1].as_text()));
  }
  return lines;
}

std::string WireDump::shown_score(std::string_view score) {
  const double number = Value::bulk_string(std::string{score}).as_number();
  if (number == never) return "never";
  const auto time = wall_time(number);
  if (!time) return std::string{score};
  return time_class(*time - now_);
}

/// Ids in it get their letters; the raw bytes of permits and of the rate limiter are spelled out.
std::string WireDump::shown_member(const std::string& member) {
  constexpr std::size_t permit = 16;             // bytes of an id
  constexpr std::size_t grant = 1 + permit + 4;  // its length, the id, how many permits
  if (is_printable(member)) return letters_.in(member);
  if (member.size() == permit) return letters_.permit(member);
  if (member.size() != grant || member[0] != char{permit}) return escaped(member);
  std::uint32_t count = 0;
  for (std::size_t i = grant; i-- > grant - 4;)
    count = count << 8 | static_cast<unsigned char>(member[i]);
  return fmt::format("{} x {}", letters_.permit(std::string_view{member}.substr(1, permit)), count);
}

std::string WireDump::messages() {
  const auto mark = fmt::format("sluice wire dump {}", ++steps_);
  side_.command({"PUBLISH", mark, ""});
  std::string lines;
  for (;;) {
    const Value message = ear_.read();  // pmessage, *, channel, payload
    const auto& channel = message.as_items().at(2).as_text();
    if (channel == mark) return lines;
    if (hides(channel)) continue;
    lines += fmt::format("> {} {}\n", letters_.in(channel),
                         letters_.in(escaped(message.as_items().at(3).as_text())));
  }
}

}  // namespace sluice::test
