#include "lock/simulation/mutex_play.hpp"

#include "lock/simulation/visit.hpp"

namespace sluice::simulation {
namespace {

class MutexPlay final : public Play {
 public:
  explicit MutexPlay(World& world) : world_(world) {
    const Profile& profile = world.profile();
    const MutexOptions options{.lease = profile.lease,
                               .watchdog = profile.watched,
                               .hand_off = profile.hand_off,
                               .label = "simulated"};
    for (std::size_t i = 0; i < profile.names; ++i) {
      const auto name = fmt::format("lock{}", i);
      ledgers_.push_back(std::make_unique<Ledger>(world.server(), world.journal(), name,
                                                  world.ledger_terms({})));
      for (const auto& machine : world.machines())
        mutexes_.push_back({&machine->process,
                            std::make_unique<Mutex>(machine->store, name, options)});
    }
  }

  const std::vector<std::unique_ptr<Ledger>>& ledgers() const override { return ledgers_; }

  Task<void> visit(Actor& actor) override {
    const auto name = actor.dice.below(ledgers_.size());
    Ledger& ledger = *ledgers_[name];
    Mutex& mutex = mutex_of(actor, name);
    const Owner owner;
    const bool owned = actor.dice.chance(50);
    auto entering = enter(actor, ledger, mutex, owned ? &owner : nullptr);
    std::optional<Held> held = co_await entering;
    if (!held) co_return;
    {
      const Stay stay{ledger, actor, *held, test::Event::Kind::enter};
      auto staying = be_inside(actor, ledger, mutex, owned ? &owner : nullptr);
      co_await staying;
    }
    if (actor.dice.chance(40)) co_return;  // the destructor releases
    auto releasing = held->release();
    const ReleaseOutcome outcome = co_await releasing;
    world_.journal().note("{}: {}", actor.name, to_string(outcome.kind));
  }

 private:
  struct Known {
    const SimProcess* process;
    std::unique_ptr<Mutex> mutex;
  };

  Mutex& mutex_of(const Actor& actor, std::size_t name) const {
    const auto machines = world_.machines().size();
    std::size_t i = name * machines;
    while (mutexes_[i].process != &actor.machine.process) ++i;
    return *mutexes_[i].mutex;
  }

  static Task<std::optional<Held>> enter(Actor& actor, Ledger& ledger, Mutex& mutex,
                                         const Owner* owner) {
    const Patience patience{actor.dice, std::chrono::seconds{3}};
    Wait wait{ledger, actor};
    std::optional<StopAfter> stop;
    if (patience.stops_after) stop.emplace(actor.machine.process, *patience.stops_after);
    const std::stop_token token = stop ? stop->token() : std::stop_token{};
    auto acquiring = owner ? mutex.try_acquire(*owner, patience.wait, token)
                           : mutex.try_acquire(patience.wait, token);
    std::optional<Held> held = co_await acquiring;
    if (held) wait.is_over();
    co_return held;
  }

  Task<void> be_inside(Actor& actor, Ledger& ledger, Mutex& mutex, const Owner* owner) {
    const auto time = time_inside(actor.dice, world_.profile());
    auto staying = sleep_until(actor.machine.process, actor.machine.process.steady() + time / 2);
    co_await staying;
    std::optional<Held> again;
    std::optional<Stay> stay;
    if (owner && actor.dice.chance(40)) {
      auto entering = mutex.try_acquire(*owner);
      again = co_await entering;
      if (again) stay.emplace(ledger, actor, *again, test::Event::Kind::enter);
    }
    auto rest = sleep_until(actor.machine.process, actor.machine.process.steady() + time / 2);
    co_await rest;
  }

  World& world_;
  std::vector<std::unique_ptr<Ledger>> ledgers_;
  std::vector<Known> mutexes_;
};

}  // namespace

std::unique_ptr<Play> play_mutex(World& world) { return std::make_unique<MutexPlay>(world); }

}  // namespace sluice::simulation
