// What CacheGuard promises on every Store, in real time.
#include <fmt/format.h>

#include <atomic>
#include <future>
#include <map>
#include <set>
#include <stdexcept>

#include "cache/entry.hpp"
#include "contract/stores.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "sluice/when_all.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using Cache = CacheGuard<std::string>;
using Found = std::optional<std::string>;

class CacheContract : public test::StoreContract {
 protected:
  static constexpr auto one = [] { return std::string{"one"}; };
  static constexpr auto two = [] { return std::string{"two"}; };

  static CacheGuardOptions patient() { return {.lease = 30s, .wait = 1min}; }
  static std::string key(const std::string& of) { return name("user") + ':' + of; }
  bool exists(const std::string& what) {
    return store().run({"EXISTS", what}).get().as_integer() == 1;
  }
  Cache guard(CacheGuardOptions options = patient()) {
    return Cache{store(), name("user"), std::move(options)};
  }
  /// A guard as another process has it, where the Store is not alone.
  Cache guard_elsewhere(CacheGuardOptions options = patient()) {
    if (has_second()) other_ = second();
    return Cache{other_ ? *other_ : store(), name("user"), std::move(options)};
  }

 private:
  std::unique_ptr<Store> other_;
};
SLUICE_EVERY_STORE(CacheContract);
SLUICE_SHARDED_STORE(CacheContract);

/// A load that stands still until it is let go.
class SlowLoad {
 public:
  auto loader(std::string value) {
    return [this, value = std::move(value)] {
      begun_.set_value();
      EXPECT_EQ(goes_on_.wait_for(1min), std::future_status::ready);
      return value;
    };
  }
  void await_begun() { ASSERT_EQ(has_begun_.wait_for(1min), std::future_status::ready); }
  void let_go() { go_.set_value(); }

 private:
  std::promise<void> begun_;
  std::promise<void> go_;
  std::future<void> has_begun_ = begun_.get_future();
  std::future<void> goes_on_ = go_.get_future();
};

TEST_P(CacheContract, HasWhatWasLoadedOrPutUntilItIsInvalidated) {
  Cache here = guard();
  Cache there = guard_elsewhere();
  EXPECT_EQ(here.get("1", one).get(), "one");
  EXPECT_EQ(there.get("1", two).get(), "one");
  there.put("1", "put").get();
  EXPECT_EQ(here.get("1", two).get(), "put");
  here.invalidate("1").get();
  EXPECT_FALSE(exists(key("1")));
  EXPECT_EQ(there.get("1", two).get(), "two");
}

