/// A server of a pool, as one worker sees it: its connections, its addresses, and what all workers
/// share of it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/transport.hpp"
#include "proxy/config/config.hpp"
#include "proxy/flow/addresses.hpp"
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

class Server;

/// A connection that nobody shares, as long as this lives. Its server, though retired by a reload,
/// lives longer.
class Borrowed {
 public:
  Borrowed() = default;
  Borrowed(Server& server, Upstream& upstream) noexcept;
  Borrowed(Borrowed&& other) noexcept
      : server_(other.server_),
        upstream_(std::exchange(other.upstream_, nullptr)),
        generation_(other.generation_) {}
  Borrowed& operator=(Borrowed&& other) noexcept;
  ~Borrowed() { reset(); }

  explicit operator bool() const noexcept { return upstream_ != nullptr; }
  Upstream* operator->() const noexcept { return upstream_; }
  Upstream& operator*() const noexcept { return *upstream_; }
  Server& server() const noexcept { return *server_; }
  /// It is not what it was when it was borrowed: what the server remembered of it is gone.
  bool is_lost() const noexcept { return upstream_->generation() != generation_; }

  /// It is as it was when it was borrowed, and somebody else may have it.
  void give_back();
  /// Closed, with all that is under way: nobody knows what the server remembers of it.
  void reset() noexcept;

 private:
  Server* server_ = nullptr;
  Upstream* upstream_ = nullptr;
  std::uint32_t generation_ = 0;
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

  /// The connection for a client; the same one each time, so that its requests stay in order. Takes
  /// what the pool's settings say of server_connections.
  Upstream& upstream(const Variant& variant, std::size_t client);
  /// One that nobody shares: timed, counted and, when it was given back clean, kept for the next by
  /// the server.
  Borrowed borrow(const Variant& variant);
  /// MULTI has been accepted before. Until then what follows it must wait: it would be done at
  /// once.
  bool takes_multi() const noexcept { return takes_multi_; }
  void note_takes_multi() noexcept { takes_multi_ = true; }

  const Addresses& addresses() const noexcept { return addresses_; }
  void skip(const net::Address& address) noexcept { addresses_.skip(address); }
  /// A connection failed: the name may stand for something else by now.
  void look_again();
  /// Asks for the addresses; upstreams that wait are told. Known ones are kept until then.
  void resolve(Upstream* waiting = nullptr);
  void forget(Upstream& waiting) noexcept { std::erase(waiting_, &waiting); }

  void for_each_upstream(const std::function<void(Upstream&)>& visit);
  void preconnect();
  bool idle() const;
  /// Connections that nobody has needed for long are closed.
  void tick();

  void weigh_failure(SteadyTime since);
  void ask_after_health();

 private:
  struct Link {
    Variant variant;
    std::vector<std::unique_ptr<Upstream>> upstreams;
    SteadyTime wanted{};  // when it was last asked for
  };

  /// One that is borrowed, or was and is as good as new.
  struct Single {
    Variant variant;
    std::unique_ptr<Upstream> upstream;
    SteadyTime since{};
  };
  friend class Borrowed;

  void take_back(Upstream& upstream, bool clean);
  void end(std::unique_ptr<Upstream> upstream);
  Greeting greeting(const Variant& variant) const;
  Link& link(const Variant& variant);
  bool has_moved(const Upstream& upstream) const noexcept;
  void leave_old_addresses();
  void take_addresses(std::vector<net::Address> addresses);

  Pool& pool_;
  ServerSettings settings_;
  std::shared_ptr<Health> health_;
  std::shared_ptr<ServerWatch> watch_;
  bool is_name_;
  Addresses addresses_;
  bool asking_ = false;
  SteadyTime asked_{};
  std::vector<Upstream*> waiting_;
  std::vector<Link> links_;                         // the usual variant first
  std::vector<std::unique_ptr<Upstream>> leaving_;  // to addresses that the name has no more
  std::vector<Single> borrowed_;
  std::vector<Single> spare_;  // the one last used at the end
  bool takes_multi_ = false;
  std::unique_ptr<Receiver> health_check_;
  std::shared_ptr<Server*> self_;  // for answers that come when it may be gone
};

}  // namespace sluice::proxy
