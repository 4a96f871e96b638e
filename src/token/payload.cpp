#include "token/payload.hpp"

#include <fmt/format.h>

#include "base/integer.hpp"
#include "sluice/error.hpp"

namespace sluice::token {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t longest_audience = 160;
constexpr std::size_t longest_subject = 128;
constexpr std::size_t longest_nonce = 64;
constexpr std::size_t longest_name = 32;
constexpr std::size_t longest_value = 128;
constexpr std::size_t most_claims = 8;

/// What is wrong with the claims; empty: nothing is.
std::string fault_of(const TokenClaims& claims) {
  const auto wrong = [](std::string_view what, std::string_view text, std::size_t least,
                        std::size_t most) {
    return text.size() < least || text.size() > most
               ? fmt::format("the {} of a token has {} bytes, it must have {} to {}", what,
                             text.size(), least, most)
               : std::string{};
  };
  if (auto fault = wrong("audience", claims.audience, 1, longest_audience); !fault.empty())
    return fault;
  if (auto fault = wrong("subject", claims.subject, 1, longest_subject); !fault.empty())
    return fault;
  if (auto fault = wrong("nonce", claims.nonce, 0, longest_nonce); !fault.empty()) return fault;
  if (claims.expires < WallTime{}) return "a token cannot expire before 1970";
  if (claims.more.size() > most_claims)
    return fmt::format("a token has {} more claims, it may have {}", claims.more.size(),
                       most_claims);
  for (const auto& [name, value] : claims.more) {
    if (auto fault = wrong("name of a claim", name, 1, longest_name); !fault.empty()) return fault;
    if (auto fault = wrong("value of a claim", value, 0, longest_value); !fault.empty())
      return fault;
  }
  return {};
}

void append(std::string& payload, std::string_view text) {
  payload += fmt::format("{}:{},", text.size(), text);
}

std::string written(const TokenClaims& claims) {
  std::string payload;
  append(payload, claims.audience);
  append(payload, claims.subject);
  append(payload, fmt::to_string(
                      std::chrono::floor<milliseconds>(claims.expires.time_since_epoch()).count()));
  append(payload, claims.nonce);
  for (const auto& [name, value] : claims.more) {
    append(payload, name);
    append(payload, value);
  }
  return payload;
}

/// Removes the first text from `payload`.
std::optional<std::string> take(std::string_view& payload) {
  const auto colon = payload.find(':');
  if (colon == payload.npos) return std::nullopt;
  const auto size = parse_integer<std::size_t>(payload.substr(0, colon));
  payload.remove_prefix(colon + 1);
  if (!size || *size >= payload.size() || payload[*size] != ',') return std::nullopt;
  std::string text{payload.substr(0, *size)};
  payload.remove_prefix(*size + 1);
  return text;
}

}  // namespace

std::string payload_of(const TokenClaims& claims) {
  if (auto fault = fault_of(claims); !fault.empty()) throw Error{Errc::bad_argument, fault};
  return written(claims);
}

std::optional<TokenClaims> claims_of(std::string_view payload) {
  auto rest = payload;
  auto audience = take(rest);
  auto subject = take(rest);
  const auto expires = take(rest);
  auto nonce = take(rest);
  if (!audience || !subject || !expires || !nonce) return std::nullopt;
  const auto ms = parse_integer<std::int64_t>(*expires);
  constexpr std::int64_t end_of_time = std::int64_t{1} << 52;  // in microseconds it still counts
  if (!ms || *ms < 0 || *ms > end_of_time) return std::nullopt;
  TokenClaims claims{.subject = std::move(*subject),
                     .audience = std::move(*audience),
                     .expires = WallTime{milliseconds{*ms}},
                     .nonce = std::move(*nonce)};
  while (!rest.empty()) {
    auto name = take(rest);
    auto value = take(rest);
    if (!name || !value) return std::nullopt;
    claims.more.emplace(std::move(*name), std::move(*value));
  }
  // Leading zeros, claims twice or in another order: what is not written so was not written by us.
  if (!fault_of(claims).empty() || written(claims) != payload) return std::nullopt;
  return claims;
}

}  // namespace sluice::token
