/// Who may be in beside whom, and who is next.
#include <list>

#include "lock/shared/virtual_shared.hpp"
#include "sluice/lock_info.hpp"

namespace sluice {
namespace {

using Sharing = VirtualShared;

TEST_F(Sharing, RW01_ReadersShare) {
  auto one = here_.try_acquire_shared().get();
  auto two = there_.try_acquire_shared().get();
  ASSERT_TRUE(one);
  ASSERT_TRUE(two);
  EXPECT_EQ(mode(), "read");
  EXPECT_FALSE(there_.try_acquire().get()) << "a writer is kept out";
  one->release().get();
  EXPECT_FALSE(there_.try_acquire().get());
  EXPECT_EQ(two->release().get().kind, Kind::released);
  EXPECT_TRUE(there_.try_acquire().get());
}

TEST_F(Sharing, RW01_WriterIsAlone) {
  auto writer = here_.try_acquire().get();
  ASSERT_TRUE(writer);
  EXPECT_EQ(mode(), "write");
  EXPECT_FALSE(there_.try_acquire().get());
  EXPECT_FALSE(there_.try_acquire_shared().get());
  EXPECT_FALSE(here_.try_acquire_shared().get()) << "somebody else, in the same process";
  EXPECT_EQ(writer->release().get().kind, Kind::released);
  EXPECT_TRUE(there_.try_acquire_shared().get());
}

TEST_F(Sharing, RW01_WriterMayReadAndGoOnReading) {
  const Owner owner;
  auto writing = here_.acquire(owner).get();
  auto reading = here_.try_acquire_shared(owner).get();
  ASSERT_TRUE(reading);
  EXPECT_EQ(mode(), "write");
  EXPECT_FALSE(there_.try_acquire_shared().get());
  EXPECT_EQ(writing.release().get().kind, Kind::released);
  EXPECT_EQ(mode(), "read");
  EXPECT_TRUE(reading->valid());
  EXPECT_TRUE(there_.try_acquire_shared().get());
  EXPECT_FALSE(there_.try_acquire().get());
  EXPECT_EQ(reading->release().get().kind, Kind::released);
  expect_nothing_left();
}

TEST_F(Sharing, RW01_DowngradeWakesReaders) {
  const Owner owner;
  auto writing = here_.acquire(owner).get();
  auto reading = here_.acquire_shared(owner).get();
  Reader reader{there_, 1h};
  Writer writer{there_, 1h};
  EXPECT_TRUE(reader.waits());
  writing.release().get();
  EXPECT_TRUE(reader.in()) << "without a step of the clock";
  EXPECT_TRUE(writer.waits());
  reading.release().get();
  EXPECT_TRUE(writer.waits());
  reader.leave();
  EXPECT_TRUE(writer.in());
}

TEST_F(Sharing, RW01_ReaderThatStopsWritingLastLeavesNothing) {
  const Owner owner;
  auto writing = here_.acquire(owner).get();
  auto reading = here_.acquire_shared(owner).get();
  EXPECT_EQ(reading.release().get().kind, Kind::released);
  EXPECT_EQ(mode(), "write");
  EXPECT_TRUE(writing.valid());
  EXPECT_EQ(writing.release().get().kind, Kind::released);
  expect_nothing_left();
}

TEST_F(Sharing, RW01_UpgradeIsAnErrorAtOnce) {
  const Owner owner;
  auto reading = here_.acquire_shared(owner).get();
  const auto asked = line_.executed("lock/shared/acquire");
  for (auto* mutex : {&here_, &there_}) {
    try {
      (void)mutex->acquire(owner).get();
      FAIL() << "a reader writes";
    } catch (const Error& refusal) {
      EXPECT_EQ(refusal.errc(), Errc::bad_argument);
      EXPECT_EQ(refusal.effect(), Effect::none);
    }
  }
  EXPECT_EQ(line_.executed("lock/shared/acquire"), asked) << "this process knows that it reads";
  EXPECT_TRUE(reading.valid());
  EXPECT_EQ(reading.release().get().kind, Kind::released);
  EXPECT_TRUE(here_.acquire(owner).get().valid());
}

TEST_F(Sharing, EntriesOfEachKindCount) {
  const Owner owner;
  auto outer = here_.acquire(owner).get();
  auto inner = here_.acquire(owner).get();
  EXPECT_EQ(outer.token(), inner.token());
  EXPECT_EQ(field("prices", owner.id().text + ":write"), "2");
  auto read = here_.acquire_shared(owner).get();
  auto read_again = here_.acquire_shared(owner).get();
  EXPECT_EQ(field("prices", owner.id().text), "2");
  EXPECT_TRUE(exists(hold_key(owner.id(), 2)));
  EXPECT_EQ(inner.release().get(), (ReleaseOutcome{Kind::still_held, 1}));
  EXPECT_EQ(outer.release().get().kind, Kind::released);
  EXPECT_EQ(read.release().get(), (ReleaseOutcome{Kind::still_held, 1}));
  EXPECT_FALSE(exists(hold_key(owner.id(), 2)));
  EXPECT_TRUE(exists(hold_key(owner.id(), 1)));
  EXPECT_TRUE(read_again.valid());
  read_again.release().get();
  expect_nothing_left();
}

TEST_F(Sharing, OneOwnerInTwoProcessesOfTwoRequestsCountsBoth) {
  const Owner owner;
  line_.plan = [&, armed = true](std::string_view call) mutable {
    if (call != "lock/shared/acquire" || !std::exchange(armed, false)) return Fault::none;
    return Fault::reply_late;
  };
  Reader slow{here_, owner, 0ms};  // in there, and not yet known here
  Reader next{here_, owner, 0ms};  // waits until this process knows
  auto quick = there_.try_acquire_shared(owner).get();
  ASSERT_TRUE(quick);
  EXPECT_TRUE(slow.waits() && next.waits());
  line_.let_go();
  ASSERT_TRUE(slow.in());
  ASSERT_TRUE(next.in());
  EXPECT_EQ(next.held->token(), slow.held->token());
  next.leave();
  EXPECT_EQ(field("prices", owner.id().text), "2");
  quick->release().get();
  clock_.advance(5min);
  EXPECT_TRUE(slow.in());
  EXPECT_FALSE(there_.try_acquire().get());
  slow.leave();
  expect_nothing_left();
}

TEST_F(Sharing, TokensRiseAndReadersThatAreInTogetherShareOne) {
  const auto read = [&] {
    const auto one = here_.acquire_shared().get();
    const auto two = there_.acquire_shared().get();
    EXPECT_EQ(one.token(), two.token());
    return two.token();
  };
  auto last = read();
  for (int turn = 0; turn < 3; ++turn) {
    const auto wrote = (turn == 0 ? here_ : there_).acquire().get().token();
    EXPECT_GT(wrote, last);
    last = read();
    EXPECT_GT(last, wrote);
  }
}

TEST_F(Sharing, LK05_AFenceRefusesAWriterThatSleptWhileOthersRead) {
  for (const bool waits : {false, true}) {
    FenceGate gate;
    SharedMutex brief{line_, "prices", {.lease = 1s, .watchdog = false}};
    const auto asleep = brief.acquire().get();
    std::optional<Reader> early;
    if (waits) early.emplace(there_, 1h);
    clock_.advance(2s);
    if (!waits) early.emplace(there_, 1h);
    ASSERT_TRUE(early->in());
    EXPECT_TRUE(gate.admit("prices", early->held->token()));
    EXPECT_FALSE(gate.admit("prices", asleep.token())) << waits;
  }
}

TEST_F(Sharing, AWriterThatGoesOnReadingKeepsItsToken) {
  const Owner owner;
  auto writing = here_.acquire(owner).get();
  const auto reading = here_.acquire_shared(owner).get();
  const auto token = writing.token();
  writing.release().get();
  EXPECT_EQ(reading.token(), token);
  EXPECT_EQ(there_.acquire_shared().get().token(), token) << "a fence must not refuse the first";
}

TEST_F(Sharing, InfoShowsWhoReadsWritesAndWaits) {
  SharedMutex mutex{line_, "prices", {.label = "till 3 "}};
  const Owner owner;
  auto writing = mutex.acquire(owner).get();
  auto reading = mutex.acquire_shared(owner).get();
  clock_.advance(2s);
  Reader reader{there_, 1h};
  Writer writer{there_, 1h};
  const LockInfo info = mutex.info().get();
  ASSERT_EQ(info.holders.size(), 2U);
  for (const auto& holder : info.holders) {
    EXPECT_EQ(holder.owner, owner.id());
    EXPECT_EQ(holder.entries, 1U);
    EXPECT_EQ(holder.held, 2s);
    EXPECT_EQ(holder.left, 28s);
    EXPECT_EQ(holder.data.label, "till 3 ");
  }
  EXPECT_NE(info.holders[0].exclusive, info.holders[1].exclusive);
  EXPECT_EQ(info.waiters.size(), 2U);
  EXPECT_EQ(info.token, writing.token());
  writing.release().get();
  EXPECT_EQ(mutex.info().get().holders.size(), 2U) << "two readers";
  EXPECT_FALSE(mutex.info().get().holders[0].exclusive);
}

TEST_F(Sharing, ForceEndsAllHoldsAndLetsTheNextIn) {
  auto one = here_.acquire_shared().get();
  auto two = there_.acquire_shared().get();
  Writer writer{there_, 1h};
  EXPECT_TRUE(here_.force_release().get());
  EXPECT_TRUE(writer.in());
  EXPECT_EQ(one.release().get().kind, Kind::not_held);
  clock_.advance(10s);
  EXPECT_FALSE(two.valid());
  EXPECT_TRUE(two.lost().stop_requested());
  EXPECT_TRUE(writer.in());
  writer.leave();
  EXPECT_FALSE(here_.force_release().get());
  expect_nothing_left();
}

TEST_F(Sharing, Attack_NumbersInAHashThatIsNoLockKeepNoServerBusy) {
  store_->run({"HSET", "prices", "name", "tea", "views", "1e30"}).get();
  const auto info = here_.info().get();
  EXPECT_TRUE(info.holders.empty());
  store_->run({"DEL", "prices"}).get();
  const std::string_view reader = "5ae5a5d5-0c0a-4a4a-9f9f-0123456789ab:1";
  store_->run({"HSET", "prices", "mode", "read", reader, "999999999999"}).get();
  EXPECT_TRUE(here_.info().get().holders.empty());
  EXPECT_TRUE(here_.try_acquire().get()) << "no hold key of that reader lives";
  store_->run({"DEL", "prices"}).get();
  store_->run({"HSET", "prices", "mode", "read", reader, "999999999999"}).get();
  EXPECT_TRUE(here_.force_release().get());
}

TEST_F(Sharing, KeyOfAnotherLockIsAnError) {
  Mutex plain{line_, "prices"};
  const auto held = plain.acquire().get();
  for (const bool shared : {true, false}) {
    try {
      (void)(shared ? here_.try_acquire_shared() : here_.try_acquire()).get();
      FAIL() << "in beside a Mutex";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::wrong_type);
    }
  }
  EXPECT_TRUE(held.valid());
}

}  // namespace
}  // namespace sluice