TEST_P(CacheContract, KeysAndValuesAreOfAnyBytes) {
  Cache cache = guard();
  const std::string odd{"\0\r\n{}:%\xff", 8};
  const std::string large(100'000, '\0');
  for (const std::string& which : {std::string{}, odd, std::string(65'536, 'k')}) {
    EXPECT_EQ(cache.get(which, [&] { return large; }).get(), large);
    EXPECT_EQ(cache.get(which, one).get(), large);
    cache.put(which, "").get();
    EXPECT_EQ(cache.get(which, one).get(), "");
  }
}

TEST_P(CacheContract, ManyCallersShareOneLoad) {
  Cache here = guard();
  Cache there = guard_elsewhere();
  std::atomic<int> loads{0};
  const auto load = [&] { return ++loads, std::string{"one"}; };
  std::vector<Task<Found>> calls;
  for (int i = 0; i < 100; ++i) calls.push_back((i % 2 == 0 ? here : there).get("1", load));
  for (const auto& value : when_all(std::move(calls)).get()) EXPECT_EQ(value, "one");
  EXPECT_EQ(loads, 1);
}

TEST_P(CacheContract, AWaiterIsToldLongBeforeTheLeaseIsOver) {
  Cache here = guard();
  Cache there = guard_elsewhere({.lease = 10min, .wait = 1min});
  SlowLoad slow;
  auto first =
      std::async(std::launch::async, [&] { return here.get("1", slow.loader("one")).get(); });
  slow.await_begun();
  auto second = std::async(std::launch::async, [&] { return there.get("1", two).get(); });
  const auto lease = cache::Names::lease_of(key("1"));
  EXPECT_TRUE(comes_true([&] {
    return store().run({"HEXISTS", lease, "waited"}).get().as_integer() == 1;
  }));
  slow.let_go();
  EXPECT_EQ(first.get(), "one");
  EXPECT_EQ(second.get(), "one");
}

TEST_P(CacheContract, ALoadThatRunsKeepsItsLease) {
  Cache cache = guard({.lease = 1s, .wait = 1min});
  const auto keeps_it = [&](const std::string& which) {
    SlowLoad slow;
    auto call =
        std::async(std::launch::async, [&] { return cache.get(which, slow.loader("one")).get(); });
    slow.await_begun();
    const bool is_kept = is_renewed(cache::Names::lease_of(key(which)));
    slow.let_go();
    EXPECT_EQ(call.get(), "one");
    return is_kept;
  };
  EXPECT_TRUE(keeps_it("1") || keeps_it("2"));  // the process may stand still for a lease
}

TEST_P(CacheContract, ASlowLoadStoresNothingOverAnInvalidation) {
  Cache here = guard();
  Cache there = guard_elsewhere();
  SlowLoad slow;
  auto call =
      std::async(std::launch::async, [&] { return here.get("1", slow.loader("one")).get(); });
  slow.await_begun();
  there.invalidate("1").get();
  slow.let_go();
  EXPECT_EQ(call.get(), "one");
  EXPECT_FALSE(exists(key("1")));
  EXPECT_EQ(here.get("1", two).get(), "two");
}

TEST_P(CacheContract, AFailureLeavesNothingAndTheNextCallLoads) {
  Cache cache = guard();
  const auto failing = []() -> std::string { throw std::domain_error{"no such table"}; };
  EXPECT_THROW(cache.get("1", failing).get(), std::domain_error);
  EXPECT_FALSE(exists(cache::Names::lease_of(key("1"))));
  EXPECT_EQ(cache.get("1", one).get(), "one");
}

TEST_P(CacheContract, NoMoreAbsencesThanTheBudgetAreCached) {
  auto options = patient();
  options.absent_budget = 10;
  options.absent_ttl = 1h;
  Cache cache = guard(options);
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(cache.get(std::to_string(i), [] { return Found{}; }).get(), std::nullopt);
  int cached = 0;
  for (int i = 0; i < 30; ++i) cached += exists(key(std::to_string(i)));
  EXPECT_GE(cached, 5);  // half of it in each half hour
  EXPECT_LE(cached, 10);
  EXPECT_EQ(cache.get("0", one).get(), std::nullopt);
}

TEST_P(CacheContract, ASecondInvalidationComes) {
  Cache cache = guard();
  const auto comes_behind_a_put = [&] {
    cache.invalidate_twice("1", 50ms).get();
    cache.put("1", "read from a replica that lags").get();
    return comes_true([&] { return !exists(key("1")); });
  };
  EXPECT_TRUE(comes_behind_a_put() || comes_behind_a_put());  // the put may have been late
}

TEST_P(CacheContract, ManyKeysAreOnesKeysEach) {
  Cache here = guard();
  Cache there = guard_elsewhere();
  std::vector<std::string> keys;
  for (int i = 0; i < 150; ++i) keys.push_back(std::to_string(i));
  std::atomic<int> loads{0};
  const auto load = [&](const std::vector<std::string>& missing) {
    std::map<std::string, std::string> found;
    for (const auto& each : missing) found[each] = fmt::format("{} of {}", each, loads.load());
    ++loads;
    return found;
  };
  const auto has = [&](Cache& cache) {
    std::set<std::string> rows;
    for (const auto& each : cache.get_all(keys, load).get())
      rows.insert(each.get()->substr(each.get()->find(' ')));
    return rows;
  };
  EXPECT_EQ(has(here), (std::set<std::string>{" of 0", " of 1"}));  // a hundred at a time
  EXPECT_EQ(has(there), (std::set<std::string>{" of 0", " of 1"}));
  there.invalidate_all(keys).get();
  EXPECT_EQ(has(here), (std::set<std::string>{" of 2", " of 3"}));

  Cache other{store(), name("user") + ":other", patient()};
  other.put("1", "other").get();
  SlowLoad slow;
  auto call =
      std::async(std::launch::async, [&] { return here.get("slow", slow.loader("old")).get(); });
  slow.await_begun();
  EXPECT_EQ(there.clear().get(), 151U);
  for (const auto& each : keys) EXPECT_FALSE(exists(key(each))) << each;
  slow.let_go();
  EXPECT_EQ(call.get(), "old");
  EXPECT_EQ(here.get("slow", two).get(), "two");
  EXPECT_EQ(has(there), (std::set<std::string>{" of 4", " of 5"}));
  EXPECT_EQ(other.get("1", two).get(), "other");
}

// Where the Store does not tell of changes, as a proxy, each call asks it.
TEST_P(CacheContract, ANearValueGoesWithTheWordOfItsChange) {
  auto options = patient();
  options.near_bytes = 1 << 20;
  Cache here = guard(options);
  Cache there = guard_elsewhere();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(here.get("1", one).get(), "one");
  there.invalidate("1").get();
  EXPECT_TRUE(comes_true([&] { return here.get("1", two).get() == "two"; }));
}

TEST_P(CacheContract, AForeignKeyIsRefusedAndLeftAsItIs) {
  store().run({"SET", key("1"), "theirs"}).get();
  Cache cache = guard();
  try {
    cache.get("1", one).get();
    FAIL() << "it was taken for a value";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
  EXPECT_EQ(store().run({"GET", key("1")}).get().as_text(), "theirs");
}

TEST_P(CacheContract, ASharedFilterIsItsGate) {
  SharedBloomFilter known{store(), name("known")};
  known.try_create({.expected = 1000, .error_rate = 1e-6}).get();
  known.add("1").get();
  const auto copy = known.local_copy().get();
  std::atomic<int> loads{0};
  const auto load = [&] { return ++loads, std::string{"one"}; };
  const auto asks_each_time = [&](std::string_view id) { return known.contains(id).get(); };
  const auto asks_the_copy = [&](std::string_view id) { return copy.contains(id); };
  for (const std::function<bool(std::string_view)>& gate :
       {std::function<bool(std::string_view)>{asks_each_time}, {asks_the_copy}}) {
    auto options = patient();
    options.may_exist = gate;
    Cache cache = guard(options);
    for (int i = 2; i < 100; ++i) EXPECT_EQ(cache.get(std::to_string(i), load).get(), std::nullopt);
    EXPECT_EQ(loads, 0);
    EXPECT_EQ(cache.get("1", load).get(), "one");
    EXPECT_EQ(loads, 1);
    cache.invalidate("1").get();
    loads = 0;
  }
  known.remove().get();  // both gates throw now, and so are open
  auto options = patient();
  options.may_exist = asks_each_time;
  Cache cache = guard(options);
  EXPECT_EQ(cache.get("2", load).get(), "one");
}

}  // namespace
}  // namespace sluice
