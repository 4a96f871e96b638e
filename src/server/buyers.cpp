#include "server/buyers.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "server/bearer.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

constexpr std::size_t longest_id = 128;

Unexpected<http::Response> refuse_buyer(const http::ProblemType& type, std::string_view detail) {
  return Unexpected{refuse_credentials(type, detail)};
}

/// The WallTime of this process: tokens are good for minutes at least, and the issuer's clock is
/// not the store's either.
WallTime now() { return system_clock().wall(); }

std::string audience_of(std::string_view sale) { return fmt::format("sale:{}", sale); }

}  // namespace

Expected<BuyerId, http::Response> Buyers::who_asks(const http::Request& request,
                                                   std::string_view sale) const {
  auto buyer = named_by(request, sale);
  if (auto stopped = stop(request, buyer ? std::optional{*buyer} : std::nullopt))
    return Unexpected{std::move(*stopped)};
  return buyer;
}

/// Who does not say who he is, is counted by his address: he may be trying tokens.
std::optional<http::Response> Buyers::stop(const http::Request& request,
                                           const std::optional<BuyerId>& buyer) const {
  if (!limits_) return std::nullopt;
  return buyer ? limits_->stop(request, *buyer) : limits_->stop(request);
}

Expected<BuyerId, http::Response> Buyers::named_by(const http::Request& request,
                                                   std::string_view sale) const {
  if (keys_) return by_token(request, sale);
  if (request.count("Sluice-Buyer") > 1)
    return refuse_buyer(problems::unknown_buyer, "Sluice-Buyer stands there more than once");
  const auto buyer = request.field("Sluice-Buyer");
  if (!buyer || buyer->empty() || buyer->size() > longest_id || !is_utf8(*buyer))
    return refuse_buyer(problems::unknown_buyer,
                        "say who buys by the field Sluice-Buyer, of 1 to 128 bytes of UTF-8");
  return BuyerId{std::string{*buyer}};
}

Expected<BuyerId, http::Response> Buyers::by_token(const http::Request& request,
                                                   std::string_view sale) const {
  const auto token = bearer_of(request, problems::unknown_buyer);
  if (!token) return Unexpected{token.error()};
  auto buyer = check(*token, sale);
  if (buyer) return std::move(*buyer);
  if (buyer.error() == TokenRefusal::other_audience)
    return refuse_buyer(problems::not_yours, "the token is not for this sale");
  return refuse_buyer(problems::unknown_buyer, buyer.error() == TokenRefusal::expired
                                                   ? "the token has expired"
                                                   : "the token is none of this service");
}

Expected<BuyerId, TokenRefusal> Buyers::check(std::string_view token, std::string_view sale) const {
  auto claims = keys_->check(token, audience_of(sale), now());
  if (!claims && claims.error() == TokenRefusal::other_audience)
    claims = keys_->check(token, audience_of("*"), now());
  if (!claims) return Unexpected{claims.error()};
  if (!is_utf8(claims->subject)) return Unexpected{TokenRefusal::malformed};
  return BuyerId{std::move(claims->subject)};
}

std::string buyer_token(const TokenKeys& keys, const std::string& buyer, std::string_view sale,
                        WallTime expires) {
  return keys.sign({.subject = buyer, .audience = audience_of(sale), .expires = expires});
}

}  // namespace sluice::server
