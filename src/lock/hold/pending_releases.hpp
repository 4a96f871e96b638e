/// Requests that were given up while their server did not answer, and may have left a place in a
/// queue there.
///
/// As long as this process is heard, the server takes such a place for that of a waiter: it would
/// give the hold to it, or tell it to look after another's, and the waiters behind it would wait
/// for nothing. So the request is given up again when the server speaks of it, and when the
/// connection was lost meanwhile.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "sluice/store.hpp"

namespace sluice::lock {

/// Threads: any. One for each Store, kept by its Inbox: a process that does not hear the server has
///   no place in a queue.
class PendingReleases {
 public:
  using GiveUpAgain = std::function<void()>;

  explicit PendingReleases(Store&) {}

  /// Of more than `most` the oldest is forgotten. That costs the waiters behind it the time that a
  /// grant has to be taken up.
  void keep(std::string request, GiveUpAgain give_up_again) {
    const std::lock_guard lock{mutex_};
    all_.push_back({std::move(request), std::move(give_up_again)});
    if (all_.size() > most) all_.pop_front();
  }
  static constexpr std::size_t most = 1000;

  /// The server speaks of a request that no wait here has. Nothing happens if it is none of these.
  void give_up(std::string_view request) {
    std::list<PendingRelease> found;
    {
      const std::lock_guard lock{mutex_};
      const auto at = std::ranges::find(all_, request, &PendingRelease::request);
      if (at == all_.end()) return;
      found.splice(found.end(), all_, at);
    }
    found.front().give_up_again();
  }
  void give_up_all() {
    std::list<PendingRelease> found;
    {
      const std::lock_guard lock{mutex_};
      found.swap(all_);
    }
    for (const auto& pending : found) pending.give_up_again();
  }

 private:
  struct PendingRelease {
    std::string request;
    GiveUpAgain give_up_again;
  };

  std::mutex mutex_;
  std::list<PendingRelease> all_;  // the oldest first
};

}  // namespace sluice::lock
