#include "lock/simulation/world.hpp"

#include <algorithm>
#include <thread>

namespace sluice::simulation {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

/// A lock that is free while somebody waits for it, though nothing fails.
constexpr nanoseconds longest_idle = 3s;

Task<void> sleep(SimProcess& process, nanoseconds time) {
  return sleep_until(process, process.steady() + time);
}

/// What the last of those who wait may need when all is well again, beside the holds before it.
constexpr nanoseconds longest_end = 40s;
constexpr nanoseconds longest_visit = 4s;
/// What nobody touches is gone from the server after this time.
constexpr nanoseconds longest_trace = 125s;

}  // namespace

World::World(std::uint64_t seed, const Primitive& primitive, const Mutation& mutation,
             bool keeps_journal)
    : primitive_(primitive),
      profile_(seed),
      dice_(profile_.dice.split()),
      journal_(clock_, keeps_journal),
      server_(clock_, journal_, mutation, [this] { see_the_server(); }) {
  Dice& dice = profile_.dice;
  for (std::size_t i = 0; i < profile_.processes; ++i)
    machines_.push_back(std::make_unique<Machine>(i, clock_, server_, journal_, mutation, profile_,
                                                  dice.split(), [this] { step(); }));
  for (const auto& machine : machines_)
    for (std::size_t i = 0; i < profile_.actors; ++i)
      actors_.push_back(std::make_unique<Actor>(fmt::format("{}.a{}", machine->process.name(), i),
                                                *machine, dice.split()));
  workload_ = std::make_unique<Workload>(primitive, profile_, machines_, server_, journal_);
  free_since_.resize(workload_->ledgers().size(), clock_.steady());
  if (primitive_.first_come && profile_.is_calm())
    for (const auto& ledger : workload_->ledgers()) orders_.emplace_back(ledger->name());
}

World::~World() = default;

// --- what they do ---

Task<void> World::live(Actor& actor) {
  for (std::size_t round = 0; round < profile_.rounds && goes_on_; ++round) {
    auto thinking = sleep(actor.machine.process, actor.dice.upto(profile_.longest_rest));
    co_await thinking;
    if (!goes_on_) break;
    try {
      auto visiting = workload_->acquire_and_release(actor);
      co_await visiting;
    } catch (const Error& failure) {
      journal_.note("{} fails: {}", actor.name, failure.what());
      if (profile_.is_calm())
        journal_.violate(
            fmt::format("{} failed though nothing does: {}", actor.name, failure.what()));
    }
  }
  --living_;
}

void World::step() {
  if (!workload_) return;
  for (const auto& ledger : workload_->ledgers()) ledger->look();
  look_for_idle();
}

/// For how long nobody gets in if nobody leaves; 0: somebody can.
nanoseconds World::busy_for(const std::string& name) {
  if (primitive_.permits > 0) {
    const Value free = server_.look({"GET", name});
    const bool enough = !free.is_null() && std::stoll(free.as_text()) >= primitive_.most;
    return enough ? nanoseconds{} : nanoseconds::max();
  }
  const auto left = server_.look({"PTTL", name}).as_integer();
  if (left == -1) {
    journal_.violate(fmt::format("the hold of {} has no end", name));
    return nanoseconds::max();
  }
  return std::chrono::milliseconds{std::max<std::int64_t>(left, 0)};
}

void World::see_the_server() {
  if (!workload_) return;
  for (auto& order : orders_) order.look(server_, journal_);
  const auto now = clock_.steady();
  for (std::size_t i = 0; i < free_since_.size(); ++i) {
    const auto busy = busy_for(workload_->ledgers()[i]->name());
    free_since_[i] = busy == nanoseconds{} ? std::min(free_since_[i], now) : Clock::add(now, busy);
  }
}

/// Since when nothing fails, but for so many processes; max(): something does.
SteadyTime World::well_since(std::size_t but_for) const {
  std::vector<SteadyTime> since;
  for (const auto& machine : machines_)
    since.push_back(std::max(machine->process.runs_since(), machine->store.connected_since()));
  std::ranges::sort(since);
  return since[since.size() - 1 - std::min(but_for, since.size() - 1)];
}

/// Nobody sleeps beside a free lock.
void World::look_for_idle() {
  const auto before = clock_.steady() - longest_idle;
  const auto all_well = well_since(primitive_.steps_over);
  if (all_well >= before) return;
  for (std::size_t i = 0; i < free_since_.size(); ++i) {
    const Ledger& ledger = *workload_->ledgers()[i];
    if (free_since_[i] >= before) continue;
    for (const auto& waiter : ledger.waiters())
      if (before > std::max({all_well, waiter.since, waiter.process->runs_since(),
                             waiter.store->connected_since()}))
        journal_.violate(
            fmt::format("{} sleeps beside {}, which is free", waiter.who, ledger.name()));
  }
}

// --- what meets them ---

void World::fault_later() {
  clock_.after(dice_.upto(2 * profile_.between_faults), [this] {
    if (!goes_on_) return;
    fault();
    fault_later();
  });
}

