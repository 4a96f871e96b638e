/// The server of a simulation: an embedded engine that can be down, come back without some or all
/// of its data, run out of memory, refuse everybody, and have a replica that lags.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/embedded_store.hpp"
#include "lock/simulation/journal.hpp"
#include "lock/simulation/mutation.hpp"
#include "lock/simulation/snapshot.hpp"

namespace sluice::simulation {

class SimServer {
 public:
  SimServer(VirtualClock& clock, Journal& journal, const Mutation& mutation, Branches* branches,
            std::function<void()> after_step);

  /// Executes and replies: an error is a Value in its place. What WAIT says comes by
  /// `when_replicated`.
  std::vector<Value> execute(const Batch& batch);
  /// To look at its state, or to change it, from outside.
  Value look(std::initializer_list<std::string_view> command);
  Value look(const Script& script, Words keys, Words args);
  Store& store() noexcept { return *engine_; }
  const Clock& clock() const noexcept { return clock_; }

  /// What is left of the data after a restart.
  enum class Keeps { all, nothing, saved };
  /// The process ends; connections of this life are dead.
  void go_down(Keeps keeps);
  void come_back();
  bool is_up() const noexcept { return up_; }
  unsigned life() const noexcept { return life_; }
  /// SAVE: what go_down(Keeps::saved) leaves.
  void save();

  /// From now on the replica has nothing new.
  void replica_falls_behind();
  void replica_catches_up();
  /// The replica takes over with what it has; a new replica is there when replica_catches_up().
  void promote_replica();
  bool replica_lags() const noexcept { return lagging_.has_value(); }
  /// Calls `answer` with what WAIT says of writes of this moment: now, or in at most `within`.
  void when_replicated(std::chrono::milliseconds within, std::function<void(std::int64_t)> answer);

  /// It reads nothing for that time.
  void hang(std::chrono::nanoseconds time);
  SteadyTime hangs_until() const noexcept { return hangs_until_; }

  /// maxmemory is reached, and nothing is evicted.
  void be_full(bool full);
  bool is_full() const noexcept { return terms_.full; }
  /// So many more hear whatever is published: PSUBSCRIBE *.
  void set_bystanders(unsigned many) { terms_.bystanders = many; }
  /// It is a cluster from now on, whose slots are all on one node at a time.
  void be_a_cluster() { terms_.node = 1; }
  bool is_cluster() const noexcept { return terms_.node > 0; }
  /// The slots are at another node. Subscriptions are still at the one before: the new one hears
  /// none, until it `owns_slots()`.
  void move_slots();
  void own_slots();
  /// Every command is answered with this error; empty: no longer.
  void refuse_with(std::string error);
  bool refuses() const noexcept { return !refusal_.empty(); }

  /// When it last lost data that were not replicated, by its own clock; before any time: never.
  WallTime forgot_at() const noexcept { return forgot_at_; }
  SteadyTime forgot_at_steady() const noexcept { return forgot_at_steady_; }
  unsigned first_life_of_data() const noexcept { return first_life_of_data_; }
  /// ... and whether it had lost all of them.
  bool forgot_all() const noexcept { return forgot_all_; }

 private:
  struct Waiting {
    std::uint64_t number;
    std::function<void(std::int64_t)> answer;
  };

  Batch batch_of(const Batch& batch);
  void name_run(const Batch& batch, std::vector<Value>& replies) const;
  void write_down(const Batch& batch, const std::vector<Value>& replies);
  void forget(bool all);
  void load(const Snapshot& snapshot);

  VirtualClock& clock_;
  Journal& journal_;
  const std::function<void()> after_step_;
  const Mutation& mutation_;
  Scripts scripts_;
  ScriptTerms terms_;
  std::string refusal_;
  std::unique_ptr<engine::EmbeddedStore> engine_;
  Listener branch_listener_;
  bool up_ = true;
  unsigned life_ = 0;
  std::optional<Snapshot> saved_;
  SteadyTime hangs_until_ = SteadyTime::min();
  std::optional<Snapshot> lagging_;  // what the replica has
  std::uint64_t waits_ = 0;
  std::vector<Waiting> waiting_;
  WallTime forgot_at_{};
  SteadyTime forgot_at_steady_{};
  unsigned first_life_of_data_ = 0;
  bool forgot_all_ = false;
};

}  // namespace sluice::simulation
