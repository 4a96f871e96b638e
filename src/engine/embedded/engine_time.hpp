/// The engine's time: the wall's, but for a wall clock that is set.
///
/// It is counted on the steady clock and follows the wall. A difference of up to a second is taken
/// over at once: forward by a jump, back by standing still. A larger one is a clock that was set,
/// by an administrator or by a failure. It is believed when it has lasted for a minute, and then
/// the time is the wall's again in one step; a glitch that is over before is never seen. Meanwhile
/// the time goes on with the steady clock; where the wall was set back by 30 seconds or less at
/// half pace, so that no step is needed.
///
/// Guarantee: it goes back only by a step, after the wall has been behind by more than 30 seconds
///   for a minute, and only to the wall. A minute after the first look at a clock that was set it
///   is the wall's.
/// Threads: under the engine's lock.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "sluice/clock.hpp"

namespace sluice::engine {

class EngineTime {
 public:
  explicit EngineTime(Clock& clock) : clock_(clock) { begin(); }

  /// Takes the wall as it is.
  void begin();

  std::int64_t now_us() {
    const auto wall = wall_us();
    if (wall < last_us_ || wall >= look_at_us_) return look(wall);
    return last_us_ = wall;
  }
  /// By how much now_us() has stepped since the last call.
  std::int64_t take_step_us() noexcept { return std::exchange(step_us_, 0); }

 private:
  /// A wall clock that was set.
  struct Setting {
    std::int64_t ahead_us;  ///< of the steady clock
    SteadyTime seen;
    std::int64_t from_us;  ///< this time when it was seen
    int pace;              ///< one part in so many of the steady clock's
  };

  std::int64_t wall_us() const noexcept { return clock_.wall().time_since_epoch().count(); }
  std::int64_t look(std::int64_t wall);
  std::int64_t counted(SteadyTime steady) const noexcept;
  std::int64_t follow(std::int64_t wall, SteadyTime steady) noexcept;

  Clock& clock_;
  std::int64_t last_us_ = 0;
  std::int64_t look_at_us_ = 0;  // from this wall time on the steady clock is asked again
  std::int64_t base_us_ = 0;     // the wall at base_
  SteadyTime base_;
  std::optional<Setting> setting_;
  std::int64_t step_us_ = 0;
};

}  // namespace sluice::engine
