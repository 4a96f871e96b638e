// TurnMutex: one holder at a time, and no waiter is left asleep.
#include "engine/embedded/turn_mutex.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::engine {
namespace {

using Lock = std::lock_guard<TurnMutex>;

TEST(TurnMutex, OneAtATime) {
  constexpr int threads = 6;
  constexpr int each = 20'000;
  TurnMutex mutex;
  int inside = 0;
  int total = 0;
  bool together = false;
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < threads; ++i)
      crew.emplace_back([&] {
        for (int n = 0; n < each; ++n) {
          const Lock lock{mutex};
          together = together || ++inside != 1;
          ++total;
          --inside;
        }
      });
  }
  EXPECT_FALSE(together);
  EXPECT_EQ(total, threads * each);
}

TEST(TurnMutex, EverybodyWhoSleepsIsWoken) {
  constexpr int threads = 6;
  constexpr int rounds = 20;
  TurnMutex mutex;
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> coming{0};
    int done = 0;
    std::vector<std::jthread> crew;
    {
      const Lock lock{mutex};  // a section so long that its waiters sleep
      for (int i = 0; i < threads; ++i)
        crew.emplace_back([&] {
          ++coming;
          const Lock own{mutex};
          ++done;
        });
      while (coming < threads) std::this_thread::yield();
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{2};
      while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
      EXPECT_EQ(done, 0);
    }
    crew.clear();  // joins: hangs where one was forgotten
    EXPECT_EQ(done, threads);
  }
}

}  // namespace
}  // namespace sluice::engine
