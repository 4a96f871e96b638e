/// Requests that may have a place in a queue on the server, and no wait here: those that were given
/// up while the server did not answer; and those that have ended, if the server has lost what it
/// did since, as a replica that was promoted or a restart from an older file.
///
/// As long as this process is heard, the server takes such a place for that of a waiter: it would
/// give the hold to it, or tell it to look after another's, and the waiters behind it would wait
/// for nothing. So the request is given up again when the server speaks of it; and if the server
/// had not answered, when the connection was lost meanwhile, and from time to time as long as the
/// outage lasts: behind a proxy no connection need be lost.
#pragma once

#include <algorithm>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/store.hpp"

namespace sluice::lock {

/// Threads: any. One for each Store, kept by its Watchdog and its Inbox.
class PendingReleases : public std::enable_shared_from_this<PendingReleases> {
 public:
  using GiveUpAgain = std::function<void()>;

  explicit PendingReleases(Store& store) : clock_(store.clock()) {}
  ~PendingReleases() {
    if (ticks_) clock_.cancel(timer_);
  }
  PendingReleases(const PendingReleases&) = delete;
  PendingReleases& operator=(const PendingReleases&) = delete;

  /// Of more than `most` the oldest is forgotten. That costs the waiters behind it the time that a
  /// grant has to be taken up. `of_outage`: it is asked again soon.
  void keep(std::string request, GiveUpAgain give_up_again, bool of_outage = false) {
    add(unanswered_, {std::move(request), std::move(give_up_again)});
    const std::lock_guard lock{mutex_};
    if (of_outage && !ticks_) set_timer();
  }
  static constexpr std::size_t most = 1000;
  /// Of a request that has ended, and had a place in a queue. As many of them. It is given up again
  /// once: if the server speaks of it still, that is not answered for ever.
  void note_ended(std::string request, GiveUpAgain give_up_again) {
    add(ended_, {std::move(request), std::move(give_up_again)});
  }
  /// The same of a request that may be noted already.
  void note_given_up(const std::string& request, GiveUpAgain give_up_again) {
    {
      const std::lock_guard lock{mutex_};
      pause_ = shortest;
      if (std::ranges::find(ended_, request, &PendingRelease::request) != ended_.end()) return;
    }
    note_ended(request, std::move(give_up_again));
  }

  /// The server speaks of a request that no wait here has. Nothing happens if it is none of these.
  void give_up(std::string_view request) {
    std::vector<GiveUpAgain> due;  // several: each permit of a request has an end of its own
    {
      const std::lock_guard lock{mutex_};
      for (PendingRelease& ended : ended_)
        if (ended.request == request && ended.give_up_again)
          due.push_back(std::exchange(ended.give_up_again, nullptr));
      std::erase_if(unanswered_, [&](PendingRelease& pending) {
        if (pending.request != request) return false;
        due.push_back(std::move(pending.give_up_again));
        return true;
      });
    }
    for (const auto& give_up_again : due) give_up_again();
  }
  void give_up_all() {
    std::list<PendingRelease> found;
    {
      const std::lock_guard lock{mutex_};
      found.swap(unanswered_);
    }
    for (const auto& pending : found) pending.give_up_again();
  }

 private:
  struct PendingRelease {
    std::string request;
    GiveUpAgain give_up_again;
  };

  void add(std::list<PendingRelease>& requests, PendingRelease one) {
    const std::lock_guard lock{mutex_};
    requests.push_back(std::move(one));
    if (requests.size() > most) requests.pop_front();
  }

  void set_timer() {
    timer_ = clock_.after(pause_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      {
        const std::lock_guard lock{self->mutex_};
        self->ticks_ = false;
      }
      self->give_up_all();
    });
    ticks_ = true;
    pause_ = std::min(2 * pause_, longest);
  }

  static constexpr std::chrono::milliseconds shortest{500};
  static constexpr std::chrono::milliseconds longest{16'000};

  Clock& clock_;
  std::mutex mutex_;
  std::chrono::milliseconds pause_ = shortest;
  Clock::TimerId timer_{};
  bool ticks_ = false;
  std::list<PendingRelease> unanswered_;  // the oldest first
  std::list<PendingRelease> ended_;
};

}  // namespace sluice::lock
