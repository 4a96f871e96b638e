#include "front/place_limit.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sluice::proxy::flow {
namespace {

TEST(PlaceLimit, GivesAPlaceBack) {
  front::PlaceLimit limit;
  limit.set_most(2);
  EXPECT_TRUE(limit.enter());
  EXPECT_FALSE(limit.enter(1)) << "who asks for less gets less";
  EXPECT_TRUE(limit.enter());
  EXPECT_FALSE(limit.enter());
  limit.leave();
  EXPECT_TRUE(limit.enter());
}

TEST(PlaceLimit, OfManyAtOnceAsManyEnterAsThereArePlaces) {
  for (int round = 0; round < 200; ++round) {
    front::PlaceLimit limit;
    std::atomic<int> ready{0}, inside{0};
    {
      std::vector<std::jthread> doors;
      for (int i = 0; i < 4; ++i)
        doors.emplace_back([&] {
          ++ready;
          while (ready < 4) std::this_thread::yield();
          for (int client = 0; client < 50; ++client) inside += limit.enter(60);
        });
    }
    ASSERT_EQ(inside, 60);
  }
}

}  // namespace
}  // namespace sluice::proxy::flow
