/// The whole service: the sales of a store and a database, served over HTTP.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http/server.hpp"
#include "server/blocking_threads.hpp"
#include "server/buyers.hpp"
#include "server/messenger.hpp"
#include "server/operate_api.hpp"
#include "server/operators.hpp"
#include "server/orders_api.hpp"
#include "server/pages/buyers_pages.hpp"
#include "server/payments_api.hpp"
#include "server/proxies.hpp"
#include "server/queue_api.hpp"
#include "server/rate_limits.hpp"
#include "server/readiness.hpp"
#include "server/sale_feed.hpp"
#include "server/sales_api.hpp"
#include "server/shop.hpp"
#include "server/shop_keys.hpp"
#include "server/snapshot.hpp"
#include "server/tools_api.hpp"

namespace sluice::server {

struct ServiceOptions {
  ShopOptions shop;
  BlockingLimits blocking;
  /// Of buyers' tokens, and of the tickets of waiting rooms. None: buyers are believed, and tickets
  /// are good for this process alone.
  std::optional<TokenKeys> keys;
  ShopKeys shop_keys;  ///< of operators and of the shop's own programs
  /// Programs and browsers of this machine are the operator "local", and have the tools. For an
  /// address of this machine alone, without any keys and without a proxy in front.
  bool has_local_operator = false;
  PaymentProviders providers;                  ///< whose payments are taken
  MessengerOptions messenger;                  ///< what is sent, and where
  PagesOptions pages;                          ///< how buyers see the shop
  std::vector<WaitingRoomDefinition> rooms;    ///< each has the name of its sale
  std::chrono::milliseconds look_every{1000};  ///< for what other processes have made or changed
  RateLimitOptions rates;                      ///< how often a buyer, or an address, may ask
  FeedOptions feed;                            ///< of events of sales
  std::vector<std::string> proxies;            ///< whose rings operators see; see Proxies
  SnapshotLimits snapshots;                    ///< of the console
  http::ServerOptions http;                    ///< for buyers
  /// For operators and balancers: /livez, /readyz, /metrics.
  net::Endpoint health{.host = "127.0.0.1", .port = 0, .unix_path = {}};
};

/// Threads: any. REQUIRES: the store lives longer.
class Service {
 public:
  /// It serves when this returns. Throws Error as Shop does, and what http::Server throws;
  /// Error{bad_argument} for a local operator where others come.
  Service(Store& store, ServiceOptions options, std::span<const SaleDefinition> sales = {});
  ~Service();

  std::uint16_t port() const noexcept;
  std::uint16_t health_port() const noexcept;
  Shop& shop() noexcept { return shop_; }
  /// Keys that are not among these are good no more, nor are logins by them.
  void replace_shop_keys(const ShopKeys& keys) {
    shop_keys_.replace(keys);
    snapshots_.end_streams();
  }
  /// As http::Server::replace_tls().
  void replace_tls(const net::TlsContext& tls) { http_->replace_tls(tls); }

  /// Not ready from the beginning; what was asked is answered, for `within` at most; then workers
  /// are told to finish their batches, for which the destructor waits. Nothing that was answered is
  /// lost: it waits in the store.
  void stop(std::chrono::nanoseconds within, std::chrono::nanoseconds notice);

 private:
  http::Routes public_routes();
  http::Routes health_routes();
  std::string said_of(Trouble trouble) const;
  std::string troubles_that(bool TroubleRow::*is, bool value) const;
  std::string troubles_text() const;
  Snapshots::Load load();
  std::string answers_text();
  std::string needs_text();
  void look_again(const std::stop_token& stop, std::chrono::milliseconds every);

  Shop shop_;
  RateLimits limits_;
  const Buyers buyers_;
  ShopKeys shop_keys_;
  BlockingThreads threads_;
  const TokenKeys signing_;  // tickets, and what browsers keep
  QueueApi queue_;
  SalesApi sales_;
  OrdersApi orders_;
  PaymentsApi payments_;
  Messenger messenger_;
  ToolsApi tools_;
  BuyersPages pages_;
  SaleFeed feed_;
  EndedLogins ended_logins_;
  Operators operators_;
  Proxies proxies_;
  Snapshots snapshots_;
  OperateApi operate_;
  std::unique_ptr<http::Server> http_;
  std::atomic<const http::Server*> serving_{nullptr};  ///< http_, from when it is there
  std::unique_ptr<http::Server> health_;
  std::jthread looker_;
};

}  // namespace sluice::server
