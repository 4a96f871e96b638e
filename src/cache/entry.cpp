#include "cache/entry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/integer.hpp"
#include "sluice/error.hpp"
#include "store/key_name.hpp"

namespace sluice::cache {
namespace {

constexpr std::string_view family = "SLC";
constexpr std::string_view version = "SLC1";
constexpr std::size_t longest_head = 64;
constexpr std::int64_t latest_us = std::int64_t{1} << 53;  // what scripts count exactly: year 2255

Error foreign(std::string_view key) {
  return Error{Errc::wrong_type,
               fmt::format("'{}' holds something that no cache guard has written: give the guard "
                           "another name, or delete the key",
                           shown(key))};
}

}  // namespace

std::string shown(std::string_view key) {
  constexpr std::size_t most = 200;
  std::string text{key.substr(0, most)};
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  if (key.size() > most) text += "...";
  return text;
}

std::optional<Entry> parse_entry(std::string_view text, std::string_view key) {
  if (!text.starts_with(family)) throw foreign(key);
  if (!text.starts_with(version)) return std::nullopt;
  const auto end = text.substr(0, longest_head).find('\n');
  if (end == text.npos) throw foreign(key);

  Entry entry;
  entry.head = text.substr(0, end + 1);
  entry.payload = text.substr(end + 1);
  auto words = text.substr(version.size(), end - version.size());
  if (!words.starts_with("v ") && !words.starts_with("a ")) throw foreign(key);
  entry.is_absent = words.front() == 'a';
  words.remove_prefix(2);
  const auto blank = std::min(words.find(' '), words.size());
  const auto time_of = [key](std::string_view word) {
    const auto us = parse_integer<std::int64_t>(word);
    if (!us || *us < 0 || *us > latest_us) throw foreign(key);
    return *us;
  };
  entry.fresh_until_us = time_of(words.substr(0, blank));
  entry.load_us = time_of(words.substr(std::min(blank + 1, words.size())));
  return entry;
}

Names::Names(std::string name) : name_(std::move(name)), prefix_(name_ + ':') {}

void Names::value_into(std::string& made, std::string_view key) const {
  made.reserve(prefix_.size() + key.size());
  made = prefix_;
  for (const char c : key) {
    switch (c) {
      case '{': made += "%7B"; break;
      case '}': made += "%7D"; break;
      case '%': made += "%25"; break;
      case ':': made += "%3A"; break;
      default: made += c;
    }
  }
}

std::optional<std::string> Names::value_in(std::string_view key, bool of_lease) const {
  std::string_view found = key;
  if (of_lease) {
    found.remove_prefix(std::min(found.find(':') + 1, found.size()));
    const bool is_wrapped = !found.starts_with(prefix_) && found.size() > 1;
    if (is_wrapped) found = found.substr(1, found.size() - 2);
    if (lease_of(found) != key) return std::nullopt;
  }
  if (!found.starts_with(prefix_)) return std::nullopt;
  if (found.find_first_of(":{}", prefix_.size()) != found.npos) return std::nullopt;
  return std::string{found};
}

std::string Names::pattern(bool of_lease) const {
  std::string made = of_lease ? "sluice_cache_lease:*" : "";
  for (const char c : prefix_) {
    if (std::string_view{"*?[]^\\"}.find(c) != std::string_view::npos) made += '\\';
    made += c;
  }
  return made + '*';
}

std::string Names::lease_of(std::string_view value_key) {
  return key_with_prefix("sluice_cache_lease", value_key);
}

std::string Names::channel() const { return key_with_prefix("sluice_cache", name_); }
std::string Names::absent_budget() const { return key_with_prefix("sluice_cache_absent", name_); }
std::string Names::second_invalidations() const {
  return key_with_prefix("sluice_cache_again", name_);
}

}  // namespace sluice::cache
