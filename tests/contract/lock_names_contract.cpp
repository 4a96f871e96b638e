// What locks do with a name that is something else already, on every Store.
#include "contract/stores.hpp"
#include "sluice/lock.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class Frictions : public test::StoreContract {
 protected:
  void refuse(std::string_view what, const std::function<void()>& use) {
    try {
      use();
      ADD_FAILURE() << what << " takes it for a lock";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::wrong_type) << what << ": " << error.what();
      EXPECT_EQ(error.effect(), Effect::none) << what << ": " << error.what();
    }
  }

  /// No verb of any lock takes `key` for a lock, or changes it.
  void is_no_lock(const std::string& key) {
    Mutex mutex{store(), key};
    FairMutex fair{store(), key};
    SharedMutex shared{store(), key};
    refuse("Mutex", [&] { return mutex.try_acquire().get(); });
    refuse("Mutex, waiting", [&] { return mutex.try_acquire(30s).get(); });
    refuse("Mutex, by force", [&] { mutex.force_release().get(); });
    refuse("FairMutex", [&] { return fair.try_acquire().get(); });
    refuse("FairMutex, waiting", [&] { return fair.try_acquire(30s).get(); });
    refuse("FairMutex, by force", [&] { fair.force_release().get(); });
    refuse("SharedMutex, to write", [&] { return shared.try_acquire().get(); });
    refuse("SharedMutex, to read", [&] { return shared.try_acquire_shared(10s).get(); });
    refuse("SharedMutex, by force", [&] { shared.force_release().get(); });
  }
};
SLUICE_EVERY_STORE(Frictions);

TEST_P(Frictions, U03_AHashThatIsNoLockIsRefusedAndNeverDeleted) {
  const std::vector<std::vector<std::string>> hashes{{"name", "Ann", "age", "42"},
                                                     {"item:3", "2", "item:7", "1"},  // a basket
                                                     {"mode", "dark", "size", "12"},
                                                     {"mode", "read", "title", "Emma"},
                                                     {"42", "1"}};
  for (const auto& fields : hashes) {
    const std::string key = name("user:" + fields.front() + fields.at(1));
    std::vector<std::string_view> words{"HSET", key};
    words.insert(words.end(), fields.begin(), fields.end());
    store().run(words).get();
    is_no_lock(key);
    EXPECT_EQ(store().run({"HLEN", key}).get().as_integer(),
              static_cast<std::int64_t>(fields.size() / 2))
        << key;
    EXPECT_EQ(store().run({"HGET", key, fields.front()}).get().as_text(), fields.at(1));
  }
}

TEST_P(Frictions, U03_AHashOfManyFieldsIsRefusedAndNeverDeleted) {
  const std::string key = name("many");
  for (int i = 0; i < 200; ++i) store().run({"HSET", key, "field" + std::to_string(i), "1"}).get();
  is_no_lock(key);
  EXPECT_EQ(store().run({"HLEN", key}).get().as_integer(), 200);
}

TEST_P(Frictions, U03_AKeyOfAnotherTypeIsNotDeletedByForce) {
  const std::string key = name("text");
  store().run({"SET", key, "text"}).get();
  is_no_lock(key);
  EXPECT_EQ(store().run({"GET", key}).get().as_text(), "text");
}

TEST_P(Frictions, U03_ALockOfRedissonMayHaveAnyNumberOfAThread) {
  const std::string uuid = "5ae5a5d5-0c0a-4a4a-9f9f-0123456789ab";
  for (const std::string& owner : {uuid + ":-8123372036854775807", uuid + ":17:00ff3a"}) {
    const std::string key = name(owner);
    store().run({"HSET", key, owner, "1"}).get();
    store().run({"PEXPIRE", key, "60000"}).get();
    Mutex mutex{store(), key};
    FairMutex fair{store(), key};
    EXPECT_FALSE(mutex.try_acquire().get()) << owner;
    EXPECT_FALSE(fair.try_acquire().get()) << owner;
    EXPECT_TRUE(mutex.force_release().get()) << owner;
  }
}

TEST_P(Frictions, U03_ManyReadersAreALock) {
  const std::string key = name("read by many");
  store().run({"HSET", key, "mode", "read"}).get();
  for (int i = 0; i < 100; ++i)
    store()
        .run({"HSET", key, "5ae5a5d5-0c0a-4a4a-9f9f-0123456789ab:" + std::to_string(i), "1"})
        .get();
  store().run({"PEXPIRE", key, "60000"}).get();
  Mutex mutex{store(), key};
  EXPECT_FALSE(mutex.try_acquire().get());
  EXPECT_TRUE(mutex.force_release().get());
}

TEST_P(Frictions, U03_ALockOfRedissonIsALock) {
  const std::string key = name("lock");
  const std::string owner = "5ae5a5d5-0c0a-4a4a-9f9f-0123456789ab:17";
  store().run({"HSET", key, owner, "1"}).get();
  store().run({"PEXPIRE", key, "60000"}).get();
  Mutex mutex{store(), key};
  FairMutex fair{store(), key};
  EXPECT_FALSE(mutex.try_acquire().get());
  EXPECT_FALSE(fair.try_acquire().get());
  EXPECT_TRUE(mutex.force_release().get());
  store().run({"HSET", key, "mode", "write", owner + ":write", "1"}).get();
  store().run({"PEXPIRE", key, "60000"}).get();
  SharedMutex shared{store(), key};
  EXPECT_FALSE(shared.try_acquire_shared().get());
  EXPECT_TRUE(shared.force_release().get());
  EXPECT_EQ(store().run({"EXISTS", key}).get().as_integer(), 0);
}

TEST_P(Frictions, U03_WhatIsNoSemaphoreLatchOrLimiterIsRefusedAndNeverDeleted) {
  const std::string key = name("shop");
  Semaphore desks{store(), key};
  PermitSemaphore keys{store(), key};
  Latch latch{store(), key};
  RateLimiter limiter{store(), key, {.rate = 3}};
  MultiLock both{store(), {key, name("other")}, {.slot_by_slot = true}};
  for (const auto& value : {std::vector<std::string_view>{"HSET", key, "name", "Ann"},
                            {"SET", key, "Ann"},
                            {"RPUSH", key, "Ann"},
                            {"ZADD", key, "1", "Ann"}}) {
    store().run({"DEL", key}).get();
    store().run(Words{value}).get();
    refuse("Semaphore", [&] { (void)desks.try_acquire(1, 10s).get(); });
    refuse("Semaphore, to set", [&] { desks.ensure_permits(3).get(); });
    refuse("PermitSemaphore", [&] { (void)keys.try_acquire(30s).get(); });
    refuse("PermitSemaphore, to set", [&] { keys.set_permits(3).get(); });
    refuse("Latch", [&] { (void)latch.try_wait(10s).get(); });
    refuse("Latch, to set", [&] { latch.try_set_count(2).get(); });
    refuse("Latch, to reset", [&] { latch.reset(0).get(); });
    refuse("Latch, to count down", [&] { latch.count_down().get(); });
    refuse("RateLimiter", [&] { (void)limiter.try_acquire(1, 10s).get(); });
    refuse("RateLimiter, to set", [&] { limiter.set_rate(5, 1s).get(); });
    refuse("MultiLock", [&] { (void)both.try_acquire(30s).get(); });
    const std::string type = store().run({"TYPE", key}).get().as_text();
    EXPECT_EQ(type, value.front() == "HSET"    ? "hash"
                    : value.front() == "SET"   ? "string"
                    : value.front() == "RPUSH" ? "list"
                                               : "zset");
  }
}

}  // namespace
}  // namespace sluice