void World::fault() {
  auto& machine = *machines_[dice_.below(machines_.size())];
  const auto lot = dice_.below(8);
  if (lot < 4 && profile_.cuts) machine.store.lose();
  if (lot >= 3 && lot < 7 && profile_.pauses) stand_still(machine);
  if (lot == 7 && profile_.restarts) restart();
}

void World::stand_still(Machine& machine) {
  if (machine.process.stands_still()) return;
  const nanoseconds most[] = {200ms, profile_.lease, 2 * profile_.lease};
  const auto time = dice_.upto(dice_.one_of(most));
  journal_.note("{} stands still for {} us", machine.process.name(), time.count() / 1000);
  machine.process.stop();
  clock_.after(time, [this, &machine] {
    if (machine.process.stands_still()) journal_.note("{} goes on", machine.process.name());
    machine.process.go_on();
  });
}

void World::restart() {
  if (!server_.is_up()) return;
  server_.go_down(profile_.forgets && dice_.chance(60));
  for (const auto& machine : machines_) machine->store.lose();
  clock_.after(dice_.upto(1s), [this] { server_.come_back(); });
}

void World::heal() {
  journal_.note("the faults are over");
  goes_on_ = false;
  for (const auto& machine : machines_) machine->process.go_on();
  for (std::size_t name = 0; name < profile_.names; ++name)
    spawn(workload_->lock(name, 0).prepare());  // what the server forgot
}

// --- from beginning to end ---

std::size_t World::uncertain() const {
  std::size_t all = 0;
  for (const auto& machine : machines_) all += machine->store.uncertain();
  return all;
}

void World::play_out() {
  living_ = actors_.size();
  for (const auto& actor : actors_) spawn(live(*actor));
  if (!profile_.is_calm()) fault_later();
  clock_.advance(profile_.faults_for);
  heal();
  const auto healed = clock_.steady();
  while (!is_over() && !journal_.violation()) {
    clock_.advance(1s);
    step();
    const auto bound = longest_end + profile_.lease * (1 + uncertain()) +
                       longest_visit * static_cast<long>(actors_.size());
    if (clock_.steady() - healed > bound)
      journal_.violate(fmt::format("{} of {} have not come to an end", living_, actors_.size()));
  }
}

void World::look_at_what_is_left(std::string_view when, bool at_once) {
  const auto may_stay = [&](const std::string& key) {
    const auto begins = [&](std::string_view beginning) { return key.starts_with(beginning); };
    return begins("redisson_lock_token:") || std::ranges::any_of(primitive_.stay, begins) ||
           (at_once && std::ranges::any_of(primitive_.fade, begins));
  };
  const Value keys = server_.look({"KEYS", "*"});
  for (const auto& key : keys.as_items())
    if (!may_stay(key.as_text()))
      journal_.violate(fmt::format("{} the key {} is left", when, key.as_text()));
}

/// All permits are free again, those of the lost too.
void World::look_at_permits() {
  const auto look = [this](std::size_t name) -> Task<void> {
    SimLock& lock = workload_->lock(name, 0);
    auto preparing = lock.prepare();
    co_await preparing;
    auto counting = lock.free_permits();
    const std::int64_t free = co_await counting;
    if (free != primitive_.permits)
      journal_.violate(
          fmt::format("{} of {} permits are free in the end", free, primitive_.permits));
  };
  for (std::size_t name = 0; name < profile_.names; ++name) spawn(look(name));
  clock_.advance(longest_idle);
}

void World::look_at_the_end() {
  clock_.advance(longest_idle);
  if (uncertain() == 0) look_at_what_is_left("when all are out", true);
  clock_.advance(longest_trace + profile_.lease);
  if (primitive_.permits > 0) look_at_permits();
  clock_.advance(longest_trace);
  look_at_what_is_left("long after", false);
  for (const auto& machine : machines_)
    if (machine->process.pending_timers() > 0)
      journal_.violate(fmt::format("{} has {} timers left", machine->process.name(),
                                   machine->process.pending_timers()));
  workload_.reset();
  clock_.advance(longest_idle);
  if (!server_.look({"PUBSUB", "CHANNELS"}).as_items().empty())
    journal_.violate("a subscription is left");
}

Outcome World::run() {
  journal_.note("{}", profile_.text());
  play_out();
  if (!journal_.violation()) look_at_the_end();
  return {.violation = journal_.violation(), .profile = profile_.text(), .lines = journal_.lines()};
}

Outcome run_seed(std::uint64_t seed, const Primitive& primitive, const Mutation& mutation,
                 bool keeps_journal) {
  Outcome outcome;
  std::exception_ptr failure;
  const auto play = [&] {
    auto world = std::make_unique<World>(seed, primitive, mutation, keeps_journal);
    outcome = world->run();
    // Whoever still waits in it would be resumed in a world that is gone: it stays.
    static auto* const unfinished = new std::vector<std::unique_ptr<World>>;
    if (!world->is_over()) unfinished->push_back(std::move(world));
  };
  std::thread{[&] {
    try {
      play();
    } catch (...) {
      failure = std::current_exception();
    }
  }}.join();
  if (failure) std::rethrow_exception(failure);
  return outcome;
}

}  // namespace sluice::simulation
