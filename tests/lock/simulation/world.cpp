#include "lock/simulation/world.hpp"

#include "lock/simulation/errands.hpp"
#include "lock/wait/inbox.hpp"

namespace sluice::simulation {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

namespace {

/// A lock that is free while somebody waits for it, though nothing fails.
constexpr nanoseconds longest_idle = 3s;
/// How often it is looked at what does not happen.
constexpr nanoseconds tick = 200ms;

Task<void> sleep(SimProcess& process, nanoseconds time) {
  return sleep_until(process, process.steady() + time);
}

/// What the last of those who wait may need when all is well again, beside the holds before it.
constexpr nanoseconds longest_end = 40s;
constexpr nanoseconds longest_visit = 4s;
/// What nobody touches is gone from the server after this time.
constexpr nanoseconds longest_trace = 125s;
/// What other programs do to the keys of a lock.
constexpr std::string_view spoilings[] = {
    // another type, or a hash that is no lock
    "call('DEL', name) call('SET', name, 'a text')",
    "call('DEL', name) call('HSET', name, 'a field', 'a text')",
    "call('DEL', name) call('RPUSH', name, 'an item')",
    "call('DEL', name) call('HSET', name, 'mode', 'read')",
    "call('DEL', name) call('HSET', name, 'mode', 'read', 'a field', 'a text')",
    "call('DEL', name) for i = 1, 100 do call('HSET', name, 'field' .. i, 1) end",
    "call('DEL', name)",
    "call('PEXPIRE', name, 2000)",
    // of limiters: no number, no entry; a log of a Java program whose clock is ahead
    "call('DEL', name, free, log) call('SET', free, 'a text')",
    "call('DEL', name, free, log) call('ZADD', log, 1, 'a member')",
    "for i = 1, 3 do call('ZADD', log, now + 500, struct.pack('<Bc0I4', 16, string.format("
    "'a Java client%3d', i), 1)) end call('SET', free, -120)",
    "for i = 1, 150 do call('ZADD', log, now + 2000 + i, struct.pack('<Bc0I4', 16, string.format("
    "'a Java client%3d', i), 1)) end call('SET', free, -120)",
    // of semaphores: no hold, people without a hold
    "call('DEL', holds) call('ZADD', holds, 1, 'a member')",
    "for i = 1, 9 do call('HSET', people, i, 'somebody') end",
    // of read-write locks: what an older version noted; the sets and keys beside a lock are gone
    "if call('HEXISTS', name, 'mode') == 1 then call('HSET', name, 'sluice:turn', 'turn 0 0') end",
    "call('DEL', 'sluice_rw_leases:' .. tag)",
    "for _, key in ipairs(call('KEYS', tag .. ':*rwlock_timeout*')) do call('DEL', key) end",
    // of tokens: no number
    "call('SET', token, 'a text')",
    "call('SET', fence, 'a text')",
    // of queues: no ticket, processes that came long ago, more people than are shown
    "call('DEL', queue) call('RPUSH', queue, 'no ticket')",
    "call('DEL', readers) call('ZADD', readers, 1, 'no ticket')",
    "call('LPUSH', fair, 'nobody') call('HSET', tickets, 'nobody', 'no ticket')",
    "for i = 1, 63 - call('HLEN', looks) do call('HSET', looks, 'sluice:inbox:' .. i, i % 2 * now) "
    "end",
    "for i = 1, 1009 do call('HSET', waiters, i, string.format('%.0f 1 sluice:inbox:1 an owner', "
    "i > 9 and now or 0)) end",
};
constexpr std::string_view spoilt_keys =
    "local call, name = redis.pcall, KEYS[1] local tag = '{' .. name .. '}' "
    "local now = call('TIME')[1] * 1000 "
    "local free, log = tag .. ':value', tag .. ':permits' "
    "local holds, people = 'sluice_semaphore_holds:' .. tag, 'sluice_permit_people:' .. tag "
    "local token, fence = 'redisson_lock_token:' .. tag, 'sluice_fence:' .. tag "
    "local queue, readers = 'sluice_lock_queue:' .. tag, 'sluice_rw_read_line:' .. tag "
    "local fair, tickets = 'redisson_lock_queue:' .. tag, 'sluice_lock_tickets:' .. tag "
    "local deadlines = 'redisson_lock_timeout:' .. tag "
    "local looks, waiters = 'sluice_lock_looks:' .. tag, 'sluice_lock_waiters:' .. tag ";
/// Of Redisson's waiters of a fair lock, with all that are before them and behind them.
constexpr nanoseconds patience_of_strangers = 2h;

}  // namespace

World::World(std::uint64_t seed, const Trouble& trouble, const Primitive& primitive,
             const Mutation& mutation, Branches* branches, bool keeps_journal)
    : primitive_(primitive),
      profile_(seed, trouble),
      dice_(profile_.dice.split()),
      journal_(clock_, keeps_journal),
      server_(clock_, journal_, mutation, branches, [this] { see_the_server(); }) {
  Dice& dice = profile_.dice;
  server_.set_bystanders(profile_.bystanders);
  if (profile_.cluster) {
    server_.be_a_cluster();
    drop_listener_ = server_.store()
                         .listen("simulation:dropped",
                                 [this](const Message& message) { dropped(message.payload); })
                         .get();
  }
  if (mutation.drift > 0) profile_.drift = mutation.drift;
  std::vector<SimServer*> servers{&server_};
  while (servers.size() < primitive.servers) {
    profile_.forgets = false;  // what a majority forgets nobody knows
    other_servers_.push_back(
        std::make_unique<SimServer>(clock_, journal_, mutation, branches, [] {}));
    servers.push_back(other_servers_.back().get());
  }
  for (std::size_t i = 0; i < profile_.processes; ++i)
    machines_.push_back(std::make_unique<Machine>(i, clock_, servers, journal_, mutation, profile_,
                                                  dice.split(), [this] { step(); }));
  for (const auto& machine : machines_)
    for (std::size_t i = 0; i < profile_.actors; ++i)
      actors_.push_back(std::make_unique<Actor>(fmt::format("{}.a{}", machine->process.name(), i),
                                                *machine, dice.split()));
  workload_ =
      std::make_unique<Workload>(primitive, profile_, machines_, server_, journal_, mutation);
  free_since_.resize(workload_->ledgers().size(), clock_.steady());
  idle_.resize(workload_->ledgers().size());
  counters_.resize(idle_.size());
  last_counters_.resize(idle_.size());
  looked_at_ = clock_.steady();
  for (std::size_t i = 0; i < profile_.strangers; ++i)
    strangers_.push_back(std::make_unique<Stranger>(
        i, primitive_.name == "multi" ? "mutex" : primitive_.name, "lock0", clock_, server_,
        journal_, dice.split(), profile_.strangers_ahead));
  if (primitive_.first_come && profile_.is_calm())
    for (const auto& ledger : workload_->ledgers()) orders_.emplace_back(ledger->name());
}

World::~World() = default;

// --- what they do ---

Task<void> World::live(Actor& actor) {
  for (std::size_t round = 0; round < profile_.rounds && goes_on_; ++round) {
    const bool late = round == 0 && actor.machine.number == 0;
    auto thinking = sleep(actor.machine.process, (late ? profile_.comes_late : 0ns) +
                                                     actor.dice.upto(profile_.longest_rest));
    co_await thinking;
    if (!goes_on_) break;
    try {
      auto visiting = workload_->acquire_and_release(actor);
      co_await visiting;
    } catch (const Error& failure) {
      journal_.note("{} fails: {}", actor.name, failure.what());
      const bool outage = failure.errc() == Errc::connection || failure.errc() == Errc::timeout;
      if (profile_.outlives && outage && actor.waits)
        journal_.violate(
            fmt::format("{} does not outlive an outage: {}", actor.name, failure.what()));
      if (profile_.is_calm() && primitive_.servers == 1)
        journal_.violate(
            fmt::format("{} failed though nothing does: {}", actor.name, failure.what()));
    } catch (const Wrong& wrong) {
      const bool may = profile_.restarts || server_.first_life_of_data() > 0 ||
                       !ended_outside_.empty() || profile_.operators;
      if (!may) journal_.violate(fmt::format("{}: {}", actor.name, wrong.what()));
    }
  }
  actor.lives = false;
}

bool World::is_over() const noexcept {
  return std::ranges::none_of(
      actors_, [](const auto& actor) { return actor->lives && !actor->machine.dead; });
}

void World::step() {
  if (!workload_) return;
  for (const auto& ledger : workload_->ledgers()) ledger->look();
  if (!primitive_.is_held || primitive_.servers > 1) return;
  if (profile_.cluster) look_for_standstill(2500ms + 500ms * (profile_.actors - 1));
  if (profile_.prompt) {
    look_for_standstill(1500ms);
    workload_->look_for_overtaken();
  }
  if (profile_.strict) {
    look_for_overlooked();
  } else if (profile_.faults.empty() && strangers_.empty()) {
    look_for_idle();
  }
}

/// What a waiter may be passed over for, beside the holds and leases of others.
void World::look_for_overlooked() {
  constexpr nanoseconds cost_of_a_process = 2s;
  constexpr nanoseconds on_the_way = 700ms;
  const auto now = clock_.steady();
  const auto passed = now - std::exchange(looked_at_, now);
  for (const auto& machine : machines_)
    if (!machine->is_well()) machine->unwell_until = now;
  const bool moves = moving_ || now < moved_at_ + 1s;  // then waiters look by themselves
  for (auto& waiting : workload_->waiting()) {
    const Machine& own = waiting.actor->machine;
    if (own.dead) continue;
    const auto is_idle = [&](const Ledger* ledger) {
      // Who waits for all may keep some.
      if (primitive_.open_all) return std::ranges::find(idle_, false) == idle_.end();
      for (std::size_t i = 0; i < idle_.size(); ++i)
        if (workload_->ledgers()[i].get() == ledger) return bool{idle_[i]};
      return false;
    };
    const bool answers = server_.is_up() && !server_.is_full() && !server_.refuses() &&
                         !server_.replica_lags() && server_.hangs_until() < now && !moves;
    if (!own.is_well() || !answers || !std::ranges::all_of(waiting.ledgers, is_idle)) continue;
    waiting.passed_over += passed;
    nanoseconds may = on_the_way + 10 * profile_.line.longest_delay;
    // Of each hand-over: it is on its way, told, and confirmed where it has to be durable. One who
    // waits for all may be given one, find that another is held, and pass it on.
    const bool confirms = profile_.durability.replicas > 0;
    const auto passed_on = primitive_.open_all ? workload_->waiting().size() : 0;
    may += (2 * profile_.line.slowness + (confirms ? 5 : 1) * profile_.line.longest_delay) *
           static_cast<long>(workload_->entries() - waiting.entries_before + passed_on + 1);
    for (const auto& machine : machines_)
      if (machine->dead || machine->unwell_until >= waiting.since)
        may += cost_of_a_process + profile_.lease;
    for (const auto at : ended_outside_)
      if (at >= waiting.since) may += cost_of_a_process;
    if (!ended_outside_.empty()) may += cost_of_a_process;  // which one may not have noticed
    if (waiting.passed_over > may)
      journal_.violate(fmt::format("{} is passed over for {} ms, though nobody is in {}",
                                   waiting.actor->name, waiting.passed_over.count() / 1'000'000,
                                   waiting.ledgers.front()->name()));
  }
  for (std::size_t i = 0; i < idle_.size(); ++i)
    idle_[i] = workload_->ledgers()[i]->is_idle(std::min(primitive_.most, profile_.permits));
}

/// A lock is not free for long while somebody waits.
/// While the slots of a cluster move no message is heard: the first wait of a process looks once a
/// second, and half a second later the next, where one was let in.
void World::look_for_standstill(nanoseconds longest) {
  const auto now = clock_.steady();
  idle_since_.resize(workload_->ledgers().size(), now);
  const bool answers = server_.hangs_until() < now;
  const bool dies = std::ranges::any_of(machines_, [](const auto& one) { return one->dead; });
  for (std::size_t i = 0; i < idle_since_.size(); ++i) {
    const Ledger& ledger = *workload_->ledgers()[i];
    // Who waits for all may keep some.
    const auto is_idle = [&](const auto& one) {
      return one->is_idle(std::min(primitive_.most, profile_.permits));
    };
    const bool free = primitive_.open_all ? std::ranges::all_of(workload_->ledgers(), is_idle)
                                          : is_idle(workload_->ledgers()[i]);
    if (dies || !answers || !free || ledger.waiters().empty()) idle_since_[i] = now;
    idle_since_[i] = std::max(idle_since_[i], std::min(server_.hangs_until(), now));
    for (const auto& waiter : ledger.waiters())
      if (!profile_.prompt || &waiter == &ledger.waiters().front())
        idle_since_[i] = std::max(idle_since_[i], std::min(waiter.since, now));
    if (now - idle_since_[i] > longest)
      journal_.violate(fmt::format("nobody gets into {} for {} ms, though some wait", ledger.name(),
                                   (now - idle_since_[i]).count() / 1'000'000));
  }
}

std::int64_t World::counter_of(const std::string& name) {
  const Value text = server_.look({"GET", "redisson_lock_token:{" + name + "}"});
  const bool is_number = text.is_text() && !text.as_text().empty() &&
                         text.as_text().find_first_not_of("0123456789") == std::string::npos;
  return is_number ? std::stoll(text.as_text()) : 0;
}

/// A fencing counter never comes to a value that it has passed.
void World::look_at_counters() {
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const auto& name = workload_->ledgers()[i]->name();
    const std::int64_t value = counter_of(name);
    if (value != last_counters_[i] && value != 0 && value <= counters_[i])
      journal_.violate(
          fmt::format("the tokens of {} begin again: {} after {}", name, value, counters_[i]));
    last_counters_[i] = value;
    counters_[i] = std::max(counters_[i], value);
  }
}

