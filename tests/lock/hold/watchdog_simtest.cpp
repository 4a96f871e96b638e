/// Leases, renewals and losses on virtual time.
#include <map>
#include <stdexcept>

#include "lock/virtual_lock.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using WatchdogTest = VirtualLock;

TEST_F(WatchdogTest, W01_KeepsAHoldForTenLeases) {
  Mutex mutex{line_, "stock", {.lease = 3s}};
  auto held = mutex.acquire().get();
  for (int i = 0; i < 300; ++i) {
    clock_.advance(100ms);
    ASSERT_TRUE(held.valid());
    ASSERT_GE(ttl("stock"), 1900ms);
  }
  EXPECT_FALSE(held.lost().stop_requested());
  EXPECT_EQ(held.release().get().kind, Kind::released);
  clock_.advance(30s);
  EXPECT_FALSE(exists("stock"));
}

TEST_F(WatchdogTest, L03_FixedLeaseEndsAndTellsItsHolder) {
  Mutex mutex{line_, "stock", {.lease = 2s, .watchdog = false}};
  auto held = mutex.acquire().get();
  const auto lost = held.lost();
  std::optional<LostCause> cause;
  held.on_lost([&](LostCause why) { cause = why; });
  clock_.advance(1977ms);
  EXPECT_TRUE(held.valid());
  EXPECT_FALSE(lost.stop_requested());
  clock_.advance(1ms);  // 2 s less the margin of 22 ms
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(cause, LostCause::expired);

  clock_.advance(23ms);
  auto next = mutex.try_acquire().get();
  ASSERT_TRUE(next);
  EXPECT_GT(next->token(), held.token());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_TRUE(next->valid());
  EXPECT_EQ(field("stock", next->owner().text), "1");
}

TEST_F(WatchdogTest, W07_UnansweredRenewalsEndInALossAtTheDeadlineNotLater) {
  Mutex mutex{line_, "stock", {.lease = 30s}};
  auto held = mutex.acquire().get();
  std::optional<LostCause> cause;
  held.on_lost([&](LostCause why) { cause = why; });
  clock_.advance(20s);
  fail_all("lock/mutex/renew", Fault::refused);
  const auto left = held.valid_for();
  EXPECT_GT(left, 19s);
  clock_.advance(left - 1ns);
  EXPECT_FALSE(cause);
  EXPECT_TRUE(held.valid());
  clock_.advance(1ns);
  EXPECT_EQ(cause, LostCause::unreachable);
  EXPECT_FALSE(held.valid());
}

TEST_F(WatchdogTest, W07_HoldIsAtRiskAfterTwoThirdsOfItsLeaseWithoutARenewal) {
  Mutex mutex{line_, "stock", {.lease = 30s}};
  auto held = mutex.acquire().get();
  std::vector<Risk> risks;
  held.on_risk([&](Risk risk) { risks.push_back(risk); });
  const auto near_misses = metrics().lock_near_misses.load();
  clock_.advance(60s);
  EXPECT_TRUE(risks.empty()) << "renewed in time, it is at no risk";
  fail_all("lock/mutex/renew", Fault::refused);
  clock_.advance(held.valid_for() * 2 / 3 - 10ms);
  EXPECT_TRUE(risks.empty());
  clock_.advance(20ms);
  EXPECT_EQ(risks, std::vector{Risk::unanswered});
  EXPECT_TRUE(held.valid());
  heal();
  clock_.advance(9s);
  EXPECT_TRUE(held.valid());
  EXPECT_GT(held.valid_for(), 20s);
  EXPECT_EQ(metrics().lock_near_misses.load(), near_misses + 1);
}

TEST_F(WatchdogTest, FailedRenewalIsTriedAgainBeforeTheDeadline) {
  Mutex mutex{line_, "stock", {.lease = 30s}};
  auto held = mutex.acquire().get();
  fail_all("lock/mutex/renew", Fault::refused);
  clock_.advance(25s);
  EXPECT_LT(held.valid_for(), 5s);
  heal();
  clock_.advance(4s);
  EXPECT_GT(held.valid_for(), 25s);
}

TEST_F(WatchdogTest, L06_W03_AnswerNotYoursIsALossAtOnce) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  std::optional<LostCause> cause;
  held.on_lost([&](LostCause why) { cause = why; });
  store_->run({"FLUSHALL"}).get();
  clock_.advance(10s);
  EXPECT_EQ(cause, LostCause::taken);
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  auto next = mutex.acquire().get();  // and a new hold is renewed as ever
  clock_.advance(60s);
  EXPECT_TRUE(next.valid());
}

TEST_F(WatchdogTest, RenewalUnderWayDoesNotReviveAReleasedHold) {
  Mutex mutex{line_, "stock"};
  auto held = mutex.acquire().get();
  fail_next("lock/mutex/renew", Fault::request_late);
  clock_.advance(8s);
  EXPECT_EQ(held.release().get().kind, Kind::released);
  auto next = mutex.try_acquire().get();
  clock_.advance(5s);
  line_.let_go();
  EXPECT_EQ(line_.executed("lock/mutex/renew"), 1U);
  EXPECT_LE(ttl("stock"), 25s) << "the late renewal prolonged a newer hold";
}

