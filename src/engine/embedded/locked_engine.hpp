/// The engine under its lock: executions one after another, each with its effects in the log, its
/// messages in the outbox, and whoever waited for its keys served.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/commands/redis_engine.hpp"
#include "engine/embedded/channels.hpp"
#include "engine/embedded/turn_mutex.hpp"
#include "engine/embedded/waiting_calls.hpp"
#include "engine/log/committer.hpp"
#include "engine/lua/script_run.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

class Snapshot;

struct Outcome {
  Value reply;
  std::uint64_t position = 0;  ///< in the log: what has to be committed before the reply is given
  bool wrote = false;
  std::optional<Block> block;  ///< instead of a reply
};

class LockedEngine {
 public:
  LockedEngine(Clock& clock, const ScriptLimits& scripts);
  /// REQUIRES: no Section is open, nobody waits.
  ~LockedEngine() { close(); }
  LockedEngine(const LockedEngine&) = delete;
  LockedEngine& operator=(const LockedEngine&) = delete;

  /// While it lives the engine is this thread's. Then it unlocks, and tells whoever was served or
  /// listens.
  class Section {
   public:
    explicit Section(LockedEngine& core) : core_(core), lock_(core.mutex_) {}
    ~Section();

    Outcome execute(Words words);
    Outcome execute(const Script& script, Words keys, Words args);
    /// Executes; when there is nothing yet, the call is put among those that wait.
    void execute_or_wait(const WaitingCalls::Call& call);
    /// False: it was served already.
    bool stop_waiting(WaitingCall& call);

    Engine& engine() noexcept { return core_.engine_; }
    LockedEngine& core() noexcept { return core_; }

   private:
    friend class LockedEngine;
    template <class Run>
    Outcome run(Run&& run);
    void serve(const WaitingCalls::Call& call, Outcome&& outcome);
    void serve_waiting();

    LockedEngine& core_;
    std::unique_lock<TurnMutex> lock_;
    std::vector<WaitingCalls::Call> served_;
  };

  Channels& channels() noexcept { return *channels_; }
  Clock& clock() noexcept { return clock_; }

  /// Before all else: one command of a log that is being loaded. Throws Error{corrupt}.
  void replay(Words words);
  void begin_replay() noexcept { engine_.loading = true; }
  void end_replay();

  /// Stops its timers, and logs no more. REQUIRES: as for the destructor.
  void close();
  /// From now on effects are logged. REQUIRES: nothing is executed meanwhile.
  void log_to(LogCommitter* committer);
  /// The next effects go to a new file. REQUIRES: a Section.
  void begin_file() noexcept { engine_.log_database = -1; }
  Engine& engine() noexcept { return engine_; }
  /// Sees each key before it changes; null: nobody. REQUIRES: a Section.
  void set_snapshot(Snapshot* snapshot) noexcept { snapshot_ = snapshot; }
  std::int64_t now_us();  ///< never goes back. REQUIRES: a Section.

 private:
  std::optional<std::string> before_write(const resp::CommandSpec& spec, Words words);
  void note_failure();
  void finish(Context& context, Outcome& outcome);
  void expire(std::int64_t now_us, std::size_t most);
  void plan_expiry(std::int64_t now_us);
  void expire_in_time(const Clock::TimerId* own);

  Clock& clock_;
  TurnMutex mutex_;
  RedisEngine engine_;
  Session session_;
  std::int64_t last_us_ = 0;
  LogCommitter* committer_ = nullptr;
  Snapshot* snapshot_ = nullptr;
  std::string refusal_;  // of writes; empty: they are welcome
  std::shared_ptr<Channels> channels_ = std::make_shared<Channels>();
  WaitingCalls waiting_;
  std::vector<std::string> signalled_;

  std::int64_t expiry_planned_ms_ = 0;  // when the earliest timer runs; 0: there is none
  std::vector<std::unique_ptr<Clock::TimerId>> expiry_timers_;
};

}  // namespace sluice::engine
