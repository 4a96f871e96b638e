/// The payload of a token: its claims as netstrings (D. J. Bernstein, 1997), "4:text,". Of the same
/// claims there is one payload, and every other text is refused.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/token.hpp"

namespace sluice::token {

/// Throws Error (bad_argument): a claim of another size than allowed.
std::string payload_of(const TokenClaims& claims);
/// Empty: `payload` is not exactly what payload_of() writes.
std::optional<TokenClaims> claims_of(std::string_view payload);

}  // namespace sluice::token
