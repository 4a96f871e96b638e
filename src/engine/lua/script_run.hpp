/// The script that runs now: what the functions of its `redis` table need, and how much time and
/// how many steps it has left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/core/context.hpp"
#include "engine/lua/memory.hpp"
#include "sluice/clock.hpp"

namespace sluice::engine {

struct ScriptLimits {
  /// A script that runs longer is ended by an error; its writes stay, as always in Redis. Measured
  /// if `clock` is set, from the script's first `steps_a_look` steps on: most end before. Less:
  /// other callers wait less for a runaway script. Default: the time after which Redis calls a
  /// script busy.
  std::chrono::milliseconds time{5000};
  Clock* clock = nullptr;
  /// Instructions of the Lua machine, whatever the clock says; so that a simulation ends the script
  /// at the same place.
  std::uint64_t steps = 1'000'000'000;
  /// Of all that the scripts of an engine hold in Lua, cached functions included.
  std::size_t memory = 256UL << 20;
  /// Scripts that came by EVAL and are remembered; the one used longest ago goes first. SCRIPT
  /// LOAD's are all kept.
  std::size_t cached = 500;
};

struct ScriptRun {
  Engine* engine = nullptr;
  LuaMemory* memory = nullptr;
  Context* context = nullptr;
  bool read_only = false;
  int protocol = 2;  ///< of replies to the script: redis.setresp

  ScriptLimits limits;
  std::uint64_t steps = 0;
  std::uint64_t looked_at = 0;         ///< the steps when the clock was asked last
  std::optional<SteadyTime> deadline;  ///< from the first look at the clock on
  bool ended = false;                  ///< the limit was passed: nothing may go on

  // Where the error was raised that ended the script; filled by the message handler.
  std::string error_source;
  int error_line = -1;
};

/// Steps between two looks at the clock, each of which costs as much as some ten of them.
constexpr std::uint64_t steps_a_look = 500;

/// Counts steps; true: the script has spent all it may.
inline bool spend(ScriptRun& run, std::uint64_t steps) {
  run.steps += steps;
  if (run.steps - run.looked_at < steps_a_look) return run.ended;
  run.looked_at = run.steps;
  run.ended = run.ended || run.steps > run.limits.steps;
  if (run.limits.clock == nullptr) return run.ended;
  const auto now = run.limits.clock->steady();
  if (!run.deadline) run.deadline = now + run.limits.time;
  run.ended = run.ended || now > *run.deadline;
  return run.ended;
}

}  // namespace sluice::engine
