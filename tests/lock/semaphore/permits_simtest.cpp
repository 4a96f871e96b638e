/// What a hold of permits is, and how it ends.
#include "lock/semaphore/virtual_semaphore.hpp"
#include "sluice/lock_info.hpp"

namespace sluice {
namespace {

using Permits = VirtualSemaphore;

TEST_F(Permits, AreSetOnceAndTakenAndGivenBack) {
  Semaphore desks{line_, "desks"};
  EXPECT_FALSE(desks.try_acquire().get()) << "nobody has set how many there are";
  EXPECT_TRUE(desks.try_set_permits(5).get());
  EXPECT_FALSE(desks.try_set_permits(9).get());
  auto three = desks.try_acquire(3).get();
  ASSERT_TRUE(three);
  EXPECT_TRUE(three->valid());
  EXPECT_FALSE(desks.try_acquire(3).get());
  EXPECT_EQ(desks.available().get(), 2);
  EXPECT_EQ(three->release().get().kind, Kind::released);
  EXPECT_EQ(three->release().get().kind, Kind::not_held);
  EXPECT_EQ(desks.available().get(), 5);
}

TEST_F(Permits, AreAddedDrainedAndReleasedByNobody) {
  Semaphore desks{line_, "desks"};
  desks.try_set_permits(2).get();
  desks.add_permits(3).get();
  EXPECT_EQ(desks.available().get(), 5);
  EXPECT_EQ(desks.drain().get(), 5);
  EXPECT_EQ(desks.drain().get(), 0);
  desks.add_permits(-1).get();
  EXPECT_EQ(desks.available().get(), -1);
  EXPECT_EQ(desks.drain().get(), 0);
  desks.release_unowned(3).get();
  EXPECT_EQ(desks.available().get(), 2);
}

TEST_F(Permits, NumbersOutOfRangeAreRefused) {
  Semaphore desks{line_, "desks"};
  EXPECT_THROW((void)desks.try_acquire(0).get(), Error);
  EXPECT_THROW((void)desks.try_acquire(Semaphore::most + 1).get(), Error);
  EXPECT_THROW(desks.release_unowned(0).get(), Error);
  EXPECT_THROW(desks.release_unowned(1, std::string(201, 'x')).get(), Error);
  EXPECT_THROW((Semaphore{line_, ""}), Error);
  EXPECT_THROW((Semaphore{line_, "desks", {.lease = 9ms}}), Error);
  PermitSemaphore keys{line_, "keys"};
  EXPECT_THROW((void)keys.try_acquire_many(1001).get(), Error);
  EXPECT_THROW((void)keys.take(9ms).get(), Error);
}

TEST_F(Permits, W01_AreRenewedWhileTheyAreHeld) {
  Semaphore desks{line_, "desks", {.lease = 1s}};
  desks.try_set_permits(2).get();
  auto held = desks.try_acquire(2).get();
  for (int i = 0; i < 40; ++i) clock_.advance(250ms);
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(desks.available().get(), 0);
  EXPECT_EQ(held->release().get().kind, Kind::released);
  EXPECT_EQ(desks.available().get(), 2);
}

TEST_F(Permits, W08_RenewalsTravelAHundredAtATime) {
  int batches = 0;
  Semaphore desks{line_, "desks"};
  PermitSemaphore keys{line_, "keys"};
  desks.try_set_permits(500).get();
  keys.try_set_permits(500).get();
  std::vector<Held> held;
  for (int i = 0; i < 150; ++i) held.push_back(desks.acquire().get());
  auto permits = keys.try_acquire_many(150).get();
  ASSERT_EQ(permits.size(), 150U);
  line_.plan = [&](std::string_view call) {
    batches += call == "lock/semaphore/renew";
    return Fault::none;
  };
  clock_.advance(10s);
  EXPECT_EQ(batches, 1) << "one batch, of three scripts for the 300 holds";
  for (int i = 0; i < 6; ++i) clock_.advance(10s);
  EXPECT_EQ(desks.available().get(), 350);
  EXPECT_EQ(keys.available().get(), 350);
  for (const auto& hold : held) EXPECT_TRUE(hold.valid());
  for (const auto& hold : permits) EXPECT_TRUE(hold.valid());
}

TEST_F(Permits, W02_OfTheDeadComeBackWithTheLease) {
  test::FaultyStore dead{*store_};
  Semaphore desks{line_, "desks", {.lease = 1s}};
  Semaphore theirs{dead, "desks", {.lease = 1s}};
  desks.try_set_permits(3).get();
  auto held = theirs.try_acquire(3).get();
  dead.plan = [](std::string_view) { return Fault::refused; };
  clock_.advance(999ms);
  EXPECT_FALSE(desks.try_acquire().get());
  clock_.advance(1ms);
  EXPECT_EQ(desks.available().get(), 3);
  EXPECT_FALSE(held->valid());
  EXPECT_TRUE(held->lost().stop_requested());
}

TEST_F(Permits, W03_HolderIsToldThatTheServerForgot) {
  Semaphore desks{line_, "desks", {.lease = 3s}};
  desks.try_set_permits(1).get();
  auto held = desks.acquire().get();
  std::optional<LostCause> cause;
  held.on_lost([&](LostCause why) { cause = why; });
  store_->run({"FLUSHALL"}).get();
  clock_.advance(1s);
  EXPECT_EQ(cause, LostCause::taken);
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_FALSE(exists("desks")) << "a hold of before gives nothing back";
}

TEST_F(Permits, OfAFormerLifeDoNotCount) {
  Semaphore desks{line_, "desks"};
  desks.try_set_permits(3).get();
  auto held = desks.acquire(2).get();
  store_->run({"DEL", "desks"}).get();
  EXPECT_TRUE(desks.try_set_permits(4).get());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_EQ(desks.available().get(), 4);
}

TEST_F(Permits, S02_ExpiredPermitReturnsOnce) {
  PermitSemaphore keys{line_, "keys"};
  keys.try_set_permits(1).get();
  const auto key = keys.take(1s).get();
  ASSERT_TRUE(key);
  EXPECT_FALSE(keys.take(1s).get());
  clock_.advance(1s);
  EXPECT_FALSE(keys.release(*key).get()) << "its lease was over, whoever saw it first";
  EXPECT_EQ(keys.available().get(), 1);
  EXPECT_FALSE(keys.release(*key).get());
  EXPECT_EQ(keys.available().get(), 1);
  const auto again = keys.take(1s).get();
  EXPECT_FALSE(keys.release(*key).get());
  EXPECT_TRUE(keys.release(*again).get());
}

TEST_F(Permits, S02_FixedLeaseEndsForItsHolderFirst) {
  Semaphore desks{line_, "desks", {.lease = 1s, .watchdog = false, .margin = 100ms}};
  desks.try_set_permits(1).get();
  auto held = desks.acquire().get();
  clock_.advance(900ms);
  EXPECT_FALSE(held.valid());
  EXPECT_FALSE(desks.try_acquire().get());
  clock_.advance(100ms);
  auto next = desks.try_acquire().get();
  ASSERT_TRUE(next);
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_EQ(desks.available().get(), 0) << "the late release gave back what another holds";
}

TEST_F(Permits, EachHasItsIdAndMayBeGivenBackByAnybody) {
  PermitSemaphore keys{line_, "keys", {.lease = 1s}};
  keys.try_set_permits(3).get();
  auto held = keys.try_acquire_many(3).get();
  ASSERT_EQ(held.size(), 3U);
  EXPECT_NE(held[0].id(), held[1].id());
  EXPECT_EQ(held[0].owner().text, held[0].id().text());
  EXPECT_EQ(PermitId::parse(held[2].id().text()), held[2].id());
  EXPECT_FALSE(PermitId::parse("g0000000000000000000000000000000"));
  EXPECT_FALSE(PermitId::parse("00"));
  PermitSemaphore elsewhere{*store_, "keys"};
  EXPECT_TRUE(elsewhere.release(held[1].id()).get());
  EXPECT_FALSE(elsewhere.release(held[1].id()).get());
  clock_.advance(400ms);
  EXPECT_FALSE(held[1].valid()) << "told with the next renewal";
  EXPECT_TRUE(held[0].valid());
  EXPECT_EQ(held[0].release().get().kind, Kind::released);
  EXPECT_EQ(keys.available().get(), 2);
}

TEST_F(Permits, LeaseIsUpdatedAndMayBeWithoutEnd) {
  PermitSemaphore keys{line_, "keys"};
  keys.try_set_permits(1).get();
  const auto key = keys.take(unlimited_lease).get();
  EXPECT_EQ(keys.info().get().holders.at(0).left, -1ms);
  clock_.advance(std::chrono::hours{24 * 365});
  EXPECT_EQ(keys.available().get(), 0);
  EXPECT_TRUE(keys.update_lease(*key, 1s).get());
  clock_.advance(999ms);
  EXPECT_TRUE(keys.update_lease(*key, 1s).get());
  clock_.advance(999ms);
  EXPECT_EQ(keys.available().get(), 0);
  clock_.advance(1ms);
  EXPECT_FALSE(keys.update_lease(*key, 1s).get());
  EXPECT_EQ(keys.available().get(), 1);
}

TEST_F(Permits, TotalIsSetWhateverIsHeld) {
  PermitSemaphore keys{line_, "keys"};
  keys.set_permits(3).get();
  auto held = keys.try_acquire_many(2).get();
  keys.set_permits(5).get();
  EXPECT_EQ(keys.available().get(), 3);
  keys.set_permits(1).get();
  EXPECT_EQ(keys.available().get(), -1);
  held.clear();
  EXPECT_EQ(keys.available().get(), 1);
}

TEST_F(Permits, InfoNamesHoldersAndWaiters) {
  Semaphore desks{line_, "desks", {.label = "the sales desk"}};
  desks.try_set_permits(3).get();
  const auto two = desks.acquire(2).get();
  std::stop_source stop;
  Guest waiter{desks, 3, 1h, stop.get_token()};
  const auto info = desks.info().get();
  EXPECT_EQ(info.free, 1);
  ASSERT_EQ(info.holders.size(), 1U);
  EXPECT_EQ(info.holders[0].permits, 2U);
  EXPECT_EQ(info.holders[0].data.label, "the sales desk");
  EXPECT_GT(info.holders[0].data.pid, 0);
  EXPECT_EQ(info.holders[0].id, two.owner().text);
  ASSERT_EQ(info.waiters.size(), 1U);
  EXPECT_EQ(info.waiters[0].permits, 3U);
  EXPECT_EQ(info.waiters[0].data.label, "the sales desk");
  stop.request_stop();
  PermitSemaphore keys{line_, "keys", {.label = "the keeper"}};
  keys.try_set_permits(3).get();
  const auto key = keys.acquire().get();
  EXPECT_EQ(keys.info().get().holders.at(0).id, key.id().text());
  EXPECT_EQ(keys.info().get().holders.at(0).data.label, "the keeper");
}

TEST_F(Permits, GrantThatTookAsLongAsItsLeaseIsGivenBack) {
  Semaphore desks{line_, "desks", {.lease = 1s}};
  desks.try_set_permits(1).get();
  fail_next("lock/semaphore/acquire", Fault::reply_late);
  Guest guest{desks, 1, 0ms};
  clock_.advance(999ms);
  line_.let_go();
  EXPECT_TRUE(guest.failed());
  EXPECT_EQ(books().held, 0);
  EXPECT_EQ(books().free, 1);
}

// --- T04: replies that are lost ---

TEST_F(Permits, T04_AcquireAskedAgainTakesOnce) {
  Semaphore desks{line_, "desks"};
  desks.try_set_permits(5).get();
  fail_next("lock/semaphore/acquire", Fault::reply_lost);
  auto held = desks.try_acquire(2).get();
  ASSERT_TRUE(held);
  EXPECT_EQ(line_.executed("lock/semaphore/acquire"), 2U);
  EXPECT_EQ(desks.available().get(), 3);
  PermitSemaphore keys{line_, "keys"};
  keys.try_set_permits(5).get();
  fail_next("lock/semaphore/acquire", Fault::doubled);
  EXPECT_EQ(keys.try_acquire_many(2).get().size(), 2U);
}

TEST_F(Permits, T04_AcquireWithoutAnyAnswerIsTakenBack) {
  PermitSemaphore keys{line_, "keys"};
  keys.try_set_permits(5).get();
  fail_next("lock/semaphore/acquire", Fault::cut_off);
  EXPECT_THROW((void)keys.try_acquire_many(3).get(), Error);
  EXPECT_EQ(keys.available().get(), 5);
}

TEST_F(Permits, T04_ReleaseAskedAgainGivesBackOnce) {
  Semaphore desks{line_, "desks"};
  desks.try_set_permits(5).get();
  auto held = desks.acquire(2).get();
  fail_next("lock/semaphore/release", Fault::reply_lost);
  EXPECT_EQ(held.release().get().kind, Kind::released);
  EXPECT_EQ(line_.executed("lock/semaphore/release"), 2U);
  EXPECT_EQ(desks.available().get(), 5);
}

TEST_F(Permits, T04_ReleaseByIdIsAnsweredAsTheFirstTime) {
  PermitSemaphore keys{line_, "keys"};
  keys.try_set_permits(1).get();
  const auto key = keys.take(1s).get();
  fail_next("lock/semaphore/release", Fault::reply_lost);
  EXPECT_TRUE(keys.release(*key).get());
  EXPECT_EQ(keys.available().get(), 1);
}

TEST_F(Permits, T04_ChangesCountOnce) {
  Semaphore desks{line_, "desks"};
  line_.plan = [](std::string_view) { return Fault::doubled; };
  EXPECT_TRUE(desks.try_set_permits(5).get()) << "the second answer is the first";
  desks.add_permits(2).get();
  desks.release_unowned(1).get();
  EXPECT_EQ(desks.available().get(), 8);
  EXPECT_EQ(desks.drain().get(), 8);
  PermitSemaphore keys{line_, "keys"};
  keys.set_permits(3).get();
  keys.add_permits(3).get();
  EXPECT_EQ(keys.available().get(), 6);
}

TEST_F(Permits, T04_ReleaseThatIsNamedMayBeCalledAgain) {
  Semaphore desks{line_, "desks"};
  desks.try_set_permits(1).get();
  fail_next("lock/semaphore/change", Fault::cut_off);
  EXPECT_THROW(desks.release_unowned(2, "job 17").get(), Error);
  desks.release_unowned(2, "job 17").get();
  EXPECT_EQ(desks.available().get(), 3);
  clock_.advance(60s + 1ms);
  EXPECT_EQ(store_->run({"KEYS", "*"}).get().as_items().size(), 1U)
      << "no answer stays for longer than a minute";
}

// --- U09, U03: what a new user met ---

using Command = std::vector<std::string_view>;

class SemaphoreFrictions : public VirtualSemaphore {
 protected:
  void run(const Command& command) { store_->run(Words{command}).get(); }
};

TEST_F(SemaphoreFrictions, U09_AnotherNumberOfPermitsIsAMismatch) {
  Semaphore desks{line_, "desks"};
  desks.ensure_permits(2).get();
  desks.ensure_permits(2).get();
  auto held = desks.acquire(2).get();
  desks.ensure_permits(2).get();  // those held count
  try {
    desks.ensure_permits(3).get();
    FAIL() << "2 permits are in force";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::config_mismatch);
    EXPECT_EQ(failure.effect(), Effect::none);
    EXPECT_NE(failure.message().find("\"desks\" has 2 permits"), std::string::npos)
        << failure.message();
  }
  EXPECT_EQ(held.release().get().kind, Kind::released);
  EXPECT_EQ(desks.available().get(), 2) << "nothing was changed";
  desks.add_permits(1).get();
  desks.ensure_permits(3).get();
  EXPECT_EQ(error_of(desks.ensure_permits(2)), Errc::config_mismatch);
}

TEST_F(SemaphoreFrictions, U09_AnotherNumberOfPermitsWithIdsIsAMismatch) {
  PermitSemaphore keys{line_, "keys"};
  keys.ensure_permits(2).get();
  auto key = keys.acquire().get();
  keys.ensure_permits(2).get();
  EXPECT_EQ(error_of(keys.ensure_permits(1)), Errc::config_mismatch);
  clock_.advance(1h);
  EXPECT_TRUE(key.valid());
  keys.ensure_permits(2).get();
}

TEST_F(SemaphoreFrictions, U03_WhatIsNoSemaphoreIsRefusedAndLeftAsItIs) {
  const std::vector<Command> values{{"HSET", "shop", "name", "tea"},
                                    {"SET", "shop", "tea"},
                                    {"SET", "shop", "1.5"},
                                    {"RPUSH", "shop", "tea"},
                                    {"ZADD", "shop", "1", "tea"}};
  for (const auto& value : values) {
    SCOPED_TRACE(value.front());
    run({"DEL", "shop"});
    run(value);
    const std::string before = contents("shop");
    Semaphore desks{line_, "shop"};
    PermitSemaphore keys{line_, "shop"};
    EXPECT_EQ(error_of(desks.try_set_permits(3)), Errc::wrong_type);
    EXPECT_EQ(error_of(desks.ensure_permits(3)), Errc::wrong_type);
    EXPECT_EQ(error_of(desks.add_permits(3)), Errc::wrong_type);
    EXPECT_EQ(error_of(desks.drain()), Errc::wrong_type);
    EXPECT_EQ(error_of(desks.available()), Errc::wrong_type);
    EXPECT_EQ(error_of(desks.try_acquire(1, 1h)), Errc::wrong_type) << "at once";
    EXPECT_EQ(error_of(keys.try_acquire(1h)), Errc::wrong_type) << "at once";
    EXPECT_EQ(error_of(keys.set_permits(3)), Errc::wrong_type);
    EXPECT_EQ(error_of(keys.try_set_permits(3)), Errc::wrong_type);
    EXPECT_EQ(contents("shop"), before);
  }
}

TEST_F(SemaphoreFrictions, U03_ASortedSetOfOtherMembersIsLeftAsItIs) {
  run({"ZADD", "{cart}:timeout", "1", "order 17", "2", "order 18"});
  const std::string before = contents("{cart}:timeout");
  PermitSemaphore keys{line_, "cart"};
  EXPECT_EQ(error_of(keys.try_set_permits(3)), Errc::wrong_type);
  EXPECT_EQ(error_of(keys.ensure_permits(3)), Errc::wrong_type);
  EXPECT_EQ(error_of(keys.available()), Errc::wrong_type);
  EXPECT_EQ(contents("{cart}:timeout"), before);
  EXPECT_FALSE(exists("cart"));
}

}  // namespace
}  // namespace sluice