/// For how long nobody gets in if nobody leaves; 0: somebody can.
nanoseconds World::busy_for(const std::string& name) {
  if (primitive_.permits) {
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
  if (profile_.counters) look_at_counters();
  for (auto& order : orders_) order.look(server_, journal_);
  const auto now = clock_.steady();
  if (!primitive_.is_held || !profile_.faults.empty()) return;
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
  const auto is_free = [&](SteadyTime since) { return since < before; };
  // Who waits for all names may keep some.
  if (primitive_.open_all && !std::ranges::all_of(free_since_, is_free)) return;
  for (std::size_t i = 0; i < free_since_.size(); ++i) {
    const Ledger& ledger = *workload_->ledgers()[i];
    if (!is_free(free_since_[i])) continue;
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
    if (!goes_on_ || faults_ >= profile_.most_faults) return;
    ++faults_;
    fault();
    fault_later();
  });
}

void World::fault() {
  auto& machine = *machines_[dice_.below(machines_.size())];
  const bool usual = profile_.cuts || profile_.pauses || profile_.restarts;
  if (profile_.faults.empty() || (usual && dice_.chance(70))) return usual_fault(machine);
  play(profile_.faults[dice_.below(profile_.faults.size())], machine);
}

void World::usual_fault(Machine& machine) {
  const auto lot = dice_.below(8);
  if (lot < 4 && profile_.cuts && !machine.others.empty()) {
    const auto which = dice_.below(primitive_.servers);
    (which == 0 ? machine.store : *machine.others[which - 1]).lose();
  } else if (lot < 4 && profile_.cuts) {
    machine.store.lose();
  }
  if (lot >= 3 && lot < 7 && profile_.pauses) stand_still(machine);
  if (lot != 7 || !profile_.restarts) return;
  const bool forgets = profile_.forgets && dice_.chance(60);
  restart(forgets ? SimServer::Keeps::nothing : SimServer::Keeps::all, dice_.upto(1s));
}

