/// Names that users give, in checks and messages, and texts that consist of words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/store.hpp"

namespace sluice::lock {

inline constexpr std::size_t longest_name = 1 << 20;

/// `name`, or Error (bad_argument) for an empty name, one above `longest_name`, and one whose keys
/// would be another's.
/// `what`: "a latch".
std::string checked_name(std::string_view what, std::string name);

/// Throws Error (bad_argument) for a name whose keys would lie in several slots of a Store that is
/// sharded: braces in it have to be a whole tag, and `channel`, if there is one, in its slot.
void check_one_slot(const Store& store, std::string_view what, const std::string& name,
                    std::string_view channel = {});

/// Throws Error (bad_argument) unless `least` <= `number` <= `most`. `what`: "the count of a
/// latch".
void check_range(std::string_view what, std::int64_t number, std::int64_t least, std::int64_t most);

/// A name for messages: printable, at most 200 bytes.
std::string quoted(const std::string& name);

/// Removes the first word from `text` and returns it. Words are separated by single spaces; the
/// last part of a text may contain spaces, and is what is left after the words before it.
inline std::string_view take_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const auto word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

/// The integer at the beginning of `text`, or 0.
std::int64_t number_in(std::string_view text);

}  // namespace sluice::lock
