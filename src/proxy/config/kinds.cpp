#include "proxy/config/kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

#include "base/duration.hpp"
#include "proxy/config/read.hpp"
#include "proxy/config/settings.hpp"

namespace sluice::proxy::config::kinds {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

[[noreturn]] void refuse(const Node& node, std::string_view wanted) {
  throw Problem{node.line, fmt::format("'{}' is not right here; write {}", node.text, wanted)};
}

const std::string& scalar_of(const Node& node, std::string_view wanted) {
  if (node.kind != Node::Kind::scalar)
    throw Problem{node.line, fmt::format("a list or map is not right here; write {}", wanted)};
  return node.text;
}

/// A unit that may follow a number of bytes.
struct Unit {
  std::string_view name;
  std::uint64_t size;
};
constexpr std::array units{Unit{"", 1}, Unit{"kb", 1 << 10}, Unit{"mb", 1 << 20},
                           Unit{"gb", 1 << 30}};

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string name{text.substr(digits)};
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return std::nullopt;
  const auto most = std::numeric_limits<std::uint64_t>::max() / unit->size;
  const auto number = parse_number(text.substr(0, digits), most);
  if (!number) return std::nullopt;
  return *number * unit->size;
}

/// In the largest unit that divides it.
std::string bytes_text(std::uint64_t bytes) {
  const Unit* largest = units.data();
  for (const auto& unit : units)
    if (bytes != 0 && bytes % unit.size == 0) largest = &unit;
  return fmt::format("{}{}", bytes / largest->size, largest->name);
}

std::uint64_t number_of(const Node& node, const SettingRow& row) {
  const auto wanted =
      fmt::format("a number from {} to {}, decimal digits alone", row.least, row.most);
  const auto number = parse_number(scalar_of(node, wanted), row.most);
  if (!number || *number < row.least) refuse(node, wanted);
  return *number;
}

microseconds duration_of(const Node& node, const SettingRow& row) {
  const auto wanted =
      fmt::format("a time from {}ms to {}ms, like 250ms, 30s or 5m", row.least, row.most);
  const auto time = parse_duration(scalar_of(node, wanted), milliseconds{1});
  if (!time || *time < milliseconds{row.least} || *time > milliseconds{row.most})
    refuse(node, wanted);
  return *time;
}

template <class Value>
struct Named {
  Value value;
  std::string_view name;
};

template <class Value>
constexpr auto choices = nullptr;
template <>
constexpr auto choices<Compat> = std::to_array<Named<Compat>>({{Compat::relaxed, "relaxed"},
                                                               {Compat::strict, "strict"}});
template <>
constexpr auto choices<OnFailure> = std::to_array<Named<OnFailure>>({{OnFailure::rehash, "rehash"},
                                                                     {OnFailure::fail, "fail"}});
template <>
constexpr auto choices<CharSign> = std::to_array<Named<CharSign>>({{CharSign::is_signed, "x86"},
                                                                   {CharSign::is_unsigned, "arm"}});
template <>
const auto choices<Hash> = [] {
  std::vector<Named<Hash>> all;
  for (const auto hash : all_hashes()) all.push_back({hash, to_string(hash)});
  return all;
}();
template <>
const auto choices<Distribution> = [] {
  std::vector<Named<Distribution>> all;
  for (const auto each : {Distribution::ketama, Distribution::modula, Distribution::random})
    all.push_back({each, to_string(each)});
  return all;
}();

}  // namespace

void Text::read(const Node& node, const SettingRow&, std::string& value) {
  value = scalar_of(node, "a text");
}
std::string Text::text(const std::string& value) { return value; }

void Secret::read(const Node& node, const SettingRow&, std::string& value) {
  value = scalar_of(node, "a text");
  if (value.empty()) refuse(node, "a text, or remove the line");
}
std::string Secret::text(const std::string& value) { return value.empty() ? "" : "***"; }

void Flag::read(const Node& node, const SettingRow&, bool& value) {
  const auto& text = scalar_of(node, "true or false");
  if (text != "true" && text != "false") refuse(node, "true or false");
  value = text == "true";
}
std::string Flag::text(bool value) { return value ? "true" : "false"; }

void Count::read(const Node& node, const SettingRow& row, std::size_t& value) {
  value = number_of(node, row);
}
void Count::read(const Node& node, const SettingRow& row, int& value) {
  value = static_cast<int>(number_of(node, row));
}
std::string Count::text(std::size_t value) { return std::to_string(value); }

void Bytes::read(const Node& node, const SettingRow& row, std::size_t& value) {
  const auto wanted = fmt::format("from {} to {} bytes, like 16kb, 64mb or 1gb",
                                  bytes_text(row.least), bytes_text(row.most));
  const auto amount = parse_bytes(scalar_of(node, wanted));
  if (!amount || *amount < row.least || *amount > row.most) refuse(node, wanted);
  value = *amount;
}
std::string Bytes::text(std::size_t value) { return bytes_text(value); }

void Milliseconds::read(const Node& node, const SettingRow& row, milliseconds& value) {
  value = milliseconds{number_of(node, row)};
}
void Milliseconds::read(const Node& node, const SettingRow& row,
                        std::optional<milliseconds>& value) {
  const auto number = number_of(node, row);
  value.reset();
  if (number > 0) value.emplace(number);
}
std::string Milliseconds::text(std::optional<milliseconds> value) {
  return std::to_string(value.value_or(milliseconds{0}).count());
}

void Duration::read(const Node& node, const SettingRow& row, milliseconds& value) {
  value = std::chrono::ceil<milliseconds>(duration_of(node, row));
}
void Duration::read(const Node& node, const SettingRow& row, microseconds& value) {
  value = duration_of(node, row);
}
std::string Duration::text(microseconds value) { return duration_text(value); }

void Tag::read(const Node& node, const SettingRow&, std::optional<HashTag>& value) {
  const auto& text = scalar_of(node, "two characters");
  if (text.size() != 2) refuse(node, "two characters, like \"{}\" in quotes");
  value = HashTag{text[0], text[1]};
}
std::string Tag::text(std::optional<HashTag> value) {
  return value ? std::string{value->open, value->close} : "";
}

template <class Value>
void Choice<Value>::read(const Node& node, const SettingRow&, Value& value) {
  const auto& all = choices<Value>;
  std::vector<std::string_view> names;
  for (const auto& each : all) names.push_back(each.name);
  const auto wanted = fmt::format("one of {}", fmt::join(names, ", "));
  const auto found = std::ranges::find(all, scalar_of(node, wanted), &Named<Value>::name);
  if (found == all.end()) refuse(node, wanted);
  value = found->value;
}
template <class Value>
std::string Choice<Value>::text(Value value) {
  const auto& all = choices<Value>;
  return std::string{std::ranges::find(all, value, &Named<Value>::value)->name};
}
template struct Choice<Hash>;
template struct Choice<Distribution>;
template struct Choice<Compat>;
template struct Choice<OnFailure>;
template struct Choice<CharSign>;

void Address::read(const Node& node, const SettingRow&, std::string& value) {
  value = scalar_of(node, "host:port, or /path of a unix socket");
  if (!value.empty()) parse_address(value);
}
std::string Address::text(const std::string& value) { return value; }

void ListenAddress::read(const Node& node, const SettingRow&, Listen& value) {
  value = parse_listen(scalar_of(node, "host:port, or /path of a unix socket"));
}
std::string ListenAddress::text(const Listen& value) { return value.text; }

}  // namespace sluice::proxy::config::kinds
