/// Who asks too often: a buyer, or an address.
///
/// Both are counted by each process for itself: N processes let N times as much through.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/networks.hpp"
#include "http/response.hpp"
#include "server/rate_table.hpp"
#include "sluice/sale.hpp"

namespace sluice::server {

struct RateLimitOptions {
  Rate buyer;
  Rate client;  ///< of an IPv4 address or an IPv6 /64
};

/// Threads: any.
class RateLimits {
 public:
  /// `trusted`: proxies that say for whom they ask. One that does not say it is not limited, nor
  /// are clients of a unix socket: all buyers would be one.
  RateLimits(Clock& clock, const RateLimitOptions& options, http::Networks trusted);

  /// Empty: he may ask. A request that the buyer's rate refuses does not count for his address,
  /// which he may share with others; one that his address's rate refuses writes down no buyer.
  std::optional<http::Response> stop(const http::Request& request, const BuyerId& buyer);
  /// The same where nobody is named.
  std::optional<http::Response> stop(const http::Request& request);

  /// What counts as one client. Empty: nobody knows for whom he asks.
  std::string network_of(const http::Request& request) const;

  /// For Prometheus.
  std::string metrics() const;

 private:
  struct Policy {
    std::string_view name;
    std::string_view detail;
    std::unique_ptr<RateTable> table;  // null: there is no limit
    std::atomic<std::uint64_t> refused{0};
  };
  static http::Response refuse(Policy& policy, std::chrono::nanoseconds wait);

  const http::Networks trusted_;
  Policy buyers_;
  Policy clients_;
};

}  // namespace sluice::server