void World::play(Fault fault, Machine& machine) {
  switch (fault) {
    case Fault::cut: return machine.store.lose();
    case Fault::cut_lent: return machine.store.lose_one_lent();
    case Fault::stop: return stand_still(machine, dice_.upto(profile_.longest_stop), false);
    case Fault::suspend: return stand_still(machine, dice_.upto(profile_.longest_stop), true);
    case Fault::kill: return kill(machine);
    case Fault::kill_others:
      for (std::size_t i = 1; i < machines_.size(); ++i) kill(*machines_[i]);
      return;
    case Fault::kill_stranger: {
      auto& stranger = *strangers_[dice_.below(strangers_.size())];
      return dice_.chance(50) ? stranger.forget() : stranger.stand_still();
    }
    case Fault::save: return server_.save();
    case Fault::restore:
      if (server_.is_up()) restart(SimServer::Keeps::saved, dice_.upto(1s));
      return;
    case Fault::lag: return lag();
    case Fault::promote: return promote();
    case Fault::move_slots: return move_slots();
    case Fault::fill: return fill();
    case Fault::refuse: return refuse();
    case Fault::hang: return hang();
    case Fault::outage:
      if (server_.is_up())
        restart(SimServer::Keeps::all, dice_.upto(nanoseconds{profile_.lease} / 2));
      return;
    case Fault::end_outside: return end_outside();
    case Fault::operate: return spawn(operate(dice_.below(workload_->ledgers().size()), machine));
    case Fault::spoil: return spoil();
    case Fault::set_wall:
      return machine.process.set_wall_offset(
          std::chrono::floor<std::chrono::microseconds>(dice_.upto(20s)) - 10s);
  }
}

