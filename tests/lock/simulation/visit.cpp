#include "lock/simulation/visit.hpp"

#include <algorithm>

namespace sluice::simulation {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

Patience::Patience(Dice& dice) {
  const nanoseconds waits[] = {0ms, 5ms, 200ms, 3s};
  wait = std::chrono::floor<milliseconds>(dice.upto(dice.one_of(waits)));
  if (dice.chance(45)) wait = milliseconds::max();
  if (wait > 0ms && wait < milliseconds::max() && dice.chance(30)) stops_after = dice.upto(wait);
}

nanoseconds time_inside(Dice& dice, const Profile& profile) {
  const nanoseconds beyond_lease = std::min<nanoseconds>(2 * profile.lease, 3s);
  return dice.upto(dice.chance(10) ? beyond_lease : profile.longest_hold);
}

}  // namespace sluice::simulation