TEST_F(WatchdogTest, RenewalThatIsAnsweredAfterTheDeadlineComesTooLate) {
  Mutex mutex{line_, "stock", {.lease = 3s}};
  auto held = mutex.acquire().get();
  fail_all("lock/mutex/renew", Fault::reply_late);
  clock_.advance(4s);
  EXPECT_FALSE(held.valid());
  line_.let_go();
  EXPECT_FALSE(held.valid()) << "once lost, lost for ever";
  EXPECT_TRUE(held.lost().stop_requested());
}

/// How long a reply is waited for is a matter of the lease it is about.
TEST_F(WatchdogTest, K16_AShortLeaseBoundsItsOwnRenewalAlone) {
  Mutex brief{line_, "brief", {.lease = 100ms}};
  std::vector<std::unique_ptr<Mutex>> others;
  std::vector<Held> holds;
  const auto short_one = brief.acquire().get();
  for (int i = 0; i < 50; ++i) {
    others.push_back(
        std::make_unique<Mutex>(line_, "stock" + std::to_string(i), MutexOptions{.lease = 3s}));
    holds.push_back(others.back()->acquire().get());
  }
  std::map<std::chrono::milliseconds, std::size_t> batches;  // by their timeout
  line_.on_batch = [&](const Batch&, const CallOptions& options) { ++batches[options.timeout]; };
  const auto failed = metrics().lock_renewal_failures.load();
  for (int i = 0; i < 300; ++i) clock_.advance(10ms);
  EXPECT_EQ(batches.size(), 2U);
  EXPECT_GE(batches[33ms], 100U);
  EXPECT_GE(batches[1s], 4U);
  EXPECT_LE(batches[1s], 6U) << "and all of the others travel together";
  EXPECT_EQ(metrics().lock_renewal_failures.load(), failed);
  EXPECT_TRUE(short_one.valid());
  for (const auto& held : holds) EXPECT_TRUE(held.valid());
}

TEST_F(WatchdogTest, AThousandHoldsCostTenCommandsAQuarterOfTheLease) {
  std::vector<std::unique_ptr<Mutex>> mutexes;
  std::vector<Held> holds;
  for (int i = 0; i < 1000; ++i) {
    mutexes.push_back(std::make_unique<Mutex>(line_, "lock " + std::to_string(i)));
    holds.push_back(mutexes.back()->acquire().get());
    clock_.advance(3ms);
  }
  int batches = 0;
  line_.plan = [&](std::string_view) {
    ++batches;
    return Fault::none;
  };
  const auto before = metrics().lock_renewals.load();
  clock_.advance(60s);
  heal();
  EXPECT_EQ(batches, 8);
  EXPECT_EQ(metrics().lock_renewals.load() - before, 8000U) << "in 80 scripts of 100 holds";
  for (const auto& held : holds) ASSERT_TRUE(held.valid());
}

TEST_F(WatchdogTest, KeyOfAnotherKindTakesNoOtherHoldWithIt) {
  Mutex spoilt{line_, "spoilt"};
  Mutex sound{line_, "sound"};
  auto lost = spoilt.acquire().get();
  auto kept = sound.acquire().get();
  store_->run({"SET", "spoilt", "text"}).get();
  clock_.advance(60s);
  EXPECT_FALSE(lost.valid());
  EXPECT_TRUE(kept.valid());
  EXPECT_THROW((void)spoilt.try_acquire().get(), Error);
}

TEST_F(WatchdogTest, LosersAreToldWhateverTheirNeighboursThrow) {
  Mutex mutex{line_, "stock", {.lease = 1s, .watchdog = false}};
  auto held = mutex.acquire().get();
  bool told = false;
  held.on_lost([](LostCause) { throw std::runtime_error{"a callback of the test"}; });
  held.on_lost([&](LostCause) { told = true; });
  clock_.advance(1s);
  EXPECT_TRUE(told);
  bool told_late = false;
  held.on_lost([&](LostCause) { told_late = true; });
  EXPECT_TRUE(told_late);
}

TEST_F(WatchdogTest, StoreWithAFileMayCloseRightAfterTheDestructor) {
  const test::TempDir folder;
  for (int round = 0; round < 20; ++round) {
    const auto store = engine::open_embedded({.path = folder.str()});
    Mutex mutex{*store, "stock"};
    const auto held = mutex.try_acquire().get();
    ASSERT_TRUE(held) << "round " << round << ": the release of the last was lost";
  }
}

TEST_F(WatchdogTest, HoldOutlivesItsMutex) {
  std::optional<Held> held;
  {
    Mutex mutex{line_, "stock"};
    held = mutex.acquire().get();
  }
  clock_.advance(100s);
  EXPECT_TRUE(held->valid());
  held.reset();
  EXPECT_FALSE(exists("stock"));
  clock_.advance(26h);
  EXPECT_EQ(clock_.pending_timers(), 0U) << "nor a key that ends";
}

TEST_F(WatchdogTest, LostHoldThatTheServerStillHasIsFreedByItsRelease) {
  Mutex mutex{line_, "stock", {.lease = 10s, .watchdog = false, .margin = 5s}};
  auto held = mutex.acquire().get();
  clock_.advance(6s);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::released);
  EXPECT_FALSE(exists("stock"));
}

}  // namespace
}  // namespace sluice
