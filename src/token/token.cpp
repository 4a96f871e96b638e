#include "sluice/token.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/base64.hpp"
#include "base/random.hpp"
#include "base/sha256.hpp"
#include "sluice/error.hpp"
#include "token/payload.hpp"

namespace sluice {
namespace {

constexpr std::string_view version = "v1";
constexpr std::size_t longest_id = 32;
constexpr std::size_t shortest_secret = 32;
constexpr std::size_t longest_secret = 1024;

bool is_id(std::string_view id) noexcept {
  return !id.empty() && id.size() <= longest_id && std::ranges::all_of(id, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_';
  });
}

[[noreturn]] void refuse(const std::string& why) { throw Error{Errc::bad_argument, why}; }

/// The four parts of a token; the last one is empty where there are fewer.
std::array<std::string_view, 4> parts_of(std::string_view token) noexcept {
  std::array<std::string_view, 4> parts;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto end = token.find('.');
    if (end == token.npos) return {};
    parts[i] = token.substr(0, end);
    token.remove_prefix(end + 1);
  }
  parts.back() = token;
  return parts;
}

Unexpected<TokenRefusal> refused(TokenRefusal why) { return Unexpected{why}; }

}  // namespace

TokenKeys::TokenKeys(std::vector<TokenKey> keys) : keys_(std::move(keys)) {
  if (keys_.empty()) refuse("tokens need a key");
  if (keys_.size() > most)
    refuse(fmt::format("{} keys for tokens, there may be {}", keys_.size(), most));
  for (auto key = keys_.begin(); key != keys_.end(); ++key) {
    if (!is_id(key->id))
      refuse(fmt::format("the id of a key for tokens has 1 to {} letters, digits, '-' or '_'",
                         longest_id));
    if (std::any_of(keys_.begin(), key, [&](const auto& other) { return other.id == key->id; }))
      refuse(fmt::format("two keys for tokens have the id '{}'", key->id));
    if (key->secret.size() < shortest_secret || key->secret.size() > longest_secret)
      refuse(fmt::format("the secret of key '{}' has {} bytes, it must have {} to {}", key->id,
                         key->secret.size(), shortest_secret, longest_secret));
  }
}

std::string TokenKeys::sign(const TokenClaims& claims) const {
  auto all = claims;
  if (all.nonce.empty()) all.nonce = random_hex_128();
  const auto& key = keys_.front();
  auto text = fmt::format("{}.{}.{}", version, key.id, base64url(token::payload_of(all)));
  const auto signature = base64url(hmac_sha256(key.secret, text));
  text += '.';
  text += signature;
  if (text.size() > longest)
    refuse(
        fmt::format("a token of {} bytes, it may have {}: say less in it", text.size(), longest));
  return text;
}

Expected<TokenClaims, TokenRefusal> TokenKeys::check(std::string_view token,
                                                     std::string_view audience,
                                                     WallTime now) const {
  if (token.size() > longest) return refused(TokenRefusal::malformed);
  const auto [head, id, payload, signature] = parts_of(token);
  if (head != version || !is_id(id)) return refused(TokenRefusal::malformed);
  const auto given = from_base64url(signature);
  const auto said = from_base64url(payload);
  if (!given || !said) return refused(TokenRefusal::malformed);
  const auto key = std::ranges::find(keys_, id, &TokenKey::id);
  if (key == keys_.end()) return refused(TokenRefusal::unknown_key);
  const auto text = token.substr(0, token.size() - signature.size() - 1);
  if (!equal_in_constant_time(hmac_sha256(key->secret, text), *given))
    return refused(TokenRefusal::forged);
  // Only now is it worth reading.
  auto claims = token::claims_of(*said);
  if (!claims) return refused(TokenRefusal::malformed);
  if (claims->audience != audience) return refused(TokenRefusal::other_audience);
  if (claims->expires <= now) return refused(TokenRefusal::expired);
  return std::move(*claims);
}

Expected<TokenClaims, TokenRefusal> TokenKeys::check(std::string_view token,
                                                     std::string_view audience,
                                                     std::string_view subject, WallTime now) const {
  auto claims = check(token, audience, now);
  if (claims && claims->subject != subject) return refused(TokenRefusal::other_subject);
  return claims;
}

std::string_view to_string(TokenRefusal refusal) noexcept {
  constexpr std::array<std::string_view, 6> names{"malformed",      "unknown_key",   "forged",
                                                  "other_audience", "other_subject", "expired"};
  return names[static_cast<std::size_t>(refusal)];
}

}  // namespace sluice
