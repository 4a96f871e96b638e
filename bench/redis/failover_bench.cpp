// What a failover by Sentinels costs while the old master lives: acknowledged writes that are lost
// with it, and how long a writer waits. A thread writes 1000 INCR a second by redis+sentinel://,
// and beside it one by redis://, which stays. One replica, three Sentinels, started anew for each
// round; medians.
//     failover_bench [rounds]
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/integer.hpp"
#include "redis/sentinel_store.hpp"
#include "sluice/error.hpp"
#include "support/comes_true.hpp"
#include "support/plain_client.hpp"
#include "support/sentinel_rig.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

enum class Writes { plain, durable };

/// Writes from its begin to its end.
class Writer {
 public:
  Writer(std::unique_ptr<Store> store, std::string key, Writes writes)
      : store_(std::move(store)),
        key_(std::move(key)),
        writes_(writes),
        thread_([this] { run(); }) {}
  void end() {
    ended_ = true;
    thread_.join();
  }

  std::int64_t acknowledged() const { return acknowledged_; }
  int refused() const noexcept { return refused_; }
  int unknown() const noexcept { return unknown_; }
  std::chrono::microseconds longest() const noexcept { return longest_; }

 private:
  void run() {
    auto next = Steady::now();
    while (!ended_) {
      const auto begin = Steady::now();
      try {
        if (write()) ++acknowledged_;
      } catch (const Error& error) {
        ++(error.effect() == Effect::none ? refused_ : unknown_);
      }
      longest_ = std::max(
          longest_, std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - begin));
      next = std::max(next + 1ms, begin);
      std::this_thread::sleep_until(next);
    }
  }
  /// Whether it was acknowledged as asked.
  bool write() {
    if (writes_ == Writes::plain) return store_->run({"INCR", key_}).get().as_integer() > 0;
    Batch batch;
    batch.add({"INCR", key_});
    batch.add({"WAIT", "1", "100"});
    const auto replies = store_->run(std::move(batch)).get();
    return !replies[0].is_error() && replies[1].as_integer() >= 1;
  }

  const std::unique_ptr<Store> store_;
  const std::string key_;
  const Writes writes_;
  std::atomic<bool> ended_{false};
  std::atomic<std::int64_t> acknowledged_{0};
  int refused_ = 0;
  int unknown_ = 0;
  std::chrono::microseconds longest_{0};
  std::thread thread_;
};

struct Round {
  std::int64_t lost = 0, stayed = 0;
  int refused = 0, unknown = 0;
  std::int64_t longest_ms = 0;
};

Round fail_over(Writes writes) {
  test::SentinelRig::Options options;
  if (writes == Writes::durable)
    options.server_config = {"min-replicas-to-write 1", "min-replicas-max-lag 1"};
  test::SentinelRig rig{options};
  redis::SentinelStoreOptions to{.server = {},
                                 .sentinels = {},
                                 .name = std::string{test::SentinelRig::name},
                                 .sentinel_user = {},
                                 .sentinel_password = {}};
  for (std::size_t i = 0; i < rig.sentinels(); ++i)
    to.sentinels.push_back({.host = "127.0.0.1", .port = rig.sentinel(i).port(), .unix_path = {}});
  redis::RedisOptions old;
  old.endpoint = {.host = "127.0.0.1", .port = rig.server(0).port(), .unix_path = {}};

  Writer follows{redis::open_sentinel(to), "follows", writes};
  Writer stays{redis::open_redis(old), "stays", writes};
  const auto begun = [&] { return follows.acknowledged() > 500 && stays.acknowledged() > 500; };
  if (!test::comes_true(begun)) throw std::runtime_error{"no writes"};
  rig.fail_over();
  test::PlainClient at_old{rig.server(0).port()};
  const auto is_demoted = [&] {
    return at_old.command({"ROLE"}).as_items().front().as_text() == "slave";
  };
  // The connection of one that asks is closed, too.
  const auto is_over = [&] {
    try {
      return is_demoted();
    } catch (const std::system_error&) {
      return true;
    }
  };
  if (!test::comes_true(is_over)) throw std::runtime_error{"the old master is not demoted"};
  stays.end();
  follows.end();
  test::PlainClient at_new{rig.server(1).port()};
  const auto kept = [&](std::string_view key) {
    const auto value = at_new.command({"GET", key});
    return value.is_null() ? 0 : parse_integer<std::int64_t>(value.as_text()).value_or(0);
  };
  return {.lost = std::max<std::int64_t>(follows.acknowledged() - kept("follows"), 0),
          .stayed = std::max<std::int64_t>(stays.acknowledged() - kept("stays"), 0),
          .refused = follows.refused(),
          .unknown = follows.unknown(),
          .longest_ms = follows.longest().count() / 1000};
}

template <class Get>
std::int64_t median(const std::vector<Round>& rounds, Get get) {
  std::vector<std::int64_t> values;
  for (const auto& round : rounds) values.push_back(get(round));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void report(const char* what, Writes writes, int count) {
  std::vector<Round> rounds;
  for (int i = 0; i < count; ++i) {
    rounds.push_back(fail_over(writes));
    const auto& one = rounds.back();
    fmt::print("  lost {:>4}, by one that stays {:>6}; refused {}, unknown {}, longest {} ms\n",
               one.lost, one.stayed, one.refused, one.unknown, one.longest_ms);
  }
  fmt::print("{}: lost {}, by one that stays {}; longest call {} ms\n", what,
             median(rounds, [](const Round& one) { return one.lost; }),
             median(rounds, [](const Round& one) { return one.stayed; }),
             median(rounds, [](const Round& one) { return one.longest_ms; }));
}

}  // namespace
}  // namespace sluice

int main(int count, char** words) {
  const int rounds = count > 1 ? std::atoi(words[1]) : 5;
  sluice::report("SENTINEL FAILOVER, old master alive", sluice::Writes::plain, rounds);
  sluice::report("the same, min-replicas-to-write 1, WAIT 1", sluice::Writes::durable, rounds);
}
