#include "server/pages/visitors.hpp"

#include <fmt/format.h>

#include "base/random.hpp"
#include "http/asking_page.hpp"
#include "http/text.hpp"
#include "server/bearer.hpp"
#include "server/pages/cookies.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view buyer_cookie = "sluice_buyer";
/// Of a name of its own: a browser that tried the sale before there were keys would send both.
constexpr std::string_view browser_cookie = "sluice_browser";
constexpr std::string_view browser_audience = "browser";
constexpr std::chrono::hours name_lasts{24 * 30};
/// A page may lie open for a day before its form is sent.
constexpr std::chrono::hours form_lasts{24};

WallTime page_time() { return system_clock().wall(); }

std::string form_audience(std::string_view sale) { return fmt::format("form:{}", sale); }

}  // namespace

std::string path_of_page(std::string_view sale) { return "/sales/" + http::escape(sale); }

std::string_view Visitors::cookie_name() const noexcept {
  return buyers_.has_keys() ? buyer_cookie : browser_cookie;
}

std::optional<BuyerId> Visitors::known(const http::Request& request, std::string_view sale) const {
  const auto cookie = cookie_of(request, cookie_name());
  if (cookie.empty()) return std::nullopt;
  if (buyers_.has_keys()) {
    auto buyer = buyers_.check(cookie, sale);
    return buyer ? std::optional{std::move(*buyer)} : std::nullopt;
  }
  auto claims = keys_.check(cookie, browser_audience, page_time());
  return claims ? std::optional{BuyerId{std::move(claims->subject)}} : std::nullopt;
}

Expected<Visitors::Visitor, http::Response> Visitors::who_looks(const http::Request& request,
                                                                std::string_view sale) const {
  Visitor visitor{.buyer = known(request, sale)};
  if (auto stopped = buyers_.stop(request, visitor.buyer)) return Unexpected{std::move(*stopped)};
  if (visitor.buyer || buyers_.has_keys()) return visitor;
  visitor.buyer = BuyerId{"browser-" + random_hex_128()};
  visitor.is_new = true;
  visitor.cookie = keys_.sign({.subject = visitor.buyer->value,
                               .audience = std::string{browser_audience},
                               .expires = page_time() + name_lasts});
  return visitor;
}

void Visitors::keep(http::Response& response, const http::Request& request,
                    const Visitor& visitor) const {
  if (!visitor.is_new) return;
  set_cookie(
      response, request,
      {.name = browser_cookie, .value = visitor.cookie, .path = "/sales", .max_age = name_lasts});
}

std::string Visitors::form_token(const BuyerId& buyer, std::string_view sale) const {
  return keys_.sign({.subject = buyer.value,
                     .audience = form_audience(sale),
                     .expires = page_time() + form_lasts});
}

Expected<BuyerId, http::Response> Visitors::who_sends(const http::Request& request,
                                                      const Form& form,
                                                      std::string_view sale) const {
  if (http::asking_page(request) == http::AskingPage::anothers)
    return Unexpected{http::problem(problems::not_yours, "a page of another site sends this form")};
  auto buyer = known(request, sale);
  if (auto stopped = buyers_.stop(request, buyer)) return Unexpected{std::move(*stopped)};
  if (!buyer)
    return Unexpected{
        refuse_credentials(problems::unknown_buyer,
                           "your browser has lost its cookie, or it has expired: come again")};
  if (!keys_.check(form.value("form"), form_audience(sale), buyer->value, page_time()))
    return Unexpected{http::problem(problems::not_yours,
                                    "the form is not yours, or too old: load the page anew")};
  return std::move(*buyer);
}

Expected<BuyerId, http::Response> Visitors::who_is_brought(const http::Request& request,
                                                           std::string_view sale,
                                                           const std::string& token) const {
  if (!buyers_.has_keys())
    return Unexpected{http::problem(problems::bad_parameter, "buyers have no tokens here")};
  auto buyer = buyers_.check(token, sale);
  if (auto stopped = buyers_.stop(request, buyer ? std::optional{*buyer} : std::nullopt))
    return Unexpected{std::move(*stopped)};
  if (!buyer)
    return Unexpected{refuse_credentials(
        problems::unknown_buyer, "the token is none of this sale, or has expired: log in again")};
  return std::move(*buyer);
}

http::Response Visitors::greet(const http::Request& request, std::string_view sale,
                               const std::string& token) {
  const auto place = path_of_page(sale);
  http::Response response{.status = 303, .media = {}, .body = {}, .fields = {}};
  response.add("Location", place);
  response.add("Referrer-Policy", "no-referrer");
  set_cookie(response, request, {.name = buyer_cookie, .value = token, .path = place});
  return response;
}

}  // namespace sluice::server
