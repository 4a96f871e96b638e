/// Text of words with single spaces between them: messages, tickets, what is kept for people.
#pragma once

#include <algorithm>
#include <string_view>

namespace sluice::lock {

/// The next word of `text`, which loses it; the last words may hold spaces: what is left is theirs.
inline std::string_view take_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace sluice::lock
