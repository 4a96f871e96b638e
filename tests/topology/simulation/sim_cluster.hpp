/// A Redis Cluster of up to hundreds of nodes, as far as its map goes: each node has its own
/// knowledge of who owns what by which epoch, and it spreads by gossip among nodes that reach each
/// other. Slots move in blocks, so that a seed is played quickly.
///
/// What nodes do wrong is what nodes of Redis do: one that is cut off goes on as the owner until
/// its time is up, and says "ok" meanwhile; one that hangs takes connections and never answers; one
/// that has lost its disk knows itself alone; an address is given to a node of another cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lock/simulation/dice.hpp"
#include "sluice/clock.hpp"
#include "sluice/value.hpp"
#include "topology/cluster_view.hpp"

namespace sluice::topology::simulation {

using sluice::simulation::Dice;

constexpr std::uint16_t block_slots = 256;
constexpr std::size_t blocks = 64;
constexpr std::chrono::milliseconds node_timeout{1000};

class SimCluster {
 public:
  enum class Life { well, hanging, dead, blank, foreign };
  static constexpr std::size_t nobody = ~std::size_t{};

  SimCluster(std::size_t masters, std::size_t replicas, bool full_coverage, Dice dice);

  /// Gossip, failovers and states: what follows from time.
  void step(SteadyTime now);

  // What happens to it, to nodes that the dice choose.
  void strike_one(Life life, SteadyTime now);
  void revive_one(SteadyTime now);
  void fail_over_one();
  void move_block();
  void add_shard();
  void remove_shard();
  void split(SteadyTime now);
  /// All that is wrong ends.
  void heal(SteadyTime now);

  std::size_t size() const { return nodes_.size(); }
  static Endpoint endpoint(std::size_t node);
  static std::size_t at(const Endpoint& endpoint);
  Life life(std::size_t node) const { return nodes_[node].life; }
  bool is_member(std::size_t node) const { return nodes_[node].is_member; }
  bool is_ok(std::size_t node) const { return nodes_[node].is_ok; }
  std::size_t side(std::size_t node) const { return nodes_[node].side; }
  static std::string id(std::size_t node);

  /// Who owns the block, as `node` knows it.
  std::size_t owner(std::size_t node, std::size_t block) const {
    return nodes_[node].known[block].owner;
  }
  /// In truth: by the latest epoch that any node knows.
  std::size_t true_owner(std::size_t block) const;
  /// Whether all nodes know the same, and nothing is to come.
  bool has_settled() const;
  /// The replies of `node` to commands_of(form).
  std::vector<Value> replies(std::size_t node, Form form) const;

 private:
  struct Claim {
    std::size_t owner = nobody;
    std::uint64_t epoch = 0;
    friend bool operator==(const Claim&, const Claim&) = default;
  };
  using Knowledge = std::vector<Claim>;  // one a block
  struct SimNode {
    Life life = Life::well;
    bool is_member = true;
    bool is_ok = true;
    std::size_t shard = 0;
    std::size_t side = 0;              // nodes reach those of their side
    std::optional<SteadyTime> gone{};  // since when the majority does not reach it
    Knowledge known;
  };

  std::size_t add_node(std::size_t shard, const Knowledge& known);
  void exchange(SimNode& one, SimNode& other);
  void promote(std::size_t node, std::size_t master);
  void give(const std::vector<std::size_t>& given, std::size_t to);
  void look_at_states(SteadyTime now);
  void look_for_failovers(SteadyTime now);
  bool is_sound(std::size_t node) const {
    return nodes_[node].is_member && nodes_[node].life == Life::well && nodes_[node].side == 0;
  }
  std::uint64_t next_epoch() const;
  std::vector<std::size_t> owners() const;
  std::vector<std::size_t> blocks_of(std::size_t node) const;
  std::size_t one_of(const std::vector<std::size_t>& all);

  std::string nodes_text(std::size_t self) const;
  Value shards_reply(std::size_t self) const;
  Value slots_reply(std::size_t self) const;
  std::size_t master_of(const Knowledge& known, std::size_t node) const;

  Dice dice_;
  bool full_coverage_;
  std::vector<SimNode> nodes_;
  std::size_t shards_ = 0;
};

}  // namespace sluice::topology::simulation
