/// The script that runs now: what the functions of its `redis` table need, and how much time and
/// how many steps it has left.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/core/context.hpp"
#include "engine/lua/memory.hpp"
#include "sluice/clock.hpp"

namespace sluice::engine {

/// Of a script's first line and of a function. Only the first one counts here.
inline constexpr std::array<std::string_view, 5> script_flags = {
    "no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"};
inline constexpr unsigned flag_no_writes = 1;  ///< a bit for each, by their places

struct ScriptLimits {
  /// A script that runs longer is ended by an error, and all that it did is undone. Measured if
  /// `clock` is set, from the script's first `steps_a_look` steps on: most end before. What runs is
  /// counted, not what passes: while the process is stopped, or the clock set, no script runs.
  /// Less: other callers wait less for a runaway script. Default: the time after which Redis calls
  /// a script busy.
  std::chrono::milliseconds time{5000};
  Clock* clock = nullptr;
  /// Instructions of the Lua machine, whatever the clock says; so that a simulation ends the script
  /// at the same place.
  std::uint64_t steps = 1'000'000'000;
  /// Of all that the scripts of an engine hold in Lua, cached functions included; also of what is
  /// kept to undo a script, and of its reply. Libraries of functions may hold as much again.
  std::size_t memory = 256UL << 20;
  /// Scripts that came by EVAL and are remembered; the one used longest ago goes first. SCRIPT
  /// LOAD's are all kept.
  std::size_t cached = 500;
};

/// How long a script has run, by looks at a clock.
class RunningTime {
 public:
  void start() noexcept { last_.reset(); }
  /// The time between two looks that is longer than this may be one in which nothing ran.
  static constexpr std::chrono::milliseconds longest_gap{100};

  std::chrono::nanoseconds look(Clock& clock);

 private:
  std::optional<SteadyTime> last_;
  std::optional<std::chrono::nanoseconds> last_cpu_;  // of the thread, once a gap was seen
  std::chrono::nanoseconds ran_{0};
};

/// Thrown out of a command when its script has spent all it may.
struct ScriptEnded {};

struct ScriptRun final : Allowance {
  /// Why nothing may go on, and all is undone.
  enum class End { none, time, memory, failure };

  Engine* engine = nullptr;
  LuaMemory* memory = nullptr;
  Context* context = nullptr;
  bool read_only = false;
  int protocol = 2;  ///< of replies to the script: redis.setresp

  ScriptLimits limits;
  std::uint64_t steps = 0;
  std::uint64_t looked_at = 0;  ///< the steps when the clock was asked last
  RunningTime time;
  End end = End::none;
  std::string failure;  ///< what went wrong inside a command

  std::string refusal;  ///< why the session's guard refuses a command

  // Where the error was raised that ended the script; filled by the message handler.
  std::string error_source;
  int error_line = -1;

  void start() noexcept;
  bool ended() const noexcept { return end != End::none; }
  /// The error of a script that was ended.
  std::string end_text() const;
  /// Throws ScriptEnded.
  void spend(std::uint64_t more) override;
};

/// Steps between two looks at the clock, each of which costs as much as some ten of them.
constexpr std::uint64_t steps_a_look = 500;

/// Looks at all limits; true: the script has spent all it may.
bool look_at_limits(ScriptRun& run);

/// Counts steps; true: the script has spent all it may.
inline bool spend(ScriptRun& run, std::uint64_t steps) {
  run.steps += steps;
  if (run.steps - run.looked_at < steps_a_look) return run.ended();
  return look_at_limits(run);
}

}  // namespace sluice::engine
