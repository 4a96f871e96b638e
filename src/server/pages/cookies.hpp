/// Cookies (RFC 6265) of pages: none of them is for scripts, and none goes to another site.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "http/response.hpp"

namespace sluice::server {

/// What the browser has under that name; empty: nothing, or twice.
std::string cookie_of(const http::Request& request, std::string_view name);

struct Cookie {
  std::string_view name;
  std::string value;  ///< as tokens are: nothing of it is escaped
  std::string path;
  std::optional<std::chrono::seconds> max_age = {};  ///< empty: until the browser is closed
};

/// The value of Set-Cookie. Secure where the browser came by TLS.
std::string cookie_text(const http::Request& request, const Cookie& cookie);
void set_cookie(http::Response& response, const http::Request& request, const Cookie& cookie);

}  // namespace sluice::server
