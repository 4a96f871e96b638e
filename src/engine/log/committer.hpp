/// Group commit: executions that wait together reach the disk with one write and one fdatasync.
///
/// An execution leaves its records in a buffer and gets a position; its caller waits until that
/// position is committed. A waiting thread that finds no leader becomes the leader: it writes and
/// syncs all that has gathered, completes the waits that this covers, and hands the lead to a
/// thread whose wait came meanwhile. So a thread in Task::get() does its own fsync, without a
/// thread switch. A background thread exists only for coroutines that no thread waits for, and for
/// the sync of each second.
///
/// After a failed write or sync it is not known what the disk holds, and a second fsync may report
/// success falsely. So a failure is final: the calls under way fail with effect `unknown`, nothing
/// is appended any more, and only a rewritten base ends this state. Each is Errc::out_of_space.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "engine/log/append_log.hpp"
#include "engine/log/record.hpp"
#include "sluice/error.hpp"
#include "sluice/task.hpp"

namespace sluice::engine {

/// When an execution counts as committed.
enum class Fsync {
  always,    ///< when it is on disk
  everysec,  ///< when the operating system has it; it goes to disk each second, and while that
             ///< takes longer than two seconds nothing more is committed
  never,     ///< when the operating system has it; that decides when it goes to disk
};

class LogCommitter final : public Driver {
 public:
  LogCommitter(AppendLog& log, Fsync policy, Clock& clock)
      : log_(log), policy_(policy), clock_(clock) {}
  /// REQUIRES: no thread waits.
  ~LogCommitter() override { stop(); }

  /// Gathers the records of one execution, and when it was. REQUIRES: the engine's lock. Gives
  /// position().
  std::uint64_t append(const std::vector<std::vector<std::string>>& effects, std::int64_t now_us);
  /// All that was executed so far lies before it.
  std::uint64_t position() const noexcept { return appended_.load(std::memory_order_acquire); }
  bool is_committed(std::uint64_t position) const noexcept {
    return committed_.load(std::memory_order_acquire) >= position;
  }
  /// Empty, or why nothing can be written any more.
  std::optional<Error> failure() const;
  bool has_failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  /// `co_await` it: returns when the position is committed, throws when it cannot be.
  class Wait {
   public:
    Wait(LogCommitter& committer, std::uint64_t position, Effect effect_of_failure) noexcept
        : committer_(committer),
          position_(position),
          effect_(effect_of_failure),
          done_(&committer) {}
    bool await_ready() const noexcept { return committer_.is_committed(position_); }
    bool await_suspend(std::coroutine_handle<> coroutine);
    void await_resume() const;

   private:
    friend class LogCommitter;
    LogCommitter& committer_;
    const std::uint64_t position_;
    const Effect effect_;
    Completion done_;
    Waiter* waiter_ = nullptr;  // of the thread that will call drive(); null: there is none
    std::optional<Error> error_;
  };

  /// Blocks until the position is committed. Throws Error as Wait.
  void commit(std::uint64_t position);
  /// No caller waits for what was appended: the background thread commits it.
  void commit_soon();

  /// Ends the background thread, and commits what is left. Coroutines that no thread waits for go
  /// on here; what they append is committed too, for up to 500 ms. What is waited for afterwards
  /// fails with Errc::closed.
  void stop();

  void drive(Waiter& waiter) override;

  /// Leads as long as it lives: nothing is written meanwhile, so that the log's files can be
  /// changed.
  class Lead {
   public:
    explicit Lead(LogCommitter& committer);
    ~Lead();
    Lead(const Lead&) = delete;
    Lead& operator=(const Lead&) = delete;

    /// What was gathered so far goes to the present file, what comes later to the next. REQUIRES:
    /// the engine's lock.
    void cut();
    /// Writes and syncs what was cut off. False: that failed, and so has the log.
    bool flush();
    /// The log itself has failed; see above.
    void fail(const std::system_error& error);
    /// A new base holds all that was executed: what failed before does not matter any more.
    /// REQUIRES: the engine's lock.
    void recover();

   private:
    LogCommitter& committer_;
  };

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool enroll(Wait& wait);
  bool has_work() const noexcept { return !leading_ && !failed_ && !is_committed(appended_); }
  void take_gathered();
  void write_gathered(Lock& lock, bool sync);
  void await_slow_sync(Lock& lock);
  void lead(Lock& lock);
  void step_down(Lock& lock);
  std::vector<Wait*> take_done();
  Waiter* next_leader() const;
  void fail(const std::system_error& error);

  void wake_thread();
  void run_thread();
  void sync_later();
  void sync_written(Lock& lock);

  AppendLog& log_;
  const Fsync policy_;
  Clock& clock_;

  mutable std::mutex mutex_;
  std::string buffer_;       // gathered, not yet taken
  std::int64_t second_ = 0;  // of the latest timestamp in this file
  std::string gathered_;     // the leader's
  std::uint64_t gathered_to_ = 0;
  std::atomic<std::uint64_t> appended_{0};
  std::atomic<std::uint64_t> committed_{0};
  std::atomic<bool> failed_{false};
  std::optional<Error> failure_;
  bool leading_ = false;
  std::vector<Wait*> waits_;
  std::vector<Waiter*> sleepers_;  // threads inside drive()

  std::condition_variable free_;  // there is no leader
  int wanting_lead_ = 0;          // threads in the constructor of Lead
  std::condition_variable thread_wanted_;
  bool commit_wanted_ = false;
  bool stopping_ = false;
  bool stopped_ = false;  // the waits after this fail
  std::thread thread_;

  std::shared_ptr<File> unsynced_;  // written to since the last sync (everysec)
  std::optional<Clock::TimerId> sync_timer_;
  bool sync_due_ = false;
  std::optional<SteadyTime> syncing_since_;  // sync_written()
  std::condition_variable synced_;
};

}  // namespace sluice::engine
