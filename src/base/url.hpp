/// A URL, taken apart. No message of this file quotes a URL as a whole: it may hold a password.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct Url {
  struct Server {
    std::string host;  ///< without brackets
    std::optional<std::uint16_t> port{};
  };

  std::string scheme;          ///< lower case
  bool has_authority = false;  ///< "//" was there
  std::string user;
  std::string password;
  std::vector<Server> servers;  ///< at least one behind "//", perhaps with an empty host
  std::string path;             ///< decoded, with its first '/'
  /// What stands between the '/' of the path, each decoded: an encoded '/' does not part them.
  std::vector<std::string> segments;
  std::map<std::string, std::string, std::less<>> query;
};

inline bool names_a_host(const Url& url) {
  const auto is_named = [](const Url::Server& server) {
    return !server.host.empty() || server.port;
  };
  return std::ranges::any_of(url.servers, is_named);
}

/// Throws Error{bad_argument} that says which part is wrong.
Url parse_url(std::string_view text);

/// As a part of a URL: all but letters, digits and "-._~" as '%' and two hex digits.
std::string percent_encoded(std::string_view text);

/// Throws Error{bad_argument}.
[[noreturn]] void refuse(const std::string& why);
/// Throws Error{bad_argument} if the URL has a setting that is not `known`.
void refuse_unknown_settings(const Url& url, std::span<const std::string_view> known);

/// A whole number of 0 to `most`.
std::uint64_t parse_number(std::string_view text, std::uint64_t most, std::string_view what);

}  // namespace sluice
