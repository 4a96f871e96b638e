// What Latch promises on every Store, in real time.
#include <future>

#include "contract/stores.hpp"
#include "sluice/latch.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class LatchContract : public test::StoreContract {};
SLUICE_EVERY_STORE(LatchContract);

TEST_P(LatchContract, OpensAtZero) {
  Latch latch{store(), name("latch")};
  EXPECT_TRUE(latch.try_wait().get()) << "never set";
  EXPECT_TRUE(latch.try_set_count(3).get());
  EXPECT_FALSE(latch.try_set_count(3).get());
  EXPECT_FALSE(latch.try_wait().get());
  EXPECT_FALSE(latch.try_wait(20ms).get());
  EXPECT_EQ(latch.count_down().get(), 2);
  EXPECT_EQ(latch.count().get(), 2);
  EXPECT_EQ(latch.count_down(2).get(), 0);
  EXPECT_TRUE(latch.try_wait().get());
  EXPECT_EQ(latch.count_down().get(), 0);
}

TEST_P(LatchContract, LastCountDownWakesEveryWaiter) {
  Latch latch{store(), name("latch")};
  latch.try_set_count(2).get();
  std::vector<std::future<bool>> crowd;
  for (int i = 0; i < 4; ++i)
    crowd.push_back(std::async(std::launch::async, [&] { return latch.try_wait(1min).get(); }));
  latch.count_down().get();
  EXPECT_EQ(crowd.front().wait_for(50ms), std::future_status::timeout);
  latch.count_down().get();
  for (auto& waiting : crowd) {
    ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
    EXPECT_TRUE(waiting.get());
  }
}

TEST_P(LatchContract, ResetSetsTheCountAnew) {
  Latch latch{store(), name("latch")};
  latch.reset(2).get();
  latch.count_down().get();
  latch.reset(5).get();
  EXPECT_EQ(latch.count().get(), 5);
  latch.reset(0).get();
  EXPECT_TRUE(latch.try_wait().get());
}

TEST_P(LatchContract, PartCountsOnce) {
  Latch latch{store(), name("latch")};
  latch.try_set_count(2).get();
  EXPECT_EQ(latch.count_down_once("part").get(), 1);
  EXPECT_EQ(latch.count_down_once("part").get(), 1);
}

TEST_P(LatchContract, KeyOfAnotherKindIsAnError) {
  store().run({"RPUSH", name("latch"), "text"}).get();
  Latch latch{store(), name("latch")};
  try {
    (void)latch.count_down().get();
    FAIL() << "counted down a list";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
}

TEST_P(LatchContract, AnotherProgramOpensIt) {
  if (!has_second()) GTEST_SKIP() << "an embedded store is alone";
  const auto other = second();
  Latch here{store(), name("latch")};
  Latch there{*other, name("latch")};
  here.try_set_count(1).get();
  auto waiting = std::async(std::launch::async, [&] { return here.try_wait(1min).get(); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  there.count_down().get();
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace sluice
