/// A process of its own that uses a cache guard, for the tests of several of them.
///   cache_worker callers URL DATABASE CALLERS   calls for one key at once, when "go" has an
///   element;
///                                               each load writes a row into the table loads.
///                                               Pushes how many had the value to "done"
///   cache_worker leader URL                     loads the key, says so in "begun", and never ends
#include <sqlite3.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "sluice/cache_guard.hpp"
#include "sluice/open.hpp"
#include "sluice/when_all.hpp"

using namespace std::chrono_literals;

namespace {

std::string load_from(sqlite3* database) {
  sqlite3_exec(database, "INSERT INTO loads DEFAULT VALUES", nullptr, nullptr, nullptr);
  std::this_thread::sleep_for(20ms);  // what a query takes, so that all callers come meanwhile
  return "value";
}

int call(sluice::Store& store, const std::string& path, int callers) {
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) return 1;
  sqlite3_busy_timeout(database, 30'000);
  {
    sluice::CacheGuard<std::string> cache{store, "user", {.lease = 30s, .wait = 60s}};
    store.run({"BLPOP", "go", "60"}).get();
    std::vector<sluice::Task<std::optional<std::string>>> calls;
    for (int i = 0; i < callers; ++i)
      calls.push_back(cache.get("1", [database] { return load_from(database); }));
    int right = 0;
    for (const auto& value : sluice::when_all(std::move(calls)).get()) right += value == "value";
    store.run({"RPUSH", "done", std::to_string(right)}).get();
  }
  sqlite3_close(database);
  return 0;
}

int lead(sluice::Store& store) {
  sluice::CacheGuard<std::string> cache{store, "user", {.lease = 1s}};
  cache
      .get("1",
           [&] {
             store.run({"RPUSH", "begun", "1"}).get();
             for (;;) std::this_thread::sleep_for(1h);
             return std::string{};
           })
      .get();
  return 0;
}

}  // namespace

int main(int count, char** words) {
  const auto store = sluice::open(words[2], {.command_timeout = 30s, .connect_timeout = 30s});
  if (std::string_view{words[1]} == "callers" && count == 5)
    return call(*store, words[3], std::stoi(words[4]));
  if (std::string_view{words[1]} == "leader" && count == 3) return lead(*store);
  return 2;
}
