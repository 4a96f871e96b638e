/// Base64 (RFC 4648). Of each text of bytes there is one encoding: what is not exactly that is
/// refused, so that no signed text has a twin.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// With padding, as section 4 has it.
std::string base64(std::string_view bytes);
std::optional<std::string> from_base64(std::string_view text);

/// With '-' and '_', without padding, as section 5 and JSON Web Tokens have it.
std::string base64url(std::string_view bytes);
std::optional<std::string> from_base64url(std::string_view text);

}  // namespace sluice
