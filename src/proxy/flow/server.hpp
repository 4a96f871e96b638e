/// A server of a pool, as one worker sees it: its connections, its addresses, and what all workers share of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/transport.hpp"
#include "proxy/config/config.hpp"
#include "proxy/flow/resolver.hpp"
#include "proxy/flow/upstream.hpp"
#include "proxy/health/health.hpp"
#include "proxy/watch/registry.hpp"

namespace sluice::proxy {

class Pool;

/// What a client's session demands of a connection: those with different demands do not share one.
struct Variant {
  int resp = 2;
  int db = 0;
  bool operator==(const Variant&) const = default;
};

class Server {
 public:
  Server(Pool& pool, ServerSettings settings, std::shared_ptr<Health> health,
         std::shared_ptr<ServerWatch> watch);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Pool& pool() const noexcept { return pool_; }
  const ServerSettings& settings() const noexcept { return settings_; }
  void set_weight(std::uint32_t weight) noexcept { settings_.weight = weight; }
  Health& health() const noexcept { return *health_; }
  ServerCounters& counters() const noexcept { return watch_->counters; }
  ServerWatch& watch() const noexcept { return *watch_; }

  /// The connection for a client; the same one each time, so that its requests stay in order. Takes what the pool's
  /// settings say of server_connections.
  Upstream& upstream(const Variant& variant, std::size_t client);
  /// One that nobody shares; the caller owns it, and closes and buries it.
  std::unique_ptr<Upstream> dedicated(const Variant& variant);

  const std::vector<net::Address>& addresses() const noexcept { return addresses_; }
  /// Asks for the addresses; upstreams that wait are told. Known ones are kept until then.
  void resolve(Upstream* waiting = nullptr);
  void forget(Upstream& waiting) noexcept { std::erase(waiting_, &waiting); }

  void for_each_upstream(const std::function<void(Upstream&)>& visit);
  void preconnect();
  bool idle() const;

  void weigh_failure(SteadyTime since);
  void ask_after_health();

 private:
  struct Link {
    Variant variant;
    std::vector<std::unique_ptr<Upstream>> upstreams;
  };

  Greeting greeting(const Variant& variant) const;
  Link& link(const Variant& variant);
  void take_addresses(std::vector<net::Address> addresses);

  Pool& pool_;
  ServerSettings settings_;
  std::shared_ptr<Health> health_;
  std::shared_ptr<ServerWatch> watch_;
  std::vector<net::Address> addresses_;
  bool asking_ = false;
  std::vector<Upstream*> waiting_;
  std::vector<Link> links_;  // the usual variant first
  std::unique_ptr<Receiver> health_check_;
  std::shared_ptr<Server*> self_;  // for answers that come when it may be gone
};

}  // namespace sluice::proxy
