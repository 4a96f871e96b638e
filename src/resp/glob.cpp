#include "resp/glob.hpp"

#include <utility>

namespace sluice::resp {
namespace {

/// Matches one character against the class that opens at `i` ("[..."); leaves `i` behind it.
/// An unfinished class ends with the pattern.
bool class_matches(std::string_view pattern, std::size_t& i, char c) noexcept {
  ++i;
  const bool negated = i < pattern.size() && pattern[i] == '^';
  if (negated) ++i;
  bool found = false;
  const auto byte = static_cast<unsigned char>(c);
  for (; i < pattern.size() && pattern[i] != ']'; ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      found |= pattern[++i] == c;
    } else if (i + 2 < pattern.size() && pattern[i + 1] == '-') {
      auto low = static_cast<unsigned char>(pattern[i]);
      auto high = static_cast<unsigned char>(pattern[i + 2]);
      if (low > high) std::swap(low, high);
      found |= low <= byte && byte <= high;
      i += 2;
    } else {
      found |= pattern[i] == c;
    }
  }
  if (i < pattern.size()) ++i;
  return found != negated;
}

/// Matches one character against the element at `i`; leaves `i` behind it. REQUIRES: pattern[i] is
/// no '*'.
bool element_matches(std::string_view pattern, std::size_t& i, char c) noexcept {
  switch (pattern[i]) {
    case '?': ++i; return true;
    case '[': return class_matches(pattern, i, c);
    case '\\':
      if (i + 1 < pattern.size()) ++i;
      [[fallthrough]];
    default: return pattern[i++] == c;
  }
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view text) noexcept {
  // After a mismatch only the latest '*' has to be tried again, with one character more.
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = ++p;
      star_text = t;
      continue;
    }
    if (p < pattern.size() && element_matches(pattern, p, text[t])) {
      ++t;
      continue;
    }
    if (star == std::string_view::npos) return false;
    p = star;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace sluice::resp
