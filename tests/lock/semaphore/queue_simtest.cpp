/// Who waits for permits, in what order, and what wakes it.
#include <algorithm>
#include <list>
#include <random>

#include "lock/semaphore/virtual_semaphore.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

class PermitQueue : public VirtualSemaphore {
 protected:
  /// What a Java program does with permits.
  void java_takes(std::string_view permits) { store_->run({"DECRBY", "desks", permits}).get(); }
  void java_releases(std::string_view permits) {
    const auto value = std::to_string(store_->run({"INCRBY", "desks", permits}).get().as_integer());
    store_->run({"PUBLISH", "redisson_sc:{desks}", value}).get();
  }
  std::size_t waiting() {
    return static_cast<std::size_t>(
        store_->run({"ZCARD", "sluice_semaphore_line:{desks}"}).get().as_integer());
  }

  Semaphore desks_{line_, "desks"};
};

TEST_F(PermitQueue, ReleaseServesAsManyHeadsAsItCan) {
  desks_.try_set_permits(4).get();
  auto all = desks_.acquire(4).get();
  std::list<Guest> guests;
  for (const std::uint32_t permits : {1U, 2U, 3U, 1U}) guests.emplace_back(desks_, permits, 1h);
  const auto asked = line_.executed("lock/semaphore/acquire");
  all.release().get();
  std::vector<bool> in;
  for (const auto& guest : guests) in.push_back(guest.in());
  EXPECT_EQ(in, (std::vector<bool>{true, true, false, false}))
      << "the third wants what is not there";
  EXPECT_EQ(line_.executed("lock/semaphore/acquire"), asked) << "they are told, and do not ask";
  EXPECT_EQ(desks_.available().get(), 1);
  guests.front().held.reset();
  EXPECT_FALSE(guests.back().in());
  std::next(guests.begin())->held.reset();
  for (const auto& guest : guests) EXPECT_FALSE(guest.waits());
}

TEST_F(PermitQueue, BigRequestIsNotStarvedBySmallOnes) {
  desks_.try_set_permits(3).get();
  auto one = desks_.acquire(1).get();
  Guest big{desks_, 3, 1h};
  EXPECT_FALSE(desks_.try_acquire(1).get()) << "two are free, but another is first";
  Guest small{desks_, 1, 1h};
  EXPECT_FALSE(small.in());
  one.release().get();
  EXPECT_TRUE(big.in());
  EXPECT_FALSE(small.in());
  big.held.reset();
  EXPECT_TRUE(small.in());
}

TEST_F(PermitQueue, HandedPermitsAreConfirmedAndKept) {
  desks_.try_set_permits(1).get();
  auto first = desks_.acquire().get();
  Guest second{desks_, 1, 1h};
  first.release().get();
  ASSERT_TRUE(second.in());
  EXPECT_LE(second.held->valid_for(), 2s) << "for a claim, until it has said that it took over";
  clock_.advance(1s);
  EXPECT_GT(second.held->valid_for(), 28s);
  for (int i = 0; i < 12; ++i) clock_.advance(10s);
  EXPECT_TRUE(second.held->valid());
  EXPECT_EQ(desks_.available().get(), 0);
}

TEST_F(PermitQueue, DeadProcessesAreSkipped) {
  desks_.try_set_permits(1).get();
  auto first = desks_.acquire().get();
  // A ticket of a process that is no more: nobody hears its inbox.
  store_
      ->run({"ZADD", "sluice_semaphore_line:{desks}", "1",
             "dead-1 sluice:inbox:none 1 30000 2000 host 1 - dead"})
      .get();
  Guest second{desks_, 1, 1h};
  first.release().get();
  EXPECT_TRUE(second.in());
}

TEST_F(PermitQueue, DeadHeadIsNoticedWithinTwoSecondsWithoutARelease) {
  desks_.try_set_permits(1).get();
  java_takes("1");
  store_
      ->run({"ZADD", "sluice_semaphore_line:{desks}", "1",
             "dead-1 sluice:inbox:none 1 30000 2000 host 1 - dead"})
      .get();
  Guest guest{desks_, 1, 1h};  // it finds out at once, and is the head
  EXPECT_EQ(waiting(), 1U);
  java_releases("1");
  EXPECT_TRUE(guest.in());
}

TEST_F(PermitQueue, HeadThatDiesLaterCostsTwoSeconds) {
  test::FaultyStore other{*store_};
  auto theirs = std::make_unique<Semaphore>(other, "desks");
  desks_.try_set_permits(1).get();
  java_takes("1");
  std::stop_source death;
  auto head = std::make_unique<Guest>(*theirs, 1, 1h, death.get_token());
  Guest guest{desks_, 1, 1h};
  EXPECT_EQ(waiting(), 2U);
  other.plan = [](std::string_view) { return Fault::refused; };  // it cannot take its leave
  death.request_stop();
  head.reset();
  theirs.reset();
  EXPECT_EQ(waiting(), 2U);
  java_releases("1");  // and nobody at the head hears it
  clock_.advance(1s);
  clock_.advance(1s + 1ms);
  EXPECT_TRUE(guest.in());
}

