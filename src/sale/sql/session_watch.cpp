#include "sale/sql/session_watch.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "base/thread.hpp"

namespace sluice::sale {

/// It is never destroyed: sessions of static objects may end after anything else.
SessionWatch& SessionWatch::of_process() {
  static auto& watch = *new SessionWatch;
  return watch;
}

SessionWatch::SessionWatch() {
  start_thread([this] { work(); }).detach();
}

void SessionWatch::work() {
  std::unique_lock lock{mutex_};
  for (;;) {
    const auto now = system_clock().steady();
    looks_again_ = SteadyTime::max();
    for (auto* const turn : turns_) {
      if (turn->is_cut_) continue;
      if (turn->until_ <= now)
        turn->is_cut_ = ::shutdown(turn->socket_, SHUT_RDWR) == 0;
      else
        looks_again_ = std::min(looks_again_, turn->until_);
    }
    if (looks_again_ == SteadyTime::max())
      earlier_.wait(lock);
    else
      earlier_.wait_until(lock, looks_again_);
  }
}

SessionWatch::Turn::Turn(int socket, std::chrono::nanoseconds within, bool& is_cut)
    : socket_(socket), until_(system_clock().steady() + within), is_cut_(is_cut) {
  if (socket_ < 0) return;
  auto& watch = of_process();
  const std::lock_guard lock{watch.mutex_};
  place_ = watch.turns_.insert(watch.turns_.end(), this);
  if (until_ < watch.looks_again_) watch.earlier_.notify_one();
}

SessionWatch::Turn::~Turn() {
  if (socket_ < 0) return;
  auto& watch = of_process();
  const std::lock_guard lock{watch.mutex_};
  watch.turns_.erase(place_);
}

}  // namespace sluice::sale
