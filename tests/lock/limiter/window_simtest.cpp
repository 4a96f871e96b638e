/// S04: never more than the rate in any window, and no drift, whatever comes when.
#include <rapidcheck.h>

#include <list>

#include "lock/limiter/virtual_limiter.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// What was granted when, by the right clock.
struct Grant {
  SteadyTime when;
  std::int64_t permits;
};

/// The most permits in any half-open window of the length of `interval`.
std::int64_t fullest_window(const std::vector<Grant>& grants, microseconds interval) {
  std::int64_t inside = 0;
  std::int64_t most = 0;
  for (std::size_t first = 0, last = 0; last < grants.size(); ++last) {
    inside += grants[last].permits;
    while (grants[last].when - grants[first].when >= interval) inside -= grants[first++].permits;
    most = std::max(most, inside);
  }
  return most;
}

TEST(FullestWindow, IsFoundWhereverItBegins) {
  const SteadyTime zero{};
  const std::vector<Grant> grants{
      {zero, 1}, {zero + 900ms, 2}, {zero + 1000ms, 3}, {zero + 1899ms, 1}};
  EXPECT_EQ(fullest_window(grants, 1000ms), 6);
  EXPECT_EQ(fullest_window(grants, 1001ms), 6);
  EXPECT_EQ(fullest_window(grants, 100ms), 3);
  EXPECT_EQ(fullest_window(grants, 101ms), 5);
}

struct Arrival {
  microseconds after;
  std::int64_t permits;
  milliseconds wait;
  int program;
};

class LimiterWindow {
 public:
  explicit LimiterWindow(const RateLimiterOptions& options)
      : limiters_{RateLimiter{right_, "stock", options}, RateLimiter{fast_, "stock", options},
                  RateLimiter{slow_, "stock", options}} {}

  void arrive(const Arrival& arrival) {
    clock_.advance(arrival.after);
    spawn(visit(limiters_[static_cast<std::size_t>(arrival.program)], arrival));
  }
  void settle(microseconds by) { clock_.advance(by); }

  const std::vector<Grant>& grants() const { return grants_; }
  std::int64_t available() { return limiters_[0].available().get(); }
  int unanswered() const { return unanswered_; }

 private:
  Task<void> visit(RateLimiter& limiter, Arrival arrival) {
    ++unanswered_;
    auto acquiring = limiter.try_acquire(arrival.permits, arrival.wait);
    const auto outcome = co_await acquiring;
    if (outcome) grants_.push_back({clock_.steady(), arrival.permits});
    --unanswered_;
  }

  VirtualClock clock_;
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &clock_});
  SkewedStore right_{*store_, 0s};
  SkewedStore fast_{*store_, 5s};
  SkewedStore slow_{*store_, -5s};
  std::array<RateLimiter, 3> limiters_;
  std::vector<Grant> grants_;
  int unanswered_ = 0;
};

TEST(RateLimiterWindow, S04_NeverAboveTheRateInAnyWindow) {
  rc::check("for any rate, any arrivals, and clients whose clocks are 5 s wrong", [] {
    const RateLimiterOptions options{
        .rate = *rc::gen::inRange(1, 20),
        .interval = milliseconds{*rc::gen::inRange(1, 2000)},
    };
    const auto interval_us = static_cast<int>(microseconds{options.interval}.count());
    LimiterWindow window{options};
    const int visits = *rc::gen::inRange(1, 60);
    for (int i = 0; i < visits; ++i)
      window.arrive({.after = microseconds{*rc::gen::inRange(0, interval_us)},
                     .permits = *rc::gen::inRange<std::int64_t>(1, options.rate + 1),
                     .wait = milliseconds{*rc::gen::element(0, 1, 100, 5000)},
                     .program = *rc::gen::inRange(0, 3)});
    window.settle(10s);
    RC_ASSERT(window.unanswered() == 0);
    RC_ASSERT(!window.grants().empty());
    RC_ASSERT(fullest_window(window.grants(), options.interval) <= options.rate);
    window.settle(options.interval);
    RC_ASSERT(window.available() == options.rate);
  });
}

Task<void> be_hungry(RateLimiter& limiter, Clock& clock, std::vector<Grant>& grants,
                     SteadyTime until) {
  while (clock.steady() < until) {
    auto acquiring = limiter.acquire();
    co_await acquiring;
    grants.push_back({clock.steady(), 1});
  }
}

TEST(RateLimiterWindow, S04_NoDriftInAnHour) {
  VirtualClock clock;
  const auto store = engine::open_embedded({.clock = &clock});
  RateLimiter limiter{*store, "stock", {.rate = 7, .interval = 1s}};
  std::vector<Grant> grants;
  constexpr int hour = test::rounds(3600);
  const auto end = clock.steady() + std::chrono::seconds{hour};
  for (int i = 0; i < 3; ++i) spawn(be_hungry(limiter, clock, grants, end));
  for (int second = 0; second < hour; ++second) {
    clock.advance(333'333us);
    clock.advance(666'667us);
  }
  clock.advance(2s);
  EXPECT_LE(fullest_window(grants, 1s), 7);
  EXPECT_GE(grants.size(), 7U * hour - hour / 100) << "but for what is left to Redisson";
  EXPECT_LE(grants.size(), 7U * (hour + 1) + 3);
  clock.advance(1s);
  EXPECT_EQ(limiter.available().get(), 7);
  EXPECT_EQ(clock.pending_timers(), 0U);
}

}  // namespace
}  // namespace sluice
