/// Names of the keys beside a primitive's own, as Redisson makes them: all in the slot of the name.
/// No two names share a key: tests/contract/key_names_test.cpp.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// "{name}:suffix", or "name:suffix" where the name brings its own braces.
inline std::string key_with_suffix(std::string_view name, std::string_view suffix) {
  const bool tagged = name.find('{') != std::string_view::npos;
  std::string key;
  key.reserve(name.size() + suffix.size() + 3);
  if (!tagged) key += '{';
  key += name;
  if (!tagged) key += '}';
  key += ':';
  key += suffix;
  return key;
}

/// Whether a name is a tag as a whole, such as '{x}': keys that are made of it as Redisson makes
/// them are those of 'x', which lies in the same slot.
inline bool is_whole_tag(std::string_view name) noexcept {
  return name.starts_with('{') && name.ends_with('}') && name.rfind('{') == 0;
}

/// "prefix:{name}", or "prefix:name" where the name brings its own braces; "prefix::name" where
/// that would be the key of another name.
inline std::string key_with_prefix(std::string_view prefix, std::string_view name) {
  const bool tagged = name.find('{') != std::string_view::npos;
  std::string key;
  key.reserve(name.size() + prefix.size() + 3);
  key += prefix;
  key += is_whole_tag(name) ? "::" : ":";
  if (!tagged) key += '{';
  key += name;
  if (!tagged) key += '}';
  return key;
}

/// Whether a name has no braces, or some that are a whole tag first: then the keys that are made of
/// it by what comes before and behind lie in one slot.
inline bool has_whole_tag_or_none(std::string_view name) noexcept {
  const auto opens = name.find('{');
  const auto closes = name.find('}', opens == name.npos ? 0 : opens + 1);
  return opens == name.npos ? closes == name.npos : closes != name.npos && closes > opens + 1;
}

/// As "redisson_lock_queue:{x}".
bool is_beside_another(std::string_view name) noexcept;

/// Throws Error (bad_argument) for a name whose keys would be another's: a tag as a whole, and what
/// a key beside another name is called. `what`: "lock".
void check_own_keys(std::string_view what, std::string_view name);

}  // namespace sluice
