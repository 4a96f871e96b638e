// Cache guards of several processes on a real server, which is stopped, emptied and filled up.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "sluice/cache_guard.hpp"
#include "sluice/metrics.hpp"
#include "sluice/open.hpp"
#include "sluice/when_all.hpp"
#include "support/paths.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Cache = CacheGuard<std::string>;
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

TEST_F(GuardOnServer, RandomIdsFillNothingAndBehindTheGateLoadNothing) {
  constexpr int ids = rounds(10'000);
  const auto store = open_patiently(server_.url());
  std::atomic<int> loads{0};
  const auto ask = [&](Cache& cache, int from) {
    std::vector<Task<std::optional<std::string>>> calls;
    for (int id = from; id < from + 500; ++id)
      calls.push_back(cache.get(std::to_string(id), [&]() -> std::optional<std::string> {
        ++loads;
        return std::nullopt;
      }));
    for (const auto& value : when_all(std::move(calls)).get()) EXPECT_EQ(value, std::nullopt);
  };
  Cache open_one{*store, "user", {.absent_budget = 200, .wait = 60s}};
  for (int id = 0; id < ids; id += 500) ask(open_one, id);
  EXPECT_EQ(loads, ids);
  EXPECT_LE(keys(), 201);

  loads = 0;
  Cache gated{*store, "gated", {.may_exist = [](std::string_view) { return false; }}};
  const auto before = keys();
  for (int id = 0; id < ids; id += 500) ask(gated, id);
  EXPECT_EQ(loads, 0);
  EXPECT_LE(keys(), before);
}

TEST_F(GuardOnServer, KeysWrittenTogetherEndSpreadOverTheJitter) {
  constexpr int many = 2000;
  const auto store = open_patiently(server_.url());
  Cache cache{*store, "user", {.ttl = 1000s, .jitter = 0.1, .max_waiting_loads = many}};
  std::vector<Task<std::optional<std::string>>> calls;
  for (int i = 0; i < many; ++i)
    calls.push_back(cache.get(std::to_string(i), [] { return std::string{"one"}; }));
  when_all(std::move(calls)).get();

  // Ends lie in 900 to 1000 s from their writes; each tenth of that has its share, within 5 sigma.
  std::array<int, 10> tenths{};
  for (int i = 0; i < many; ++i) {
    const auto end = side_.command({"PEXPIRETIME", "user:" + std::to_string(i)}).as_integer();
    const auto head = side_.command({"GETRANGE", "user:" + std::to_string(i), "6", "21"}).as_text();
    EXPECT_GE(static_cast<double>(end), std::stod(head) / 1000 - 1) << "gone before its time";
    ++tenths[static_cast<std::size_t>(end / 10'000) % 10];
  }
  const auto [least, most] = std::ranges::minmax(tenths);
  EXPECT_GT(least, 200 - 75);
  EXPECT_LT(most, 200 + 75);
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
    } catch (const Error&) {
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

  int wrong() const { return wrong_; }
  int answers() const { return answers_; }
  int invalidations() const { return invalidations_; }

 private:
  std::atomic<int> row_{0};
  std::atomic<int> acknowledged_{0};
  std::atomic<int> wrong_{0};
  std::atomic<int> answers_{0};
  std::atomic<int> failures_{0};
  std::atomic<int> invalidations_{0};
};

TEST_F(GuardOnServer, WhileItIsStoppedAndStartedNoValueIsServedAfterItsInvalidation) {
  for (const auto when_down : {CacheWhenDown::fail, CacheWhenDown::load}) {
    History history;
    std::atomic<bool> over{false};
    std::vector<std::unique_ptr<Store>> stores;
    std::vector<std::unique_ptr<Cache>> caches;
    for (int i = 0; i < 2; ++i) {
      stores.push_back(open_patiently(server_.url()));
      caches.push_back(std::make_unique<Cache>(
          *stores.back(), "user",
          CacheGuardOptions{.ttl = 300ms, .lease = 200ms, .when_down = when_down}));
    }
    {
      std::vector<std::jthread> crew;
      for (int i = 0; i < 4; ++i)
        crew.emplace_back([&, i] {
          while (!over) history.look(*caches[i % 2]);
        });
      crew.emplace_back([&] {
        for (int i = 0; !over; ++i) {
          history.write(*caches[i % 2]);
          std::this_thread::sleep_for(3ms);
        }
      });
      const auto go_on = [&] {
        const auto patience = std::chrono::steady_clock::now() + 60s;
        const int answers = history.answers() + 100;
        const int invalidations = history.invalidations() + 10;
        while ((history.answers() < answers || history.invalidations() < invalidations) &&
               std::chrono::steady_clock::now() < patience)
          std::this_thread::sleep_for(1ms);
      };
      for (int i = 0; i < 3; ++i) {
        go_on();
        server_.restart(false);
      }
      server_.stop();
      std::this_thread::sleep_for(50ms);
      server_.cont();
      go_on();
      over = true;
    }
    EXPECT_EQ(history.wrong(), 0);
    EXPECT_GE(history.answers(), 400);
    EXPECT_GE(history.invalidations(), 40);
  }
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
