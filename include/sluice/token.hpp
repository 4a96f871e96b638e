/// Signed tokens: what a buyer carries with him, and cannot change.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/clock.hpp"
#include "sluice/expected.hpp"

namespace sluice {

/// What a token says.
struct TokenClaims {
  /// Whose it is: a buyer, 1 to 128 bytes.
  std::string subject;
  /// What it is good for, 1 to 160 bytes: "sale:maotai", "room:maotai". It is good for nothing
  /// else.
  std::string audience;
  /// Not good from then on. Kept in milliseconds.
  WallTime expires{};
  /// Makes each token another one; up to 64 bytes. Empty: sign() takes a random one.
  std::string nonce = {};
  /// More that it says, in few words: up to 8, names of 1 to 32 bytes, values up to 128.
  std::map<std::string, std::string, std::less<>> more = {};

  friend bool operator==(const TokenClaims&, const TokenClaims&) = default;
};

/// Why a token is not taken.
enum class TokenRefusal {
  malformed,       ///< No token of ours; nothing was reckoned.
  unknown_key,     ///< Signed by a key that is not (or not any more) among these.
  forged,          ///< The signature is not that of this text.
  other_audience,  ///< Good for something else.
  other_subject,   ///< Another's.
  expired,
};
/// "malformed", "unknown_key" ...
std::string_view to_string(TokenRefusal refusal) noexcept;

/// A key with which tokens are signed and checked.
struct TokenKey {
  std::string id;      ///< 1 to 32 letters, digits, '-' or '_'; stands in each token
  std::string secret;  ///< 32 to 1024 random bytes
};

/// The keys of a service: it signs with the first, and takes what any of them has signed. So keys
/// are changed without refusing anybody: add the new one at the end, in all processes; then move it
/// to the front; take the old one away when its last token has expired.
///
/// A token is `v1.kid.payload.signature`: the payload and HMAC-SHA-256 of all that stands before it
/// in base64url. The payload is audience, subject, expiry, nonce and the rest, each as "4:text,".
///
/// Guarantee: what check() takes was signed with one of these keys, for this audience, and says
///   exactly what was signed. No token has a twin: of each there is one spelling, and all others
///   are refused. What is longer than a token is refused before anything is reckoned, and the time
///   of a comparison does not tell where a signature is wrong.
/// Not guaranteed: that who brings a token is its subject: pass the subject where you know it. That
///   a token is used once: it is good until it expires. Secrecy: who has a token can read it.
/// Threads: any.
///
///     const auto keys = TokenKeys::load("/etc/sluice/token_keys");
///     const auto token = keys.sign({.subject = "ann", .audience = "sale:maotai",
///                                   .expires = now + 1h});
///     const auto claims = keys.check(token, "sale:maotai", now);
///     if (!claims) refuse(to_string(claims.error()));
class TokenKeys {
 public:
  /// Of the longest token, in bytes.
  static constexpr std::size_t longest = 1024;
  /// Keys that may live at a time.
  static constexpr std::size_t most = 16;

  /// Throws Error (bad_argument): no key, more than `most`, an id or secret of another size or
  /// form, an id twice. No message shows a secret.
  explicit TokenKeys(std::vector<TokenKey> keys);
  /// Reads keys from a file: a key a line, `kid base64-secret`; the first one signs. Empty lines
  /// and lines that begin with '#' say nothing. `openssl rand -base64 32` makes a secret.
  /// Throws Error (bad_argument) that names the file and the line: what the other constructor
  /// refuses; a file that is none, cannot be read, is larger than 64 KiB, has no key, or that
  /// others than its owner and group may read.
  static TokenKeys load(const std::string& path);

  /// Throws Error (bad_argument): a claim of another size than allowed, or more than a token holds.
  std::string sign(const TokenClaims& claims) const;
  /// Never throws, but where memory is full. About two microseconds.
  Expected<TokenClaims, TokenRefusal> check(std::string_view token, std::string_view audience,
                                            WallTime now) const;
  /// The same of a token that is this subject's.
  Expected<TokenClaims, TokenRefusal> check(std::string_view token, std::string_view audience,
                                            std::string_view subject, WallTime now) const;

 private:
  std::vector<TokenKey> keys_;
};

}  // namespace sluice
