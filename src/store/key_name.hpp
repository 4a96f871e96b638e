/// Names of the keys beside a primitive's own, as Redisson makes them: all in the slot of the name.
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

/// Appends "prefix:{name}", or "prefix:name" where the name brings its own braces.
template <class Text>
void append_key_with_prefix(Text& text, std::string_view prefix, std::string_view name) {
  const bool tagged = name.find('{') != std::string_view::npos;
  text.append(prefix);
  text.push_back(':');
  if (!tagged) text.push_back('{');
  text.append(name);
  if (!tagged) text.push_back('}');
}

inline std::string key_with_prefix(std::string_view prefix, std::string_view name) {
  std::string key;
  key.reserve(name.size() + prefix.size() + 3);
  append_key_with_prefix(key, prefix, name);
  return key;
}

}  // namespace sluice
