/// Processes that hold or wait, and are killed or stopped.
#include "lock/fair/server_fair.hpp"

namespace sluice {
namespace {

class FairFailure : public ServerFair {
 protected:
  /// Holds, lets a worker stand at the head of the queue and one of ours behind it, does `what` to
  /// the worker, and releases. How long it took until ours was in, and how many scripts.
  struct Outcome {
    std::chrono::nanoseconds took{};
    int scripts = 0;
  };
  Outcome release_to_a_head_that(const std::function<void(test::Process&)>& what) {
    auto held = mutex_.acquire().get();
    auto head = fair_worker();
    await_queue(1);
    auto behind = enter_and_leave(mutex_);
    await_queue(2);
    what(head);
    const int before = scripts_run();
    const auto released = std::chrono::steady_clock::now();
    held.release().get();
    const auto entered = behind.get();
    return {.took = entered - released, .scripts = scripts_run() - before};
  }

  FairMutex mutex_{*store_, "stock"};
};

TEST_F(FairFailure, F04_KilledHeadOfTheQueueIsSkippedByTheRelease) {
  EXPECT_TRUE(comes_within(1s, [&] {
    const auto outcome = release_to_a_head_that([](test::Process& head) { head.kill(); });
    return outcome.scripts <= 3 ? outcome.took : 1h;
  }));
  EXPECT_EQ(side_.command({"LLEN", queue_}), Value::integer(0));
}

TEST_F(FairFailure, F04_StoppedHeadOfTheQueueCostsTwoSeconds) {
  EXPECT_TRUE(comes_within(2s, [&] {
    const auto outcome = release_to_a_head_that([](test::Process& head) { head.stop(); });
    EXPECT_GT(outcome.took, 1s) << "it had its time";
    return outcome.scripts <= 6 ? outcome.took : 1h;
  }));
}

TEST_F(FairFailure, F04_KilledAfterItWasGivenTheLock) {
  auto held = mutex_.acquire().get();
  auto head = fair_worker();
  await_queue(1);
  auto behind = enter_and_leave(mutex_);
  await_queue(2);
  held.release().get();
  entered();
  head.kill();  // it may have confirmed its hold: then that ends with its lease
  const auto left = std::chrono::milliseconds{side_.command({"PTTL", "stock"}).as_integer()};
  const auto killed = std::chrono::steady_clock::now();
  if (left > 2s) {
    EXPECT_TRUE(mutex_.force_release().get());
  }
  EXPECT_LT(behind.get() - killed, 10s);
}

TEST_F(FairFailure, W02_KilledHolderFreesWithinItsLease) {
  auto holder = fair_worker(500);
  entered();
  EXPECT_FALSE(mutex_.try_acquire().get());
  auto waiting = enter_and_leave(mutex_);
  await_queue(1);
  holder.kill();
  const auto killed = std::chrono::steady_clock::now();
  EXPECT_LT(waiting.get() - killed, 10s);
}

TEST_F(FairFailure, P03_ConnectionThatIsCutWhileWaitingCostsNoWait) {
  auto held = mutex_.acquire().get();
  const auto other = open(server_.url());
  FairMutex there{*other, "stock"};
  auto waiting = enter_and_leave(there);
  await_queue(1);
  side_.command({"CLIENT", "KILL", "TYPE", "pubsub"});
  held.release().get();
  const auto released = std::chrono::steady_clock::now();
  EXPECT_LT(waiting.get() - released, 10s);
}

TEST_F(FairFailure, ServerThatComesBackEmptyForgetsTheQueueAndWaitersStandAgain) {
  FairMutex brief{*store_, "stock", {.lease = 2s}};
  std::optional<Held> held = brief.acquire().get();
  const auto other = open(server_.url());
  FairMutex there{*other, "stock", {.lease = 2s}};
  auto waiting = enter_and_leave(there);
  await_queue(1);
  server_.restart(false);
  EXPECT_EQ(waiting.wait_for(20s), std::future_status::ready);
  held.reset();
}

}  // namespace
}  // namespace sluice
