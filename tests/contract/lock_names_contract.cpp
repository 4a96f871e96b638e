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
    }
  }

  /// No verb of any lock takes `key` for a lock, or changes it.
  void is_no_lock(const std::string& key) {
    Mutex mutex{store(), key};
    FairMutex fair{store(), key};
    SharedMutex shared{store(), key};
    refuse("Mutex", [&] { mutex.try_acquire().get(); });
    refuse("Mutex, waiting", [&] { mutex.try_acquire(10s).get(); });
    refuse("Mutex, by force", [&] { mutex.force_release().get(); });
    refuse("FairMutex", [&] { fair.try_acquire().get(); });
    refuse("FairMutex, waiting", [&] { fair.try_acquire(10s).get(); });
    refuse("FairMutex, by force", [&] { fair.force_release().get(); });
    refuse("SharedMutex, to write", [&] { shared.try_acquire().get(); });
    refuse("SharedMutex, to read", [&] { shared.try_acquire_shared(10s).get(); });
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

}  // namespace
}  // namespace sluice
