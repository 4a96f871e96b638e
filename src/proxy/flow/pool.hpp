/// A pool, as one worker has it: its settings, its servers, its clients.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/rare_line.hpp"
#include "front/login_throttle.hpp"
#include "front/place_limit.hpp"
#include "loop/loop.hpp"
#include "net/socket.hpp"
#include "net/tls.hpp"
#include "proxy/config/config.hpp"
#include "proxy/flow/cluster.hpp"
#include "proxy/flow/detours.hpp"
#include "proxy/flow/masters.hpp"
#include "proxy/flow/mirror.hpp"
#include "proxy/flow/pool_clients.hpp"
#include "proxy/flow/pool_parts.hpp"
#include "proxy/flow/pool_servers.hpp"
#include "proxy/flow/rate_limit.hpp"
#include "proxy/flow/resolver.hpp"
#include "proxy/flow/session/script_cache.hpp"
#include "proxy/health/health.hpp"
#include "proxy/protocol/protocol.hpp"
#include "proxy/watch/registry.hpp"

namespace sluice::proxy::flow {

struct PoolTls;

/// What all workers share of a pool.
struct SharedPool {
  front::PlaceLimit clients;  ///< of all workers, for client_connections
  HealthVersion version{0};
  ScriptCache scripts;
  front::LoginThrottle logins;
  RateAccounts rates;
  std::shared_ptr<PoolParts> parts = std::make_shared<PoolParts>();

  std::shared_ptr<SharedServer> server_of(const ServerSettings& server, const PoolSettings& pool);

  /// Null: no Sentinels watch the servers, or nobody has begun to ask them.
  std::shared_ptr<Masters> masters() const { return watch(masters_); }
  /// Null: the servers are no cluster, or nobody has begun to ask it.
  std::shared_ptr<Cluster> cluster() const { return watch(cluster_); }
  /// Asks the Sentinels, or the cluster, of these settings from now on, if there are any.
  void follow_masters(const std::shared_ptr<const PoolSettings>& settings,
                      const std::shared_ptr<const PoolTls>& tls, Resolver& resolver);

 private:
  template <class Watch>
  std::shared_ptr<Watch> watch(const std::shared_ptr<Watch>& watch) const {
    const std::lock_guard lock{mutex_};
    return watch;
  }

  mutable std::mutex mutex_;
  std::shared_ptr<Masters> masters_;
  std::shared_ptr<Cluster> cluster_;
  std::map<std::string, std::shared_ptr<SharedServer>> servers_;  // by name and address
};

/// The certificates of a pool, read once for all workers.
struct PoolTls {
  std::optional<net::TlsContext> listen;  ///< none: clients speak plainly
  std::optional<net::TlsContext> server;  ///< none: the proxy speaks plainly with servers
  std::optional<net::TlsContext> sentinel;

  /// Reads the files. Throws Error{bad_argument} that names the pool, the file and the reason.
  static std::shared_ptr<const PoolTls> read(const PoolSettings& settings);
};

class Pool;

/// What a pool uses of its worker and its process.
struct PoolContext {
  loop::Loop& loop;
  RequestPool& requests;
  Resolver& resolver;
  watch::Registry& registry;
  std::size_t worker;  ///< which one, among those of the registry
  front::ProcessLimits& limits;
  std::size_t mbuf_size;                                  ///< see make_redis_protocol()
  std::function<Pool*(std::string_view name)> find_pool;  ///< of the same worker; null: none
};

class Pool {
 public:
  Pool(PoolContext context, std::shared_ptr<const PoolSettings> settings,
       std::shared_ptr<SharedPool> shared, std::shared_ptr<const PoolTls> tls);
  ~Pool();

  /// Other settings from now on. Servers that stay keep their connections; those that go answer
  /// what they were asked. What clients have sent is served by the new settings from the next
  /// request on.
  void apply(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls);

  const PoolContext& context() const noexcept { return context_; }
  loop::Loop& loop() const noexcept { return context_.loop; }
  RequestPool& requests() const noexcept { return context_.requests; }
  const PoolSettings& settings() const noexcept { return *settings_; }
  /// Clients have to say who they are before anything else.
  bool wants_login() const noexcept { return settings_->wants_login(); }
  /// What a client that has just come is, and has chosen.
  SessionState newcomer() const noexcept {
    return {.mode = {.resp = 2, .db = settings_->redis_db}, .logged_in = !wants_login()};
  }
  RareLine& http_told() noexcept { return http_told_; }
  RareLine& limit_told() noexcept { return limit_told_; }
  bool is_strict() const noexcept { return settings_->compat == Compat::strict; }
  Protocol& protocol() const noexcept { return *protocol_; }
  watch::PoolCounters& counters() const noexcept { return watch_->counters; }
  SharedPool& shared() const noexcept { return *shared_; }
  ScriptCache& scripts() const noexcept { return shared_->scripts; }
  /// Null: it has none.
  Mirror* mirror() const noexcept { return mirror_.get(); }

  PoolServers& servers() noexcept { return servers_; }
  const PoolServers& servers() const noexcept { return servers_; }
  Detours& detours() noexcept { return detours_; }
  PoolClients& clients() noexcept { return clients_; }
  const PoolClients& clients() const noexcept { return clients_; }

  /// The connection of a client, with the TLS that the settings ask for.
  std::unique_ptr<net::Transport> accept(net::Socket socket) const;
  /// A connection that begins to connect to the server. Throws std::system_error.
  std::unique_ptr<net::Transport> connect(const Server& server) const;

  /// Once a second: connections that are idle and not needed any more are closed.
  void tick();
  /// Nothing of a client or of a request is left.
  bool is_idle() const { return clients_.empty() && servers_.is_idle(); }

  /// Statistics of a key that was asked for, and of a request that was answered.
  void note_key(std::string_view key) {
    if (context_.registry.watches_keys())
      context_.registry.worker(context_.worker).hot_keys.note(key, loop().now());
  }
  /// `waited`: as long as its client wanted it to (BLPOP), so that its time says nothing.
  void observe(Server& server, const Request& request, std::string_view reply, bool waited);

 private:
  void apply_mirror();
  void end_mirror();
  void note_tls_failure(std::string_view reason);

  PoolContext context_;
  std::shared_ptr<const PoolSettings> settings_;
  std::shared_ptr<SharedPool> shared_;
  std::shared_ptr<const PoolTls> tls_;
  const net::TlsFailure tls_failed_;
  RareLine tls_told_, http_told_, limit_told_;
  std::shared_ptr<watch::PoolWatch> watch_;
  std::unique_ptr<Protocol> protocol_;
  Detours detours_;
  PoolClients clients_;
  PoolServers servers_;
  std::unique_ptr<Mirror> mirror_;
  std::uint64_t next_mirrored_ = 1;  // the number of the first request of the next mirror
};

}  // namespace sluice::proxy::flow
