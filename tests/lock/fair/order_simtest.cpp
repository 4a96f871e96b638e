/// First come, first served: whoever waits, of whatever process, and nobody past them.
#include <random>

#include "lock/fair/virtual_fair.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using FairOrder = VirtualFair;

TEST_F(FairOrder, F01_EightStaggeredWaitersWithoutAnUnlockEnterInOrder) {
  const FairMutexOptions options{.lease = 1s, .watchdog = false};
  std::deque<FairProcess> processes;
  std::deque<Visitor> visitors;
  for (int i = 0; i < 8; ++i) {
    processes.emplace_back(*store_, options);
    visitors.emplace_back(processes.back().mutex, 1h);
    clock_.advance(10ms);
  }
  std::vector<int> order;
  std::vector<bool> seen(8);
  for (auto left = 11s / 10ms; left > 0 && order.size() < 8; --left) {
    for (std::size_t i = 0; i < 8; ++i) {
      if (!visitors[i].in() || seen[i]) continue;
      seen[i] = true;
      order.push_back(static_cast<int>(i));
    }
    clock_.advance(10ms);
  }
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
  std::size_t asked = 0;
  for (auto& process : processes) asked += process.line.executed("lock/fair/acquire");
  EXPECT_LE(asked, 160U) << "eight who wait for up to eight seconds";
}