/// What is on its way then is executed afterwards, in any order. Between two pauses somebody looks:
/// else the second is taken for the death of those who wait.
void World::hang() {
  const bool is_long = profile_.longest_hang > 0ns;
  if (is_long && clock_.steady() < Clock::add(server_.hangs_until(), 1s)) return;
  server_.hang(is_long ? dice_.upto(profile_.longest_hang) : 2s + dice_.upto(3s));
  for (auto& waiting : workload_->waiting())
    if (waiting.since + 200ms > clock_.steady()) waiting.since = server_.hangs_until();
}

void World::kill(Machine& machine) {
  const auto dead = std::ranges::count_if(machines_, [](const auto& one) { return one->dead; });
  if (machine.dead || static_cast<std::size_t>(dead) + 1 == machines_.size()) return;
  journal_.note("{} is killed", machine.process.name());
  machine.dead = true;
  for (const auto& ledger : workload_->ledgers()) ledger->bury(machine.process);
  machine.process.stop();
  machine.store.die();
}

void World::lag() {
  server_.replica_falls_behind();
  clock_.after(dice_.upto(2s), [this] { server_.replica_catches_up(); });
}

void World::promote() {
  if (!server_.is_up()) return;
  server_.promote_replica();
  for (const auto& machine : machines_) machine->store.lose();
  clock_.after(dice_.upto(1s), [this] { server_.replica_catches_up(); });
}

