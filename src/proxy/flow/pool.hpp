/// A pool, as one worker has it: its servers, its ring, its clients.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "net/socket.hpp"
#include "proxy/config/config.hpp"
#include "proxy/flow/client_figures.hpp"
#include "proxy/flow/loop.hpp"
#include "proxy/flow/pool_tls.hpp"
#include "proxy/flow/resolver.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/flow/session/script_shelf.hpp"
#include "proxy/health/health.hpp"
#include "proxy/protocol/protocol.hpp"
#include "proxy/ring/ring.hpp"
#include "proxy/watch/registry.hpp"

namespace sluice::proxy {

class Client;
class Subscriptions;

/// By it the home of what has no key is found: twemproxy's.
inline constexpr std::string_view any_key = "placeholder";

/// How many clients there are in all workers, and how many at most: beyond that they are closed at
/// once, as nutcracker does. The process has one, so that descriptors are left for servers, and so
/// has each pool with client_connections.
class ClientCensus {
 public:
  void set_most(std::size_t most) noexcept { most_ = most; }
  /// Takes a place if fewer than `most` are taken. Of workers that ask at the same time only one
  /// gets the last place.
  bool enter(std::size_t most = SIZE_MAX) noexcept;
  void leave() noexcept { --here_; }

 private:
  std::atomic<std::size_t> here_{0};
  std::atomic<std::size_t> most_{SIZE_MAX};
};

/// What all workers share of a pool.
struct SharedPool {
  ClientCensus clients;  ///< of all workers, for client_connections
  HealthVersion version{0};
  ScriptShelf scripts;

  std::shared_ptr<Health> health_of(const ServerSettings& server, const PoolSettings& pool);

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Health>> healths_;  // by name and address
};

/// What a pool takes up of its worker.
struct PoolSurroundings {
  Loop& loop;
  Resolver& resolver;
  Registry& registry;
  std::size_t worker;  ///< which one, among those of the registry
  ClientCensus& census;
  std::size_t mbuf_size;  ///< see make_redis_protocol()
};

class Pool {
 public:
  Pool(PoolSurroundings surroundings, std::shared_ptr<const PoolSettings> settings,
       std::shared_ptr<SharedPool> shared, std::shared_ptr<const PoolTls> tls);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Other settings from now on. Servers that stay keep their connections; those that go answer
  /// what they were asked. What clients have sent is served by the new settings from the next
  /// request on.
  void apply(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls);

  const PoolSettings& settings() const noexcept { return *settings_; }
  /// Clients have to say who they are before anything else.
  bool wants_login() const noexcept {
    return settings_->redis && (!settings_->redis_auth.empty() || !settings_->users.empty());
  }
  bool is_strict() const noexcept { return settings_->compat == Compat::strict; }
  Loop& loop() const noexcept { return around_.loop; }
  Resolver& resolver() const noexcept { return around_.resolver; }
  Protocol& protocol() const noexcept { return *protocol_; }
  PoolCounters& counters() const noexcept { return watch_->counters; }
  ScriptShelf& scripts() const noexcept { return shared_->scripts; }

  /// Whose the key is. Null: its server takes no requests now, or none does.
  Server* home_of(std::string_view key);
  const std::vector<std::unique_ptr<Server>>& servers() const noexcept { return servers_; }
  /// Looks at the health of the servers again and makes the ring again if need be.
  void refresh();

  /// A connection that was accepted. Takes it over, or closes it when there are too many.
  void accept(net::Socket socket);
  std::size_t client_count() const noexcept { return clients_.size(); }
  /// Up to `most` in all are added to `figures`.
  void list_clients(std::vector<ClientFigures>& figures, std::size_t most) const;
  /// Clients are closed when nothing of theirs is under way and they are quiet, after `patience`
  /// also those who are not; requests of theirs are served until then.
  void drain(std::chrono::nanoseconds patience);
  /// The client is finished: it is buried at the end of the turn.
  void remove(Client& client) noexcept;
  /// It is closed when the events of this turn have been served.
  void dismiss(Client& client);

  /// The reader for clients that are at the beginning of a request, which all share; and one of its
  /// own for a client that is in the middle, in exchange.
  RequestReader& reader() noexcept { return *reader_; }
  std::unique_ptr<RequestReader> take_reader();
  void give_back(std::unique_ptr<RequestReader> reader);

  /// A socket that begins to connect to the server. Throws std::system_error.
  std::unique_ptr<net::Transport> connect(const Server& server) const;

  /// An upstream has something under way from now on.
  void expect_deadline();
  /// An upstream begins to connect, which may have less time than what is under way.
  void expect_connection();
  /// A paused client is told when there may be room again.
  void wait_for_room(Client& client);
  void there_is_room();

  /// The client that holds the most memory; null: none holds any.
  Client* greediest() const noexcept;
  void evict(Client& client);

  /// Those who listen to channels are told when homes may have moved.
  void add_subscriber(Subscriptions& subscriber) { subscribers_.insert(&subscriber); }
  void remove_subscriber(Subscriptions& subscriber) noexcept { subscribers_.erase(&subscriber); }

  /// Once a second: what has become idle and is not wanted any more goes.
  void tick();
  /// A number of the client that no other of the process has.
  std::uint64_t id_of(const Client& client) const noexcept;
  /// Nothing of a client or of a request is left.
  bool is_idle() const;

  /// Statistics of a key that was asked for, and of a request that was answered.
  void note_key(std::string_view key) {
    if (around_.registry.watches_keys())
      around_.registry.worker(around_.worker).hot_keys.note(key, loop().now());
  }
  void observe(Server& server, const Request& request, std::string_view reply);

 private:
  void make_servers(std::vector<std::unique_ptr<Server>> old);
  void make_ring();
  void plan_recovery();
  void recover();
  void check_deadlines();
  bool find_place() noexcept;
  void leave_place() noexcept;
  void note_tls_failure(std::string_view reason);
  void settle_clients(const PoolSettings& before);
  void drain_quiet(SteadyTime until);
  void check_subscribers();
  SteadyTime soonest_deadline() const noexcept;
  void for_each_upstream(const std::function<void(Upstream&)>& visit);

  PoolSurroundings around_;
  std::shared_ptr<const PoolSettings> settings_;
  std::shared_ptr<SharedPool> shared_;
  std::shared_ptr<const PoolTls> tls_;
  const net::TlsFailure tls_failed_;
  SteadyTime tls_told_{};  // when a failed handshake was logged last
  std::shared_ptr<PoolWatch> watch_;
  std::unique_ptr<Protocol> protocol_;
  std::vector<std::unique_ptr<Server>> servers_;  // in the order of the settings
  std::vector<std::unique_ptr<Server>>
      retired_;  // of earlier settings, with something still under way
  Homes homes_;
  std::uint64_t version_ = 0;  // of the healths that the ring was made of
  std::uint32_t random_;
  std::unique_ptr<RequestReader> reader_;
  std::vector<std::unique_ptr<RequestReader>> spare_readers_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<Client*> waiting_for_room_;
  std::vector<Client*> dismissed_;
  Loop::TimerId dismissal_timer_{};
  std::set<Subscriptions*> subscribers_;
  std::uint64_t last_client_ = 0;
  bool draining_ = false;
  Loop::TimerId deadline_timer_{};
  Loop::TimerId recovery_timer_{};
  Loop::TimerId drain_timer_{};
  Loop::TimerId subscribers_timer_{};
};

}  // namespace sluice::proxy
