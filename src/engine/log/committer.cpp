#include "engine/log/committer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/event.hpp"
#include "base/thread.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"
#include "store/waiter.hpp"

namespace sluice::engine {
namespace {

constexpr std::chrono::seconds sync_interval{1};
constexpr std::chrono::seconds longest_sync{2};  // that no write waits for
constexpr std::size_t largest_idle_buffer = std::size_t{4} << 20;
/// How long stop() goes on with coroutines.
constexpr std::chrono::milliseconds last_commits{500};

}  // namespace

void LogCommitter::stop() {
  std::optional<Clock::TimerId> timer;
  {
    const Lock lock{mutex_};
    stopping_ = true;
    timer = sync_timer_;
    thread_wanted_.notify_all();
  }
  if (timer) clock_.cancel(*timer);
  if (thread_.joinable()) thread_.join();
  const auto until = system_clock().steady() + last_commits;
  for (Lock lock{mutex_};; lock.lock()) {
    if (!failed_ && !(is_committed(appended_) && !unsynced_)) {
      leading_ = true;
      take_gathered();
      write_gathered(lock, policy_ != Fsync::never);
      leading_ = false;
    }
    stopped_ = stopped_ || system_clock().steady() >= until;
    // Waits of coroutines that no thread waits for, as the release of a lock by its guard.
    const auto done = take_done();
    if (done.empty()) {
      stopped_ = true;
      return;
    }
    lock.unlock();
    for (Wait* const wait : done) {
      if (wait->error_)
        wait->error_.emplace(Errc::closed, wait->error_->message(), Effect::unknown);
      wait->done_.complete();
    }
  }
}

std::uint64_t LogCommitter::append(const std::vector<std::vector<std::string>>& effects,
                                   std::int64_t now_us) {
  if (effects.empty()) return position();
  const Lock lock{mutex_};
  if (failed_ && effects.empty()) return appended_;  // a read adds nothing to what is lost
  const auto before = buffer_.size();
  if (const auto second = now_us / 1'000'000; second != std::exchange(second_, second))
    append_timestamp(buffer_, second);
  append_execution(buffer_, effects);
  appended_ += buffer_.size() - before;
  if (failed_) buffer_.clear();
  return appended_;
}

std::optional<Error> LogCommitter::failure() const {
  const Lock lock{mutex_};
  return failure_;
}

bool LogCommitter::Wait::await_suspend(std::coroutine_handle<> coroutine) {
  Waiter* const current = Waiter::current();
  if (current && current->would_drive(committer_)) waiter_ = current;
  return committer_.enroll(*this) && done_.await_suspend(coroutine);
}

void LogCommitter::Wait::await_resume() const {
  if (error_) throw Error{error_->errc(), error_->message(), effect_};
}

bool LogCommitter::enroll(Wait& wait) {
  const Lock lock{mutex_};
  if (is_committed(wait.position_)) return false;
  if (failed_) {
    wait.error_ = failure_;
    return false;
  }
  if (stopped_) {
    wait.error_.emplace(Errc::closed, "the Store was closed", Effect::unknown);
    return false;
  }
  try {
    if (!wait.waiter_ && !leading_) wake_thread();
  } catch (const Error& lack) {  // it was executed, and a call that comes later may commit it
    wait.error_.emplace(lack.errc(), lack.message(), Effect::unknown);
    return false;
  }
  waits_.push_back(&wait);
  return true;
}

namespace {

Task<void> wait_for(LogCommitter& committer, std::uint64_t position) {
  co_await LogCommitter::Wait{committer, position, Effect::unknown};
}

}  // namespace

void LogCommitter::commit(std::uint64_t position) {
  if (!is_committed(position)) wait_for(*this, position).get();
}

void LogCommitter::commit_soon() {
  const Lock lock{mutex_};
  if (has_work()) wake_thread();
}

void LogCommitter::drive(Waiter& waiter) {
  Lock lock{mutex_};
  if (has_work() && wanting_lead_ == 0) {
    leading_ = true;
    return lead(lock);
  }
  sleepers_.push_back(&waiter);
  lock.unlock();
  waiter.event().wait();
  lock.lock();
  sleepers_.erase(std::ranges::find(sleepers_, &waiter));
}

void LogCommitter::lead(Lock& lock) {
  await_slow_sync(lock);
  if (!failed_) {
    take_gathered();
    write_gathered(lock, policy_ == Fsync::always);
  }
  step_down(lock);
}

/// Writes that are acknowledged meanwhile would be lost in a power cut, however old they are.
void LogCommitter::await_slow_sync(Lock& lock) {
  if (!syncing_since_ || clock_.steady() - *syncing_since_ < longest_sync) return;
  log(LogLevel::warning,
      fmt::format(
          "the disk has been syncing the log for {} s: writes wait for it",
          std::chrono::floor<std::chrono::seconds>(clock_.steady() - *syncing_since_).count()));
  synced_.wait(lock, [this] { return !syncing_since_; });
}

void LogCommitter::take_gathered() {
  gathered_.swap(buffer_);
  gathered_to_ = appended_;
}

void LogCommitter::write_gathered(Lock& lock, bool sync) {
  std::optional<std::system_error> error;
  lock.unlock();
  try {
    log_.append(gathered_, sync);
  } catch (const std::system_error& thrown) {
    error = thrown;
  }
  gathered_.clear();
  if (gathered_.capacity() > largest_idle_buffer) gathered_ = {};
  lock.lock();
  if (error) return fail(*error);
  committed_.store(gathered_to_, std::memory_order_release);
  if (sync) {
    unsynced_ = nullptr;
  } else if (policy_ == Fsync::everysec) {
    unsynced_ = log_.current();
    sync_later();
  }
}

void LogCommitter::step_down(Lock& lock) {
  leading_ = false;
  const auto done = take_done();
  Waiter* next = nullptr;
  if (wanting_lead_ > 0) {
    free_.notify_all();
  } else if (has_work()) {
    next = next_leader();
    const auto has_no_thread = [](const Wait* wait) { return wait->waiter_ == nullptr; };
    if (!next && (commit_wanted_ || std::ranges::any_of(waits_, has_no_thread))) wake_thread();
  }
  lock.unlock();
  // First the callers that are done: what they append next is then in the next leader's write.
  for (Wait* const wait : done) wait->done_.complete();
  if (next) next->wake();
}

/// Takes out the waits that are committed now, or never will be.
std::vector<LogCommitter::Wait*> LogCommitter::take_done() {
  std::vector<Wait*> done;
  std::erase_if(waits_, [&](Wait* wait) {
    const bool covered = is_committed(wait->position_);
    if (!covered && !failed_) return false;
    if (!covered) wait->error_ = failure_;
    done.push_back(wait);
    return true;
  });
  return done;
}

/// A thread that sleeps in drive() with a wait that is not committed yet; null: there is none.
Waiter* LogCommitter::next_leader() const {
  const auto sleeps = [&](const Wait* wait) {
    return std::ranges::find(sleepers_, wait->waiter_) != sleepers_.end();
  };
  const auto found = std::ranges::find_if(waits_, sleeps);
  return found == waits_.end() ? nullptr : (*found)->waiter_;
}

void LogCommitter::fail(const std::system_error& error) {
  const auto message = fmt::format(
      "{}; the effects of the calls under way may be lost. The engine takes no more writes, and "
      "answers no reads once it holds what is not on disk; make the disk good again: a call then "
      "has the engine write its files anew within seconds, and BGREWRITEAOF at once",
      error.what());
  log(LogLevel::error, message);
  failure_.emplace(Errc::out_of_space, message, Effect::unknown);  // whatever the disk said
  failed_ = true;
  buffer_.clear();
  unsynced_ = nullptr;
}

// --- the background thread ---

void LogCommitter::wake_thread() {
  if (stopping_) return;  // stop() commits it
  if (!thread_.joinable()) thread_ = start_thread([this] { run_thread(); });
  commit_wanted_ = true;
  thread_wanted_.notify_one();
}

void LogCommitter::run_thread() {
  const NoBlocking writing{"writes the log of an embedded Store"};
  Lock lock{mutex_};
  while (!stopping_) {
    if (sync_due_) {
      sync_written(lock);
    } else if (commit_wanted_ && has_work() && wanting_lead_ == 0) {
      commit_wanted_ = false;
      leading_ = true;
      lead(lock);
      lock.lock();
    } else {
      if (failed_ || is_committed(appended_)) commit_wanted_ = false;
      thread_wanted_.wait(lock);  // the present leader looks for work before it steps down
    }
  }
}

void LogCommitter::sync_later() {
  if (sync_timer_ || stopping_) return;
  sync_timer_ = clock_.after(sync_interval, [this] {
    const Lock lock{mutex_};
    sync_timer_.reset();
    sync_due_ = true;
    wake_thread();
  });
}

/// The sync of each second. Writers go on meanwhile.
void LogCommitter::sync_written(Lock& lock) {
  sync_due_ = false;
  const auto file = std::exchange(unsynced_, nullptr);
  if (!file) return;
  std::optional<std::system_error> error;
  syncing_since_ = clock_.steady();
  lock.unlock();
  try {
    file->sync();
    count(metrics().engine_fsyncs);
  } catch (const std::system_error& thrown) {
    error = thrown;
  }
  lock.lock();
  syncing_since_.reset();
  synced_.notify_all();
  if (!error || failed_) return;
  fail(*error);
  if (leading_) return;  // the leader completes the waits
  leading_ = true;
  step_down(lock);
  lock.lock();
}

// --- changing files ---

LogCommitter::Lead::Lead(LogCommitter& committer) : committer_(committer) {
  Lock lock{committer_.mutex_};
  ++committer_.wanting_lead_;
  committer_.free_.wait(lock, [&] { return !committer_.leading_; });
  --committer_.wanting_lead_;
  committer_.leading_ = true;
  committer_.gathered_to_ = committer_.committed_;
}

LogCommitter::Lead::~Lead() {
  Lock lock{committer_.mutex_};
  committer_.step_down(lock);
}

void LogCommitter::Lead::cut() {
  const Lock lock{committer_.mutex_};
  committer_.take_gathered();
  committer_.second_ = 0;
}

bool LogCommitter::Lead::flush() {
  Lock lock{committer_.mutex_};
  if (committer_.failed_) return false;
  committer_.write_gathered(lock, true);
  return !committer_.failed_;
}

void LogCommitter::Lead::fail(const std::system_error& error) {
  const Lock lock{committer_.mutex_};
  committer_.fail(error);
}

void LogCommitter::Lead::recover() {
  const Lock lock{committer_.mutex_};
  if (!committer_.failed_) return;
  committer_.buffer_.clear();
  committer_.second_ = 0;
  committer_.failure_.reset();
  committer_.committed_.store(committer_.appended_);
  committer_.failed_ = false;
  log(LogLevel::warning, "the engine has written its files anew, and takes writes again");
}

}  // namespace sluice::engine