/// Scripts wait while a part of their keys is under way; then they find the keys at the new node,
/// and the subscriptions still at the old one; then these end.
void World::move_slots() {
  // Back at a node within a second, none of them may have looked at the other one.
  if (moving_ || clock_.steady() < moved_at_ + 2s) return;
  moving_ = true;
  server_.hang(dice_.upto(300ms));
  clock_.at(server_.hangs_until(), [this] {
    server_.move_slots();
    clock_.after(dice_.chance(50) ? 0ns : dice_.upto(5s), [this] {
      server_.own_slots();
      for (const auto& machine : machines_)
        if (!machine->dead) machine->store.lose_slots();
      moving_ = false;
      moved_at_ = clock_.steady();
    });
  });
}

/// A script took all the tickets of a process away, as of one that is dead.
void World::dropped(const std::string& inbox) {
  for (const auto& machine : machines_)
    if (!machine->dead && machine->store.listens_to(inbox) &&
        std::ranges::any_of(workload_->waiting(), [&](const auto& waiting) {
          return &waiting.actor->machine == machine.get();
        }))
      journal_.violate(machine->process.name() + " waits, and loses its places as if it was dead");
}

void World::fill() {
  server_.be_full(true);
  clock_.after(dice_.upto(2 * nanoseconds{profile_.lease}), [this] { server_.be_full(false); });
}

