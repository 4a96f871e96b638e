/// How often a line may stand in the log.
#pragma once

#include <optional>

#include "sluice/clock.hpp"

namespace sluice {

/// A line of the log that could come often: one a second is enough.
class RareLine {
 public:
  bool is_due(SteadyTime now) noexcept {
    if (told_ && now - *told_ < std::chrono::seconds{1}) return false;
    told_ = now;
    return true;
  }

 private:
  std::optional<SteadyTime> told_;
};

}  // namespace sluice
