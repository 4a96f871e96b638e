/// Patterns as Redis reads them.
#pragma once

#include <string_view>

namespace sluice::resp {

/// As KEYS, SCAN, PSUBSCRIBE and the rights of ACL know them: * ? [a-c] [^a] and \ before a
/// character that means itself. At most O(pattern * text) steps.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace sluice::resp
