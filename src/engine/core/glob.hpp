/// Patterns as KEYS, SCAN and PSUBSCRIBE know them: * ? [a-c] [^a] and \ before a character that
/// means itself.
#pragma once

#include <string_view>

namespace sluice::engine {

/// At most O(pattern * text) steps.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace sluice::engine
