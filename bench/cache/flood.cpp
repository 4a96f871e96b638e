#include "flood.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>

#include "sluice/cache_guard.hpp"
#include "sluice/open.hpp"
#include "sluice/when_all.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;
using Cache = CacheGuard<std::string>;

constexpr int ids = 1'000'000;
constexpr int at_once = 1000;
constexpr int budget = 10'000;

}  // namespace

std::vector<Row> flood_rows() {
  const test::RedisServer server;
  test::PlainClient side{server.port()};
  const auto store = open(server.url(), {.command_timeout = 30s});
  Cache cache{*store, "user", {.absent_budget = budget, .wait = 60s}};
  std::atomic<int> loads{0};
  const auto load = [&]() -> std::optional<std::string> { return ++loads, std::nullopt; };
  std::mt19937_64 random{13};
  std::size_t alive = 0;
  std::int64_t all = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (int asked = 0; asked < ids; asked += at_once) {
    std::vector<Task<std::optional<std::string>>> calls;
    for (int i = 0; i < at_once; ++i) calls.push_back(cache.get(std::to_string(random()), load));
    for (const auto& value : when_all(std::move(calls)).get())
      if (value) throw std::runtime_error{"a value of nobody"};
    all = std::max(all, side.command({"DBSIZE"}).as_integer());
    if (asked % (10 * at_once) == 0)
      alive = std::max(alive, side.command({"KEYS", "user:*"}).as_items().size());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  Row kept{.figure = "1,000,000 random ids, a budget of 10,000: most absences in Redis",
           .unit = "keys",
           .values = {static_cast<double>(alive)},
           .goal = budget,
           .at_most = true};
  Row lying{.figure = "the same with those that are over and that Redis has yet to remove",
            .unit = "keys",
            .values = {static_cast<double>(all)}};
  Row loaded{.figure = "the same: loads", .unit = "loads", .values = {static_cast<double>(loads)}};
  Row speed{.figure = "the same: a second", .unit = "calls/s", .values = {ids / took.count()}};
  return {std::move(kept), std::move(lying), std::move(loaded), std::move(speed)};
}

}  // namespace sluice::bench
