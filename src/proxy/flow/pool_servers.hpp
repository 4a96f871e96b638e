/// The servers of a pool, as one worker has them: which one has a key, which are ejected and when
/// they are tried again, and when what is under way on them has timed out.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash_slot.hpp"
#include "loop/loop.hpp"
#include "proxy/config/config.hpp"
#include "proxy/flow/cluster.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/ring/ring.hpp"

namespace sluice::proxy::flow {

class Pool;
class HomeHolder;

/// Keys of a request that have one home.
struct HomePart {
  Server* home;                     ///< null: as home_of()
  std::vector<std::uint32_t> keys;  ///< their places among those of the request
};

/// The key by which the home of a request without keys is found: twemproxy's.
inline constexpr std::string_view any_key = "placeholder";

class PoolServers {
 public:
  explicit PoolServers(Pool& pool);
  ~PoolServers();

  /// The pool's settings were `before`. Servers that stay keep their connections, if the handshake
  /// is still the same; the others retire: they are asked nothing more, and answer what they were.
  void apply(const PoolSettings& before);

  /// The server of the key. Null: its server takes no requests now, or none does.
  Server* home_of(std::string_view key);
  /// Whether a command may have both keys.
  bool have_one_home(std::string_view key, std::string_view other);
  /// How a request with many keys is to be cut: those of one part have one home.
  std::vector<HomePart> parts_of(std::span<const std::string_view> keys);
  // Of a cluster.
  /// Null: nobody has it, as far as is known.
  Server* home_of_slot(std::uint16_t slot) const noexcept;
  /// A node by where it is, master or not. Null: there would be too many that the map does not
  /// know.
  Server* node_at(const topology::Endpoint& endpoint);
  /// Whether the cluster has told of it.
  bool knows_node(const topology::Endpoint& endpoint) const;
  /// `from` says that the slot is at `to`.
  void slot_moved(std::uint16_t slot, const topology::Endpoint& from, const topology::Endpoint& to);
  /// What `server` says shows that it may not be what it is taken for.
  void doubt(const Server& server);
  void tell_lost(const Server& server);
  void tell_back(const Server& server);
  /// A replica of this server that is connected, and has all that was acknowledged before `as_of`
  /// and before `replica_max_lag`. Null: there is none.
  Server* replica_of(const Server& master, SteadyTime as_of, const ConnectionMode& mode,
                     std::size_t client);
  /// What its certificate is to bear: of a node that is known by its address, the name it told.
  std::string certified_host(const Server& server) const;
  /// No node has told a map yet, and there is time for it: requests wait.
  bool awaits_map() const noexcept { return awaits_map_; }

  /// While keys move: where the key is by the other ring. Null: where it is by this one.
  Server* elsewhere(std::string_view key);
  /// Servers of earlier settings have nothing more to answer.
  bool is_drained() const;
  // In the order of the settings; behind them those of the other ring of a move.
  auto begin() const noexcept { return servers_.begin(); }
  auto end() const noexcept { return servers_.end(); }
  std::size_t size() const noexcept { return servers_.size(); }
  const std::unique_ptr<Server>& operator[](std::size_t place) const { return servers_[place]; }
  /// Whether `server` serves the pool; false: it has retired.
  bool contains(const Server* server) const noexcept;
  /// Whether an upstream is_full().
  bool has_full() const noexcept { return full_ != 0; }
  /// One became so, or (-1) is so no more.
  void note_full(int more) noexcept { full_ += more; }
  /// Makes the ring again, if a server was ejected or has come back.
  void refresh();

  /// An upstream has something under way from now on.
  void expect_deadline();
  /// An upstream begins to connect, which may have less time than what is under way.
  void expect_connection();

  /// Whether a server that was home of all `keys` when they were used is so no more. Not of a
  /// cluster, whose nodes say so themselves.
  bool have_left(const Server& server, const std::vector<std::string>& keys);

  /// How often homes may have moved.
  std::uint64_t rings() const noexcept { return rings_; }

  /// They are told when homes may have moved.
  void add_holder(HomeHolder& holder) { holders_.insert(&holder); }
  void remove_holder(HomeHolder& holder) noexcept { holders_.erase(&holder); }

  void tick();
  bool is_idle() const;

 private:
  using Servers = std::vector<std::unique_ptr<Server>>;

  void make_servers(const std::vector<ServerSettings>& all, Servers old);
  std::unique_ptr<Server> make_server(const ServerSettings& settings, bool is_replica = false);
  void follow_replicas();
  void leave_replicas();
  void retire_replica(std::unique_ptr<Server> server);
  std::shared_ptr<Cluster> cluster() const;
  void begin_cluster();
  void take_map();
  void end_waiting();
  void look_for_silence();
  void make_ring();
  void make_other_ring(const PoolSettings& other);
  void plan_recovery();
  void recover();
  void check_holders();
  void follow_masters();
  void check_deadlines();
  SteadyTime soonest_deadline() const noexcept;
  void for_each_upstream(const std::function<void(Upstream&)>& visit);

  Pool& pool_;
  loop::Loop& loop_;
  Servers servers_;
  Servers retired_;   // of earlier settings, with something still under way
  Servers replicas_;  // if they are read from
  struct Known {
    Server* server;  // of replicas_
    const Server* master;
    SteadyTime caught_up;
  };
  std::vector<Known> known_;     // in the order of their masters
  bool wants_replicas_ = false;  // a client has read since the last look
  Servers strangers_;  // nodes of a cluster that have no slots, to which others have redirected
  Homes homes_;
  static constexpr std::uint16_t nobody = 0xffff;
  static constexpr std::uint16_t several = 0xfffe;
  static constexpr unsigned block_bits = 6;
  /// Of each 64 slots, if they have one owner, since a table of all slots is seldom in the cache.
  std::array<std::uint16_t, (hash_slots >> block_bits)> block_owners_;
  std::vector<std::uint16_t> owners_;  // of each slot of a cluster, in servers_
  std::uint64_t turn_ = 0;             // of the map that they are of
  bool awaits_map_ = false;
  SteadyTime map_due_{};
  Homes other_homes_;                        // of the other ring, while keys move
  std::vector<std::uint32_t> other_places_;  // in servers_, of each server of that ring
  std::uint64_t rings_ = 0;                  // that were made
  std::uint64_t version_ = 0;                // of the healths that the ring was made of
  std::uint32_t random_;
  int full_ = 0;
  std::set<HomeHolder*> holders_;
  loop::Loop::TimerId deadline_timer_{};
  loop::Loop::TimerId recovery_timer_{};
  loop::Loop::TimerId holders_timer_{};
  loop::Loop::TimerId masters_timer_{};
};

}  // namespace sluice::proxy::flow