TEST_F(PermitQueue, P06_JavaReleaseWakesTheHeadAlone) {
  test::FaultyStore other{*store_};
  Semaphore theirs{other, "desks"};
  desks_.try_set_permits(2).get();
  java_takes("2");
  Guest first{desks_, 2, 1h};
  Guest second{theirs, 1, 1h};
  const auto asked = other.executed("lock/semaphore/acquire");
  java_releases("1");
  EXPECT_TRUE(first.waits());
  EXPECT_EQ(other.executed("lock/semaphore/acquire"), asked) << "it is not its turn";
  java_releases("1");
  EXPECT_TRUE(first.in());
  EXPECT_TRUE(second.waits());
  first.held.reset();
  EXPECT_TRUE(second.in());
}

TEST_F(PermitQueue, P06_NewHeadHearsJavaToo) {
  desks_.try_set_permits(2).get();
  auto ours = desks_.acquire(1).get();
  java_takes("1");
  Guest first{desks_, 1, 1h};
  Guest second{desks_, 1, 1h};
  ours.release().get();
  ASSERT_TRUE(first.in());
  clock_.advance(51ms);
  java_releases("1");
  EXPECT_TRUE(second.in());
}

TEST_F(PermitQueue, P06_JavaIsNotStarvedWhileOthersQueue) {
  desks_.try_set_permits(1).get();
  bool java_has_it = false;
  auto listening = store_->listen("redisson_sc:{desks}", [&](const Message&) {
    if (!java_has_it) java_takes("1");
    java_has_it = true;
  });
  const auto ear = listening.get();
  auto held = std::optional{desks_.acquire().get()};
  int rounds = 0;
  for (; !java_has_it && rounds < 100; ++rounds) {
    Guest next{desks_, 1, 1h};
    held->release().get();
    if (java_has_it) {
      clock_.advance(100ms);
      EXPECT_FALSE(next.in());
      java_releases("1");
      EXPECT_TRUE(next.in()) << "the first in the queue has not lost its place";
    }
    clock_.advance(100ms);
    held = std::move(next.held);
    ASSERT_TRUE(held) << "round " << rounds;
  }
  EXPECT_EQ(rounds, 2) << "after one hand-over";
}

TEST_F(PermitQueue, K31_FreePermitIsLeftToJavaForAMoment) {
  desks_.try_set_permits(1).get();
  const auto ear = store_->listen("redisson_sc:{desks}", [](const Message&) {}).get();
  desks_.acquire().get().release().get();
  EXPECT_FALSE(desks_.try_acquire().get()) << "it is the turn of others";
  Guest next{desks_, 1, 1h};
  clock_.advance(4ms);
  EXPECT_TRUE(next.waits());
  clock_.advance(3ms);
  EXPECT_TRUE(next.in());
}

TEST_F(PermitQueue, K31_WithoutJavaNoTurnIsLost) {
  desks_.try_set_permits(1).get();
  auto held = std::optional{desks_.acquire().get()};
  for (int i = 0; i < 100; ++i) {
    Guest next{desks_, 1, 1h};
    held->release().get();
    ASSERT_TRUE(next.in()) << "round " << i;
    held = std::move(next.held);
  }
}

TEST_F(PermitQueue, P02_JavaReleaseDuringTheSubscriptionIsNotMissed) {
  desks_.try_set_permits(1).get();
  java_takes("1");
  int subscriptions = 0;
  line_.plan = [&](std::string_view call) {
    if (call == "listen" && ++subscriptions == 2) java_releases("1");
    return Fault::none;
  };
  Guest guest{desks_, 1, 1h};
  EXPECT_TRUE(guest.in());
}

TEST_F(PermitQueue, P02_JavaReleaseDuringTheQuestionIsNotMissed) {
  desks_.try_set_permits(1).get();
  java_takes("1");
  { Guest earlier{desks_, 1, 0ms}; }
  int looks = 0;
  line_.plan = [&](std::string_view call) {
    return call == "lock/semaphore/acquire" && ++looks == 2 ? Fault::reply_late : Fault::none;
  };
  Guest guest{desks_, 1, 1h};
  java_releases("1");  // it was refused, but does not know yet
  EXPECT_TRUE(guest.waits());
  line_.let_go();
  EXPECT_TRUE(guest.in());
}

TEST_F(PermitQueue, EndOfTheFirstHoldWakesTheHead) {
  test::FaultyStore dead{*store_};
  Semaphore theirs{dead, "desks", {.lease = 5s}};
  desks_.try_set_permits(2).get();
  auto held = theirs.acquire(2).get();
  Guest guest{desks_, 1, 1h};
  dead.plan = [](std::string_view) { return Fault::refused; };
  clock_.advance(5s);
  clock_.advance(1ms);
  EXPECT_TRUE(guest.in());
  EXPECT_EQ(books().total(), 2);
}

