/// Many locks of distinct names in one process: what one more of them costs.
#include <list>

#include "lock/virtual_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/semaphore.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

/// K13.
class ManyNames : public VirtualLock {
 protected:
  /// How much longer ten times as many take than so many, each of them on a server of its own; the
  /// least of three.
  template <class Play>
  static double growth(int many, Play play) {
    const auto time_of = [&](int names) {
      VirtualClock clock;
      const auto store = engine::open_embedded({.clock = &clock});
      const auto began = std::chrono::steady_clock::now();
      play(*store, names);
      return std::chrono::duration<double>{std::chrono::steady_clock::now() - began}.count();
    };
    double least = 1e9;
    for (int i = 0; i < 3; ++i) least = std::min(least, time_of(10 * many) / time_of(many));
    return least;
  }
  static std::string name(int number) { return "stock" + std::to_string(number); }

  static constexpr int few = test::is_sanitized ? 300 : 1000;
  static constexpr double most = 40;  // ten times as many; a scan of all would make it a hundred
};

TEST_F(ManyNames, K13_MutexesOfOneOwner) {
  EXPECT_LT(growth(few,
                   [](Store& store, int names) {
                     const Owner owner;
                     std::list<Mutex> locks;
                     std::vector<Held> holds;
                     for (int i = 0; i < names; ++i)
                       holds.push_back(locks.emplace_back(store, name(i)).acquire(owner).get());
                     for (auto& hold : holds) hold.release().get();
                   }),
            most);
}

TEST_F(ManyNames, K13_MutexesThatAreMadeAndGo) {
  EXPECT_LT(growth(few,
                   [](Store& store, int names) {
                     const Mutex first{store, "first"};  // keeps what all share
                     for (int i = 0; i < names; ++i) (void)Mutex{store, name(i)}.acquire().get();
                   }),
            most);
}

TEST_F(ManyNames, K13_Semaphores) {
  EXPECT_LT(growth(few,
                   [](Store& store, int names) {
                     std::list<Semaphore> all;
                     std::vector<Held> holds;
                     for (int i = 0; i < names; ++i) {
                       auto& desks = all.emplace_back(store, name(i));
                       desks.try_set_permits(1).get();
                       holds.push_back(desks.acquire().get());
                     }
                   }),
            most);
}

TEST_F(ManyNames, K13_RateLimiters) {
  EXPECT_LT(growth(few,
                   [](Store& store, int names) {
                     std::list<RateLimiter> all;
                     for (int i = 0; i < names; ++i) {
                       const RateLimiterOptions options{.rate = 2, .interval = 1s};
                       all.emplace_back(store, name(i), options).try_acquire().get();
                     }
                   }),
            most);
}

TEST_F(ManyNames, K13_HoldsThatEndOneAfterAnother) {
  EXPECT_LT(growth(few,
                   [](Store& store, int names) {
                     auto& clock = dynamic_cast<VirtualClock&>(store.clock());
                     std::list<Mutex> locks;
                     std::vector<Held> holds;
                     const MutexOptions options{.lease = 1h, .watchdog = false};
                     for (int i = 0; i < names; ++i) {
                       holds.push_back(locks.emplace_back(store, name(i), options).acquire().get());
                       clock.advance(1ms);
                     }
                     for (int i = 0; i < names; ++i) clock.advance(1ms);
                     clock.advance(1h);
                     for (const auto& hold : holds) EXPECT_FALSE(hold.valid());
                   }),
            most);
}

TEST_F(ManyNames, K13_OneCommandRenewsAHundred) {
  std::list<Mutex> locks;
  std::vector<Held> holds;
  for (int i = 0; i < 1000; ++i)
    holds.push_back(locks.emplace_back(line_, name(i)).acquire().get());
  const auto before = line_.executed("lock/mutex/renew");
  clock_.advance(11s);
  EXPECT_LE(line_.executed("lock/mutex/renew") - before, 2 * 10U) << "two beats at most";
  for (const auto& hold : holds) ASSERT_TRUE(hold.valid());
}

}  // namespace
}  // namespace sluice
