/// The engine under its lock. After each execution its effects are in the log, its messages in the
/// outbox, and the calls that waited for its keys are served.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/commands/redis_engine.hpp"
#include "engine/embedded/channels.hpp"
#include "engine/embedded/engine_time.hpp"
#include "engine/embedded/trackers.hpp"
#include "engine/embedded/turn_mutex.hpp"
#include "engine/log/committer.hpp"
#include "engine/lua/script_run.hpp"
#include "sluice/store.hpp"
#include "sluice/task.hpp"
#include "sluice/value.hpp"

namespace sluice::engine {

class Snapshot;
struct Entry;

/// What an execution leaves besides its reply.
struct Executed {
  std::uint64_t position = 0;  ///< in the log: what has to be committed before the reply is given
  bool wrote = false;
  std::optional<Block> block;  ///< instead of a reply
};

struct ExecutionResult : Executed {
  Value reply;
};

struct WaitingCall {
  WaitingCall(std::vector<std::string> command, Driver* driver)
      : words(std::move(command)), done(driver) {}
  virtual ~WaitingCall() = default;

  /// It has its reply. Outside the engine's lock.
  virtual void served() { done.complete(); }

  std::vector<std::string> words;  ///< to be executed again
  Session session;                 ///< of the connection, as it was
  std::vector<std::string> keys;   ///< of the session's database
  /// What it takes: a value of another type does not wake it. Empty: XREADGROUP, which any wakes,
  /// and none.
  std::string_view type;
  std::int64_t timeout_ms = 0;  ///< 0: for ever
  bool is_waiting = false;
  Value reply;                 ///< null after the timeout
  std::uint64_t position = 0;  ///< in the log, of what the reply has seen
  bool wrote = false;
  Completion done;
};

/// Calls that wait for something to arrive at a key (BLPOP, XREADGROUP BLOCK ...), in the order in
/// which they came. Under the engine's lock.
class WaitingCalls {
 public:
  using Call = std::shared_ptr<WaitingCall>;

  bool empty() const noexcept { return by_key_.empty(); }
  void add(const Call& call) {
    call->is_waiting = true;
    for (const auto& key : call->keys) {
      by_key_[{call->session.database, key}].push_back(call);
      if (call->type.empty()) streams_.insert({call->session.database, key});
    }
  }
  /// False: it does not wait any more.
  bool remove(WaitingCall& call) {
    if (!std::exchange(call.is_waiting, false)) return false;
    for (const auto& key : call.keys) {
      if (call.type.empty()) streams_.extract({call.session.database, key});
      const auto found = by_key_.find({call.session.database, key});
      if (found == by_key_.end()) continue;  // named twice
      found->second.remove_if([&](const Call& other) { return other.get() == &call; });
      if (found->second.empty()) by_key_.erase(found);
    }
    return true;
  }
  /// Of which a group is read: the call ends with an error where the stream is gone.
  const std::multiset<KeyOfDatabase>& streams() const noexcept { return streams_; }
  std::vector<KeyOfDatabase> keys() const {
    std::vector<KeyOfDatabase> keys;
    for (const auto& [key, calls] : by_key_) keys.push_back(key);
    return keys;
  }
  /// Those that wait for a key, the oldest first.
  std::vector<Call> of(const KeyOfDatabase& key) const {
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return {};
    return {found->second.begin(), found->second.end()};
  }

 private:
  std::map<KeyOfDatabase, std::list<Call>> by_key_;
  std::multiset<KeyOfDatabase> streams_;
};

/// Told of what executions have changed and published: a server's connections. Under the engine's
/// lock.
class Audience {
 public:
  virtual std::size_t receivers(std::string_view channel, bool sharded) const = 0;
  virtual void publish(const Context::Published& message) = 0;
  /// Effects have to be noted.
  virtual bool wants_effects() const = 0;
  /// `database`: the one in which the effects begin. `by`: of the execution; null: of a key's end.
  virtual void changed(const std::vector<std::vector<std::string>>& effects, int database,
                       const Session* by) = 0;

 protected:
  ~Audience() = default;
};

class LockedEngine {
 public:
  LockedEngine(Clock& clock, const ScriptLimits& scripts);
  /// REQUIRES: no Section is open, no call waits.
  ~LockedEngine() { close(); }

  /// Holds the engine's lock. Its end unlocks, completes the calls that were served, and delivers
  /// the messages.
  class Section {
   public:
    explicit Section(LockedEngine& locked) : locked_(locked), lock_(locked.mutex_) {}
    ~Section();

