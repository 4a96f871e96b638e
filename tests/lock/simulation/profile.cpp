#include "lock/simulation/profile.hpp"

#include <algorithm>
#include <stdexcept>

namespace sluice::simulation {

using namespace std::chrono_literals;

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

/// Nothing happens but what the trouble adds, on a line that is quick.
void leave_only(Profile& profile, std::vector<Fault> faults) {
  profile.cuts = profile.pauses = profile.restarts = profile.forgets = false;
  profile.faults = std::move(faults);
  constexpr nanoseconds delays[] = {500us, 2ms};
  profile.line.longest_delay = profile.dice.one_of(delays);
}

milliseconds short_lease(Dice& dice) {
  constexpr milliseconds leases[] = {300ms, 1s, 3s};
  return dice.one_of(leases);
}

void add_snapshot(Profile& profile) {
  leave_only(profile, {Fault::save, Fault::restore});
  profile.counters = true;
  if (profile.dice.chance(30)) profile.faults.push_back(Fault::cut);
  profile.between_faults = 300ms;
  profile.longest_rest = 30ms;
}

void add_promotion(Profile& profile) {
  leave_only(profile, {Fault::lag, Fault::promote, Fault::lag});
  if (profile.dice.chance(30)) profile.faults.push_back(Fault::cut_lent);
  if (profile.dice.chance(30)) profile.faults.push_back(Fault::cut);
  constexpr milliseconds within[] = {20ms, 200ms, 1s};
  profile.durability = {.replicas = 1, .within = profile.dice.one_of(within)};
  profile.between_faults = 500ms;
  profile.longest_rest = 30ms;
}

void add_cluster(Profile& profile) {
  leave_only(profile, {Fault::move_slots, Fault::move_slots});
  if (profile.dice.chance(30)) profile.faults.push_back(Fault::kill);
  profile.cluster = profile.strict = true;
  profile.watched = true;
  profile.lease = profile.dice.chance(50) ? 3s : 30s;
  profile.processes = 2 + profile.dice.below(4);
  constexpr nanoseconds pace[] = {500ms, 2s, 10s};
  profile.between_faults = profile.dice.one_of(pace);
  profile.faults_for = 10s + profile.dice.upto(20s);
  profile.rounds = 10;
  profile.patient = true;
}

void add_memory(Profile& profile) {
  leave_only(profile, {Fault::fill});
  profile.strict = profile.lasting = true;
  profile.lease = short_lease(profile.dice);
  profile.watched = true;
  profile.longest_hold = 3 * profile.lease;
  profile.between_faults = 1s;
}

/// Processes with many waiters each, that stop and go on, or die.
void add_crowd(Profile& profile, std::vector<Fault> faults) {
  leave_only(profile, std::move(faults));
  Dice& dice = profile.dice;
  profile.strict = profile.lasting = true;
  profile.patient = true;
  profile.processes = 2 + dice.below(2);
  profile.actors = 2 + dice.below(11);
  if (profile.seed % 64 == 32) profile.actors = 70;
  if (profile.seed % 64 == 33) profile.processes = 35;
  profile.rounds = 2;
  profile.names = 1 + dice.below(2);
  profile.lease = short_lease(dice);
  profile.watched = true;
  profile.longest_rest = 30ms;
  profile.longest_hold = 300ms;
  profile.between_faults = 1s;
  profile.most_faults = profile.processes - 1;
  profile.faults_for = 60s;
  profile.longest_stop = 120s;
}

void add_stopped(Profile& profile) { add_crowd(profile, {Fault::stop}); }

void add_killed(Profile& profile) {
  add_crowd(profile, {Fault::kill});
  if (!profile.dice.chance(30)) return;
  profile.faults = {Fault::kill_others};  // somebody comes long after
  profile.most_faults = 1;
  profile.comes_late = 125s;
  profile.faults_for = 200s;
}

void add_bystander(Profile& profile) {
  add_crowd(profile, {Fault::kill, Fault::stop});
  profile.bystanders = static_cast<unsigned>(1 + profile.dice.below(2));
}

void add_outside(Profile& profile) {
  leave_only(profile, {Fault::end_outside});
  profile.strict = profile.lasting = true;
  profile.patient = true;
  profile.watched = true;
  constexpr milliseconds leases[] = {3s, 30s};
  profile.lease = profile.dice.one_of(leases);
  profile.longest_hold = 10s;
  profile.longest_rest = 30ms;
  profile.rounds = 3;
  profile.between_faults = 3s;
  profile.faults_for = 30s;
}

void add_operators(Profile& profile) {
  leave_only(profile, {Fault::operate});
  if (profile.dice.chance(30)) profile.faults.push_back(Fault::cut);
  profile.operators = true;
  profile.lease = short_lease(profile.dice);
  profile.between_faults = 50ms;
  profile.longest_hold = 300ms;
}

void add_spoilt(Profile& profile) {
  leave_only(profile, {Fault::spoil, Fault::operate});
  profile.operators = true;
  profile.lease = short_lease(profile.dice);
  profile.between_faults = 100ms;
}

void add_guests(Profile& profile) {
  leave_only(profile, {Fault::stop, Fault::kill, Fault::cut, Fault::kill_stranger});
  profile.strangers = 1 + profile.dice.below(3);
  profile.names = 1;
  profile.operators = true;
  profile.lease = short_lease(profile.dice);
  constexpr std::chrono::seconds ahead[] = {0s, 400s, 1000s, -400s};
  profile.strangers_ahead = ahead[profile.dice.below(4)];
  profile.actors += 2;
  profile.longest_stop = 5s;
  profile.between_faults = 1s;
  profile.most_faults = 3;
}

void add_owners(Profile& profile) {
  leave_only(profile, {Fault::cut});
  profile.common_owners = true;
  if (profile.seed % 4 == 0) profile.processes = 1;
  profile.lease = short_lease(profile.dice);
  profile.longest_hold = 300ms;
  profile.between_faults = 200ms;
}

void add_callbacks(Profile& profile) {
  leave_only(profile, {Fault::end_outside});
  profile.strict = profile.lasting = true;
  profile.throws = true;
  profile.names = 3;
  profile.watched = true;
  profile.lease = short_lease(profile.dice);
  profile.longest_hold = 4 * profile.lease;
  profile.between_faults = 1s;
  profile.faults_for = 10s;
}

/// A callback blocks for longer than leases last.
void add_blocked(Profile& profile) {
  add_callbacks(profile);
  profile.throws = false;
  profile.blocks = 3 * profile.lease;
}

void add_leases(Profile& profile) {
  leave_only(profile, {Fault::set_wall});
  profile.lasting = true;
  profile.watched = true;
  profile.names = 3;
  profile.lease = 3s;
  profile.other_lease = 100ms;
  profile.longest_hold = 9s;
  profile.line.longest_delay = 60ms;
}

/// As beside somebody with MONITOR: whatever the server says comes late.
void add_slow(Profile& profile) {
  leave_only(profile, {Fault::set_wall});
  profile.strict = profile.lasting = true;
  profile.patient = true;
  profile.watched = true;
  constexpr milliseconds leases[] = {3s, 30s};
  profile.lease = profile.dice.one_of(leases);
  profile.line.slowness = 300ms;
  profile.rounds = 3;
}

void add_durable(Profile& profile) {
  leave_only(profile, {Fault::lag, Fault::hang});
  profile.strict = true;
  profile.watched = true;
  profile.lease = 30s;
  constexpr milliseconds within[] = {20ms, 200ms, 1s};
  profile.durability = {.replicas = 1, .within = profile.dice.one_of(within)};
  profile.line.longest_delay = 60ms;
  profile.longest_hold = 50ms;
  profile.longest_rest = 30ms;
  profile.between_faults = 2s;
  profile.faults_for = 10s;
}

/// The server stands still and goes on: nobody loses a place, nobody sleeps beside a free lock.
void add_paused(Profile& profile) {
  leave_only(profile, {Fault::hang});
  Dice& dice = profile.dice;
  profile.prompt = profile.patient = profile.watched = true;
  profile.processes = 1 + dice.below(4);
  constexpr std::size_t crowds[] = {2, 10, 30};
  profile.actors = dice.one_of(crowds);
  profile.rounds = 2;
  profile.lease = dice.chance(30) ? 3s : 30s;
  constexpr nanoseconds holds[] = {10ms, 100ms, 1s};
  profile.longest_hold = dice.one_of(holds);
  constexpr nanoseconds rests[] = {30ms, 3s, 20s};
  profile.longest_rest = dice.one_of(rests);
  profile.longest_hang = 6s;
  profile.between_faults = 4s;
  profile.faults_for = 30s;
}

void add_outage(Profile& profile) {
  leave_only(profile, {Fault::outage});
  profile.lasting = profile.outlives = true;
  profile.patient = true;
  profile.watched = true;
  profile.lease = 30s;
  profile.longest_hold = 40s;
  profile.rounds = 2;
  profile.between_faults = 30s;
  profile.faults_for = 60s;
}

void add_clocks(Profile& profile) {
  profile.drift = 0.0099;  // within the margin, a hundredth of the lease
  profile.faults.push_back(Fault::set_wall);
}

void add_suspend(Profile& profile) {
  leave_only(profile, {Fault::suspend});
  profile.lease = short_lease(profile.dice);
  profile.longest_stop = 2 * profile.lease;
  profile.between_faults = 500ms;
}

void add_strangers(Profile& profile) {
  leave_only(profile, {});
  profile.even = true;
  profile.processes = 1;
  profile.actors = 1 + 3 * profile.dice.below(2);
  profile.names = 1;
  profile.strangers = 4;
  profile.permits = 1;
  profile.watched = true;
  profile.lease = 30s;
  profile.hand_off = {};
  profile.longest_hold = 10ms;
  profile.longest_rest = 0ms;
  profile.rounds = 1'000'000;
  profile.faults_for = 12s;
}

void add_refusals(Profile& profile) {
  leave_only(profile, {Fault::refuse, Fault::cut});
  profile.lease = short_lease(profile.dice);
}

constexpr std::string_view beside_strangers[] = {"mutex",  "multi",     "fair",
                                                 "shared", "semaphore", "permit"};
constexpr std::string_view held[] = {"mutex",     "multi",  "fair",  "shared",
                                     "semaphore", "permit", "quorum"};
constexpr std::string_view exclusive[] = {"mutex", "fair", "shared", "multi"};
constexpr std::string_view with_owners[] = {"mutex", "fair", "shared"};
constexpr std::string_view with_strangers[] = {"mutex", "multi", "shared", "semaphore", "permit"};

constexpr Trouble troubles[] = {
    {.name = "usual", .about = "a network and a server that fail", .add = [](Profile&) {}},
    {.name = "snapshot",
     .about = "the server restarts with what it had saved a while ago",
     .add = add_snapshot,
     .primitives = beside_strangers},
    {.name = "promotion",
     .about = "a replica that lags takes over; grants are durable",
     .add = add_promotion,
     .primitives = exclusive},
    {.name = "memory",
     .about = "the server has no memory",
     .add = add_memory,
     .primitives = beside_strangers},
    {.name = "stopped", .about = "processes with many waiters stop and go on", .add = add_stopped},
    {.name = "killed", .about = "processes with many waiters die", .add = add_killed},
    {.name = "bystander",
     .about = "somebody hears all that is published, while processes stop and die",
     .add = add_bystander,
     .primitives = beside_strangers},
    {.name = "outside",
     .about = "locks are deleted, forced open or made to expire from outside",
     .add = add_outside,
     .primitives = exclusive},
    {.name = "operators",
     .about = "people look at locks, force them open, and change the number of permits",
     .add = add_operators},
    {.name = "spoilt",
     .about = "other programs use the names of locks for something else",
     .add = add_spoilt},
    {.name = "guests",
     .about = "programs with Redisson among ours, which stop and die",
     .add = add_guests,
     .primitives = beside_strangers},
    {.name = "owners",
     .about = "one owner for several actors, who acquire at the same time",
     .add = add_owners,
     .primitives = with_owners},
    {.name = "callbacks",
     .about = "callbacks throw whatever there is",
     .add = add_callbacks,
     .primitives = exclusive},
    {.name = "blocked", .about = "callbacks block", .add = add_blocked, .primitives = exclusive},
    {.name = "leases",
     .about = "a long lease beside short ones, on a slow line",
     .add = add_leases,
     .primitives = with_owners},
    {.name = "slow",
     .about = "a server whose replies and messages are late",
     .add = add_slow,
     .primitives = beside_strangers},
    {.name = "durable",
     .about = "durable grants, a replica that lags, a server that hangs until callers give up",
     .add = add_durable,
     .primitives = with_owners},
    {.name = "outage",
     .about = "the server is away for up to half a lease",
     .add = add_outage,
     .primitives = beside_strangers},
    {.name = "clocks",
     .about = "clocks run at other speeds, within the margin, and are set",
     .add = add_clocks},
    {.name = "suspend",
     .about = "a machine is suspended: its steady clock stands still",
     .add = add_suspend,
     .primitives = held},
    {.name = "paused",
     .about = "the server stands still for up to 6 s, while processes have many waiters",
     .add = add_paused,
     .primitives = beside_strangers},
    {.name = "strangers",
     .about = "Redisson's waiters beside one hot thread of ours",
     .add = add_strangers,
     .primitives = with_strangers},
    {.name = "cluster",
     .about = "slots of a cluster move, and nobody is heard at their new node for a while; "
              "processes die",
     .add = add_cluster,
     .primitives = beside_strangers},
    {.name = "refusals",
     .about = "the server answers LOADING, BUSY or READONLY for a while",
     .add = add_refusals},
};

}  // namespace

