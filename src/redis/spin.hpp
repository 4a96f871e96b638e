/// Whether to look for a reply a little longer before sleeping, learnt from what each way costs.
///
/// Waking a sleeping thread takes longer than a near server takes to answer; but on a busy machine
/// a spinning caller keeps the server from its core. So both ways are timed: the better one is
/// used, and every 256 waits the other one is given four, in case the machine has changed its mind.
#pragma once

#include <algorithm>
#include <chrono>

namespace sluice::redis {

/// Threads: one at a time.
class AdaptiveSpin {
 public:
  explicit AdaptiveSpin(std::chrono::nanoseconds limit) noexcept : limit_(limit) {}

  bool is_on() const noexcept { return limit_.count() > 0; }
  std::chrono::nanoseconds limit() const noexcept { return limit_; }

  /// Asked once before each wait: spin, then sleep? Or sleep at once?
  bool spins() noexcept {
    if (trials_left_ == 0 && ++since_trial_ >= between_trials) {
      since_trial_ = 0;
      trials_left_ = trial_length;
    }
    if (trials_left_ == 0) return spinning_is_better_;
    --trials_left_;
    return !spinning_is_better_;
  }

  /// How long the wait was for which spins() gave `spun`.
  void waited(bool spun, std::chrono::nanoseconds time) noexcept {
    auto& average = spun ? spinning_ : sleeping_;
    time = std::min(time, limit_ * 4);  // a wait for the next message of the day says nothing
    average = average.count() == 0 ? time : average + (time - average) / 8;
    // Spinning costs CPU: it has to be better by a fifth.
    spinning_is_better_ = sleeping_.count() == 0 || spinning_ * 5 < sleeping_ * 4;
  }

 private:
  static constexpr int between_trials = 256;
  static constexpr int trial_length = 4;

  std::chrono::nanoseconds limit_;
  std::chrono::nanoseconds spinning_{0};
  std::chrono::nanoseconds sleeping_{0};
  bool spinning_is_better_ = true;
  int since_trial_ = 0;
  int trials_left_ = 0;
};

}  // namespace sluice::redis