void World::refuse() {
  constexpr std::string_view errors[] = {
      "LOADING Redis is loading the dataset in memory",
      "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
      "READONLY You can't write against a read only replica.",
      "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."};
  server_.refuse_with(std::string{dice_.one_of(errors)});
  clock_.after(dice_.upto(2s), [this] { server_.refuse_with({}); });
}

/// The holds of this name that were given until now count no more.
void World::ended_outside(std::size_t place) {
  ended_outside_.push_back(clock_.steady());
  Ledger& ledger = *workload_->ledgers()[place];
  ledger.end_outside(static_cast<std::uint64_t>(counter_of(ledger.name())));
  for (const auto* hold : ledger.ended_outside())
    for (const auto& other : workload_->ledgers()) other->excuse(hold);
}

/// A force_release is executed somewhere between its beginning and its end.
Task<void> World::operate(std::size_t place, Machine& machine) {
  if (std::exchange(operating_, true)) co_return;
  workload_->ledgers()[place]->may_be_forced(true);
  nanoseconds late{};
  try {
    auto operating = workload_->operate(place, machine, dice_);
    co_await operating;
  } catch (const Error& failure) {
    journal_.note("an operator fails: {}", failure.what());
    late = profile_.line.longest_late + profile_.line.longest_unaware;
  }
  auto waiting = sleep_until(clock_, clock_.steady() + late);
  co_await waiting;  // what has got no answer may be executed until then
  operating_ = false;
  workload_->ledgers()[place]->may_be_forced(false);
  ended_outside(place);
}

/// Other programs put something else under the name of a lock, or beside it, for a while.
void World::spoil() {
  const auto place = dice_.below(workload_->ledgers().size());
  const std::string name = workload_->ledgers()[place]->name();
  ended_outside(place);
  const auto way = spoilings[(profile_.seed + spoilt_++) % std::size(spoilings)];
  journal_.note("{} is spoilt: {}", name, way);
  const std::string text = fmt::format("{}{}", spoilt_keys, way);
  server_.look({"EVAL", text, "1", name});
  clock_.after(dice_.upto(3s), [this, name, place] {
    ended_outside(place);
    const std::string end = fmt::format(
        "{}call('DEL', name, free, log, holds, people, queue, token, fence, "
        "readers, fair, deadlines, tickets, looks, waiters)",
        spoilt_keys);
    server_.look({"EVAL", end, "1", name});
    prepare();
  });
}

/// An operator's DEL, forceUnlock of a Java program, FLUSHALL, or the end of a key.
void World::end_outside() {
  if (!server_.is_up()) return;
  const auto lot = dice_.below(4);
  const auto place = dice_.below(workload_->ledgers().size());
  for (std::size_t i = 0; i < workload_->ledgers().size(); ++i) {
    if (lot != 0 && i != place) continue;
    ended_outside(i);
  }
  const std::string name = workload_->ledgers()[place]->name();
  constexpr std::string_view what[] = {"FLUSHALL", "DEL", "DEL and PUBLISH", "PEXPIRE 0"};
  journal_.note("from outside: {} {}", what[lot], name);
  if (lot == 0) server_.look({"FLUSHALL"});
  if (lot == 1 || lot == 2) server_.look({"DEL", name});
  if (lot == 2) {
    server_.look({"PUBLISH", "redisson_lock__channel:{" + name + "}", "0"});
    server_.look({"PUBLISH", "redisson_rwlock:{" + name + "}", "1"});
  }
  // At once: within a millisecond a renewal may come, and keep what the judge takes for ended.
  if (lot == 3) server_.look({"PEXPIRE", name, "0"});
  see_the_server();
}

