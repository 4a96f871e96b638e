#include "lock/simulation/profile.hpp"

namespace sluice::simulation {

using namespace std::chrono_literals;

Profile::Profile(std::uint64_t seed) : dice(seed) {
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
}

std::string Profile::text() const {
  return fmt::format(
      "{} processes x {} actors x {} rounds, {} names, lease {} ms{}, within {} across {}, delay "
      "{} "
      "us, jitter {} us{}{}{}{}, faults for {} ms",
      processes, actors, rounds, names, lease.count(), watched ? "" : " unwatched",
      hand_off.within_process, hand_off.across_processes, line.longest_delay.count() / 1000,
      jitter.count() / 1000, cuts ? ", cuts" : "", pauses ? ", pauses" : "",
      restarts ? ", restarts" : "", forgets ? " that forget" : "", faults_for.count() / 1'000'000);
}

}  // namespace sluice::simulation
