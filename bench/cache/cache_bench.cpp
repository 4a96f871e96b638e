/// A guard around a hit against a bare GET; how often an expiry is loaded under 10,000 callers of
/// four processes; a hit of the near cache. `--only flood`: what a million random ids do, in
/// some minutes. `--only storms` prints the data of the picture in docs/cache.md instead.
#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "flood.hpp"
#include "near.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/open.hpp"
#include "sluice/when_all.hpp"
#include "storms.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;
using namespace std::chrono_literals;
using Cache = CacheGuard<std::string>;

constexpr int processes = 4;
constexpr int callers = 2500;

/// A process of the crowd: all its callers at once; how many loads ran in it goes to "loads".
int crowd(const std::string& url) {
  const auto store = open(url, {.command_timeout = 30s});
  Cache cache{*store, "user", {.lease = 30s, .wait = 60s}};
  std::atomic<int> loads{0};
  store->run({"BLPOP", "go", "60"}).get();
  std::vector<Task<std::optional<std::string>>> calls;
  for (int i = 0; i < callers; ++i)
    calls.push_back(cache.get("1", [&] {
      ++loads;
      std::this_thread::sleep_for(50ms);
      return std::string{"value"};
    }));
  for (const auto& value : when_all(std::move(calls)).get())
    if (value != "value") return 1;
  store->run({"RPUSH", "loads", std::to_string(loads)}).get();
  return 0;
}

/// Loads for one expiry.
double expire(const test::RedisServer& server) {
  test::PlainClient side{server.port()};
  side.command({"FLUSHALL"});
  std::vector<test::Process> crew;
  const std::string url = server.url();
  for (int i = 0; i < processes; ++i) crew.emplace_back([url] { return crowd(url); });
  for (int i = 0; i < processes; ++i) side.command({"RPUSH", "go", "1"});
  int loads = 0;
  for (int i = 0; i < processes; ++i)
    loads += std::stoi(side.command({"BLPOP", "loads", "60"}).as_items().at(1).as_text());
  for (auto& process : crew)
    if (process.wait() != 0) throw std::runtime_error{"a caller got no value"};
  return loads;
}

double time_of(std::chrono::milliseconds each, const std::function<void()>& work) {
  return 1e9 / rate(each, [&] {
           for (int i = 0; i < 100; ++i) work();
           return std::size_t{100};
         });
}

std::vector<Row> guard_rows(const Options& options) {
  const test::RedisServer server;
  Row once{.figure = "loads for one expiry, 10,000 callers in 4 processes",
           .unit = "loads",
           .goal = 1,
           .at_most = true};
  for (int round = 0; round < options.rounds; ++round) once.values.push_back(expire(server));

  const auto redis = open(server.url());
  Cache cache{*redis, "user", {.ttl = 1h}};
  Cache near{*redis, "near", {.ttl = 1h, .near_bytes = 16 << 20, .near_ttl = 1h}};
  const auto load = [] { return std::string(100, 'x'); };
  cache.get("1", load).get();
  for (int i = 0; i < 3; ++i) near.get("1", load).get();
  Row hit{.figure = "hit of a guard, one thread, redis",
          .unit = "ns",
          .peer = "GET",
          .goal = 1.1,
          .at_most = true};
  Row local{.figure = "hit of a guard with a near cache, one thread",
            .unit = "ns",
            .goal = 100,
            .at_most = true};
  for (int round = 0; round < options.rounds; ++round) {
    hit.peer_values.push_back(time_of(options.each, [&] { redis->run({"GET", "user:1"}).get(); }));
    hit.values.push_back(time_of(options.each, [&] { (void)cache.get("1", load).get(); }));
    local.values.push_back(time_of(options.each, [&] { (void)near.get("1", load).get(); }));
  }
  return {std::move(once), std::move(hit), std::move(local)};
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  if (options.only == "storms") return print_storms(), 0;
  Report report{"cache", options};
  if (options.wants("guard"))
    for (auto& row : guard_rows(options)) report.add(std::move(row));
  if (options.wants("near"))
    for (auto& row : near_rows(options)) report.add(std::move(row));
  if (options.only == "flood")
    for (auto& row : flood_rows()) report.add(std::move(row));
  report.print();
}
