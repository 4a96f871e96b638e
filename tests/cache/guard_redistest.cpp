// Cache guards of several processes on a real server, which is stopped, emptied and filled up.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <mutex>
#include <random>
#include <stop_token>
#include <thread>

#include "sluice/bloom_filter.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/metrics.hpp"
#include "sluice/open.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "sluice/when_all.hpp"
#include "support/comes_true.hpp"
#include "support/fault_proxy.hpp"
#include "support/paths.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"
#include "support/server_pair.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Cache = CacheGuard<std::string>;
using test::comes_true;
using test::rounds;

class GuardOnServer : public testing::Test {
 protected:
  static std::unique_ptr<Store> open_patiently(const std::string& url) {
    return open(url, {.command_timeout = 30s, .connect_timeout = 30s});
  }
  std::int64_t keys() { return side_.command({"DBSIZE"}).as_integer(); }

  test::RedisServer server_;
  test::TempDir folder_;
  test::PlainClient side_{server_.port()};
};

/// A database of SQLite that counts loads.
class CountedLoads {
 public:
  explicit CountedLoads(const std::string& path) {
    sqlite3_open(path.c_str(), &database_);
    sqlite3_busy_timeout(database_, 30'000);
    sqlite3_exec(database_, "CREATE TABLE loads (id INTEGER PRIMARY KEY)", nullptr, nullptr,
                 nullptr);
  }
  ~CountedLoads() { sqlite3_close(database_); }
  CountedLoads(const CountedLoads&) = delete;
  CountedLoads& operator=(const CountedLoads&) = delete;

  int count() const {
    int rows = -1;
    const auto read = [](void* into, int, char** cells, char**) {
      *static_cast<int*>(into) = std::stoi(cells[0]);
      return 0;
    };
    sqlite3_exec(database_, "SELECT COUNT(*) FROM loads", read, &rows, nullptr);
    return rows;
  }

 private:
  sqlite3* database_ = nullptr;
};

// The whole of it, 10,000 callers, is a row of bench/cache.
TEST_F(GuardOnServer, ManyCallersOfFourProcessesLoadOnce) {
  constexpr int processes = 4;
  constexpr int callers = rounds(250);
  const std::string path = folder_ / "loads.db";
  const CountedLoads loads{path};
  std::vector<test::Process> crew;
  for (int i = 0; i < processes; ++i)
    crew.emplace_back(std::vector<std::string>{test::built_path("tests/cache/cache_worker"),
                                               "callers", server_.url(), path,
                                               std::to_string(callers)});
  for (int i = 0; i < processes; ++i) side_.command({"RPUSH", "go", "1"});
  for (int i = 0; i < processes; ++i)
    EXPECT_EQ(side_.command({"BLPOP", "done", "50"}).as_items().at(1).as_text(),
              std::to_string(callers));
  for (auto& process : crew) EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(loads.count(), 1);
}

TEST_F(GuardOnServer, WhenTheLeaderIsKilledOneOtherLoadsWhenItsLeaseIsOver) {
  test::Process leader{{test::built_path("tests/cache/cache_worker"), "leader", server_.url()}};
  ASSERT_FALSE(side_.command({"BLPOP", "begun", "50"}).is_null());
  const auto left = side_.command({"PTTL", "sluice_cache_lease:{user:1}"}).as_integer();
  EXPECT_LE(left, 1000);
  leader.kill();

  std::vector<std::unique_ptr<Store>> stores;
  std::vector<std::unique_ptr<Cache>> caches;
  for (int i = 0; i < 3; ++i) {
    stores.push_back(open_patiently(server_.url()));
    caches.push_back(
        std::make_unique<Cache>(*stores.back(), "user", CacheGuardOptions{.wait = 60s}));
  }
  std::atomic<int> loads{0};
  std::vector<Task<std::optional<std::string>>> calls;
  for (int i = 0; i < 30; ++i)
    calls.push_back(caches[i % 3]->get("1", [&] { return ++loads, std::string{"one"}; }));
  for (const auto& value : when_all(std::move(calls)).get()) EXPECT_EQ(value, "one");
  EXPECT_EQ(loads, 1);
}

// The whole of it, a million ids, is `scripts/bench cache_bench --only flood`.
TEST_F(GuardOnServer, RandomIdsFillNoMoreThanTheBudget) {
  constexpr int ids = rounds(10'000);
  const auto store = open_patiently(server_.url());
  std::atomic<int> loads{0};
  Cache cache{*store, "user", {.absent_budget = 200, .wait = 60s}};
  for (int from = 0; from < ids; from += 500) {
    std::vector<Task<std::optional<std::string>>> calls;
    for (int id = from; id < from + 500; ++id)
      calls.push_back(cache.get(std::to_string(id), [&]() -> std::optional<std::string> {
        ++loads;
        return std::nullopt;
      }));
    for (const auto& value : when_all(std::move(calls)).get()) EXPECT_EQ(value, std::nullopt);
  }
  EXPECT_EQ(loads, ids);
  EXPECT_LE(keys(), 201);
}

// The ids are the same in each run, and so are the filters' answers. The filters are larger than
// they need be: double hashing, as Guava and Redisson do it, has more false positives than the rate
// says where a filter is small.
TEST_F(GuardOnServer, AMillionRandomIdsBehindAFilterLoadNothing) {
  constexpr int ids = rounds(1'000'000);
  constexpr int users = 1000;
  constexpr int expected = 100'000;
  constexpr double error_rate = 1e-9;
  const auto store = open_patiently(server_.url());
  BloomFilter local{{.expected = expected, .error_rate = error_rate}};
  SharedBloomFilter shared{*store, "known"};
  shared.try_create({.expected = expected, .error_rate = error_rate}).get();
  std::vector<std::string> known;
  for (int i = 0; i < users; ++i) local.add(known.emplace_back("user" + std::to_string(i)));
  shared.add(bloom_keys(known)).get();
  const auto copy = shared.local_copy().get();

  const auto expect_closed = [&](std::function<bool(std::string_view)> gate) {
    std::atomic<int> loads{0};
    const auto load = [&] { return ++loads, std::string{"one"}; };
    Cache cache{*store, "user", {.may_exist = std::move(gate)}};
    const auto before = keys();
    std::mt19937_64 random{13};
    int found = 0;
    for (int i = 0; i < ids; ++i) found += cache.get(std::to_string(random()), load).get() == "one";
    EXPECT_EQ(found, 0);
    EXPECT_EQ(loads, 0);
    EXPECT_EQ(keys(), before);
    EXPECT_EQ(cache.get(known.back(), load).get(), "one");
    cache.invalidate(known.back()).get();
  };
  expect_closed([&](std::string_view id) { return local.contains(id); });
  expect_closed([&](std::string_view id) { return copy.contains(id); });
}

TEST_F(GuardOnServer, TenThousandKeysWrittenTogetherEndSpreadOverTheJitter) {
  constexpr int many = rounds(10'000);
  const auto store = open_patiently(server_.url());
  Cache cache{
      *store, "user", {.ttl = 1000s, .jitter = 0.1, .wait = 60s, .max_waiting_loads = many}};
  std::vector<Task<std::optional<std::string>>> calls;
  for (int i = 0; i < many; ++i)
    calls.push_back(cache.get(std::to_string(i), [] { return std::string{"one"}; }));
  when_all(std::move(calls)).get();

  // Ends lie in 900 to 1000 s from their writes; each tenth of that has its share, within 5 sigma.
  constexpr int share = many / 10;
  const int sigmas = static_cast<int>(5 * std::sqrt(share * 0.9));
  Batch asked;
  for (int i = 0; i < many; ++i) asked.add({"PEXPIRETIME", "user:" + std::to_string(i)});
  for (int i = 0; i < many; ++i) asked.add({"GETRANGE", "user:" + std::to_string(i), "6", "21"});
  const auto replies = store->run(std::move(asked)).get();
  std::array<int, 10> tenths{};
  for (std::size_t i = 0; i < many; ++i) {
    const auto end = replies[i].as_integer();
    EXPECT_GE(static_cast<double>(end), std::stod(replies[many + i].as_text()) / 1000 - 1)
        << "gone before its time";
    ++tenths[static_cast<std::size_t>(end / 10'000) % 10];
  }
  const auto [least, most] = std::ranges::minmax(tenths);
  EXPECT_GT(least, share - sigmas);
  EXPECT_LT(most, share + sigmas);
}

/// The row of a database, its writer, and what readers must not see.
class History {
 public:
  std::string read() {
    const int row = row_;  // and then it takes a while
    std::this_thread::sleep_for(1ms);
    return std::to_string(row);
  }
  void write(Cache& cache) {
    const int mine = ++row_;
    try {
      cache.invalidate("1").get();
    } catch (const Error& failure) {
      unsynced_ += failure.errc() == Errc::unsynced;
      return;
    }
    for (int seen = acknowledged_;
         seen < mine && !acknowledged_.compare_exchange_weak(seen, mine);) {
    }
    ++invalidations_;
  }
  void look(Cache& cache) {
    const int least = acknowledged_;
    try {
      const auto value = cache.get("1", [this] { return read(); }).get();
      if (!value || std::stoi(*value) < least) ++wrong_;
      ++answers_;
    } catch (const Error&) {
      ++failures_;
    }
  }

  /// Readers and a writer, who go on until it ends.
  class Crew {
   public:
    Crew(History& history, std::vector<std::unique_ptr<Cache>>& caches) : history_(history) {
      for (int i = 0; i < 4; ++i)
        crew_.emplace_back([&, i](const std::stop_token& over) {
          while (!over.stop_requested()) history_.look(*caches[i % caches.size()]);
        });
      crew_.emplace_back([&](const std::stop_token& over) {
        for (std::size_t i = 0; !over.stop_requested(); ++i) {
          if (!is_paused_) history_.write(*caches[i % caches.size()]);
          std::this_thread::sleep_for(3ms);
        }
      });
    }
    /// The writer rests while it happens, and until there are so many answers more.
    void only_read(const std::function<void()>& happens) {
      is_paused_ = true;
      happens();
      const int answers = history_.answers() + 100;
      EXPECT_TRUE(comes_true([&] { return history_.answers() >= answers; }));
      is_paused_ = false;
    }
    /// Waits until there are so many answers and acknowledged invalidations more.
    void go_on() {
      const int answers = history_.answers() + 100;
      const int invalidations = history_.invalidations() + 10;
      EXPECT_TRUE(comes_true([&] {
        return history_.answers() >= answers && history_.invalidations() >= invalidations;
      }));
    }

   private:
    History& history_;
    std::atomic<bool> is_paused_{false};
    std::vector<std::jthread> crew_;
  };

  int wrong() const { return wrong_; }
  int answers() const { return answers_; }
  int invalidations() const { return invalidations_; }
  int unsynced() const { return unsynced_; }

 private:
  std::atomic<int> row_{0};
  std::atomic<int> acknowledged_{0};
  std::atomic<int> wrong_{0};
  std::atomic<int> answers_{0};
  std::atomic<int> failures_{0};
  std::atomic<int> invalidations_{0};
  std::atomic<int> unsynced_{0};
};

TEST_F(GuardOnServer, WhileItIsStoppedAndStartedNoValueIsServedAfterItsInvalidation) {
  for (const auto when_down : {CacheWhenDown::fail, CacheWhenDown::load}) {
    History history;
    std::vector<std::unique_ptr<Store>> stores;
    std::vector<std::unique_ptr<Cache>> caches;
    for (int i = 0; i < 2; ++i) {
      stores.push_back(open_patiently(server_.url()));
      caches.push_back(std::make_unique<Cache>(
          *stores.back(), "user",
          CacheGuardOptions{.ttl = 300ms, .lease = 200ms, .when_down = when_down}));
    }
    {
      History::Crew crew{history, caches};
      for (int i = 0; i < 3; ++i) {
        crew.go_on();
        server_.restart(false);
      }
      server_.stop();
      std::this_thread::sleep_for(50ms);
      server_.cont();
      crew.go_on();
    }
    EXPECT_EQ(history.wrong(), 0);
    EXPECT_GE(history.answers(), 400);
    EXPECT_GE(history.invalidations(), 40);
  }
}

// The replica that takes the server's place lacks all that the server was told in its last moments.
TEST(GuardOnReplica, WhatItHadToKnowHoldsAfterItsPromotion) {
  test::ServerPair servers;
  History history;
  std::vector<std::unique_ptr<Store>> stores;
  std::vector<std::unique_ptr<Cache>> caches;
  for (int i = 0; i < 2; ++i) {
    stores.push_back(open(servers.url(), {.command_timeout = 30s, .connect_timeout = 30s}));
    caches.push_back(std::make_unique<Cache>(
        *stores.back(), "user",
        CacheGuardOptions{.lease = 200ms, .durability = {.replicas = 1, .within = 50ms}}));
  }
  {
    History::Crew crew{history, caches};
    crew.go_on();
    crew.only_read([&] {
      servers.wait_for_copy_of("user:1");
      servers.cut_off();
    });
    EXPECT_TRUE(
        comes_true([&, lost = history.unsynced() + 10] { return history.unsynced() >= lost; }));
    crew.only_read([&] { servers.replace_primary(); });
    servers.add_replica();
    crew.go_on();
  }
  EXPECT_EQ(history.wrong(), 0);
}

// Of two keys the replica knows one's old value, and of the other that its load runs.
TEST(GuardOnReplica, AnAcknowledgedInvalidationOutlivesAPromotionInMidLoad) {
  test::ServerPair servers;
  const auto store = open(servers.url(), {.command_timeout = 30s, .connect_timeout = 30s});
  const auto other = open(servers.url(), {.command_timeout = 30s, .connect_timeout = 30s});
  const CacheGuardOptions options{
      .lease = 60s, .wait = 60s, .durability = {.replicas = 1, .within = 50ms}};
  Cache here{*store, "user", options};
  Cache there{*other, "user", options};
  const auto invalidate = [&](std::string_view key) {
    try {
      here.invalidate(std::string{key}).get();
      return true;
    } catch (const Error&) {
      return false;
    }
  };
  const auto old_row = [] { return std::string{"old"}; };
  const auto new_row = [] { return std::string{"new"}; };
  std::promise<void> go_on;
  const auto slow = [&] { return go_on.get_future().wait_for(60s), old_row(); };

  EXPECT_EQ(here.get("1", old_row).get(), "old");
  auto loading = std::async(std::launch::async, [&] { return there.get("2", slow).get(); });
  servers.wait_for_copy_of("user:1");
  servers.wait_for_copy_of("sluice_cache_lease:{user:2}");
  servers.cut_off();
  const bool one_is_known = invalidate("1");
  const bool two_is_known = invalidate("2");
  servers.replace_primary();
  go_on.set_value();
  EXPECT_EQ(loading.get(), "old");
  servers.add_replica();
  EXPECT_TRUE(one_is_known || comes_true([&] { return invalidate("1"); }));
  EXPECT_TRUE(two_is_known || comes_true([&] { return invalidate("2"); }));
  for (const char* const key : {"1", "2"}) {
    EXPECT_EQ(here.get(key, new_row).get(), "new");
    EXPECT_EQ(there.get(key, new_row).get(), "new");
  }
}

TEST(GuardOnReplica, WhatItDoesNotKnowInTimeIsNotAcknowledged) {
  test::ServerPair servers;
  const auto store = open(servers.url());
  Cache cache{*store, "user", {.durability = {.replicas = 1, .within = 50ms}}};
  servers.cut_off();
  const auto expect_unsynced = [](Task<void> task) {
    try {
      task.get();
      FAIL() << "no replica has it";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::unsynced);
      EXPECT_EQ(failure.effect(), Effect::done);
    }
  };
  expect_unsynced(cache.put("1", "one"));
  EXPECT_EQ(cache.get("1", [] { return std::string{"two"}; }).get(), "one");
  expect_unsynced(cache.invalidate("1"));
  EXPECT_EQ(cache.get("1", [] { return std::string{"two"}; }).get(), "two");
  expect_unsynced(cache.invalidate_twice("1", 1min));
  EXPECT_EQ(store->run({"EXISTS", "user:1"}).get().as_integer(), 0);
}

/// What a call waits for when its time is over.
struct Stage {
  std::string_view name;
  std::string_view held;  ///< the reply to it never comes; empty: the load does not end
  std::size_t skip = 0;
  bool is_elsewhere = false;  ///< the load
  std::string_view told;
};

TEST_F(GuardOnServer, BC04_ACallEndsWithItsWaitAndNamesWhatHeldItUp) {
  for (const Stage& stage :
       {Stage{.name = "GET", .held = "GET", .told = "no reply from"},
        Stage{.name = "look", .held = "EVALSHA", .told = "waited for the store"},
        Stage{.name = "load", .held = {}, .told = "waited for its load, which"},
        Stage{.name = "other", .held = {}, .is_elsewhere = true, .told = "in another process"},
        Stage{.name = "store", .held = "EVALSHA", .skip = 1, .told = "waited for the store"}}) {
    auto shortest = 60'000ms;
    for (int round = 0; round < 3; ++round) {
      const auto key = fmt::format("{}{}", stage.name, round);
      test::FaultProxy proxy{server_.port()};
      const auto store = open(proxy.url());
      const auto elsewhere = open_patiently(server_.url());
      std::promise<void> ended;
      const auto load = [&, end = ended.get_future().share()] {
        if (stage.held.empty()) end.wait();
        return std::string{"value"};
      };
      Cache other{*elsewhere, "user", {.wait = 60s}};
      Cache cache{*store, "user", {.wait = 60s}};
      cache.get("before" + key, [] { return std::string{"value"}; }).get();  // scripts are known
      std::future<void> loading;
      if (stage.is_elsewhere) {
        loading = std::async(std::launch::async, [&] { other.get(key, load).get(); });
        EXPECT_TRUE(comes_true([&] {
          return side_.command({"EXISTS", "sluice_cache_lease:{user:" + key + "}"}) ==
                 Value::integer(1);
        }));
      }
      if (!stage.held.empty())
        proxy.on(test::reply_to(stage.held), {.fault = test::LineFault::hold, .skip = stage.skip});
      const auto begin = std::chrono::steady_clock::now();
      try {
        cache.get(key, load, {.wait = 100ms}).get();
        ADD_FAILURE() << stage.name << " has not held it up";
      } catch (const Error& failure) {
        EXPECT_EQ(failure.errc(), Errc::timeout);
        EXPECT_NE(failure.message().find(stage.told), std::string::npos)
            << stage.name << ": " << failure.message();
      }
      shortest = std::min(shortest, std::chrono::duration_cast<std::chrono::milliseconds>(
                                        std::chrono::steady_clock::now() - begin));
      ended.set_value();
      proxy.let_go();
    }
    EXPECT_LE(shortest, 300ms) << stage.name;
  }
}

TEST_F(GuardOnServer, BC04_WhereTheStoreIsSilentACopyComesWithinTheWait) {
  const auto store = open(server_.url());
  Cache cache{*store, "user", {.when_down = CacheWhenDown::copy}};
  const auto one = [] { return std::string{"one"}; };
  cache.get("1", one).get();
  server_.stop();
  auto shortest = std::chrono::nanoseconds::max();
  for (int round = 0; round < 3; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(cache.get("1", one, {.wait = 100ms}).get(), "one");
    shortest =
        std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LE(shortest, 300ms);
  server_.cont();
}

TEST_F(GuardOnServer, AServerWithoutMemoryServesWhatItHas) {
  const auto store = open_patiently(server_.url());
  Cache cache{*store, "user"};
  Cache loading{*store, "user", {.when_down = CacheWhenDown::load}};
  const auto one = [] { return std::string{"one"}; };
  cache.get("1", one).get();
  side_.command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(cache.get("1", one).get(), "one");
  try {
    cache.get("2", one).get();
    FAIL() << "there is no memory for the lease";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::out_of_space);
  }
  EXPECT_EQ(loading.get("2", one).get(), "one");
  EXPECT_THROW(cache.put("1", "another").get(), Error) << "a server that is full grows no further";
  EXPECT_EQ(cache.get("1", one).get(), "one");
  cache.invalidate("1").get();
  EXPECT_EQ(keys(), 0);
}

TEST_F(GuardOnServer, AChildOfForkIsToldSoAndEnds) {
  const auto store = open_patiently(server_.url());
  auto cache = std::make_unique<Cache>(*store, "user");
  const auto one = [] { return std::string{"one"}; };
  cache->get("1", one).get();
  test::Process child{[&] {
    try {
      cache->get("1", one).get();
    } catch (const Error& failure) {
      cache.reset();
      return failure.errc() == Errc::closed ? 0 : 1;
    }
    return 2;
  }};
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(cache->get("1", one).get(), "one");
}

}  // namespace
}  // namespace sluice