void World::stand_still(Machine& machine) {
  if (machine.process.stands_still()) return;
  const nanoseconds most[] = {200ms, profile_.lease, 2 * profile_.lease};
  stand_still(machine, dice_.upto(dice_.one_of(most)), false);
}

void World::stand_still(Machine& machine, nanoseconds time, bool suspended) {
  if (machine.process.stands_still()) return;
  journal_.note("{} {} for {} us", machine.process.name(),
                suspended ? "is suspended" : "stands still", time.count() / 1000);
  suspended ? machine.process.suspend() : machine.process.stop();
  clock_.after(time, [this, &machine] {
    if (machine.dead) return;
    if (machine.process.stands_still()) journal_.note("{} goes on", machine.process.name());
    machine.process.go_on();
  });
}

void World::restart(SimServer::Keeps keeps, nanoseconds away) {
  if (!server_.is_up()) return;
  server_.go_down(keeps);
  for (std::size_t i = 0; i < last_counters_.size(); ++i)
    last_counters_[i] = counter_of(workload_->ledgers()[i]->name());
  for (const auto& machine : machines_) machine->store.lose();
  clock_.after(away, [this] { server_.come_back(); });
}

void World::heal() {
  journal_.note("the faults are over");
  goes_on_ = false;
  for (const auto& machine : machines_)
    if (!machine->dead) machine->process.go_on();
  server_.be_full(false);
  server_.refuse_with({});
  server_.replica_catches_up();
  if (!server_.is_up()) server_.come_back();
  for (const auto& stranger : strangers_) stranger->stop();
  look_at_shares();
  prepare();
}

/// What the server forgot.
void World::prepare() {
  for (const auto& machine : machines_) {
    if (machine->dead) continue;
    for (std::size_t name = 0; name < profile_.names; ++name)
      spawn(workload_->lock(name, machine->number).prepare(), [](std::exception_ptr) {});
    return;
  }
}

/// Strangers want to be in as much as we do.
void World::look_at_shares() {
  if (!profile_.even) return;
  std::size_t theirs = 0;
  for (const auto& stranger : strangers_) theirs += stranger->entries();
  const auto ours = workload_->entries();
  journal_.note("we were in {} times, strangers {} times", ours, theirs);
  if (3 * theirs < ours)
    journal_.violate(fmt::format("strangers were in {} times, we {} times", theirs, ours));
}

/// A dead process comes to an end: nothing of this is looked at.
void World::raise_the_dead() {
  const bool finished = !journal_.violation() &&
                        std::ranges::none_of(machines_, [](const auto& one) { return one->dead; });
  journal_.close();
  if (finished) return;
  goes_on_ = false;
  for (const auto& machine : machines_) {
    machine->dead = false;
    machine->process.go_on();
  }
  for (int i = 0; i < 300 && !is_over(); ++i) clock_.advance(1s);
  clock_.advance(longest_trace);  // what is under way in the background
}

// --- from beginning to end ---

std::size_t World::uncertain() const {
  std::size_t all = 0;
  for (const auto& machine : machines_) all += machine->store.uncertain();
  return all;
}

void World::play_out() {
  for (const auto& actor : actors_) spawn(live(*actor));
  for (const auto& stranger : strangers_) stranger->start();
  if (!profile_.is_calm()) fault_later();
  for (auto left = profile_.faults_for; left > 0ns && !journal_.violation(); left -= tick) {
    const bool looks = profile_.strict || profile_.prompt;
    clock_.advance(std::min<nanoseconds>(left, looks ? tick : left));
    if (!looks) break;
    step();
  }
  heal();
  const auto healed = clock_.steady();
  while (!is_over() && !journal_.violation()) {
    for (int i = 0; i < 5; ++i) {
      clock_.advance(tick);
      step();
    }
    const auto bound =
        longest_end + profile_.lease * (1 + uncertain()) +
        (longest_visit + 2 * profile_.longest_hold) * static_cast<long>(actors_.size());
    if (clock_.steady() - healed > bound)
      journal_.violate(fmt::format("{} of {} have not come to an end",
                                   std::ranges::count(actors_, true,
                                                      [](const auto& actor) {
                                                        return actor->lives && !actor->machine.dead;
                                                      }),
                                   actors_.size()));
  }
}