TEST_F(PermitQueue, ShorterLeaseIsHeardByTheHead) {
  PermitSemaphore keys{line_, "keys"};
  keys.try_set_permits(1).get();
  const auto key = keys.take(unlimited_lease).get();
  std::optional<PermitId> next;
  const auto wait = [&]() -> Task<void> {
    auto taking = keys.take(1h, 1h);
    next = co_await taking;
  };
  spawn(wait());
  keys.update_lease(*key, 100ms).get();
  clock_.advance(102ms);
  EXPECT_TRUE(next);
}

TEST_F(PermitQueue, PatienceAndStopEndTheWait) {
  desks_.try_set_permits(1).get();
  auto held = desks_.acquire().get();
  std::stop_source stop;
  Guest impatient{desks_, 1, 3s};
  Guest stopped{desks_, 1, 1h, stop.get_token()};
  Guest last{desks_, 1, 1h};
  clock_.advance(2999ms);
  EXPECT_TRUE(impatient.waits());
  clock_.advance(1ms);
  EXPECT_FALSE(impatient.waits());
  stop.request_stop();
  EXPECT_FALSE(stopped.waits());
  EXPECT_EQ(waiting(), 1U);
  held.release().get();
  EXPECT_FALSE(impatient.in() || stopped.in());
  EXPECT_TRUE(last.in());
}

TEST_F(PermitQueue, SubscriptionEndsWithTheSemaphore) {
  {
    Semaphore desks{line_, "desks"};
    desks.try_set_permits(1).get();
    auto held = desks.acquire().get();
    Guest guest{desks, 1, 1h};
    held.release().get();
    EXPECT_TRUE(guest.in());
    EXPECT_EQ(store_->run({"PUBLISH", "redisson_sc:{desks}", "0"}).get().as_integer(), 1);
  }
  EXPECT_EQ(store_->run({"PUBLISH", "redisson_sc:{desks}", "0"}).get().as_integer(), 0);
}

TEST_F(PermitQueue, HeadBehindADeadRequestIsServedByTheNextLook) {
  desks_.try_set_permits(2).get();
  auto one = desks_.acquire(1).get();
  store_
      ->run({"ZADD", "sluice_semaphore_line:{desks}", "1",
             "dead-1 sluice:inbox:none 2 30000 2000 host 1 - dead"})
      .get();
  EXPECT_TRUE(desks_.try_acquire(1).get()) << "who is in the way is dead";
}

TEST_F(PermitQueue, HundredWaitersInAHundredProcessesCostFourCommandsARelease) {  // P05
  desks_.try_set_permits(1).get();
  std::size_t calls = 0;
  std::list<test::FaultyStore> stores;
  std::list<Semaphore> semaphores;
  std::list<Guest> guests;
  auto held = desks_.acquire().get();
  for (int i = 0; i < 100; ++i) {
    auto& semaphore = semaphores.emplace_back(stores.emplace_back(*store_), "desks");
    guests.emplace_back(semaphore, 1, 1h);
    stores.back().plan = [&](std::string_view) {
      ++calls;
      return Fault::none;
    };
  }
  clock_.advance(1s);
  calls = 0;
  std::optional<Held> last = std::move(held);
  int order = 0;
  for (auto& guest : guests) {
    last->release().get();
    if (!guest.in()) clock_.advance(11ms);  // a turn of Java
    ASSERT_TRUE(guest.in()) << "guest " << order++;
    last = std::move(guest.held);
    clock_.advance(700ms);  // it confirms, and the next head has looked
  }
  EXPECT_LE(calls, 400U);
}

TEST_F(PermitQueue, W04_RandomCancellationLosesNoPermitAndForgetsNobody) {
  std::mt19937 dice{20260102};
  for (int round = 0; round < test::rounds(1000); ++round) {
    Semaphore desks{line_, "desks", {.lease = 300ms}};
    store_->run({"FLUSHALL"}).get();
    desks.try_set_permits(2).get();
    std::stop_source stop;
    auto held = desks.try_acquire(1 + dice() % 2).get();
    Guest cancelled{desks, 1 + static_cast<std::uint32_t>(dice() % 2), 1h, stop.get_token()};
    Guest patient{desks, 2, 1h};
    const auto cut = std::chrono::milliseconds{dice() % 400};
    const bool release_first = dice() % 2;
    const Fault fault = dice() % 4 == 0 ? Fault::reply_late : Fault::none;
    fail_next(dice() % 2 ? "lock/semaphore/acquire" : "lock/semaphore/release", fault);
    clock_.advance(cut / 2);
    if (release_first) held.reset();
    stop.request_stop();
    if (!release_first) held.reset();
    clock_.advance(cut / 2);
    line_.let_go();
    heal();
    cancelled.held.reset();
    clock_.advance(51ms);
    clock_.advance(300ms);
    ASSERT_FALSE(cancelled.waits()) << "round " << round;
    ASSERT_TRUE(patient.in()) << "round " << round;
    patient.held.reset();
    clock_.advance(300ms);
    ASSERT_EQ(desks.available().get(), 2) << "round " << round;
    ASSERT_EQ(waiting(), 0U) << "round " << round;
  }
}

}  // namespace
}  // namespace sluice
