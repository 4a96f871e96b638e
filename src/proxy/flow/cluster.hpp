/// The cluster that a pool is before: which node has which slot. A thread of its own asks, as
/// topology::Refresher decides; workers look here ten times a second, and when a node has told one
/// of them that a slot has moved.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "proxy/config/config.hpp"
#include "proxy/flow/asking_lines.hpp"
#include "proxy/flow/replica_watch.hpp"
#include "topology/refresher.hpp"

namespace sluice::proxy::flow {

struct PoolTls;

/// Threads: any.
class Cluster {
 public:
  using Map = std::shared_ptr<const topology::ClusterMap>;

  /// `resolver` outlives it.
  Cluster(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls,
          Resolver& resolver);
  ~Cluster();

  /// Whether other settings make no difference here.
  bool serves(const PoolSettings& settings) const;
  /// Changes with the map; no two clusters of this process have the same.
  std::uint64_t turn() const noexcept { return turn_.load(std::memory_order_acquire); }
  /// Never null; it knows nothing before the first good answer.
  Map map() const;

  /// `from` says that `slot` is at `to`: map() knows at once, if that can be.
  void moved(std::uint16_t slot, const topology::Endpoint& from, const topology::Endpoint& to);
  /// The connection to a node broke, or it owes replies and says nothing.
  void lost(const topology::Endpoint& node);
  void is_back(const topology::Endpoint& node);
  /// The map may be old.
  void doubt();

  std::vector<ReplicaWatch::Replica> replicas_of(const topology::Endpoint& master) const;
  /// As Masters has it.
  void want_replicas(const topology::Endpoint& master);

 private:
  static std::uint64_t next_turn() noexcept;
  void run();
  void ask(const topology::RefreshQuestion& question);
  void take(std::uint64_t question, const std::vector<Value>& replies, std::string_view why);
  void tell();
  SteadyTime follow_replicas(SteadyTime now, const std::vector<topology::Endpoint>& wanted);
  std::string certified(const topology::Endpoint& node) const;

  const std::shared_ptr<const PoolSettings> settings_;
  AskingLines lines_;  // the thread's
  struct Followed {
    ReplicaWatch watch;
    topology::MissingReplicas missing{};
  };
  std::map<topology::Endpoint, Followed> followed_;  // the thread's, by master, once it is wanted
  Map map_of_followed_;                              // by which they are known
  mutable std::mutex mutex_;
  topology::Refresher refresher_;
  std::map<topology::Endpoint, std::vector<ReplicaWatch::Replica>> replicas_;
  std::vector<topology::Endpoint> wanted_;  // whose replicas are read from
  bool knew_nothing_ = true;
  bool ending_ = false;
  std::atomic<std::uint64_t> turn_{next_turn()};
  std::thread thread_;
};

}  // namespace sluice::proxy::flow
