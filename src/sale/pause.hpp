/// How long to wait before trying again: doubling, with jitter, cut short by a stop.
#pragma once

#include <chrono>
#include <stop_token>

#include "sluice/clock.hpp"

namespace sluice {

class Pause {
 public:
  Pause(Clock& clock, std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : clock_(clock), first_(first), longest_(longest), next_(first) {}

  void reset() noexcept { next_ = first_; }
  /// Blocks the thread. False: `stop` came.
  bool wait(std::stop_token stop);

 private:
  Clock& clock_;
  const std::chrono::milliseconds first_;
  const std::chrono::milliseconds longest_;
  std::chrono::milliseconds next_;
};

}  // namespace sluice
