// No two names of a primitive, and no two primitives, share a key or a channel.
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "lock/virtual_lock.hpp"
#include "support/forwarding_store.hpp"

namespace sluice {
namespace {

/// A Store that notes the keys and channels of all scripts.
class KeyStore final : public test::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  using ForwardingStore::run;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    noted.insert(keys.begin(), keys.end());
    for (const auto arg : args)
      if (arg.starts_with("redisson_") || arg.starts_with("sluice_")) noted.emplace(arg);
    if (script.name.starts_with("lock/shared/")) noted.insert(std::string{args[0]} + ":OWNER");
    return ForwardingStore::run(script, keys, args, options);
  }

  std::set<std::string> noted;
};

struct Primitive {
  std::string_view name;
  void (*use)(Store&, const std::string&);
};

template <class Lock>
void use_lock(Store& store, const std::string& name) {
  Lock lock{store, name};
  auto held = lock.try_acquire().get();
  ASSERT_TRUE(held) << name;
  (void)lock.info().get();
  (void)held->release().get();
}

const Primitive primitives[] = {
    {"Mutex", use_lock<Mutex>},
    {"FairMutex", use_lock<FairMutex>},
    {"SharedMutex", use_lock<SharedMutex>},
    {"MultiLock",
     [](Store& store, const std::string& name) {
       ASSERT_TRUE((MultiLock{store, {name}}.try_acquire().get()));
     }},
    {"QuorumLock",
     [](Store& store, const std::string& name) {
       ASSERT_TRUE((QuorumLock{{&store}, name}.try_acquire().get()));
     }},
    {"Semaphore",
     [](Store& store, const std::string& name) {
       Semaphore semaphore{store, name};
       semaphore.ensure_permits(1).get();
       ASSERT_TRUE(semaphore.try_acquire().get());
     }},
    {"PermitSemaphore",
     [](Store& store, const std::string& name) {
       PermitSemaphore semaphore{store, name};
       semaphore.set_permits(1).get();
       ASSERT_TRUE(semaphore.try_acquire().get());
     }},
    {"Latch",
     [](Store& store, const std::string& name) {
       Latch latch{store, name};
       latch.try_set_count(1).get();
       latch.count_down().get();
     }},
    {"RateLimiter",
     [](Store& store, const std::string& name) {
       RateLimiter{store, name, {.rate = 5}}.try_acquire().get();
     }},
    {"Fence",
     [](Store& store, const std::string& name) {
       ASSERT_TRUE((Fence{store, name}.admit(FencingToken{1}).get()));
     }},
};

std::vector<std::string> names_up_to(std::size_t longest) {
  std::vector<std::string> names{""};
  for (std::size_t from = 0; names[from].size() < longest; ++from)
    for (const char next : {'a', '{', '}', ':'}) names.push_back(names[from] + next);
  names.erase(names.begin());
  return names;
}

using KeyNames = VirtualLock;

TEST_F(KeyNames, LK01_NoTwoNamesShareAKeyOrAChannel) {
  using User = std::pair<std::string_view, std::string>;  // a primitive and a name
  std::map<std::string, std::set<User>> users;
  std::size_t refused = 0;
  for (const auto& name : names_up_to(4)) {
    for (const auto& primitive : primitives) {
      KeyStore store{*store_};
      try {
        primitive.use(store, name);
      } catch (const Error& error) {
        ASSERT_EQ(error.errc(), Errc::bad_argument) << error.what();
        EXPECT_TRUE(store.noted.empty()) << primitive.name << " '" << name << "'";
        ++refused;
      }
      for (const auto& key : store.noted) users[key].emplace(primitive.name, name);
      store_->run({"FLUSHALL"}).get();
    }
  }
  for (const auto& [key, all] : users) {
    const auto& [first, name] = *all.begin();
    for (const auto& [other, its_name] : all) {
      EXPECT_EQ(its_name, name) << key << ": " << first << ", " << other;
      // Primitives that share a key of one name see each other at the key that bears it.
      if (other != first) {
        EXPECT_TRUE(users.at(name).contains({other, name})) << key << ": " << other;
        EXPECT_TRUE(users.at(name).contains({first, name})) << key << ": " << first;
      }
    }
  }
  EXPECT_EQ(refused, std::size(primitives) * (1 + 3 + 9)) << "{}, {a}, {a:} ...";
}

}  // namespace
}  // namespace sluice
