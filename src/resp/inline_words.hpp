/// A line as a person types it, split into words the way Redis does: blanks, "double quotes" with
/// \n \r \t \b \a \xhh, 'single quotes' with \'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::resp {

/// Appends the words of `line` to `words`; they lie in `text`, which is overwritten. False: a quote
/// is not closed, or closed in the middle of a word. A NUL ends the line, as in Redis.
bool split_inline(std::string_view line, std::string& text, std::vector<std::string_view>& words);

}  // namespace sluice::resp
