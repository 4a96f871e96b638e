/// One seed: a server, processes, what they do, and the faults that meet them.
///
/// First everybody acquires and releases while the faults last; then all is healed, nobody begins
/// anew, and whoever still waits must come in; at last the server must have forgotten all but the
/// fencing counters, and no timer may be left. The faults begin and end on the world's clock; all
/// runs on one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lock/simulation/queue_order.hpp"
#include "lock/simulation/stranger.hpp"
#include "lock/simulation/workload.hpp"

namespace sluice::simulation {

struct Outcome {
  std::optional<std::string> violation;
  std::string profile;
  std::vector<std::string> lines;
};

class World {
 public:
  World(std::uint64_t seed, const Trouble& trouble, const Primitive& primitive,
        const Mutation& mutation, Branches* branches, bool keeps_journal);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Outcome run();

  /// Whether everybody has come to an end.
  bool is_over() const noexcept;

 private:
  Task<void> live(Actor& actor);
  void step();
  void see_the_server();
  SteadyTime well_since(std::size_t but_for) const;
  void look_for_idle();
  void look_for_standstill(std::chrono::nanoseconds longest);
  void hang();

  void fault_later();
  void fault();
  void usual_fault(Machine& machine);
  void play(Fault fault, Machine& machine);
  void stand_still(Machine& machine);
  void stand_still(Machine& machine, std::chrono::nanoseconds time, bool suspended);
  void kill(Machine& machine);
  void restart(SimServer::Keeps keeps, std::chrono::nanoseconds away);
  void lag();
  void promote();
  void move_slots();
  void dropped(const std::string& inbox);
  void fill();
  void refuse();
  void end_outside();
  void ended_outside(std::size_t place);
  Task<void> operate(std::size_t place, Machine& machine);
  void spoil();
  void heal();
  void prepare();
  void raise_the_dead();
  void look_for_overlooked();
  void look_at_counters();
  std::int64_t counter_of(const std::string& name);
  void look_at_shares();

  void play_out();
  void look_at_the_end();
  void look_at_what_is_left(std::string_view when, bool at_once);
  void look_at_permits();
  std::chrono::nanoseconds busy_for(const std::string& name);
  std::size_t uncertain() const;

  VirtualClock clock_;
  const Primitive& primitive_;
  Profile profile_;
  Dice dice_;
  Journal journal_;
  SimServer server_;
  std::vector<std::unique_ptr<SimServer>> other_servers_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::unique_ptr<Workload> workload_;
  bool goes_on_ = true;
  std::size_t faults_ = 0;
  bool operating_ = false;
  std::size_t spoilt_ = 0;
  SteadyTime looked_at_{};
  std::vector<bool> idle_;  // for each ledger, at that time
  std::vector<SteadyTime> ended_outside_;
  bool moving_ = false;  // the slots of a cluster
  SteadyTime moved_at_ = SteadyTime::min();
  std::vector<SteadyTime> idle_since_;  // for each ledger that some wait for
  Listener drop_listener_;
  std::vector<std::int64_t> counters_;  // the largest, and the last, of each ledger
  std::vector<std::int64_t> last_counters_;
  std::vector<std::unique_ptr<Stranger>> strangers_;
  std::vector<SteadyTime> free_since_;  // for each ledger
  std::vector<QueueOrder> orders_;      // for each ledger, where the first to come is first served
};

/// Runs one seed, on a thread of its own.
Outcome run_seed(std::uint64_t seed, const Trouble& trouble, const Primitive& primitive,
                 const Mutation& mutation, bool keeps_journal, Branches* branches = nullptr);

}  // namespace sluice::simulation
