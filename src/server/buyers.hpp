/// Who asks.
#pragma once

#include <optional>

#include "http/response.hpp"
#include "server/rate_limits.hpp"
#include "sluice/expected.hpp"
#include "sluice/sale.hpp"
#include "sluice/token.hpp"

namespace sluice::server {

/// With keys: the subject of the token of `Authorization: Bearer`, which is for "sale:NAME" or for
/// "sale:*". Without: whoever `Sluice-Buyer` names, for a machine of one's own, or a shop that asks
/// in its buyers' names and lets nobody else in. A field that stands twice is refused: what stands
/// between us and the buyer may have looked at the other one.
class Buyers {
 public:
  /// `limits`: of how often they ask; null: there are none. REQUIRES: it lives longer.
  explicit Buyers(std::optional<TokenKeys> keys, RateLimits* limits = nullptr)
      : keys_(std::move(keys)), limits_(limits) {}

  /// Or why he is refused: it is not known who he is, or he asks too often.
  Expected<BuyerId, http::Response> who_asks(const http::Request& request,
                                             std::string_view sale) const;
  /// The same where it is known otherwise who asks; empty: nobody knows.
  std::optional<http::Response> stop(const http::Request& request,
                                     const std::optional<BuyerId>& buyer) const;
  /// The subject of a token for this sale. REQUIRES: has_keys().
  Expected<BuyerId, TokenRefusal> check(std::string_view token, std::string_view sale) const;
  /// Where tokens are needed.
  bool has_keys() const noexcept { return keys_.has_value(); }
  /// For openapi(): the name of the credentials that a buyer needs.
  static constexpr std::string_view credentials = "buyer";

 private:
  Expected<BuyerId, http::Response> named_by(const http::Request& request,
                                             std::string_view sale) const;
  Expected<BuyerId, http::Response> by_token(const http::Request& request,
                                             std::string_view sale) const;

  std::optional<TokenKeys> keys_;
  RateLimits* limits_;
};

/// A token that lets a buyer into a sale; "*": into each of the store.
std::string buyer_token(const TokenKeys& keys, const std::string& buyer, std::string_view sale,
                        WallTime expires);

}  // namespace sluice::server