bool Trouble::plays(std::string_view primitive) const {
  return primitives.empty() || std::ranges::find(primitives, primitive) != primitives.end();
}

std::span<const Trouble> all_troubles() { return troubles; }

const Trouble& trouble_named(std::string_view name) {
  const auto* const found = std::ranges::find(troubles, name, &Trouble::name);
  if (found == std::end(troubles))
    throw std::invalid_argument{fmt::format("there is no profile '{}'", name)};
  return *found;
}

Profile::Profile(std::uint64_t number, const Trouble& kind)
    : seed(number), dice(number), trouble(kind.name) {
  processes = 2 + dice.below(3);
  actors = 1 + dice.below(3);
  names = 1 + dice.below(2);
  rounds = 2 + dice.below(6);
  constexpr std::chrono::nanoseconds rests[] = {1ms, 30ms, 1s};
  longest_rest = dice.one_of(rests);
  constexpr std::chrono::milliseconds leases[] = {300ms, 1s, 3s, 30s};
  lease = dice.one_of(leases);
  watched = dice.chance(75);
  prefers_readers = dice.chance(50);
  hand_off.within_process = static_cast<std::uint32_t>(1 + dice.below(4) * dice.below(4));
  hand_off.turn = std::chrono::milliseconds{dice.below(200)};
  hand_off.across_processes = static_cast<std::uint32_t>(dice.below(4));
  constexpr std::chrono::nanoseconds holds[] = {1ms, 50ms, 500ms};
  longest_hold = dice.one_of(holds);
  constexpr std::chrono::nanoseconds jitters[] = {0ms, 2ms};
  jitter = dice.one_of(jitters);
  constexpr std::chrono::nanoseconds delays[] = {500us, 10ms, 60ms};
  line = {.longest_delay = dice.one_of(delays),
          .longest_late = 3s,
          .longest_unaware = 2s,
          .push_after_reply = dice.chance(50)};
  const bool calm = dice.chance(25);
  cuts = !calm && dice.chance(60);
  pauses = !calm && dice.chance(60);
  restarts = !calm && dice.chance(40);
  forgets = restarts && dice.chance(60);
  if (is_calm())
    line.longest_delay = std::min<std::chrono::nanoseconds>(line.longest_delay, lease / 30);
  constexpr std::chrono::nanoseconds pace[] = {200ms, 1s, 5s};
  between_faults = dice.one_of(pace);
  faults_for = 2s + dice.upto(4 * std::min<std::chrono::nanoseconds>(lease, 5s));
  kind.add(*this);
}

std::string Profile::text() const {
  return fmt::format(
      "{}: {} processes x {} actors x {} rounds, {} names, lease {} ms{}, within {} across {}, "
      "delay "
      "{} "
      "us, jitter {} us{}{}{}{}, faults for {} ms",
      trouble, processes, actors, rounds, names, lease.count(), watched ? "" : " unwatched",
      hand_off.within_process, hand_off.across_processes, line.longest_delay.count() / 1000,
      jitter.count() / 1000, cuts ? ", cuts" : "", pauses ? ", pauses" : "",
      restarts ? ", restarts" : "", forgets ? " that forget" : "", faults_for.count() / 1'000'000);
}

}  // namespace sluice::simulation
