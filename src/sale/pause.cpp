#include "sale/pause.hpp"

#include <algorithm>

#include "base/random.hpp"
#include "sluice/task.hpp"

namespace sluice {

bool Pause::wait(std::stop_token stop) {
  const auto half = std::max<std::int64_t>(next_.count() / 2, 1);
  const std::chrono::milliseconds time{
      half + static_cast<std::int64_t>(random_below(static_cast<std::uint64_t>(half)))};
  next_ = std::min(next_ * 2, longest_);

  Completion woken;
  const std::stop_callback wake{stop, [&] { woken.complete(); }};
  wait_until(woken, clock_, clock_.steady() + time).get();
  return !stop.stop_requested();
}

}  // namespace sluice
