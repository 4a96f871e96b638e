/// How sales stand, told to all who listen: GET /v1/sales/{sale}/events.
///
/// The store is asked once in `every` for all sales that have listeners, and not at all when nobody
/// listens. What has changed since the last look becomes events: `state`, and `sold-out`,
/// `reopened` and `closed` behind it. So a listener gets at most one `state` in that time.
///
/// Guarantee: who comes back to the same process with the id of his last event gets what came after
///   it, each once, while it is kept; else a `state` as it is now.
/// Not guaranteed: events of moments between two looks, as of a sale that was sold out and open
///   again meanwhile.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/keyed_hash.hpp"
#include "base/rare_line.hpp"
#include "http/routes.hpp"
#include "server/event_ring.hpp"
#include "server/rate_limits.hpp"
#include "server/shop.hpp"

namespace sluice::server {

struct FeedOptions {
  std::chrono::milliseconds every{1000};
  std::size_t kept = 64;          ///< events of a sale, for those who come back
  std::size_t streams = 10'000;   ///< of all
  std::size_t of_a_client = 100;  ///< of an IPv4 address or an IPv6 /64
};

/// Threads: any. REQUIRES: what it is made of lives longer, and it longer than the server of its
/// routes.
class SaleFeed {
 public:
  SaleFeed(Shop& shop, RateLimits& limits, FeedOptions options);
  ~SaleFeed();

  void add_routes(http::Routes& routes);

  /// Asks the store now, and tells the listeners. Blocks.
  void look();
  /// How often the store was asked.
  std::uint64_t looks() const;
  std::size_t streams() const;
  /// For Prometheus.
  std::string metrics() const;

 private:
  struct Listener {
    http::EventStream stream;
    std::string client;
    bool is_greeted = false;  // it knows how the sale stands
  };
  /// A sale to which somebody has listened.
  struct Subject {
    explicit Subject(EventRing events) : ring(std::move(events)) {}
    EventRing ring;
    std::optional<SaleStatus> told;
    std::string now;        // the same, as JSON
    bool is_fresh = false;  // it has had a listener ever since
    std::vector<Listener> listeners;
  };

  void listen(http::Request&& request, http::Responder&& respond);
  std::optional<http::Response> refusal(const std::string& client);
  void welcome(Subject& subject, Listener& listener, std::string_view last_id);
  static http::StreamEvent snapshot(const Subject& subject);
  std::vector<std::shared_ptr<Offer>> listened_to();
  void tell(const SaleDefinition& sale, const SaleStatus& status);
  void forget_those_gone();
  void run(const std::stop_token& stop);

  Shop& shop_;
  RateLimits& limits_;
  const FeedOptions options_;
  const std::string process_;
  mutable std::mutex mutex_;
  std::condition_variable_any somebody_;
  std::map<std::string, Subject, std::less<>> subjects_;                // guarded by mutex_
  std::unordered_map<std::string, std::size_t, KeyedHash> of_clients_;  // guarded by mutex_
  std::size_t streams_ = 0;                                             // guarded by mutex_
  std::uint64_t looks_ = 0;                                             // guarded by mutex_
  RareLine failures_;                                                   // of look()
  std::jthread thread_;
};

}  // namespace sluice::server
