#include "server/pages/texts.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "base/instant.hpp"
#include "base/json_value.hpp"
#include "sale/payment_terms.hpp"
#include "sluice/error.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t longest_text = 2000;

/// Where the next {name} stands, from `{` to behind `}`; at the end: there is none.
std::pair<std::size_t, std::size_t> next_name(std::string_view text, std::size_t from) {
  const auto begin = text.find('{', from);
  const auto end = begin == text.npos ? text.npos : text.find('}', begin);
  if (end == text.npos) return {text.size(), text.size()};
  return {begin, end + 1};
}

std::set<std::string_view> names_in(std::string_view text) {
  std::set<std::string_view> names;
  for (auto [begin, end] = next_name(text, 0); begin < text.size();
       std::tie(begin, end) = next_name(text, end))
    names.insert(text.substr(begin, end - begin));
  return names;
}

Html html_of(std::string_view text) {
  Html html;
  html << text;
  return html;
}

}  // namespace

Texts::Texts(std::string language, std::string_view json, const std::string& file,
             const Texts* like)
    : language_(std::move(language)) {
  const auto refuse = [&](std::string_view why) {
    throw Error{Errc::bad_argument, fmt::format("{}: {}", file, why)};
  };
  const auto object = JsonValue::parse(json, {.bytes = 256 << 10, .depth = 2, .members = 1000});
  if (!object) throw Error{Errc::bad_argument, file + behind_file(json, object.error())};
  if (!object->as_object()) refuse("texts stand in braces, {\"sale.buy\": \"Buy\"}");
  for (const auto& [key, value] : *object->as_object()) {
    if (!value.as_text()) refuse(fmt::format("'{}': a text in quotes is needed", key));
    if (value.as_text()->size() > longest_text)
      refuse(fmt::format("'{}' is longer than {} bytes", key, longest_text));
    if (like && !like->has(key)) refuse(fmt::format("the pages have no text '{}'", key));
    all_.emplace(key, *value.as_text());
  }
  if (!like) return;
  for (const auto& [key, text] : like->all_) {
    const auto own = all_.find(key);
    if (own == all_.end())
      refuse(fmt::format("'{}' is missing; in English it is \"{}\"", key, text));
    if (names_in(own->second) != names_in(text))
      refuse(fmt::format("'{}' needs the same names in braces as the English \"{}\"", key, text));
  }
}

Html Texts::say(std::string_view key, std::initializer_list<Put> puts) const {
  const std::string_view text = all_.find(key)->second;
  Html html;
  std::size_t from = 0;
  for (auto [begin, end] = next_name(text, 0); begin < text.size();
       std::tie(begin, end) = next_name(text, end)) {
    const auto name = text.substr(begin + 1, end - begin - 2);
    const auto* const put = std::ranges::find(puts, name, &Put::name);
    if (put == puts.end()) continue;
    html << text.substr(from, begin - from) << put->value;
    from = end;
  }
  return html << text.substr(from);
}

std::string Texts::grouped(std::int64_t number) const {
  auto text = fmt::to_string(number);
  const auto first = std::ptrdiff_t{number < 0};
  for (auto at = std::ssize(text) - 3; at > first; at -= 3)
    text.insert(static_cast<std::size_t>(at), all_.find("format.group")->second);
  return text;
}

Html Texts::number(std::int64_t number) const { return html_of(grouped(number)); }

Html Texts::money(std::int64_t amount, std::string_view currency) const {
  const int places = sale::places_of(currency);
  const std::int64_t unit = places == 0 ? 1 : places == 2 ? 100 : 1000;
  auto text = grouped(amount / unit);
  if (places > 0)
    text += fmt::format("{}{:0{}}", all_.find("format.decimal")->second, amount % unit, places);
  return say("format.money", {{"amount", html_of(text)}, {"currency", html_of(currency)}});
}

Html Texts::time(WallTime instant) const {
  const auto second = std::chrono::floor<std::chrono::seconds>(instant);
  Html html;
  html << "<time datetime=\""_html << to_text(second) << "\">"_html
       << say("format.instant", {{"year", html_of(fmt::format("{:%Y}", second))},
                                 {"month", html_of(fmt::format("{:%m}", second))},
                                 {"day", html_of(fmt::format("{:%d}", second))},
                                 {"time", html_of(fmt::format("{:%H:%M:%S}", second))}})
       << "</time>"_html;
  return html;
}

Html Texts::about(std::chrono::milliseconds time) const {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(time).count();
  if (seconds <= 5) return say("about.few");
  if (seconds < 90) return say("about.seconds", {{"n", number((seconds + 4) / 5 * 5)}});
  if (seconds < 5400) return say("about.minutes", {{"n", number((seconds + 30) / 60)}});
  return say("about.hours", {{"n", number((seconds + 1800) / 3600)}});
}

}  // namespace sluice::server
