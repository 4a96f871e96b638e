#include "engine/embedded/engine_time.hpp"

#include <algorithm>
#include <cstdlib>

namespace sluice::engine {
namespace {

using std::chrono::microseconds;

constexpr std::int64_t us(microseconds time) noexcept { return time.count(); }

constexpr auto followed = us(std::chrono::seconds{1});
constexpr auto slowed = us(std::chrono::seconds{30});
constexpr std::chrono::minutes doubt{1};
/// The steady clock costs as much as the wall: it is asked so often.
constexpr auto grain = us(std::chrono::milliseconds{100});

std::int64_t between(SteadyTime from, SteadyTime to) noexcept {
  return us(std::chrono::floor<microseconds>(to - from));
}

}  // namespace

void EngineTime::begin() {
  setting_.reset();
  step_us_ = 0;
  last_us_ = std::numeric_limits<std::int64_t>::min();
  follow(wall_us(), clock_.steady());
}

/// What the steady clock says.
std::int64_t EngineTime::counted(SteadyTime steady) const noexcept {
  return setting_ ? setting_->from_us + between(setting_->seen, steady) / setting_->pace
                  : base_us_ + between(base_, steady);
}

std::int64_t EngineTime::follow(std::int64_t wall, SteadyTime steady) noexcept {
  setting_.reset();
  base_us_ = wall;
  base_ = steady;
  look_at_us_ = wall + grain;
  return last_us_ = std::max(last_us_, wall);
}

std::int64_t EngineTime::look(std::int64_t wall) {
  const auto steady = clock_.steady();
  const auto now = counted(steady);
  const auto ahead = wall - between(SteadyTime{}, steady);
  const bool known = setting_ && std::abs(ahead - setting_->ahead_us) <= followed;
  const bool caught_up = known && setting_->pace > 1 && wall >= now;
  if (caught_up || std::abs(wall - now) <= followed) return follow(wall, steady);
  if (!known) {
    const auto from = std::max(last_us_, now);
    const bool slow = wall < from && wall >= from - slowed;
    setting_ = Setting{.ahead_us = ahead, .seen = steady, .from_us = from, .pace = slow ? 2 : 1};
    look_at_us_ = std::numeric_limits<std::int64_t>::min();
  } else if (setting_->pace == 1 && steady - setting_->seen >= doubt) {
    last_us_ = std::max(last_us_, now);
    step_us_ += wall - std::exchange(last_us_, wall);
    return follow(wall, steady);
  }
  return last_us_ = std::max(last_us_, counted(steady));
}

}  // namespace sluice::engine
