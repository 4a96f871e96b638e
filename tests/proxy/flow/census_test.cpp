#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "proxy/flow/pool.hpp"

namespace sluice::proxy {
namespace {

TEST(ClientCensus, GivesAPlaceBack) {
  ClientCensus census;
  census.set_most(2);
  EXPECT_TRUE(census.enter());
  EXPECT_FALSE(census.enter(1)) << "who asks for less gets less";
  EXPECT_TRUE(census.enter());
  EXPECT_FALSE(census.enter());
  census.leave();
  EXPECT_TRUE(census.enter());
}

TEST(ClientCensus, OfManyAtOnceAsManyEnterAsThereArePlaces) {
  for (int round = 0; round < 200; ++round) {
    ClientCensus census;
    std::atomic<int> ready{0}, inside{0};
    {
      std::vector<std::jthread> doors;
      for (int i = 0; i < 4; ++i)
        doors.emplace_back([&] {
          ++ready;
          while (ready < 4) std::this_thread::yield();
          for (int client = 0; client < 50; ++client) inside += census.enter(60);
        });
    }
    ASSERT_EQ(inside, 60);
  }
}

}  // namespace
}  // namespace sluice::proxy
