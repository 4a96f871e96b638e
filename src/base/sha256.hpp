/// SHA-256 and HMAC-SHA-256 (FIPS 180-4, RFC 2104), and a comparison that takes as long whatever
/// differs: signatures of tokens and messages, and promises that are shown later.
#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// 32 bytes.
std::string sha256(std::string_view bytes);
/// 32 bytes.
std::string hmac_sha256(std::string_view key, std::string_view bytes);
/// Of texts of one length, the time does not tell where they differ.
bool equal_in_constant_time(std::string_view one, std::string_view other);

}  // namespace sluice
