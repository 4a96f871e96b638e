/// Makes the append-only file small again, in the background and without fork: see append_log.hpp
/// for the files and snapshot.hpp for the data.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#include "engine/embedded/locked_engine.hpp"
#include "engine/embedded/snapshot.hpp"
#include "engine/log/append_log.hpp"
#include "engine/log/committer.hpp"

namespace sluice::engine {

class LogRewriter {
 public:
  LogRewriter(LockedEngine& engine, AppendLog& log, LogCommitter& committer)
      : engine_(engine), log_(log), committer_(committer) {}
  ~LogRewriter() { stop(); }

  /// Starts one, unless one is under way. Its failure is logged, and kept for wait().
  void start();
  /// Starts one when the files are larger than `above` and have grown by `percent` since the last
  /// one. O(1).
  void start_when_due(std::uint64_t above, unsigned percent);
  /// After the log has failed, at a call: starts one now and then, so that a disk that is good
  /// again is noticed. They take a tenth of the time at most. O(1).
  void start_to_mend() noexcept;
  /// Waits for the end of the one under way; throws what ended it.
  void wait();
  /// Gives up a rewrite under way; none starts after this.
  void stop();

 private:
  static constexpr std::chrono::seconds first_mending{1};

  void run();
  void rewrite();
  /// The moment of the snapshot: the files before it end here, a new increment begins. False: the
  /// log had failed before, and there is none.
  bool begin(Snapshot& snapshot);
  void write_base(Snapshot& snapshot, File& base);
  void finish(const AppendLog::Draft& base, bool increment_begun);
  /// Runs `change` with the lead; an error after the manifest was renamed is a failure of the log.
  template <class Change>
  void change_files(LogCommitter::Lead& lead, Change&& change);

  LockedEngine& engine_;
  AppendLog& log_;
  LogCommitter& committer_;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::thread thread_;
  std::exception_ptr error_;
  std::atomic<bool> running_{false};
  std::atomic<bool> giving_up_{false};
  std::atomic<std::uint64_t> not_below_{0};  // after a failure: not before it has grown some more
  std::atomic<SteadyTime> mend_at_{SteadyTime::min()};  // min(): none was wanted since all was well
  std::atomic<std::chrono::nanoseconds> mend_every_{first_mending};
};

}  // namespace sluice::engine