    /// `spec` rules the words; null: it is looked up.
    ExecutionResult execute(Words words, const resp::CommandSpec* spec = nullptr);
    ExecutionResult execute(const Script& script, Words keys, Words args);
    /// One command of a connection. Nothing was replied where it has to wait.
    Executed execute(Session& session, Words words, const resp::CommandSpec* spec, Reply& reply);
    /// Several commands of a connection as one execution; none of them waits.
    Executed execute_together(Session& session, Reply& reply,
                              const std::function<void(Context&)>& commands);
    /// Executes; a call that has to wait is entered among the waiting calls.
    void execute_or_wait(const WaitingCalls::Call& call);
    /// A call that was executed and has to wait, so that it is served when it can be.
    void wait(const WaitingCalls::Call& call, Block&& block);
    /// False: it was served already.
    bool stop_waiting(WaitingCall& call);

    Engine& engine() noexcept { return locked_.engine_; }

   private:
    friend class LockedEngine;
    template <class Run>
    Executed run(Session& session, Reply& reply, Run&& run);
    ExecutionResult run_waiting(const WaitingCall& call);
    Executed run_command(Session& session, Words words, const resp::CommandSpec* spec,
                         Reply& reply);
    void serve(const WaitingCalls::Call& call, ExecutionResult&& result);
    void serve_waiting();

    LockedEngine& locked_;
    std::unique_lock<TurnMutex> lock_;
    std::vector<WaitingCalls::Call> served_;
  };

  Channels& channels() noexcept { return *channels_; }
  Trackers& trackers() noexcept { return trackers_; }
  Clock& clock() noexcept { return clock_; }

  /// One command of a log that is being loaded. Throws Error{corrupt}.
  void replay(Words words);
  void begin_replay() noexcept { engine_.loading = true; }
  /// The time begins at the wall's.
  void end_replay();

  /// Stops its timers, and logs no more. REQUIRES: as for the destructor.
  void close();
  /// From now on effects are logged. REQUIRES: nothing is executed meanwhile.
  void log_to(LogCommitter* committer);
  /// The log was written up to that time. If the wall is behind it, one of the two is wrong, and
  /// each key keeps the time that it had left. REQUIRES: log_to().
  void go_on_from(std::int64_t last_second);
  /// The next effects go to a new file. REQUIRES: a Section.
  void begin_file() noexcept { engine_.log_database = -1; }
  Engine& engine() noexcept { return engine_; }
  /// REQUIRES: a Section.
  bool has_key(const KeyOfDatabase& key);
  /// Null: none. REQUIRES: a Section.
  void set_audience(Audience* audience) noexcept { audience_ = audience; }
  /// The snapshot sees each key before it changes; null: there is none. REQUIRES: a Section.
  void set_snapshot(Snapshot* snapshot) noexcept { snapshot_ = snapshot; }
  std::int64_t now_us();  ///< see EngineTime. REQUIRES: a Section.

 private:
  std::optional<std::string> before_write(const resp::CommandSpec& spec, Words words);
  void note_failure();
  void keep_time_left(std::int64_t step_us, std::int64_t now_us);
  void finish(Context& context, Executed& executed, int database);
  /// Null: there is none. A key past its time is there until it is looked up.
  const Entry* entry_at(const KeyOfDatabase& key);
  void signal_waiting(Context& context);
  /// Effects that begin in `database` are told.
  void tell(Context& context, int database, const Session* by);
  void expire(std::int64_t now_us, std::size_t most);
  void plan_expiry(std::int64_t now_us);
  void expire_in_time(const Clock::TimerId* own);

  Clock& clock_;
  TurnMutex mutex_;
  RedisEngine engine_;
  Session session_;  // of the log's commands
  EngineTime time_;
  LogCommitter* committer_ = nullptr;
  Snapshot* snapshot_ = nullptr;
  std::string refusal_;  // the error for writes after the log has failed; else empty
  std::shared_ptr<Channels> channels_ = std::make_shared<Channels>();
  Trackers trackers_;
  Audience* audience_ = nullptr;
  WaitingCalls waiting_;
  std::vector<KeyOfDatabase> signalled_;

  std::int64_t expiry_planned_ms_ = 0;  // when the earliest timer runs; 0: there is none
  std::vector<std::unique_ptr<Clock::TimerId>> expiry_timers_;
};

}  // namespace sluice::engine