void World::look_at_what_is_left(std::string_view when, bool at_once) {
  const auto may_stay = [&](const std::string& key) {
    const auto begins = [&](std::string_view beginning) { return key.starts_with(beginning); };
    return begins("redisson_lock_token:") || std::ranges::any_of(primitive_.stay, begins) ||
           (begins("redisson_") && !strangers_.empty()) ||
           (at_once && std::ranges::any_of(primitive_.fade, begins));
  };
  const Value keys = server_.look({"KEYS", "*"});
  for (const auto& key : keys.as_items())
    if (!may_stay(key.as_text()))
      journal_.violate(fmt::format("{} the key {} is left, for {} ms", when, key.as_text(),
                                   server_.look({"PTTL", key.as_text()}).as_integer()));
}

/// All permits are free again, those of the lost too: whoever looks next gives them back. Until
/// then their holds stay.
void World::look_at_permits() {
  const auto living = std::ranges::find(machines_, false, &Machine::dead);
  const auto look = [this, machine = (*living)->number](std::size_t name) -> Task<void> {
    SimLock& lock = workload_->lock(name, machine);
    auto preparing = lock.prepare();
    co_await preparing;
    auto counting = lock.free_permits();
    const std::int64_t free = co_await counting;
    if (free != profile_.permits && !profile_.operators)
      journal_.violate(fmt::format("{} of {} permits are free in the end", free, profile_.permits));
  };
  for (std::size_t name = 0; name < profile_.names; ++name) spawn(look(name));
  clock_.advance(longest_idle);
}

void World::look_at_the_end() {
  clock_.advance(longest_idle);
  if (uncertain() == 0 && profile_.faults.empty()) look_at_what_is_left("when all are out", true);
  clock_.advance(longest_trace + profile_.lease);
  if (primitive_.permits) look_at_permits();
  clock_.advance(longest_trace);
  if (!strangers_.empty() && primitive_.first_come) clock_.advance(patience_of_strangers);
  look_at_what_is_left("long after", false);
  for (const auto& machine : machines_)
    if (machine->process.pending_timers() > 0 && !machine->dead)
      journal_.violate(fmt::format("{} has {} timers left", machine->process.name(),
                                   machine->process.pending_timers()));
  if (std::ranges::any_of(machines_, &Machine::dead,
                          [](const auto& one) -> Machine& { return *one; }))
    return;
  for (const auto& stranger : strangers_) stranger->forget();
  drop_listener_ = {};
  workload_.reset();
  clock_.advance(longest_idle);
  const Value channels = server_.look({"PUBSUB", "CHANNELS"});
  for (const Value& channel : channels.as_items())
    journal_.violate("the subscription of " + channel.as_text() + " is left");
}

Outcome World::run() {
  journal_.note("{}", profile_.text());
  play_out();
  if (!journal_.violation()) look_at_the_end();
  raise_the_dead();
  return {.violation = journal_.violation(), .profile = profile_.text(), .lines = journal_.lines()};
}

Outcome run_seed(std::uint64_t seed, const Trouble& trouble, const Primitive& primitive,
                 const Mutation& mutation, bool keeps_journal, Branches* branches) {
  Outcome outcome;
  std::exception_ptr failure;
  lock::Inbox::most_asking = seed % 2 == 0 ? 128 : 2;
  const auto play = [&] {
    auto world =
        std::make_unique<World>(seed, trouble, primitive, mutation, branches, keeps_journal);
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
