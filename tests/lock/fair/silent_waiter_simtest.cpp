/// Waiters that are dead or stand still: two seconds each when their turn comes, and nobody polls.
#include "lock/fair/virtual_fair.hpp"

namespace sluice {
namespace {

using FairSilence = VirtualFair;

TEST_F(FairSilence, DeadProcessesAreSkippedByTheReleaseItself) {
  FairProcess here{*store_};
  auto held = here.mutex.acquire().get();
  for (int i = 0; i < 20; ++i) queue_up("dead:" + std::to_string(i), "sluice:inbox:of-nobody");
  Visitor visitor{here.mutex, 1h};
  held.release().get();
  EXPECT_TRUE(visitor.in());
  expect_nobody_waits();
}

TEST_F(FairSilence, F04_SilentHeadCostsTwoSecondsAndFewCommands) {
  const auto silent = silent_inbox("sluice:inbox:silent");
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  queue_up("silent:1", "sluice:inbox:silent");
  Visitor first{there.mutex, 1h};
  Visitor second{there.mutex, 1h};
  held.release().get();
  const auto asked = there.line.executed("lock/fair/acquire");
  EXPECT_EQ(field("stock", "silent:1"), "1");
  clock_.advance(2s);
  EXPECT_TRUE(first.in());
  EXPECT_FALSE(second.in());
  EXPECT_LE(there.line.executed("lock/fair/acquire"), asked + 4);
}

// simulation: --primitive fair --seeds 138994
TEST_F(FairSilence, TheProcessThatIsToLookMayStandStillToo) {
  const auto silent = silent_inbox("sluice:inbox:silent");
  const auto another = silent_inbox("sluice:inbox:another");
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  queue_up("silent:1", "sluice:inbox:silent");
  queue_up("silent:2", "sluice:inbox:another");
  queue_up("silent:3", "sluice:inbox:another");
  Visitor visitor{there.mutex, 1h};
  held.release().get();
  const auto asked = there.line.executed("lock/fair/acquire");
  clock_.advance(6s);
  EXPECT_TRUE(visitor.in()) << "three had their turn";
  EXPECT_LE(there.line.executed("lock/fair/acquire"), asked + 4);
}

TEST_F(FairSilence, TheProcessThatIsToLookMayBeDead) {
  const auto silent = silent_inbox("sluice:inbox:silent");
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  queue_up("silent:1", "sluice:inbox:silent");
  for (int i = 0; i < 20; ++i) queue_up("dead:" + std::to_string(i), "sluice:inbox:of-nobody");
  Visitor visitor{there.mutex, 1h};
  held.release().get();
  clock_.advance(2s);
  EXPECT_TRUE(visitor.in());
}

TEST_F(FairSilence, K08_ProcessThatStandsStillCostsTwoSecondsHoweverManyWaitersItHas) {
  const auto silent = silent_inbox("sluice:inbox:silent");
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  for (int i = 0; i < 100; ++i) queue_up("silent:" + std::to_string(i), "sluice:inbox:silent");
  Visitor visitor{there.mutex, 1h};
  held.release().get();
  clock_.advance(2s);
  EXPECT_TRUE(visitor.in());
  EXPECT_LE(there.line.executed("lock/fair/acquire"), 8U);
}

TEST_F(FairSilence, HolderAndHeadDiedAndTheNextLooksByItself) {
  FairProcess here{*store_};
  store_->run({"HSET", "stock", "dead:0", "1", "sluice:request", "r", "sluice:holder", "h"}).get();
  store_->run({"PEXPIRE", "stock", "5000"}).get();
  for (int i = 1; i <= 3; ++i) queue_up("dead:" + std::to_string(i), "sluice:inbox:of-nobody");
  Visitor visitor{here.mutex, 1h};
  clock_.advance(5s);
  EXPECT_TRUE(visitor.waits());
  clock_.advance(2s);
  EXPECT_TRUE(visitor.in());
}

TEST_F(FairSilence, WhoeverWasToLookMayLeave) {
  const auto silent = silent_inbox("sluice:inbox:silent");
  FairProcess here{*store_};
  FairProcess there{*store_};
  std::stop_source stop;
  auto held = here.mutex.acquire().get();
  queue_up("silent:1", "sluice:inbox:silent");
  Visitor looks{there.mutex, 1h, stop.get_token()};
  Visitor last{there.mutex, 1h};
  held.release().get();
  stop.request_stop();
  EXPECT_FALSE(looks.waits());
  clock_.advance(2s);
  EXPECT_TRUE(last.in());
}

// simulation: --primitive fair --seeds 106964
TEST_F(FairSilence, WhoeverWasToLookMayLeaveTheWatchToTheSilentProcess) {
  const auto silent = silent_inbox("sluice:inbox:silent");
  FairProcess here{*store_};
  FairProcess there{*store_};
  std::stop_source stop;
  auto held = here.mutex.acquire().get();
  queue_up("silent:1", "sluice:inbox:silent");
  Visitor looks{there.mutex, 1h, stop.get_token()};
  queue_up("silent:2", "sluice:inbox:silent");
  Visitor last{there.mutex, 1h};
  held.release().get();
  stop.request_stop();  // first in the queue is now another of the process that stands still
  clock_.advance(5s);
  EXPECT_TRUE(last.in());
}

TEST_F(FairSilence, WaiterThatStoodStillGoesToTheEnd) {
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  Visitor asleep{there.mutex, 1h};
  Visitor awake{here.mutex, 1h};
  const auto deaf = queue().front();
  there.line.plan = [](std::string_view) { return Fault::reply_late; };
  clock_.advance(31s);  // it looks, and the answer does not reach it
  held.release().get();
  clock_.advance(2s);
  EXPECT_TRUE(awake.in());
  there.line.plan = [](std::string_view) { return Fault::none; };
  there.line.let_go();
  clock_.advance(31s);
  EXPECT_TRUE(asleep.waits());
  EXPECT_EQ(queue(), std::vector{deaf});
  awake.held->release().get();
  EXPECT_TRUE(asleep.in());
}

TEST_F(FairSilence, LookOfOneGivesTheLockToWhoeverIsBeforeIt) {
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  Visitor first{there.mutex, 1h};
  held.release().get();
  first.held.reset();
  held = here.mutex.acquire().get();
  Visitor waits{there.mutex, 1h};
  store_->run({"DEL", "stock"}).get();  // a hold that vanished
  EXPECT_FALSE(here.mutex.try_acquire().get());
  EXPECT_TRUE(waits.in());
}

TEST_F(FairSilence, W02_HoldOfADeadProcessEndsWithItsLeaseAndTheFirstGetsIn) {
  FairProcess here{*store_};
  store_->run({"HSET", "stock", "dead:0", "1", "sluice:request", "r", "sluice:holder", "h"}).get();
  store_->run({"PEXPIRE", "stock", "500"}).get();
  Visitor first{here.mutex, 1h};
  Visitor second{here.mutex, 1h};
  clock_.advance(502ms);
  EXPECT_TRUE(first.in());
  EXPECT_TRUE(second.waits());
}

}  // namespace
}  // namespace sluice
