/// An answer that may be dear to make, for all who ask.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "sluice/clock.hpp"

namespace sluice::server {

/// Guarantee: it is made at most a tenth of the time: an answer is given again for nine times as
///   long as it took.
/// Threads: any; those who ask meanwhile wait. REQUIRES: `clock` lives longer.
class PacedAnswer {
 public:
  explicit PacedAnswer(const Clock& clock) : clock_(clock) {}

  /// The last one, or a new one by `make`. What it throws is thrown, and not kept.
  std::string get(const std::function<std::string()>& make) {
    const std::lock_guard lock{mutex_};
    const auto began = clock_.steady();
    if (good_until_ && began < *good_until_) return last_;
    last_ = make();
    const auto now = clock_.steady();
    good_until_ = now + 9 * (now - began);
    return last_;
  }

 private:
  const Clock& clock_;
  std::mutex mutex_;
  std::string last_;                      // guarded by mutex_
  std::optional<SteadyTime> good_until_;  // guarded by mutex_
};

}  // namespace sluice::server
