#include "http/asking_page.hpp"

#include <fmt/format.h>

#include <string_view>

#include "http/text.hpp"

namespace sluice::http {
namespace {

/// "https://shop.example:8443" of Host "shop.example:8443". A browser leaves out the port that its
/// scheme has anyway; some proxies do not.
bool is_of_host(std::string_view origin, std::string_view host) {
  const auto colon = origin.find("://");
  if (colon == origin.npos) return false;
  const auto page = origin.substr(colon + 3);
  const auto usual_port = origin.starts_with("https:") ? ":443" : ":80";
  return same_word(page, host) || same_word(fmt::format("{}{}", page, usual_port), host);
}

}  // namespace

AskingPage asking_page(const Request& request) {
  using enum AskingPage;
  if (request.count("Sec-Fetch-Site") > 1 || request.count("Origin") > 1) return anothers;
  if (const auto site = request.field("Sec-Fetch-Site")) {
    if (*site == "none") return unknown;
    return *site == "same-origin" ? ours : anothers;
  }
  const auto origin = request.field("Origin");
  if (!origin) return unknown;
  return is_of_host(*origin, request.field("Host").value_or("")) ? ours : anothers;
}

}  // namespace sluice::http
