/// What the actors of a world do: they want to be in, are in for a while, perhaps once more, and
/// leave.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lock/simulation/ledger.hpp"
#include "lock/simulation/primitive.hpp"

namespace sluice::simulation {

/// A process with its connection.
struct Machine {
  Machine(std::size_t place, VirtualClock& world, SimServer& server, Journal& journal,
          const Mutation& mutation, const Profile& profile, Dice dice,
          std::function<void()> after_step)
      : number(place),
        process(world, fmt::format("p{}", place), dice.split(), profile.jitter,
                std::move(after_step)),
        store(world, process, server, journal, mutation, profile.line, dice.split()) {}

  const std::size_t number;
  SimProcess process;
  SimStore store;
};

/// Somebody in a process who comes and goes.
struct Actor {
  std::string name;
  Machine& machine;
  Dice dice;
};

class Workload {
 public:
  using Machines = std::vector<std::unique_ptr<Machine>>;

  Workload(const Primitive& primitive, const Profile& profile, const Machines& machines,
           const SimServer& server, Journal& journal);

  /// One acquisition, from wanting to be in to being out.
  Task<void> acquire_and_release(Actor& actor);

  const std::vector<std::unique_ptr<Ledger>>& ledgers() const noexcept { return ledgers_; }
  /// By which process something is asked when all is over.
  SimLock& lock(std::size_t name, std::size_t machine) const {
    return *locks_[name * machines_ + machine];
  }

 private:
  struct Acquisition {
    Actor& actor;
    Ledger& ledger;
    SimLock& lock;
    const Owner* owner;
    Mode mode;
    std::uint32_t permits;
  };

  Task<std::optional<Held>> enter(const Acquisition& acquisition);
  Task<void> be_inside(const Acquisition& acquisition);

  const Primitive& primitive_;
  const Profile& profile_;
  Journal& journal_;
  const std::size_t machines_;
  std::vector<std::unique_ptr<Ledger>> ledgers_;  // one a name
  std::vector<std::unique_ptr<SimLock>> locks_;   // one a name and machine
};

}  // namespace sluice::simulation
