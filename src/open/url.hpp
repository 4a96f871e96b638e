/// A URL, taken apart. No message of this file quotes a URL as a whole: it may hold a password.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

struct Url {
  std::string scheme;          ///< lower case
  bool has_authority = false;  ///< "//" was there
  std::string user;
  std::string password;
  std::string host;  ///< without brackets
  std::optional<std::uint16_t> port;
  std::string path;  ///< decoded, with its first '/'
  std::map<std::string, std::string, std::less<>> query;
};

/// Throws Error{bad_argument} that says which part is wrong.
Url parse_url(std::string_view text);

/// Throws Error{bad_argument}.
[[noreturn]] void refuse(const std::string& why);
/// Throws Error{bad_argument} if the URL has a setting that is not `known`.
void refuse_unknown_settings(const Url& url, std::span<const std::string_view> known);

/// A whole number of 0 to `most`.
std::uint64_t parse_number(std::string_view text, std::uint64_t most, std::string_view what);

}  // namespace sluice
