// What Mutex promises on every Store, in real time.
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "contract/stores.hpp"
#include "sluice/lock.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Kind = ReleaseOutcome::Kind;

class MutexContract : public test::StoreContract {};
SLUICE_EVERY_STORE(MutexContract);
SLUICE_SHARDED_STORE(MutexContract);
SLUICE_WATCHED_STORE(MutexContract);

TEST_P(MutexContract, LetsOneIn) {
  Mutex mutex{store(), name("lock")};
  auto held = mutex.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->valid());
  EXPECT_FALSE(mutex.try_acquire().get());
  EXPECT_FALSE(mutex.try_acquire(20ms).get());
  EXPECT_EQ(held->release().get().kind, Kind::released);
  EXPECT_GT(mutex.acquire().get().token(), FencingToken{1});
}

TEST_P(MutexContract, WaiterIsWokenByTheRelease) {
  Mutex mutex{store(), name("lock")};
  auto held = mutex.acquire().get();
  auto waiting =
      std::async(std::launch::async, [&] { return mutex.try_acquire(1min).get().has_value(); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  held.release().get();
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready)
      << "the waiter sleeps until the lease ends";
  EXPECT_TRUE(waiting.get());
}

TEST_P(MutexContract, EightThreadsCountExactly) {
  Mutex mutex{store(), name("lock")};
  int counter = 0;  // no atomic: the lock protects it
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 8; ++i) {
      crew.emplace_back([&] {
        for (int round = 0; round < 25; ++round) {
          const std::scoped_lock lock{mutex};
          ++counter;
        }
      });
    }
  }
  EXPECT_EQ(counter, 200);
}

TEST_P(MutexContract, HoldIsRenewedAndEndsWithItsRelease) {
  Mutex mutex{store(), name("lock"), {.lease = 4s}};
  auto held = mutex.acquire().get();
  EXPECT_TRUE(is_renewed(name("lock")));
  EXPECT_FALSE(mutex.try_acquire().get());
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

TEST_P(MutexContract, FixedLeaseEnds) {
  Mutex mutex{store(), name("lock"), {.lease = 100ms, .watchdog = false}};
  auto held = test::once_in_time([&] { return mutex.acquire(); });
  std::promise<LostCause> told;
  held.on_lost([&](LostCause cause) { told.set_value(cause); });
  EXPECT_TRUE(test::once_in_time([&] { return mutex.try_acquire(30s); }));
  EXPECT_EQ(told.get_future().get(), LostCause::expired);
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
}

TEST_P(MutexContract, OwnerEntersAgain) {
  Mutex mutex{store(), name("lock")};
  const Owner owner;
  auto outer = mutex.acquire(owner).get();
  auto inner = mutex.try_acquire(owner).get();
  ASSERT_TRUE(inner);
  EXPECT_EQ(mutex.info().get().holders.at(0).entries, 2U);
  EXPECT_EQ(inner->release().get(), (ReleaseOutcome{Kind::still_held, 1}));
  EXPECT_EQ(outer.release().get().kind, Kind::released);
  EXPECT_TRUE(mutex.info().get().holders.empty());
}

TEST_P(MutexContract, ForcedReleaseIsNoticed) {
  Mutex mutex{store(), name("lock")};
  auto held = mutex.acquire().get();
  std::promise<LostCause> told;
  held.on_lost([&](LostCause cause) { told.set_value(cause); });
  EXPECT_TRUE(mutex.force_release().get());
  EXPECT_EQ(told.get_future().get(), LostCause::taken);
  EXPECT_FALSE(held.valid());
}

TEST_P(MutexContract, NamesOfAnyBytesAndOfAHundredKilobytes) {
  for (const std::string& bytes :
       {std::string{"nul \0 in it", 11}, std::string(100'000, 'x'), std::string{"\r\n$1\r\n{}"}}) {
    if (store().is_sharded() && bytes.find('{') != bytes.npos) {  // no whole tag
      EXPECT_THROW((Mutex{store(), bytes}), Error);
      continue;
    }
    Mutex mutex{store(), bytes};
    auto held = mutex.acquire().get();
    EXPECT_FALSE(mutex.try_acquire().get());
    EXPECT_EQ(held.release().get().kind, Kind::released);
  }
}

TEST_P(MutexContract, KeyOfAnotherKindIsAnError) {
  const auto key = name("lock");
  store().run({"SET", key, "text"}).get();
  Mutex mutex{store(), key};
  try {
    (void)mutex.acquire().get();
    FAIL() << "acquired a string";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
}

TEST_P(MutexContract, AnotherProgramIsKeptOutAndWoken) {
  if (!has_second()) GTEST_SKIP() << "an embedded store is alone";
  const auto other = second();
  const auto key = name("lock");
  Mutex here{store(), key};
  Mutex there{*other, key};
  auto held = here.acquire().get();
  EXPECT_FALSE(there.try_acquire().get());
  auto waiting =
      std::async(std::launch::async, [&] { return there.try_acquire(1min).get().has_value(); });
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  held.release().get();
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace sluice
