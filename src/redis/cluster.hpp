/// What a ClusterStore shares with the calls under way, which may outlive it: which node has which
/// slot, and a Client for each node.
///
/// When a slot gets another master, calls of before may still be under way to the old one, whose
/// MOVED brings them to the new one later. So a new call first asks the old one for a reply to
/// nothing (a fence): when that is there, all calls of before have been sent on.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash_slot.hpp"
#include "base/process.hpp"
#include "redis/client.hpp"
#include "redis/cluster_channels.hpp"
#include "redis/cluster_store.hpp"
#include "redis/cluster_trackers.hpp"
#include "redis/replicas.hpp"
#include "topology/refresher.hpp"

namespace sluice::redis {

class Cluster;
using ClusterPtr = std::shared_ptr<Cluster>;

/// Tells the cluster what a connection of one of its nodes hears.
class NodeHearer final : public Hearer {
 public:
  NodeHearer(std::weak_ptr<Cluster> cluster, topology::Endpoint endpoint)
      : cluster_(std::move(cluster)), endpoint_(std::move(endpoint)) {}

  /// Keeps the listening connection.
  void want() noexcept { wanted_.fetch_add(1, std::memory_order_relaxed); }
  void let_go() noexcept { wanted_.fetch_sub(1, std::memory_order_relaxed); }

  bool any() const noexcept override { return wanted_.load(std::memory_order_relaxed) > 0; }
  /// None: the slot of a channel may have moved, which would end the greeting.
  std::vector<std::string> confirmed() const override { return {}; }
  std::string refuse_node(const std::string& id) const override;
  void confirm(Kind kind, const std::string& channel) override;
  void deliver(Kind kind, const Message& message) override;
  void deliver_gap(const std::vector<std::string>& /*channels*/) override {}
  void tell_reconnected() override;
  void ended(Kind kind, const std::string& channel) override;
  void lost(bool is_listener) override;
  void connected(bool is_listener) override;
  void waits(int slot) override;

 private:
  const std::weak_ptr<Cluster> cluster_;
  const topology::Endpoint endpoint_;
  std::atomic<int> wanted_{0};
};

/// As the cluster uses it. One with the same endpoint after it is another Node.
struct Node {
  topology::Endpoint endpoint;
  std::shared_ptr<NodeHearer> hearer;
  std::shared_ptr<Client> client;
  /// It owes a reply, and has said nothing since then; max(): it speaks.
  std::atomic<SteadyTime> silent_since{SteadyTime::max()};
  std::shared_ptr<Replicas> replicas;  ///< if they are read from; of its master alone

  // The Cluster's, under its lock.
  SteadyTime used{};
  bool has_replicas = false;  ///< as far as is known
  topology::MissingReplicas missing_replicas{};
  SteadyTime heard{};    ///< by its shared connection, when that was looked at
  bool awaited = false;  ///< a reply, then
};
using NodePtr = std::shared_ptr<Node>;

/// Where a call is sent next.
struct Course {
  NodePtr node;                ///< null: nobody has the slot, as far as is known
  NodePtr before;              ///< not null: calls of before may be under way to it
  bool is_redirected = false;  ///< by a node, and by no map yet
  bool asks = false;
  std::uint64_t version = 0;
};

/// The last call of a thread in a slot that waits for its turn to be sent.
struct Gate {
  Completion sent;
  std::uint64_t version = 0;  ///< of its course; 0: it was not sent

  // The Cluster's, under the lock of the gates.
  bool is_left = false;
  std::shared_ptr<Gate> next{};  ///< of a call that has given up: those behind it come after this
};

class Cluster final : public Source, public std::enable_shared_from_this<Cluster> {
 public:
  explicit Cluster(ClusterStoreOptions options);

  const RedisOptions& options() const noexcept { return options_.node; }
  const std::string& name() const noexcept { return name_; }
  bool is_of_parent() const noexcept { return forks_ != fork_count(); }
  Callbacks& callbacks() noexcept { return *callbacks_; }
  ClusterChannels& channels() noexcept { return channels_; }
  ClusterTrackers& trackers() noexcept { return trackers_; }
  Channels& watchers() noexcept { return watchers_; }
  Reactor& reactor() noexcept { return *reactor_; }

  /// Starts the thread, which keeps this, and waits for the first map.
  void open();
  /// As Client::close().
  void close();
  bool is_closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  // Calls.
  Course course(std::uint16_t slot, SteadyTime now);
  /// A call went to `node` by a course of before: later ones of its thread have to come after it.
  void sent_late(std::uint16_t slot, const NodePtr& node);
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }
  /// A master that is connected if there is one; null: none is known.
  NodePtr any_master();
  std::vector<NodePtr> masters();
  /// The node there, whether it is in the map or not. Throws Error{closed}.
  NodePtr node_at(const topology::Endpoint& endpoint);
  /// The map has it.
  bool knows(const topology::Endpoint& endpoint);
  bool is_elsewhere(int slot, const NodeHearer& node);
  /// Null: nobody.
  NodePtr owner(std::size_t slot);
  using Slots = std::bitset<hash_slots>;
  /// Those of the node; null: those that some node has.
  Slots slots_of(const NodePtr& node);
  /// Of a master; null: it was left. REQUIRES: options().replica_max_lag.
  std::shared_ptr<Replicas> replicas_of(const NodePtr& node);

