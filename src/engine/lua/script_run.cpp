#include "engine/lua/script_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/cpu_time.hpp"
#include "engine/core/engine.hpp"

namespace sluice::engine {

std::chrono::nanoseconds RunningTime::look(Clock& clock) {
  const auto now = clock.steady();
  if (!last_) {
    ran_ = {};
    last_cpu_.reset();
    last_ = now;
    return ran_;
  }
  auto passed = std::chrono::nanoseconds{now - *last_};
  last_ = now;
  if (passed > longest_gap || last_cpu_) {
    // Asking costs a system call, so it is done from the first gap on; of that one the longest
    // that is not doubted counts.
    const auto cpu = thread_cpu_time();
    if (passed > longest_gap) passed = last_cpu_ ? std::min(passed, cpu - *last_cpu_) : longest_gap;
    last_cpu_ = cpu;
  }
  ran_ += passed;
  return ran_;
}

void ScriptRun::start() noexcept {
  steps = 0;
  looked_at = 0;
  time.start();
  end = End::none;
  error_line = -1;
}

std::string ScriptRun::end_text() const {
  const auto why = [&] {
    switch (end) {
      case End::time:
        return fmt::format("ERR script ran longer than {} ms or {} steps and was ended",
                           limits.time.count(), limits.steps);
      case End::memory:
        return fmt::format("ERR script was ended: not enough memory within its limit of {} bytes",
                           limits.memory);
      default: return fmt::format("ERR script was ended by a failure of the engine: {}", failure);
    }
  }();
  return why + "; nothing that it did is kept";
}

void ScriptRun::spend(std::uint64_t more) {
  if (engine::spend(*this, more)) throw ScriptEnded{};
}

bool look_at_limits(ScriptRun& run) {
  run.looked_at = run.steps;
  if (run.ended()) return true;
  if (run.steps > run.limits.steps) run.end = ScriptRun::End::time;
  if (run.limits.clock && run.time.look(*run.limits.clock) > run.limits.time)
    run.end = ScriptRun::End::time;
  const auto* const undo = run.engine->undo();
  if (undo && run.memory->used + undo->bytes() > run.limits.memory)
    run.end = ScriptRun::End::memory;
  return run.ended();
}

}  // namespace sluice::engine
