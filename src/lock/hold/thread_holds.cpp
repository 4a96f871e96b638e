#include "lock/hold/thread_holds.hpp"

#include <algorithm>
#include <ranges>

#include "lock/hold/steps.hpp"

namespace sluice::lock {

const Owner& this_thread_owner() {
  thread_local const Owner owner;
  return owner;
}

void ThreadHolds::keep(Held held) {
  const std::lock_guard lock{mutex_};
  kept_.push_back({std::this_thread::get_id(), std::move(held)});
}

Held ThreadHolds::take(const std::string& name) {
  const std::lock_guard lock{mutex_};
  const auto mine =
      std::ranges::find(kept_ | std::views::reverse, std::this_thread::get_id(), &Kept::thread);
  if (mine == kept_.rend())
    throw Error{Errc::bad_argument,
                "unlock of lock " + quoted(name) + ", which this thread has not locked"};
  Held held = std::move(mine->held);
  kept_.erase(std::next(mine).base());
  return held;
}

}  // namespace sluice::lock
