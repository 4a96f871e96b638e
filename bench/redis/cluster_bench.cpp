// What a call to a cluster costs beside one to a single server, and what callers see of failovers.
// Three masters with a replica each, started by this program; medians of rounds.
//     cluster_bench [rounds] [reads]     reads: of replicas, and no more
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "redis/cluster_store.hpp"
#include "sluice/error.hpp"
#include "sluice/metrics.hpp"
#include "support/cluster_rig.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;
using Microseconds = std::chrono::microseconds;

std::unique_ptr<Store> open(test::ClusterRig& rig) {
  redis::ClusterStoreOptions options{.node = {}, .seeds = {}};
  options.node.replica_max_lag = 1s;
  for (std::size_t i = 0; i < rig.size(); ++i)
    options.seeds.push_back({.host = "127.0.0.1", .port = rig.node(i).port(), .unix_path = {}});
  return redis::open_cluster(std::move(options));
}

template <class Number>
Number median(std::vector<Number> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

double time_of(Store& store, int calls, CallOptions how = {}) {
  const auto begin = Steady::now();
  for (int i = 0; i < calls; ++i) store.run({"GET", "key"}, how).get();
  return std::chrono::duration<double, std::micro>(Steady::now() - begin).count() / calls;
}

void show_calls(Store& cluster, int rounds) {
  const test::RedisServer server;
  redis::RedisOptions options;
  options.endpoint.host = "127.0.0.1";
  options.endpoint.port = server.port();
  const auto alone = redis::open_redis(std::move(options));
  std::vector<double> ratios;
  std::vector<double> times;
  constexpr int calls = 2'000;
  for (int round = -1; round < rounds * 10; ++round) {  // in turns: the machine is not quiet
    const double one = time_of(*alone, calls);
    const double other = time_of(cluster, calls);
    if (round < 0) continue;
    ratios.push_back(other / one);
    times.push_back(other);
  }
  fmt::print("a GET by one thread: {:.1f} us, {:.3f} times one to a single server\n", median(times),
             median(ratios));
}

void show_reads(Store& cluster, int rounds) {
  cluster.run({"SET", "key", "value"}).get();
  std::vector<double> ratios;
  constexpr int calls = 2'000;
  const auto before = metrics().redis_replica_reads.load();
  for (int round = -1; round < rounds * 10; ++round) {
    const double master = time_of(cluster, calls);
    const double replica = time_of(cluster, calls, {.read_from = ReadFrom::replica});
    if (round >= 0) ratios.push_back(replica / master);
  }
  const auto served = static_cast<double>(metrics().redis_replica_reads.load() - before);
  fmt::print("a GET at a replica: {:.3f} times one at the master; {:.1f} % were answered there\n",
             median(ratios), 100 * served / (calls * (rounds * 10 + 1)));
  cluster.run({"DEL", "key"}).get();
}

double calls_a_second(Store& store, const std::string& tag, int threads) {
  std::atomic<int> done{0};
  std::atomic<bool> ends{false};
  const auto begin = Steady::now();
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < threads; ++t)
      crowd.emplace_back([&, t] {
        const auto key = tag + std::to_string(t);
        while (!ends) {
          store.run({"GET", key}).get();
          ++done;
        }
      });
    std::this_thread::sleep_for(1s);
    ends = true;
  }
  return done / std::chrono::duration<double>(Steady::now() - begin).count();
}

/// Each thread increments a key of its own.
class Load {
 public:
  Load(Store& store, int threads) : store_(store), seen_(static_cast<std::size_t>(threads)) {
    for (int t = 0; t < threads; ++t) crowd_.emplace_back([this, t] { run(t); });
  }
  static std::string key(int thread) { return "load:" + std::to_string(thread); }
  void end() {
    ends_ = true;
    crowd_.clear();
  }
  int errors(const std::function<bool(int)>& of) const {
    int all = 0;
    for (std::size_t t = 0; t < seen_.size(); ++t)
      if (of(static_cast<int>(t))) all += seen_[t].errors;
    return all;
  }
  Microseconds longest(const std::function<bool(int)>& of) const {
    Microseconds longest{0};
    for (std::size_t t = 0; t < seen_.size(); ++t)
      if (of(static_cast<int>(t))) longest = std::max(longest, seen_[t].longest);
    return longest;
  }
  /// Acknowledged, and not there.
  std::int64_t lost() {
    std::int64_t lost = 0;
    for (std::size_t t = 0; t < seen_.size(); ++t) {
      const auto value = store_.run({"GET", key(static_cast<int>(t))}).get().as_integer();
      lost += std::max<std::int64_t>(seen_[t].acknowledged - value, 0);
    }
    return lost;
  }

