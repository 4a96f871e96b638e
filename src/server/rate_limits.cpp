#include "server/rate_limits.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/random.hpp"
#include "server/problems.hpp"

namespace sluice::server {
namespace {

std::unique_ptr<RateTable> table_of(Clock& clock, const Rate& rate) {
  return rate.quota > 0 ? std::make_unique<RateTable>(clock, rate) : nullptr;
}

}  // namespace

RateLimits::RateLimits(Clock& clock, const RateLimitOptions& options, http::Networks trusted)
    : trusted_(std::move(trusted)),
      buyers_{"buyer", "this buyer asks too often", table_of(clock, options.buyer)},
      clients_{"client", "this address asks too often", table_of(clock, options.client)} {}

std::optional<http::Response> RateLimits::stop(const http::Request& request, const BuyerId& buyer) {
  if (buyers_.table)
    if (const auto wait = buyers_.table->look(buyer.value)) return refuse(buyers_, *wait);
  if (auto refusal = stop(request)) return refusal;
  if (buyers_.table)
    if (const auto wait = buyers_.table->take(buyer.value)) return refuse(buyers_, *wait);
  return std::nullopt;
}

std::optional<http::Response> RateLimits::stop(const http::Request& request) {
  if (!clients_.table) return std::nullopt;
  const auto network = network_of(request);
  if (network.empty()) return std::nullopt;
  if (const auto wait = clients_.table->take(network)) return refuse(clients_, *wait);
  return std::nullopt;
}

std::string RateLimits::network_of(const http::Request& request) const {
  return trusted_.has(request.client()) ? std::string{} : http::network_of(request.client());
}

/// Those who were refused together are spread over half a window, so that they do not come back
/// together.
http::Response RateLimits::refuse(Policy& policy, std::chrono::nanoseconds wait) {
  policy.refused.fetch_add(1, std::memory_order_relaxed);
  const auto& rate = policy.table->rate();
  const auto spread = std::chrono::milliseconds{rate.window} / 2;
  wait += std::chrono::milliseconds{random_below(static_cast<std::uint64_t>(spread.count()) + 1)};
  auto response = http::problem(problems::too_many_requests, policy.detail);
  http::add_retry_after(response, wait);
  http::add_rate_limit(response, {.name = policy.name,
                                  .quota = static_cast<std::uint64_t>(rate.quota),
                                  .window = rate.window,
                                  .remaining = 0,
                                  .until_reset = std::chrono::ceil<std::chrono::seconds>(wait)});
  return response;
}

std::string RateLimits::metrics() const {
  std::string text =
      "# HELP sluice_service_limited_total Requests of buyers and addresses that ask too often\n"
      "# TYPE sluice_service_limited_total counter\n";
  for (const auto* const policy : {&buyers_, &clients_})
    text += fmt::format("sluice_service_limited_total{{by=\"{}\"}} {}\n", policy->name,
                        policy->refused.load(std::memory_order_relaxed));
  return text;
}

}  // namespace sluice::server