  using GateKey = std::pair<int, const void*>;  ///< slot, whose calls
  bool has_gates() const noexcept { return gated_.load(std::memory_order_relaxed) > 0; }
  /// A call joins the line behind the call that was the last, whose gate is returned; null: it is
  /// the first. `if_any`: it does not join as the first.
  std::shared_ptr<Gate> join(GateKey key, const std::shared_ptr<Gate>& gate, bool if_any);
  /// It was sent, or will not be.
  void leave(GateKey key, std::shared_ptr<Gate> gate);
  /// The same of a call whose time is over before `before` is left, which is waited for in its
  /// place.
  void leave_behind(GateKey key, Gate& before, std::shared_ptr<Gate> gate);

  /// How many calls wait for another attempt.
  int pausing() const noexcept { return pausing_.load(std::memory_order_relaxed); }
  class Pausing {
   public:
    explicit Pausing(Cluster& cluster) noexcept : cluster_(cluster) { ++cluster_.pausing_; }
    ~Pausing() { --cluster_.pausing_; }
    Pausing(const Pausing&) = delete;
    Pausing& operator=(const Pausing&) = delete;

   private:
    Cluster& cluster_;
  };

  // What calls have heard.
  void moved(std::uint16_t slot, const topology::Endpoint& from, const topology::Endpoint& to);
  void doubt();
  std::string why_not(int slot = Operation::no_slot);

  // What connections have heard. By NodeHearer.
  /// True: a node of that id is none of this cluster, though it is at the address of one.
  bool is_foreign(const topology::Endpoint& endpoint, const std::string& id);
  void node_lost(const topology::Endpoint& endpoint);
  void node_connected(const topology::Endpoint& endpoint);
  /// Channels or trackers have to be looked at.
  void look() noexcept;
  /// A node owes a reply now, and is looked at after a while.
  void look_soon();

  void on_ready(std::uint32_t) override {}
  SteadyTime on_tick(SteadyTime now) override;

 private:
  static constexpr std::uint16_t nobody = 0xffff;
  struct Changes {
    std::vector<topology::SlotRange> moved;
    std::vector<NodePtr> nodes;     // all
    std::vector<NodePtr> deprived;  // of all their slots
    std::vector<NodePtr> left;
    bool is_new_map = false;
    bool is_replaced = false;
  };

  // REQUIRES: mutex_ is held
  NodePtr node_here(const topology::Endpoint& endpoint, SteadyTime now);
  RedisOptions options_to(const topology::Endpoint& endpoint) const;
  void take_map(SteadyTime now);
  void tell_replicas(Node& node);
  void doubt_replicas_of(Node& node);
  Changes take_changes(SteadyTime now);
  void recognise_by(std::shared_ptr<const topology::ClusterMap> map);
  void leave_idle_nodes(SteadyTime now, Changes& changes);
  std::vector<NodePtr> look_for_silence(SteadyTime now);
  bool is_hopeless() const;

  Task<void> ask(NodePtr node, topology::RefreshQuestion question);
  void take(const topology::RefreshQuestion& question, const std::exception_ptr& failure,
            std::span<const Value> replies);
  void follow(const Changes& changes);

  const ClusterStoreOptions options_;
  const std::string name_;
  const unsigned forks_ = fork_count();
  const std::shared_ptr<Reactor> reactor_;
  const std::shared_ptr<Callbacks> callbacks_;
  Channels watchers_;
  ClusterChannels channels_;
  ClusterTrackers trackers_;

  std::mutex mutex_;
  std::condition_variable told_;
  std::atomic<bool> closed_{false};
  std::atomic<int> pausing_{0};
  topology::Refresher refresher_;
  std::shared_ptr<const topology::ClusterMap> followed_;  // the map that all has been told of
  std::uint64_t replacements_followed_ = 0;
  std::map<topology::Endpoint, NodePtr> nodes_;
  std::map<topology::Endpoint, Error> refusals_;  // of seeds, before the first map
  SteadyTime next_tick_{};
  SteadyTime next_look_ = SteadyTime::max();
  std::atomic<bool> has_news_{true};
  std::atomic<bool> looks_{false};

  // By whom a new connection is recognised. After all other locks; null: by nobody.
  std::mutex known_mutex_;
  std::shared_ptr<const topology::ClusterMap> known_;

  // What calls read. After mutex_, if both are held.
  std::mutex courses_mutex_;
  std::vector<NodePtr> places_;
  std::array<std::uint16_t, hash_slots> owners_;  // of places_
  std::array<std::uint16_t, hash_slots> before_;
  SteadyTime gates_until_{};
  std::atomic<std::uint64_t> version_{0};

  std::mutex gates_mutex_;
  std::map<GateKey, std::shared_ptr<Gate>> gates_;
  std::atomic<std::size_t> gated_{0};  // their number
};

}  // namespace sluice::redis
