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

#include "lock/simulation/ledger.hpp"
#include "lock/simulation/profile.hpp"

namespace sluice::simulation {

class World;

/// A process with its connection.
struct Machine {
  Machine(World& world, std::string name);

  SimProcess process;
  SimStore store;
};

/// Somebody in a process who comes and goes.
struct Actor {
  std::string name;
  Machine& machine;
  Dice dice;
};

/// The synchronizers that a world is about.
class Play {
 public:
  virtual ~Play() = default;
  /// One visit, from wanting to be in to being out.
  virtual Task<void> visit(Actor& actor) = 0;
  virtual const std::vector<std::unique_ptr<Ledger>>& ledgers() const = 0;
};

using MakePlay = std::unique_ptr<Play> (*)(World&);

struct Outcome {
  std::optional<std::string> violation;
  std::string profile;
  std::vector<std::string> lines;
};

class World {
 public:
  World(std::uint64_t seed, MakePlay play, const Mutation& mutation, bool keeps_journal);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Outcome run();

  const Profile& profile() const noexcept { return profile_; }
  Journal& journal() noexcept { return journal_; }
  const SimServer& server() const noexcept { return server_; }
  const std::vector<std::unique_ptr<Machine>>& machines() const noexcept { return machines_; }
  /// Whether everybody has come to an end.
  bool is_over() const noexcept { return living_ == 0; }
  LedgerTerms ledger_terms(test::Rules rules) const;

 private:
  friend struct Machine;

  Task<void> live(Actor& actor);
  void step();
  void see_what_is_free();
  SteadyTime all_well_since() const;
  void look_for_idle();

  void fault_later();
  void fault();
  void stand_still(Machine& machine);
  void restart();
  void heal();

  void play_out();
  void look_at_the_end();
  void look_at_what_is_left(std::string_view when);
  std::size_t uncertain() const;

  VirtualClock clock_;
  const Mutation& mutation_;
  Profile profile_;
  Dice dice_;
  Journal journal_;
  SimServer server_;
  std::vector<std::unique_ptr<Machine>> machines_;
  std::vector<std::unique_ptr<Actor>> actors_;
  std::unique_ptr<Play> play_;
  bool goes_on_ = true;
  std::size_t living_ = 0;
  std::vector<SteadyTime> free_since_;  // for each ledger
};

/// Runs one seed, on a thread of its own.
Outcome run_seed(std::uint64_t seed, MakePlay play, const Mutation& mutation, bool keeps_journal);

}  // namespace sluice::simulation
