/// Leases, renewals and losses of both kinds of hold; readers that die.
#include <list>

#include "lock/shared/virtual_shared.hpp"

namespace sluice {
namespace {

class SharedLeases : public VirtualShared {
 protected:
  /// Both kinds, one after the other.
  static constexpr bool kinds[] = {true, false};
  static Held enter(SharedMutex& mutex, bool shared) {
    return shared ? mutex.acquire_shared().get() : mutex.acquire().get();
  }
};

TEST_F(SharedLeases, W01_HoldsLastForTenLeases) {
  for (const bool shared : kinds) {
    SharedMutex mutex{line_, "prices", {.lease = 3s}};
    auto held = enter(mutex, shared);
    for (int i = 0; i < 300; ++i) {
      clock_.advance(100ms);
      ASSERT_TRUE(held.valid());
      ASSERT_GE(ttl("prices"), 1900ms);
      ASSERT_GE(ttl(shared ? hold_key(held.owner()) : std::string{"prices"}), 1900ms);
    }
    EXPECT_EQ(held.release().get().kind, Kind::released);
    expect_nothing_left();
  }
}

TEST_F(SharedLeases, W03_HolderIsToldWhenTheServerForgot) {
  for (const bool shared : kinds) {
    auto held = enter(here_, shared);
    std::optional<LostCause> cause;
    held.on_lost([&](LostCause why) { cause = why; });
    store_->run({"FLUSHALL"}).get();
    clock_.advance(10s);
    EXPECT_EQ(cause, LostCause::taken);
    EXPECT_EQ(held.release().get().kind, Kind::not_held);
    auto next = enter(here_, shared);
    clock_.advance(60s);
    EXPECT_TRUE(next.valid());
  }
}

TEST_F(SharedLeases, FixedLeasesEnd) {
  for (const bool shared : kinds) {
    SharedMutex mutex{line_, "prices", {.lease = 2s, .watchdog = false}};
    auto held = enter(mutex, shared);
    Writer writer{there_, 1h};
    clock_.advance(1900ms);
    EXPECT_TRUE(writer.waits());
    clock_.advance(105ms);
    EXPECT_TRUE(writer.in());
    EXPECT_FALSE(held.valid());
    EXPECT_EQ(held.release().get().kind, Kind::not_held);
  }
}

TEST_F(SharedLeases, RenewalsOfAHundredHoldsAreOneScript) {
  std::list<SharedMutex> mutexes;
  std::vector<Held> holds;
  for (int i = 0; i < 500; ++i) {
    auto& mutex = mutexes.emplace_back(line_, "lock " + std::to_string(i));
    holds.push_back(enter(mutex, i % 2 == 0));
  }
  const auto before = metrics().lock_renewals.load();
  int batches = 0;
  line_.plan = [&](std::string_view) {
    ++batches;
    return Fault::none;
  };
  clock_.advance(8s);
  heal();
  EXPECT_EQ(batches, 1);
  EXPECT_EQ(metrics().lock_renewals.load() - before, 500U);
  for (const auto& held : holds) ASSERT_GT(held.valid_for(), 29s);
}

TEST_F(SharedLeases, ShorterLeaseDoesNotShortenALongerOne) {
  SharedMutex brief{line_, "prices", {.lease = 1s}};
  SharedMutex lasting{line_, "prices", {.lease = 60s, .watchdog = false}};
  const Owner owner;
  for (const bool shared : kinds) {
    auto long_hold = enter(lasting, shared);
    if (!shared) break;
    auto short_hold = enter(brief, true);
    clock_.advance(5s);
    EXPECT_EQ(ttl("prices"), 55s);
    short_hold.release().get();
    EXPECT_EQ(ttl("prices"), 55s);
    Writer writer{there_, 1h};
    clock_.advance(54s);
    EXPECT_TRUE(writer.waits());
    EXPECT_TRUE(long_hold.valid());
    clock_.advance(1100ms);
    EXPECT_TRUE(writer.in());
  }
}

TEST_F(SharedLeases, LockLastsAsLongAsItsLongestReader) {
  SharedMutex brief{line_, "prices", {.lease = 10s, .watchdog = false}};
  SharedMutex lasting{far_, "prices", {.lease = 60s, .watchdog = false}};
  auto short_hold = enter(brief, true);
  auto long_hold = enter(lasting, true);
  EXPECT_EQ(ttl("prices"), 60s);
  long_hold.release().get();
  EXPECT_EQ(ttl("prices"), 10s) << "the longest of those that are left";
}

TEST_F(SharedLeases, RW03_ReaderThatDiedKeepsAWriterOutForItsLeaseOnly) {
  SharedMutex mutex{line_, "prices", {.lease = 5s}};
  SharedMutex dying{far_, "prices", {.lease = 5s}};
  Reader dead{dying, 0ms};
  clock_.advance(4s);
  far_.plan = [](std::string_view) { return Fault::refused; };  // nobody hears of it any more
  Reader living{mutex, 0ms};
  Writer writer{mutex, 1h};
  clock_.advance(60s);
  EXPECT_TRUE(living.in());
  EXPECT_TRUE(writer.waits());
  living.leave();
  EXPECT_TRUE(writer.in()) << "the dead one has been gone for long";
  EXPECT_EQ(field("prices", "mode"), "write");
}

TEST_F(SharedLeases, RW03_LastLivingReaderLeavesBeforeTheDeadOneIsGone) {
  SharedMutex mutex{line_, "prices", {.lease = 30s}};
  SharedMutex dying{far_, "prices", {.lease = 5s}};
  Reader dead{dying, 0ms};
  clock_.advance(1s);
  far_.plan = [](std::string_view) { return Fault::refused; };
  Reader living{mutex, 0ms};
  Writer writer{mutex, 1h};  // is told that the lock may last for 30 s
  clock_.advance(1s);
  living.leave();
  EXPECT_TRUE(writer.waits());
  EXPECT_LE(ttl("prices"), 5s);
  clock_.advance(5s);
  EXPECT_TRUE(writer.in()) << "it was told that it ends sooner";
}

TEST_F(SharedLeases, RW03_WriterThatComesLaterForgetsTheDead) {
  store_
      ->run({"HSET", "prices", "mode", "read", "dead0000-0000-4000-8000-000000000000:1", "2",
             "dead0000-0000-4000-8000-000000000000:2", "1"})
      .get();
  store_->run({"PEXPIRE", "prices", "30000"}).get();
  EXPECT_TRUE(here_.try_acquire().get()) << "their hold keys have ended";
}

TEST_F(SharedLeases, LateEndOfALostHoldLeavesTheNewerOneOfItsOwnerItsHoldKey) {
  SharedMutex mutex{line_, "prices", {.lease = 2s, .watchdog = false}};
  const Owner owner;
  Reader other{there_, 0ms};  // keeps the hash alive
  auto lost = mutex.acquire_shared(owner).get();
  clock_.advance(3s);
  auto newer = mutex.acquire_shared(owner).get();
  lost.release().get();
  other.leave();
  EXPECT_FALSE(there_.try_acquire().get());
  EXPECT_TRUE(newer.valid());
  newer.release().get();
  expect_nothing_left();
}

TEST_F(SharedLeases, LK07_ReadersOfADeletedLockDoNotOutliveIt) {
  SharedMutex longer{far_, "prices", {.lease = 1h, .watchdog = false}};
  const auto forgotten = longer.acquire_shared().get();
  store_->run({"DEL", "prices"}).get();
  auto reading = here_.acquire_shared().get();
  Writer writer{there_, 1h};
  reading.release().get();
  EXPECT_TRUE(writer.in()) << "without a step of the clock";
}

TEST_F(SharedLeases, WriterIsWokenByTheEndOfADeadWritersLease) {
  store_
      ->run(
          {"HSET", "prices", "mode", "write", "dead0000-0000-4000-8000-000000000000:1:write", "1"})
      .get();
  store_->run({"PEXPIRE", "prices", "2000"}).get();
  Writer writer{here_, 1h};
  std::list<Reader> readers;
  for (int i = 0; i < 5; ++i) readers.emplace_back(here_, 1h);
  clock_.advance(1999ms);
  EXPECT_TRUE(writer.waits());
  clock_.advance(5ms);
  EXPECT_TRUE(writer.in());
  writer.leave();
  for (const auto& reader : readers) EXPECT_TRUE(reader.in());
}

TEST_F(SharedLeases, WriterThatReadsLosesNeitherByTheOther) {
  const Owner owner;
  auto writing = here_.acquire(owner).get();
  clock_.advance(5s);
  auto reading = here_.acquire_shared(owner).get();
  clock_.advance(5min);
  EXPECT_TRUE(writing.valid());
  EXPECT_TRUE(reading.valid());
  writing.release().get();
  clock_.advance(5min);
  EXPECT_TRUE(reading.valid());
  reading.release().get();
  expect_nothing_left();
  clock_.advance(26h);
  EXPECT_EQ(clock_.pending_timers(), 0U);
}

// simulation: --primitive shared --seeds 346
TEST_F(SharedLeases, OwnerThatLostItsHoldGetsANewToken) {
  const Owner owner;
  auto lost = here_.acquire(owner).get();
  fail_all("lock/shared/renew_write", Fault::cut_off);  // prolonged, and nobody hears of it
  clock_.advance(30s);
  ASSERT_FALSE(lost.valid());
  ASSERT_TRUE(exists("prices"));
  heal();
  auto again = here_.try_acquire(owner).get();
  ASSERT_TRUE(again);
  EXPECT_GT(again->token(), lost.token()) << "others may have been told that it is over";
  auto entered = here_.try_acquire(owner).get();
  ASSERT_TRUE(entered);
  EXPECT_EQ(entered->token(), again->token()) << "it is in, and enters again";
}

}  // namespace
}  // namespace sluice
