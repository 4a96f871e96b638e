// What SharedMutex promises on every Store, in real time.
#include <future>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "contract/stores.hpp"
#include "sluice/lock.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Kind = ReleaseOutcome::Kind;

class SharedMutexContract : public test::StoreContract {};
SLUICE_EVERY_STORE(SharedMutexContract);

TEST_P(SharedMutexContract, ManyReadOrOneWrites) {
  SharedMutex mutex{store(), name("lock")};
  auto one = mutex.try_acquire_shared().get();
  auto two = mutex.try_acquire_shared().get();
  ASSERT_TRUE(one && two);
  EXPECT_FALSE(mutex.try_acquire().get());
  EXPECT_EQ(one->release().get().kind, Kind::released);
  EXPECT_FALSE(mutex.try_acquire(20ms).get());
  EXPECT_EQ(two->release().get().kind, Kind::released);
  auto writer = mutex.try_acquire().get();
  ASSERT_TRUE(writer);
  EXPECT_FALSE(mutex.try_acquire_shared().get());
  EXPECT_FALSE(mutex.try_acquire_shared(20ms).get());
  EXPECT_EQ(writer->release().get().kind, Kind::released);
}

TEST_P(SharedMutexContract, WaitersAreWokenByTheRelease) {
  SharedMutex mutex{store(), name("lock")};
  auto held = mutex.acquire().get();
  const auto read = [&] { return mutex.try_acquire_shared(1min).get(); };
  auto one = std::async(std::launch::async, read);
  auto two = std::async(std::launch::async, read);
  EXPECT_EQ(one.wait_for(50ms), std::future_status::timeout);
  held.release().get();
  auto first = one.get();
  auto second = two.get();
  ASSERT_TRUE(first && second) << "together";
  auto writer = std::async(std::launch::async, [&] { return mutex.try_acquire(1min).get(); });
  first->release().get();
  EXPECT_EQ(writer.wait_for(50ms), std::future_status::timeout);
  second->release().get();
  ASSERT_EQ(writer.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(writer.get());
}

TEST_P(SharedMutexContract, DowngradeAndUpgrade) {
  SharedMutex mutex{store(), name("lock")};
  const Owner owner;
  auto writing = mutex.acquire(owner).get();
  auto reading = mutex.acquire_shared(owner).get();
  writing.release().get();
  EXPECT_TRUE(mutex.try_acquire_shared().get());
  EXPECT_THROW((void)mutex.try_acquire(owner).get(), Error);
  reading.release().get();
  EXPECT_TRUE(mutex.try_acquire(owner).get());
}

TEST_P(SharedMutexContract, ThreadsCountExactly) {
  SharedMutex mutex{store(), name("lock")};
  int counter = 0;  // no atomic: the lock protects it
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 6; ++i) {
      crew.emplace_back([&, i] {
        for (int round = 0; round < 20; ++round) {
          if (i % 2) {
            const std::unique_lock lock{mutex};
            ++counter;
          } else {
            const std::shared_lock lock{mutex};
            EXPECT_LE(counter, 60);
          }
        }
      });
    }
  }
  EXPECT_EQ(counter, 60);
}

TEST_P(SharedMutexContract, HoldsAreRenewedAndEndWithTheirRelease) {
  SharedMutex mutex{store(), name("lock"), {.lease = 4s}};
  auto reading = mutex.acquire_shared().get();
  EXPECT_TRUE(is_renewed(name("lock")));
  EXPECT_FALSE(mutex.try_acquire().get());
  EXPECT_EQ(reading.release().get().kind, Kind::released);
  auto writing = mutex.acquire().get();
  EXPECT_TRUE(is_renewed(name("lock")));
  EXPECT_FALSE(mutex.try_acquire_shared().get());
  EXPECT_EQ(writing.release().get().kind, Kind::released);
}

TEST_P(SharedMutexContract, FixedLeasesEnd) {
  SharedMutex mutex{store(), name("lock"), {.lease = 100ms, .watchdog = false}};
  auto reading = test::once_in_time([&] { return mutex.acquire_shared(); });
  auto writing = test::once_in_time([&] { return mutex.try_acquire(30s); });
  ASSERT_TRUE(writing);
  EXPECT_EQ(reading.release().get().kind, Kind::not_held);
  EXPECT_TRUE(mutex.try_acquire_shared(10s).get());
}

TEST_P(SharedMutexContract, InfoAndForce) {
  SharedMutex mutex{store(), name("lock")};
  auto one = mutex.acquire_shared().get();
  auto two = mutex.acquire_shared().get();
  const LockInfo info = mutex.info().get();
  ASSERT_EQ(info.holders.size(), 2U);
  EXPECT_FALSE(info.holders[0].exclusive);
  EXPECT_TRUE(mutex.force_release().get());
  EXPECT_FALSE(mutex.force_release().get());
  EXPECT_TRUE(mutex.info().get().holders.empty());
  EXPECT_EQ(one.release().get().kind, Kind::not_held);
}

TEST_P(SharedMutexContract, NamesOfAnyBytesAndOfAHundredKilobytes) {
  for (const std::string& bytes :
       {std::string{"nul \0 in it", 11}, std::string(100'000, 'x'), std::string{"\r\n$1\r\n{}"}}) {
    SharedMutex mutex{store(), bytes, {.label = std::string{"nul \0 too", 9}}};
    auto held = mutex.acquire_shared().get();
    EXPECT_FALSE(mutex.try_acquire().get());
    EXPECT_EQ(held.release().get().kind, Kind::released);
    EXPECT_TRUE(mutex.try_acquire().get());
  }
}

TEST_P(SharedMutexContract, KeyOfAnotherKindIsAnError) {
  const auto key = name("lock");
  store().run({"SET", key, "text"}).get();
  SharedMutex mutex{store(), key};
  try {
    (void)mutex.acquire_shared().get();
    FAIL() << "acquired a string";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
}

TEST_P(SharedMutexContract, BadArgumentsAreRefused) {
  EXPECT_THROW((SharedMutex{store(), ""}), Error);
  EXPECT_THROW((SharedMutex{store(), "x", {.lease = 1ms}}), Error);
  EXPECT_THROW((SharedMutex{store(), "x", {.overtaking = 1'000'001}}), Error);
  EXPECT_THROW((SharedMutex{store(), "x", {.hand_overs = 0}}), Error);
}

TEST_P(SharedMutexContract, AnotherProgramIsKeptOutAndWoken) {
  if (!has_second()) GTEST_SKIP() << "an embedded store is alone";
  const auto other = second();
  const auto key = name("lock");
  SharedMutex here{store(), key};
  SharedMutex there{*other, key};
  auto held = here.acquire().get();
  auto reader =
      std::async(std::launch::async, [&] { return there.try_acquire_shared(1min).get(); });
  EXPECT_EQ(reader.wait_for(50ms), std::future_status::timeout);
  held.release().get();
  ASSERT_EQ(reader.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(reader.get());
}

}  // namespace
}  // namespace sluice
