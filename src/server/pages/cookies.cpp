#include "server/pages/cookies.hpp"

#include <fmt/format.h>

#include "http/text.hpp"

namespace sluice::server {

std::string cookie_of(const http::Request& request, std::string_view name) {
  std::optional<std::string> value;
  for (const auto& field : request.fields()) {
    if (!http::same_word(field.name, "Cookie")) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const auto pair = http::trimmed(rest.substr(0, rest.find(';')));
      rest.remove_prefix(std::min(rest.size(), rest.find(';')));
      if (!rest.empty()) rest.remove_prefix(1);
      const auto equals = pair.find('=');
      if (equals == pair.npos || pair.substr(0, equals) != name) continue;
      if (value) return {};  // which of them another site has put there is not known
      value = pair.substr(equals + 1);
    }
  }
  return value.value_or(std::string{});
}

std::string cookie_text(const http::Request& request, const Cookie& cookie) {
  auto text =
      fmt::format("{}={}; Path={}; HttpOnly; SameSite=Lax", cookie.name, cookie.value, cookie.path);
  if (cookie.max_age) text += fmt::format("; Max-Age={}", cookie.max_age->count());
  if (request.came_by_tls()) text += "; Secure";
  return text;
}

void set_cookie(http::Response& response, const http::Request& request, const Cookie& cookie) {
  response.add("Set-Cookie", cookie_text(request, cookie));
}

}  // namespace sluice::server
