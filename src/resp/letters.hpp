/// Names of commands and options are ASCII, in any case; the locale does not matter.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::resp {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

/// REQUIRES: `lower_case` is in lower case.
constexpr bool is_word(std::string_view word, std::string_view lower_case) noexcept {
  if (word.size() != lower_case.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i)
    if (lower(word[i]) != lower_case[i]) return false;
  return true;
}

}  // namespace sluice::resp
