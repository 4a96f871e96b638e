#include "lock/simulation/errands.hpp"

#include <fmt/format.h>

#include "sluice/fencing.hpp"
#include "sluice/latch.hpp"
#include "sluice/rate_limiter.hpp"
#include "support/foreign.hpp"

namespace sluice::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr std::int64_t rate = 5;
constexpr milliseconds interval = 1s;

/// Each process counts down a latch of its own, again and again by the same parts, and waits for
/// those of the others.
class SimLatch final : public SimLock {
 public:
  SimLatch(Store& store, const std::string& name)
      : own_(store, name + "-" + store.describe()), all_(store, name) {}

  Task<SimHoldPtr> enter(const Owner*, Mode mode, std::uint32_t, milliseconds wait,
                         std::stop_token stop) override {
    if (mode == Mode::shared) {
      auto waiting = all_.try_wait(std::min<milliseconds>(wait, 5s), std::move(stop));
      co_await waiting;
      co_return nullptr;
    }
    if (std::exchange(busy_, true)) co_return nullptr;
    try {
      auto round = play_round();
      co_await round;
    } catch (...) {
      busy_ = false;
      throw;
    }
    busy_ = false;
    co_return nullptr;
  }

  Task<void> change() override {
    auto opening = all_.reset(0);
    co_await opening;
  }

 private:
  Task<void> play_round() {
    auto setting = own_.try_set_count(2);
    const bool fresh = co_await setting;
    if (!fresh) {  // what a round before has left undone
      auto again = own_.reset(2);
      co_await again;
    }
    auto first = own_.count_down_once("first part");
    const std::int64_t left = co_await first;
    if (left != 1) throw Wrong{fmt::format("{} of 2 parts are left after the first", left)};
    auto again = own_.count_down_once("first part");
    if (co_await again != 1) throw Wrong{"a part counts twice"};
    auto looking = own_.state();
    if (co_await looking == LatchState::open) throw Wrong{"a latch is open after one of two parts"};
    auto second = own_.count_down_once("second part");
    co_await second;
    auto counting = own_.count();
    if (co_await counting != 0) throw Wrong{"a latch is shut after all of its parts"};
    auto set_all = all_.try_set_count(1);
    co_await set_all;
    auto open_all = all_.count_down();
    co_await open_all;
  }

  Latch own_;
  Latch all_;
  bool busy_ = false;
};

class SimLimiter final : public SimLock {
 public:
  SimLimiter(Store& store, const std::string& name, const Profile& profile)
      : limiter_(store, name,
                 {.rate = rate,
                  .interval = interval,
                  .kind = is_odd(store, profile) || !profile.watched ? RateKind::per_client
                                                                     : RateKind::overall,
                  .client = "simulated",
                  .follow = true,
                  .keep_alive = profile.prefers_readers ? milliseconds{10s} : milliseconds{}}),
        clock_(store.clock()) {}

  Task<SimHoldPtr> enter(const Owner*, Mode mode, std::uint32_t, milliseconds wait,
                         std::stop_token stop) override {
    auto acquiring = limiter_.try_acquire(mode == Mode::shared ? 1 : 3,
                                          std::min<milliseconds>(wait, 30s), std::move(stop));
    co_await acquiring;
    co_return nullptr;
  }
  /// A caller goes away while its request is on its way, too.
  Task<void> look() override {
    constexpr auto take = [](RateLimiter& limiter) -> test::Foreign {
      auto acquiring = limiter.try_acquire();
      co_await acquiring;
    };
    take(limiter_).coroutine.destroy();
    auto asked = limiter_.available();
    co_await asked;
  }
  /// For a moment fewer than some want at once.
  Task<void> change() override {
    auto slower = limiter_.set_rate(2, interval);
    co_await slower;
    auto resting = sleep_until(clock_, clock_.steady() + 100ms);
    co_await resting;
    auto faster = limiter_.set_rate(rate, interval);
    co_await faster;
  }

 private:
  /// Where operators err, one process takes the limiter for one of another kind.
  static bool is_odd(const Store& store, const Profile& profile) {
    return profile.operators && store.describe() == "p1";
  }

  RateLimiter limiter_;
  Clock& clock_;
};

/// Tokens of the clock: those of one process rise.
class SimFence final : public SimLock {
 public:
  SimFence(Store& store, const std::string& name) : store_(store), fence_(store, name) {}

  Task<SimHoldPtr> enter(const Owner*, Mode mode, std::uint32_t, milliseconds,
                         std::stop_token) override {
    const FencingToken token{++last_ + (mode == Mode::shared ? 0U : 3U)};
    if (mode == Mode::shared) {
      auto asked = fence_.admit(token);
      const auto admitted = co_await asked;
      if (!admitted && admitted.error().largest <= token)
        throw Wrong{"a fence has refused a token that is not stale"};
    } else {
      auto asked = fence_.run(token, {"written"}, {"SET", "written", "once"}, {.repeatable = true});
      const auto ran = co_await asked;
      if (!ran && ran.error().largest <= token)
        throw Wrong{"a fence has refused a token that is not stale"};
    }
    co_return nullptr;
  }

 private:
  Store& store_;
  Fence fence_;
  std::uint64_t last_ = 0;
};

}  // namespace

std::unique_ptr<SimLock> open_latch(Stores stores, const std::string& name, const Profile&) {
  return std::make_unique<SimLatch>(*stores.front(), name);
}

std::unique_ptr<SimLock> open_limiter(Stores stores, const std::string& name,
                                      const Profile& profile) {
  return std::make_unique<SimLimiter>(*stores.front(), name, profile);
}

std::unique_ptr<SimLock> open_fence(Stores stores, const std::string& name, const Profile&) {
  return std::make_unique<SimFence>(*stores.front(), name);
}

}  // namespace sluice::simulation
