/// Requests that were given up while their server did not answer, and may have left a place in a
/// queue there.
///
/// As long as this process is heard, the server takes such a place for one that somebody waits in:
/// it would give the hold to it, or tell it to look after another's, and whoever does wait would
/// wait for nothing. So it is given up again when the server speaks of it, and when the connection
/// has been lost meanwhile.
#pragma once

#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>

#include "sluice/store.hpp"

namespace sluice::lock {

/// Threads: any. One for each Store, kept by whoever hears the server (the Inbox): what nobody
///   hears leaves no place.
class PendingReleases {
 public:
  using GiveUpAgain = std::function<void()>;

  explicit PendingReleases(Store&) {}

  /// Of more than `most` the oldest is forgotten: it costs those who wait the time that a grant has
  /// to be taken up.
  void keep(std::string request, GiveUpAgain give_up_again);
  static constexpr std::size_t most = 1000;

  /// The server speaks of a request that nobody waits for. Nothing happens if it is none of these.
  void give_up(std::string_view request);
  void give_up_all();

 private:
  struct PendingRelease {
    std::string request;
    GiveUpAgain give_up_again;
  };

  std::mutex mutex_;
  std::list<PendingRelease> all_;  // the oldest first
};

}  // namespace sluice::lock
