/// What the actors of a world do: they want to be in, are in for a while, perhaps once more, and
/// leave.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "lock/simulation/ledger.hpp"
#include "lock/simulation/primitive.hpp"

namespace sluice::simulation {

/// A process with its connection.
struct Machine {
  Machine(std::size_t place, VirtualClock& world, std::span<SimServer* const> servers,
          Journal& journal, const Mutation& mutation, const Profile& profile, Dice dice,
          std::function<void()> after_step)
      : number(place),
        process(world, journal, fmt::format("p{}", place), dice.split(), profile.jitter,
                clock_of(profile, mutation, dice), std::move(after_step)),
        store(world, process, *servers.front(), journal, mutation, profile.line, dice.split()),
        stores({&store}),
        unwell_until(SteadyTime::min()) {
    for (auto* const server : servers.subspan(1)) {
      others.push_back(std::make_unique<SimStore>(world, process, *server, journal, mutation,
                                                  profile.line, dice.split()));
      stores.push_back(others.back().get());
    }
  }

  bool is_well() const noexcept {
    return !process.stands_still() && store.connected_since() != SteadyTime::max();
  }

  static ClockTerms clock_of(const Profile& profile, const Mutation& mutation, Dice& dice);

  const std::size_t number;
  SimProcess process;
  SimStore store;
  std::vector<std::unique_ptr<SimStore>> others;  ///< where there are several servers
  std::vector<Store*> stores;
  SteadyTime unwell_until;  ///< when it last stood still or was cut off
  bool dead = false;
  Owner owner{};  ///< of several actors, where they share one
};

/// Somebody in a process who comes and goes.
struct Actor {
  std::string name;
  Machine& machine;
  Dice dice;
  bool lives = true;
  bool waits = false;  ///< to be in, without an end
};

class Workload {
 public:
  using Machines = std::vector<std::unique_ptr<Machine>>;

  Workload(const Primitive& primitive, const Profile& profile, const Machines& machines,
           const SimServer& server, Journal& journal, const Mutation& mutation);

  /// Somebody looks at a lock, changes it, or forces it open. True: that.
  Task<bool> operate(std::size_t name, Machine& machine, Dice& dice);

  /// One acquisition, from wanting to be in to being out.
  Task<void> acquire_and_release(Actor& actor);

  const std::vector<std::unique_ptr<Ledger>>& ledgers() const noexcept { return ledgers_; }
  /// Somebody who waits, and for how long it might have been in already.
  struct Waiting {
    const Actor* actor;
    std::vector<Ledger*> ledgers;
    SteadyTime since;
    std::size_t entries_before;
    Mode mode;
    const SteadyTime came = since;             ///< where a pause of the server moves `since`
    SteadyTime overtaken = SteadyTime::max();  ///< by somebody who came later
    std::chrono::nanoseconds passed_over{};
  };
  std::list<Waiting>& waiting() noexcept { return waiting_; }
  void look_for_overtaken() const;
  std::size_t entries() const noexcept { return entries_; }
  /// By which process something is asked when all is over.
  SimLock& lock(std::size_t name, std::size_t machine) const {
    return *doors_[name * machines_ + machine].lock;
  }

 private:
  class Wait;
  class Stay;
  struct Door {
    std::unique_ptr<SimLock> lock;
    std::vector<Ledger*> ledgers;
  };
  struct Acquisition {
    Actor& actor;
    std::string who;  ///< is in: the actor, or an owner that several have
    const std::vector<Ledger*>& ledgers;
    SimLock& lock;
    const Owner* owner;
    Mode mode;
    std::uint32_t permits;
  };

  Task<SimHoldPtr> enter(const Acquisition& acquisition);
  void look_at_order(const Waiting& enters);
  Task<SimHoldPtr> enter_twice(const Acquisition& acquisition, std::chrono::milliseconds wait,
                               std::stop_token stop);
  Task<void> be_inside(const Acquisition& acquisition);

  const Primitive& primitive_;
  const Profile& profile_;
  Journal& journal_;
  const Mutation& mutation_;
  const std::size_t machines_;
  std::vector<std::unique_ptr<Ledger>> ledgers_;  // one a name
  std::vector<Door> doors_;                       // one a name, or all names, and machine
  const SimServer& server_;
  const Clock& clock_;
  std::list<Waiting> waiting_;
  std::size_t entries_ = 0;
};

}  // namespace sluice::simulation
