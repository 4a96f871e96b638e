/// The cohorts of one Store: one for each name and terms that somebody uses.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "lock/hold/watchdog.hpp"
#include "lock/mutex/cohort.hpp"
#include "lock/per_store.hpp"
#include "lock/wait/attendance.hpp"
#include "lock/wait/inbox.hpp"

namespace sluice::lock {

class Cohorts : public std::enable_shared_from_this<Cohorts> {
 public:
  explicit Cohorts(Store& store)
      : store_(store),
        watchdog_(shared_of<Watchdog>(store)),
        inbox_(shared_of<Inbox>(store)),
        attendance_(shared_of<Attendance>(store)) {}

  /// Throws Error (bad_argument) for a name that is empty or too long.
  std::shared_ptr<Cohort> of(const std::string& name, const MutexTerms& terms) {
    const std::lock_guard lock{mutex_};
    auto& slot = cohorts_[Key{name, terms}];
    if (auto cohort = slot.lock()) return cohort;
    std::erase_if(cohorts_, [](const auto& entry) { return entry.second.expired(); });
    auto cohort = std::make_shared<Cohort>(store_, name, terms, watchdog_, inbox_, attendance_);
    cohort->keep(shared_from_this());  // or the next who asks would find other cohorts
    cohorts_[Key{name, terms}] = cohort;
    return cohort;
  }

 private:
  using Key = std::pair<std::string, MutexTerms>;

  Store& store_;
  const std::shared_ptr<Watchdog> watchdog_;
  const std::shared_ptr<Inbox> inbox_;
  const std::shared_ptr<Attendance> attendance_;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<Cohort>> cohorts_;
};

}  // namespace sluice::lock
