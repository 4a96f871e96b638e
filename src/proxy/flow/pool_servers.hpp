/// The servers of a pool, as one worker has them: which one has a key, which are ejected and when
/// they are tried again, and when what is under way on them has timed out.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/flow/loop.hpp"
#include "proxy/flow/server.hpp"
#include "proxy/ring/ring.hpp"

namespace sluice::proxy::flow {

class Pool;
class Subscriptions;

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

  /// Subscribers are told when homes may have moved.
  void add_subscriber(Subscriptions& subscriber) { subscribers_.insert(&subscriber); }
  void remove_subscriber(Subscriptions& subscriber) noexcept { subscribers_.erase(&subscriber); }

  void tick();
  bool is_idle() const;

 private:
  using Servers = std::vector<std::unique_ptr<Server>>;

  void make_servers(Servers old);
  void make_ring();
  void make_other_ring(const PoolSettings& other);
  void plan_recovery();
  void recover();
  void check_subscribers();
  void follow_masters();
  void check_deadlines();
  SteadyTime soonest_deadline() const noexcept;
  void for_each_upstream(const std::function<void(Upstream&)>& visit);

  Pool& pool_;
  Loop& loop_;
  Servers servers_;
  Servers retired_;  // of earlier settings, with something still under way
  Homes homes_;
  Homes other_homes_;                        // of the other ring, while keys move
  std::vector<std::uint32_t> other_places_;  // in servers_, of each server of that ring
  std::uint64_t version_ = 0;                // of the healths that the ring was made of
  std::uint32_t random_;
  int full_ = 0;
  std::set<Subscriptions*> subscribers_;
  Loop::TimerId deadline_timer_{};
  Loop::TimerId recovery_timer_{};
  Loop::TimerId subscribers_timer_{};
  Loop::TimerId masters_timer_{};
};

}  // namespace sluice::proxy::flow