TEST_F(FairOrder, F02_FiveHundredWaitersHaveTheirTurnsInOrder) {
  FairMutex mutex{line_, "stock"};
  std::vector<int> order;
  std::vector<FencingToken> tokens;
  const auto visit = [&](int number) -> Task<void> {
    auto acquiring = mutex.acquire();
    Held held = co_await acquiring;
    order.push_back(number);
    tokens.push_back(held.token());
    auto working = sleep_until(clock_, clock_.steady() + 200ms);
    co_await working;
    auto releasing = held.release();
    co_await releasing;
  };
  for (int i = 0; i < 500; ++i) spawn(visit(i));
  const SteadyTime began = clock_.steady();
  while (order.size() < 500 && clock_.steady() < began + 3min) clock_.advance(200ms);
  EXPECT_LE(clock_.steady() - began, 500 * 200ms) << "no time is lost between two of them";
  clock_.advance(200ms);
  EXPECT_EQ(order.size(), 500U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_TRUE(std::ranges::is_sorted(tokens));
  EXPECT_LE(line_.executed("lock/fair/acquire"), 500U + 1 + 4 * 500) << "a look in 30 s each";
  EXPECT_FALSE(exists("stock"));
  expect_nobody_waits();
}

TEST_F(FairOrder, P05_AHundredProcessesGetTheLockInTurnForOneCommandEach) {
  FairMutex first{far_, "stock"};
  auto held = first.acquire().get();
  std::deque<FairProcess> processes;
  std::deque<Visitor> visitors;
  for (int i = 0; i < 100; ++i) {
    processes.emplace_back(*store_);
    visitors.emplace_back(processes.back().mutex, 1h);
  }
  const auto commands = [&] {
    std::size_t all = 0;
    for (auto& process : processes)
      for (const auto* name : {"lock/fair/acquire", "lock/fair/release", "lock/mutex/renew"})
        all += process.line.executed(name);
    return all;
  };
  auto before = commands();
  held.release().get();
  for (auto& visitor : visitors) {
    ASSERT_TRUE(visitor.in());
    EXPECT_LE(commands() - before, 1U) << "the release before it";
    before = commands();
    clock_.advance(5ms);
    visitor.held->release().get();
  }
  expect_nobody_waits();
}

TEST_F(FairOrder, P05_AHundredProcessesBehindHoldsOfSecondsLookSeldom) {
  FairMutex first{far_, "stock"};
  auto before_all = first.acquire().get();
  std::deque<FairProcess> processes;
  std::deque<Visitor> visitors;
  for (int i = 0; i < 100; ++i) {
    processes.emplace_back(*store_);
    visitors.emplace_back(processes.back().mutex, 1h);
  }
  std::optional<Held> held = std::move(before_all);
  const auto looks = [&] {
    std::size_t all = 0;
    for (auto& process : processes) all += process.line.executed("lock/fair/acquire");
    return all;
  };
  const auto before = looks();
  for (int turn = 0; turn < 9; ++turn) {
    auto& next = visitors[static_cast<std::size_t>(turn)];
    held.reset();
    ASSERT_TRUE(next.in());
    held = std::move(next.held);
    clock_.advance(3s);  // long enough that those look who were asked to
  }
  EXPECT_LE(looks() - before, 9U * 3U * 12U) << "a dozen a second, whatever the number";
}

TEST_F(FairOrder, ReleaseGivesTheLockToTheFirstAndTellsHim) {
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  Visitor first{there.mutex, 1h};
  Visitor second{here.mutex, 1h};
  const auto asked = there.line.executed("lock/fair/acquire");
  held.release().get();
  ASSERT_TRUE(first.in());
  EXPECT_TRUE(second.waits());
  EXPECT_EQ(there.line.executed("lock/fair/acquire"), asked) << "nobody had to ask";
  EXPECT_GT(first.held->token(), held.token());
  EXPECT_EQ(field("stock", first.held->owner().text), "1");
  first.held->release().get();
  EXPECT_TRUE(second.in());
}

TEST_F(FairOrder, NobodyGetsPastAWaiter) {
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  Visitor waiter{there.mutex, 1h};
  there.line.plan = [](std::string_view) { return Fault::request_late; };  // it stands still
  held.release().get();
  ASSERT_TRUE(waiter.in());
  waiter.held.reset();  // on its way
  EXPECT_FALSE(here.mutex.try_acquire().get());
  there.line.let_go();
  EXPECT_TRUE(here.mutex.try_acquire().get());
}

TEST_F(FairOrder, OneLookLeavesNoPlaceInTheQueue) {
  FairProcess here{*store_};
  FairProcess there{*store_};
  const auto held = here.mutex.acquire().get();
  EXPECT_FALSE(there.mutex.try_acquire().get());
  EXPECT_FALSE(there.mutex.try_acquire(0ms).get());
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(there.mutex.try_acquire(1h, stop.get_token()).get());
  EXPECT_EQ(there.line.executed("lock/fair/acquire"), 3U);
  expect_nobody_waits();
}

TEST_F(FairOrder, WhoeverGivesUpLeavesNothingBehindAndLosesNobodysPlace) {
  FairProcess here{*store_};
  auto held = here.mutex.acquire().get();
  std::stop_source stop;
  Visitor patient{here.mutex, 1h};
  Visitor hasty{here.mutex, 3s};
  Visitor stopped{here.mutex, 1h, stop.get_token()};
  Visitor last{here.mutex, 1h};
  ASSERT_EQ(queue().size(), 4U);
  const std::string end = queue().back();
  stop.request_stop();
  EXPECT_FALSE(stopped.waits());
  EXPECT_EQ(queue().size(), 3U);
  clock_.advance(2999ms);
  EXPECT_TRUE(hasty.waits());
  clock_.advance(1ms);
  EXPECT_FALSE(hasty.waits());
  EXPECT_FALSE(hasty.in());
  ASSERT_EQ(queue().size(), 2U);
  EXPECT_LE(patience_with(end), 30s + 2 * patience);
  EXPECT_GE(patience_with(end), 2 * patience - 3s);
  held.release().get();
  ASSERT_TRUE(patient.in());
  patient.held->release().get();
  ASSERT_TRUE(last.in());
  expect_nobody_waits();
}

TEST_F(FairOrder, F03_DeadlinesDoNotDriftAndDoNotRunOut) {
  constexpr auto lease = 30s;
  std::deque<FairProcess> processes;
  for (int i = 0; i < 4; ++i) processes.emplace_back(*store_);
  std::mt19937 dice{20261121};
  std::list<Visitor> visitors;
  std::list<std::stop_source> stops;
  for (int step = 0; step < test::rounds(3000); ++step) {
    if (visitors.size() < 12) {
      auto& process = processes[dice() % processes.size()];
      visitors.emplace_back(process.mutex, 1h * 24, stops.emplace_back().get_token());
    }
    if (dice() % 7 == 0) std::next(stops.begin(), dice() % stops.size())->request_stop();
    if (dice() % 5 == 0) std::erase_if(visitors, [](Visitor& visitor) { return visitor.in(); });
    std::erase_if(visitors, [](Visitor& visitor) { return !visitor.waits() && !visitor.in(); });
    clock_.advance(std::chrono::milliseconds{dice() % 20'000});
    int place = 0;
    for (const auto& owner : queue()) {
      ++place;
      ASSERT_LE(patience_with(owner), lease + place * patience) << "place " << place;
      ASSERT_GE(patience_with(owner), place * patience - 31s) << "place " << place;
    }
  }
  for (auto& stop : stops) stop.request_stop();
  std::erase_if(visitors, [](Visitor&) { return true; });
  expect_nobody_waits();
}

TEST_F(FairOrder, GrantByMessageBecomesALeaseWhenItWasTakenUp) {
  FairProcess here{*store_};
  for (const bool watched : {true, false}) {
    FairProcess there{*store_, {.watchdog = watched}};
    auto held = here.mutex.acquire().get();
    Visitor visitor{there.mutex, 1h};
    held.release().get();
    ASSERT_TRUE(visitor.in());
    clock_.advance(watched ? 600ms : 0ms);
    EXPECT_GT(ttl("stock"), 29s);
    EXPECT_GT(visitor.held->valid_for(), 28s);
  }
}

TEST_F(FairOrder, ForcedReleaseGivesTheLockToTheFirst) {
  FairProcess here{*store_};
  FairProcess there{*store_};
  auto held = here.mutex.acquire().get();
  Visitor visitor{there.mutex, 1h};
  EXPECT_TRUE(here.mutex.force_release().get());
  EXPECT_FALSE(held.valid()) << "it is told at once where it was forced";
  EXPECT_TRUE(visitor.in());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_TRUE(visitor.held->valid());
  visitor.held.reset();
  EXPECT_FALSE(here.mutex.force_release().get());
}

}  // namespace
}  // namespace sluice
