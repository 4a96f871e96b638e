#include "lock/hold/leftovers.hpp"

#include <algorithm>
#include <utility>

namespace sluice::lock {

void Leftovers::keep(std::string request, GiveUpAgain give_up_again) {
  const std::lock_guard lock{mutex_};
  all_.push_back({std::move(request), std::move(give_up_again)});
  if (all_.size() > most) all_.pop_front();
}

void Leftovers::give_up(std::string_view request) {
  std::list<Leftover> found;
  {
    const std::lock_guard lock{mutex_};
    const auto at = std::ranges::find(all_, request, &Leftover::request);
    if (at == all_.end()) return;
    found.splice(found.end(), all_, at);
  }
  found.front().give_up_again();
}

void Leftovers::give_up_all() {
  std::list<Leftover> found;
  {
    const std::lock_guard lock{mutex_};
    found.swap(all_);
  }
  for (const auto& leftover : found) leftover.give_up_again();
}

}  // namespace sluice::lock
