#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "proxy/flow/pool.hpp"

namespace sluice::proxy::flow {
namespace {

TEST(ClientLimit, GivesAPlaceBack) {
  ClientLimit client_limit;
  client_limit.set_most(2);
  EXPECT_TRUE(client_limit.enter());
  EXPECT_FALSE(client_limit.enter(1)) << "who asks for less gets less";
  EXPECT_TRUE(client_limit.enter());
  EXPECT_FALSE(client_limit.enter());
  client_limit.leave();
  EXPECT_TRUE(client_limit.enter());
}

TEST(ClientLimit, OfManyAtOnceAsManyEnterAsThereArePlaces) {
  for (int round = 0; round < 200; ++round) {
    ClientLimit client_limit;
    std::atomic<int> ready{0}, inside{0};
    {
      std::vector<std::jthread> doors;
      for (int i = 0; i < 4; ++i)
        doors.emplace_back([&] {
          ++ready;
          while (ready < 4) std::this_thread::yield();
          for (int client = 0; client < 50; ++client) inside += client_limit.enter(60);
        });
    }
    ASSERT_EQ(inside, 60);
  }
}

}  // namespace
}  // namespace sluice::proxy::flow