 private:
  struct Seen {
    std::int64_t acknowledged = 0;
    int errors = 0;
    Microseconds longest{0};
  };
  void run(int t) {
    Seen& seen = seen_[static_cast<std::size_t>(t)];
    while (!ends_) {
      const auto begin = Steady::now();
      try {
        store_.run({"INCR", key(t)}).get();
        ++seen.acknowledged;
      } catch (const Error&) {
        ++seen.errors;
      }
      seen.longest =
          std::max(seen.longest, std::chrono::duration_cast<Microseconds>(Steady::now() - begin));
      std::this_thread::sleep_for(1ms);
    }
  }

  Store& store_;
  std::vector<Seen> seen_;
  std::atomic<bool> ends_{false};
  std::vector<std::jthread> crowd_;
};

constexpr int threads = 6;

void show_failover(test::ClusterRig& rig, Store& store, int rounds) {
  std::vector<Microseconds> longest;
  int errors = 0;
  std::int64_t lost = 0;
  const auto all = [](int) { return true; };
  for (int round = 0; round < rounds; ++round) {
    rig.heal();
    store.run({"FLUSHALL"}).get();
    std::this_thread::sleep_for(2s);  // masters vote once in two node-timeouts
    Load load{store, threads};
    std::this_thread::sleep_for(500ms);
    rig.fail_over(rig.master_of(Load::key(0)));
    std::this_thread::sleep_for(500ms);
    load.end();
    errors += load.errors(all);
    longest.push_back(load.longest(all));
    lost += load.lost();
  }
  fmt::print(
      "CLUSTER FAILOVER, {} times: {} errors, {} acknowledged and lost, "
      "longest wait {:.1f} ms\n",
      rounds, errors, lost, static_cast<double>(median(longest).count()) / 1000);
}

void show_kill(test::ClusterRig& rig, Store& store, int rounds) {
  std::vector<double> waits;
  std::vector<double> after;
  std::int64_t lost = 0;
  int errors = 0;
  for (int round = 0; round < rounds; ++round) {
    rig.heal();
    store.run({"FLUSHALL"}).get();
    const auto dead = rig.master_of(Load::key(0));
    std::vector<bool> is_dead;
    for (int t = 0; t < threads; ++t) is_dead.push_back(rig.master_of(Load::key(t)) == dead);
    const auto replica = rig.replica_of(dead);
    std::int64_t down = 0;
    std::int64_t promoted = 0;
    std::atomic<std::int64_t> first{0};
    const auto begin = Steady::now();
    const auto now = [&] {
      return std::chrono::duration_cast<Microseconds>(Steady::now() - begin).count();
    };
    Load load{store, threads};
    std::this_thread::sleep_for(300ms);
    rig.node(dead).kill();
    std::jthread writer{[&] {
      while (first == 0) try {
          store.run({"INCR", Load::key(0) + "{" + Load::key(0) + "}"}).get();
          first = now();
        } catch (const Error&) {
        }
    }};
    // The servers' own word: how long another master says CLUSTERDOWN, and when the replica serves.
    std::string other = "a";
    while (rig.master_of(other) == dead || rig.master_of(other) == replica) other += "a";
    auto healthy = rig.client_of(rig.master_of(other));
    auto heir = rig.client_of(replica);
    std::int64_t down_since = 0;
    while (promoted == 0 || (down_since != 0 && down == 0)) {
      const bool is_down = healthy.command({"GET", other}).is_error();
      if (is_down && down_since == 0) down_since = now();
      if (!is_down && down_since != 0 && down == 0) down = now() - down_since;
      if (promoted == 0 &&
          !heir.command({"SET", Load::key(0) + "probe{" + Load::key(0) + "}", "1"}).is_error())
        promoted = now();
    }
    writer.join();
    load.end();
    waits.push_back(
        static_cast<double>(
            load.longest([&](int t) { return !is_dead[static_cast<std::size_t>(t)]; }).count() -
            down) /
        1000);
    after.push_back(static_cast<double>(first - promoted) / 1000);
    errors += load.errors([&](int t) { return !is_dead[static_cast<std::size_t>(t)]; });
    rig.node(dead).start();
    rig.heal();
    lost += load.lost();
  }
  fmt::print(
      "kill -9 of a master, {} times: other slots' longest wait {:.1f} ms beyond their servers' "
      "CLUSTERDOWN, {} errors there; first success {:.1f} ms after the promotion; {} acknowledged "
      "and lost\n",
      rounds, median(waits), errors, median(after), lost);
}

int run(int rounds, bool reads_alone) {
  test::ClusterRig rig;
  const auto store = open(rig);
  show_reads(*store, rounds);
  if (reads_alone) return 0;
  show_calls(*store, rounds);
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const double one = calls_a_second(*store, "{a}", 64);
    ratios.push_back(calls_a_second(*store, "", 64) / one);
  }
  fmt::print("64 threads over three masters: {:.2f} times as many calls a second as over one\n",
             median(ratios));
  show_failover(rig, *store, rounds);
  show_kill(rig, *store, rounds);
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int count, char** words) {
  return sluice::run(count > 1 ? std::atoi(words[1]) : 5, count > 2);
}
