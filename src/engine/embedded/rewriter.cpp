#include "engine/embedded/rewriter.hpp"

#include <fmt/format.h>

#include "base/thread.hpp"
#include "engine/log/checksum.hpp"
#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::engine {
namespace {

/// Bytes of records that are gathered in one section: some tens of microseconds.
constexpr std::size_t bytes_a_slice = 32 * 1024;
/// Between two that try whether the disk is good again, but for those that take long.
constexpr std::chrono::nanoseconds longest_mending = std::chrono::seconds{8};

/// Takes the snapshot out of the engine, however the rewrite ends.
class SnapshotGuard {
 public:
  explicit SnapshotGuard(LockedEngine& engine) : engine_(engine) {}
  ~SnapshotGuard() {
    const LockedEngine::Section section{engine_};
    engine_.set_snapshot(nullptr);
  }
  SnapshotGuard(const SnapshotGuard&) = delete;
  SnapshotGuard& operator=(const SnapshotGuard&) = delete;

 private:
  LockedEngine& engine_;
};

/// A new file that is discarded unless it is kept.
class DraftGuard {
 public:
  DraftGuard(AppendLog& log, AppendLog::Draft draft) : log_(log), draft_(std::move(draft)) {}
  ~DraftGuard() {
    if (draft_.file) log_.discard(std::move(draft_));
  }
  DraftGuard(const DraftGuard&) = delete;
  DraftGuard& operator=(const DraftGuard&) = delete;

  const AppendLog::Draft& operator*() const noexcept { return draft_; }
  void keep() noexcept { draft_.file = nullptr; }

 private:
  AppendLog& log_;
  AppendLog::Draft draft_;
};

}  // namespace

void LogRewriter::stop() {
  {
    const std::lock_guard lock{mutex_};
    giving_up_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void LogRewriter::start() {
  const std::lock_guard lock{mutex_};
  if (running_ || giving_up_) return;
  if (thread_.joinable()) thread_.join();
  error_ = nullptr;
  thread_ = start_thread([this] { run(); });
  running_ = true;
}

void LogRewriter::start_when_due(std::uint64_t above, unsigned percent) {
  const auto size = log_.size();
  if (size <= above || size < not_below_ || running_) return;
  if (const auto base = log_.base_size(); size - std::min(base, size) >= base / 100 * percent)
    start();
}

void LogRewriter::start_to_mend() noexcept {
  const auto now = engine_.clock().steady();
  const SteadyTime at = mend_at_;
  if (running_ || now < at) return;
  mend_at_ = Clock::add(now, mend_every_.load());
  try {
    if (at != SteadyTime::min()) start();
  } catch (const Error&) {  // no thread is to be had now
  }
}

void LogRewriter::wait() {
  std::unique_lock lock{mutex_};
  ended_.wait(lock, [&] { return !running_; });
  if (error_) std::rethrow_exception(error_);
}

void LogRewriter::run() {
  std::exception_ptr error;
  const auto begun = engine_.clock().steady();
  try {
    rewrite();
    mend_at_ = SteadyTime::min();
    mend_every_ = first_mending;
  } catch (const std::exception& thrown) {
    log(LogLevel::warning,
        fmt::format("the append-only file could not be rewritten: {}; the old files are as good as "
                    "before",
                    thrown.what()));
    error = std::current_exception();
    not_below_ = log_.size() + log_.size() / 10;
    const auto now = engine_.clock().steady();
    mend_every_ = std::max(10 * (now - begun), std::min(2 * mend_every_.load(), longest_mending));
    mend_at_ = Clock::add(now, mend_every_.load());
  }
  const std::lock_guard lock{mutex_};
  error_ = error;
  running_ = false;
  ended_.notify_all();
}

void LogRewriter::rewrite() {
  Snapshot snapshot{engine_.engine()};
  const SnapshotGuard guard{engine_};
  const bool increment_begun = begin(snapshot);
  DraftGuard base{log_, log_.draft_base()};
  write_base(snapshot, *(*base).file);
  finish(*base, increment_begun);
  base.keep();
}

bool LogRewriter::begin(Snapshot& snapshot) {
  if (committer_.has_failed()) {
    LockedEngine::Section section{engine_};
    engine_.set_snapshot(&snapshot);
    return false;
  }
  DraftGuard increment{log_, log_.draft_increment()};
  LogCommitter::Lead lead{committer_};
  {
    LockedEngine::Section section{engine_};
    lead.cut();
    engine_.begin_file();
    engine_.set_snapshot(&snapshot);
  }
  if (!lead.flush()) throw *committer_.failure();
  change_files(lead, [&](bool& broken) { log_.use_increment(*increment, broken); });
  increment.keep();
  return true;
}

void LogRewriter::write_base(Snapshot& snapshot, File& base) {
  ChecksumWriter checksums;
  for (bool more = true; more;) {
    std::string records;
    {
      LockedEngine::Section section{engine_};
      append_timestamp(records, engine_.now_us() / 1'000'000);
      more = snapshot.collect(bytes_a_slice);
      records += snapshot.take();
      if (snapshot.is_spoilt())
        throw Error{Errc::server,
                    "a database was emptied or swapped meanwhile; it will be tried again"};
    }
    if (giving_up_) throw Error{Errc::closed, "the Store is being closed"};
    checksums.seal(records);
    base.append(records);
  }
  base.sync();
  count(metrics().engine_fsyncs);
}

void LogRewriter::finish(const AppendLog::Draft& base, bool increment_begun) {
  LogCommitter::Lead lead{committer_};
  if (increment_begun) {
    if (committer_.has_failed())
      throw *committer_.failure();  // what came since is in the increment, and only there
    return change_files(lead, [&](bool& broken) { log_.use_base(base, nullptr, broken); });
  }
  // It had failed before the snapshot, and nothing was written since: the base is all there is.
  DraftGuard increment{log_, log_.draft_increment()};
  change_files(lead, [&](bool& broken) { log_.use_base(base, &*increment, broken); });
  increment.keep();
  LockedEngine::Section section{engine_};
  lead.recover();
  engine_.begin_file();
}

template <class Change>
void LogRewriter::change_files(LogCommitter::Lead& lead, Change&& change) {
  bool broken = false;
  try {
    change(broken);
  } catch (const std::system_error& error) {
    if (broken) lead.fail(error);
    throw;
  }
}

}  // namespace sluice::engine
