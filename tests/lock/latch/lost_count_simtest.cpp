/// Count-downs and settings that are lost, repeated or late.
#include <array>
#include <random>

#include "lock/latch/virtual_latch.hpp"

namespace sluice {
namespace {

class LatchLostReply : public VirtualLatch {};

TEST_F(LatchLostReply, T04_CountDownAskedAgainCountsOnce) {
  latch_.try_set_count(3).get();
  fail_next("lock/latch/count_down", Fault::reply_lost);
  EXPECT_EQ(latch_.count_down().get(), 2);
  EXPECT_EQ(line_.executed("lock/latch/count_down"), 2U);
  EXPECT_EQ(latch_.count().get(), 2);
}

TEST_F(LatchLostReply, T04_EveryCallDoubledCountsOnce) {
  line_.plan = [](std::string_view) { return Fault::doubled; };
  EXPECT_TRUE(latch_.try_set_count(100).get()) << "the copy is the answer";
  for (int left = 99; left >= 0; --left) ASSERT_EQ(latch_.count_down().get(), left);
  EXPECT_TRUE(latch_.try_wait().get());
}

TEST_F(LatchLostReply, CopyOfTheLastCountDownDoesNotTouchTheNextCount) {
  latch_.try_set_count(1).get();
  line_.plan = [&](std::string_view call) {
    return call == "lock/latch/count_down" ? Fault::doubled : Fault::none;
  };
  EXPECT_EQ(latch_.count_down_once("part").get(), 0);
  heal();
  latch_.try_set_count(2).get();
  EXPECT_EQ(latch_.count().get(), 2);
}

TEST_F(LatchLostReply, CountDownOfAnOpenLatchDoesNotCountLater) {
  EXPECT_EQ(latch_.count_down_once("part").get(), 0);
  latch_.try_set_count(2).get();
  EXPECT_EQ(latch_.count().get(), 2);
  EXPECT_EQ(latch_.count_down_once("part").get(), 1) << "the count is another one";
}

TEST_F(LatchLostReply, PartsCountOnceEach) {
  latch_.try_set_count(2).get();
  EXPECT_EQ(latch_.count_down_once("a").get(), 1);
  EXPECT_EQ(latch_.count_down_once("a").get(), 1);
  EXPECT_EQ(latch_.count_down_once("b").get(), 0);
}

TEST_F(LatchLostReply, UnknownCountDownIsAnErrorThatSaysSo) {
  latch_.try_set_count(2).get();
  fail_next("lock/latch/count_down", Fault::cut_off);
  try {
    (void)latch_.count_down_once("part").get();
    FAIL() << "counted without a reply";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.effect(), Effect::unknown);
  }
  EXPECT_EQ(latch_.count_down_once("part").get(), 1) << "asked again";
}

TEST_F(LatchLostReply, CopyOfAResetDoesNotUndoWhatWasCountedSince) {
  fail_next("lock/latch/set", Fault::reply_lost);
  latch_.reset(3).get();
  EXPECT_EQ(line_.executed("lock/latch/set"), 2U);
  EXPECT_EQ(latch_.count().get(), 3);
}

TEST_F(LatchLostReply, RequestsAreForgottenAfterTheirTime) {
  Latch latch{line_, "short", {.remember = 10s}};
  latch.try_set_count(5).get();
  EXPECT_EQ(latch.count_down_once("part").get(), 4);
  clock_.advance(10s);
  EXPECT_EQ(latch.count_down_once("part").get(), 4);
  clock_.advance(10s + 2ms);
  EXPECT_EQ(latch.count_down_once("part").get(), 3);
  clock_.advance(1min);
  EXPECT_FALSE(exists("sluice_latch_requests:{short}"));
}

/// Twenty parts over a bad line, each reported until it is answered, while a waiter looks on.
TEST_F(LatchLostReply, RandomFaultsCountEachPartOnce) {
  constexpr std::array faults{Fault::none,         Fault::none,       Fault::refused,
                              Fault::request_lost, Fault::reply_lost, Fault::cut_off,
                              Fault::doubled};
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 dice{seed};
    latch_.try_set_count(20).get();
    LatchWaiter waiter{latch_, 1h};
    line_.plan = [&](std::string_view call) {
      return call == "lock/latch/count_down" ? faults[dice() % faults.size()] : Fault::none;
    };
    for (int part = 0; part < 20; ++part) {
      ASSERT_TRUE(waiter.waits()) << "seed " << seed << ", part " << part;
      const auto name = std::to_string(seed) + '/' + std::to_string(part);
      std::optional<std::int64_t> left;
      while (!left) {
        try {
          left = latch_.count_down_once(name).get();
        } catch (const Error& failure) {
          ASSERT_EQ(failure.errc(), Errc::connection);
        }
      }
      ASSERT_EQ(*left, 19 - part) << "seed " << seed;
    }
    heal();
    ASSERT_TRUE(waiter.through()) << "seed " << seed;
  }
}

TEST_F(LatchLostReply, LK11_ARequestIsRememberedThoughTheClockWasSetBack) {
  Latch latch{line_, "small", {.most_remembered = 3}};
  latch.try_set_count(100).get();
  for (int i = 0; i < 3; ++i) latch.count_down().get();
  clock_.jump_wall(-1min);
  fail_next("lock/latch/count_down", Fault::doubled);
  EXPECT_EQ(latch.count_down().get(), 96) << "counted once, though the memory was full";
}

TEST_F(LatchLostReply, RequestsAreBounded) {
  Latch latch{line_, "small", {.most_remembered = 10}};
  latch.try_set_count(100).get();
  for (int i = 0; i < 50; ++i) {
    clock_.advance(1ms);
    latch.count_down_once("part " + std::to_string(i)).get();
  }
  EXPECT_EQ(store_->run({"ZCARD", "sluice_latch_requests:{small}"}).get().as_integer(), 10);
  EXPECT_EQ(latch.count_down_once("part 49").get(), 50) << "the youngest are kept";
}

}  // namespace
}  // namespace sluice
