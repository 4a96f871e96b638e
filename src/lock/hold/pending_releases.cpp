#include "lock/hold/pending_releases.hpp"

#include <algorithm>
#include <utility>

namespace sluice::lock {

void PendingReleases::keep(std::string request, GiveUpAgain give_up_again) {
  const std::lock_guard lock{mutex_};
  all_.push_back({std::move(request), std::move(give_up_again)});
  if (all_.size() > most) all_.pop_front();
}

void PendingReleases::give_up(std::string_view request) {
  std::list<PendingRelease> found;
  {
    const std::lock_guard lock{mutex_};
    const auto at = std::ranges::find(all_, request, &PendingRelease::request);
    if (at == all_.end()) return;
    found.splice(found.end(), all_, at);
  }
  found.front().give_up_again();
}

void PendingReleases::give_up_all() {
  std::list<PendingRelease> found;
  {
    const std::lock_guard lock{mutex_};
    found.swap(all_);
  }
  for (const auto& pending : found) pending.give_up_again();
}

}  // namespace sluice::lock
