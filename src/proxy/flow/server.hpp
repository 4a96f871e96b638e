/// A server of a pool, as one worker has it: its connections, its addresses, and the health and the
/// counters that it shares with the other workers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/rare_line.hpp"
#include "front/place_limit.hpp"
#include "net/transport.hpp"
#include "proxy/config/config.hpp"
#include "proxy/flow/masters.hpp"
#include "proxy/flow/resolver.hpp"
#include "proxy/flow/upstream.hpp"
#include "proxy/health/health.hpp"
#include "proxy/watch/registry.hpp"

namespace sluice::proxy::flow {

class Pool;

/// What all workers share of a server.
struct SharedServer {
  SharedServer(HealthPolicy policy, HealthVersion& version) : health(policy, version) {}
  Health health;
  ToldChanges told;
  front::PlaceLimit borrowed;  ///< connections for one client alone
};

class Server;

/// A connection to a server for one client alone, as long as this lives. The server lives longer,
/// even when a reload retires it.
class BorrowedUpstream {
 public:
  BorrowedUpstream() = default;
  BorrowedUpstream(Server& server, Upstream& upstream) noexcept;
  BorrowedUpstream(BorrowedUpstream&& other) noexcept
      : server_(other.server_),
        upstream_(std::exchange(other.upstream_, nullptr)),
        generation_(other.generation_) {}
  BorrowedUpstream& operator=(BorrowedUpstream&& other) noexcept;
  ~BorrowedUpstream() { reset(); }

  explicit operator bool() const noexcept { return upstream_ != nullptr; }
  Upstream* operator->() const noexcept { return upstream_; }
  Upstream& operator*() const noexcept { return *upstream_; }
  Server& server() const noexcept { return *server_; }
  /// The connection was lost since it was borrowed, and with it what the server remembered.
  bool is_lost() const noexcept { return upstream_->generation() != generation_; }

  /// Brings it to this mode, before what is sent next. REQUIRES: all that was sent is answered.
  void adopt(const ConnectionMode& mode);
  /// For the next borrower. REQUIRES: the server remembers nothing of this client.
  void give_back();
  /// Closes it, with all that is under way: the server may remember something of this client.
  void reset() noexcept;

 private:
  Server* server_ = nullptr;
  Upstream* upstream_ = nullptr;
  std::uint32_t generation_ = 0;
};

class Server final : private Receiver {
 public:
  Server(Pool& pool, ServerSettings settings, std::shared_ptr<SharedServer> shared,
         std::shared_ptr<watch::ServerWatch> watch, bool is_replica = false);
  ~Server() override;

  Pool& pool() const noexcept { return pool_; }
  const ServerSettings& settings() const noexcept { return settings_; }
  void set_weight(std::uint32_t weight) noexcept { settings_.weight = weight; }
  Health& health() const noexcept { return shared_state_->health; }
  watch::ServerCounters& counters() const noexcept { return watch_->counters; }
  watch::ServerWatch& watch() const noexcept { return *watch_; }

  /// The connection for a client; the same one each time, so that its requests stay in order. Takes
  /// what the pool's settings say of server_connections.
  Upstream& upstream(const ConnectionMode& mode, std::size_t client);
  Upstream& upstream(const Lane& lane);
  /// One for a client alone: timed, counted and, when it is given back, kept for the next borrower.
  /// Empty: there are exclusive_connections already.
  BorrowedUpstream borrow(const ConnectionMode& mode);

  /// That its notifications of keys are missing, and that they come again.
  RareLine& lost_told() noexcept { return lost_told_; }
  RareLine& heard_told() noexcept { return heard_told_; }

  const Addresses& addresses() const noexcept { return addresses_; }
  void skip(const net::Address& address) noexcept { addresses_.skip(address); }
  /// A connection failed: the name may have other addresses by now.
  void look_again();
  /// To a node of a cluster: that no connection works, or that one does again.
  void note_lost();
  void note_back();
  /// It has no slots any more: it answers what it was asked, unless it says nothing.
  void deprive() noexcept;
  /// Whether it owes replies and has said nothing for long; of one without slots such connections
  /// are closed.
  void look_for_silence();
  /// The host that certificates are for.
  const std::string& host() const noexcept {
    return is_watched_ ? master_.host : settings_.endpoint.host;
  }
  /// Another server may be its master by now: what is connected to the one before is closed, though
  /// that lives, and what was under way fails.
  void follow_master(const Masters& masters);
  /// Asks for the addresses; `waiting` is told them. Known ones are kept until then.
  void resolve(Upstream* waiting = nullptr);
  void forget(Upstream& waiting) noexcept { std::erase(waiting_, &waiting); }

  void for_each_upstream(const std::function<void(Upstream&)>& visit);
  void preconnect();
  bool idle() const;
  /// Connections that were not needed for long are closed.
  void tick();

  /// Something that began at `since` failed; it may eject the server.
  void weigh_failure(SteadyTime since, Failure failure);
  /// A line of the log about a connection to it: one a second of all workers is enough.
  bool may_tell() const;
  /// For statistics, when its health may have changed without a failure or a check.
  void show_health() const;
  /// An ejected server whose time has come: asks it how it is, or takes it back without a question.
  void try_to_recover();

 private:
  /// The connections that clients of one mode share.
  struct SharedConnections {
    ConnectionMode mode;
    std::vector<std::unique_ptr<Upstream>> upstreams;
    SteadyTime wanted{};  // when it was last asked for
  };

  /// A connection that is borrowed, or spare for the next borrower.
  struct Single {
    ConnectionMode mode;
    std::unique_ptr<Upstream> upstream;
    SteadyTime since{};
  };
  friend class BorrowedUpstream;

  void replied(Request& request, std::string_view reply) override;  // to the health check
  void failed(Request& request, Failure failure) override;
  void checked(Request& request, bool good);
  std::string title() const;
  void log_change(std::string_view what) const;
  void has_come_back() const;
  template <class Visit>
  void for_each_owned(Visit visit);
  void take_back(Upstream& upstream, bool clean);
  void adopt(Upstream& upstream, const ConnectionMode& mode);
  void end(std::unique_ptr<Upstream> upstream);
  Handshake handshake(const ConnectionMode& mode) const;
  SharedConnections& shared(const ConnectionMode& mode);
  bool has_moved(const Upstream& upstream) const noexcept;
  void leave_old_addresses();
  void take_addresses(const Resolver::Found& found);

  Pool& pool_;
  ServerSettings settings_;
  std::shared_ptr<SharedServer> shared_state_;
  std::shared_ptr<watch::ServerWatch> watch_;
  RareLine lost_told_, heard_told_;
  std::optional<SteadyTime> deprived_;
  bool is_lost_ = false;
  bool is_replica_;
  bool is_watched_;  // by Sentinels, who say where it is
  Masters::Place master_;
  bool is_name_;
  Addresses addresses_;
  bool asking_ = false;
  SteadyTime asked_{};
  std::vector<Upstream*> waiting_;
  std::vector<SharedConnections> shared_;           // the mode of the settings first
  std::vector<std::unique_ptr<Upstream>> leaving_;  // to addresses that the name has no more
  std::vector<Single> borrowed_;
  std::vector<Single> spare_;      // the one last used at the end
  std::shared_ptr<Server*> self_;  // for answers of the resolver, when the server may be gone
};

}  // namespace sluice::proxy::flow
