/// Mutex: what an acquire and a release cost, beside two blocking EVALSHA of the same scripts
/// through hiredis.
#include <string_view>
#include <type_traits>

#include "figures.hpp"
#include "lock/mutex/mutex.lua.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"
#include "support/blocking_peer.hpp"
#include "support/redis_server.hpp"
#include "support/report.hpp"

namespace {

using namespace sluice;
using namespace sluice::bench;

const std::string name = "bench:lock";

/// Acquire and release by the same scripts, two blocking round trips.
class PeerPair {
 public:
  explicit PeerPair(int port) : peer_(port) {
    peer_.command({"SCRIPT", "LOAD", std::string{scripts::lock_mutex_acquire.text}});
    peer_.command({"SCRIPT", "LOAD", std::string{scripts::lock_mutex_release.text}});
  }
  std::size_t operator()() {
    peer_.command(acquire_);
    peer_.command(release_);
    return 1;
  }

 private:
  BlockingPeer peer_;
  const std::string request_ = "0123456789abcdef0123456789abcdef";
  const std::vector<std::string> acquire_{"EVALSHA",
                                          std::string{scripts::lock_mutex_acquire.sha1},
                                          "4",
                                          name + ":peer",
                                          "redisson_lock_token:{" + name + ":peer}",
                                          "sluice_lock_queue:{" + name + ":peer}",
                                          "sluice_lock_looks:{" + name + ":peer}",
                                          "6ba7b810-9dad-11d1-80b4-00c04fd430c8:1",
                                          "30000",
                                          request_,
                                          "host 4711 t4712 lock_bench",
                                          ""};
  const std::vector<std::string> release_{"EVALSHA",
                                          std::string{scripts::lock_mutex_release.sha1},
                                          "4",
                                          name + ":peer",
                                          "redisson_lock_token:{" + name + ":peer}",
                                          "sluice_lock_queue:{" + name + ":peer}",
                                          "sluice_lock_looks:{" + name + ":peer}",
                                          request_,
                                          "redisson_lock__channel:{" + name + ":peer}",
                                          "16",
                                          ""};
};

std::size_t awaited(Mutex& mutex) {
  auto held = mutex.acquire().get();
  held.release().get();
  return 1;
}

std::size_t by_destructor(Mutex& mutex) {
  const auto held = mutex.acquire().get();
  return 1;
}

/// Pairs on a server and on an embedded engine.
std::vector<Row> pairs(Store& store, const test::RedisServer& server, const Options& options) {
  const auto spinning = open(server.url(), {.spin = std::chrono::microseconds{50}});
  const auto memory = open("embedded:");
  Mutex mutex{store, name};
  Mutex spun{*spinning, name};
  Mutex local{*memory, name};
  PeerPair peer{server.port()};

  const std::string peer_name = "two blocking hiredis EVALSHA of the same scripts";
  Row both{.figure = "acquire + release, both awaited, redis",
           .unit = "pairs/s",
           .peer = peer_name,
           .goal = 0.95};
  Row one{.figure = "acquire, release by the destructor, redis",
          .unit = "pairs/s",
          .peer = peer_name,
          .goal = 1.7};
  Row spin{.figure = "acquire + release, both awaited, spin 50 us, redis",
           .unit = "pairs/s",
           .peer = peer_name,
           .goal = 1.5};
  Row embedded{.figure = "acquire + release, one thread, embedded in memory",
               .unit = "pairs/s",
               .goal = 300'000};
  for (int round = 0; round < options.rounds; ++round) {
    const double naive = rate(options.each, std::ref(peer));
    for (auto* const row : {&both, &one, &spin}) row->peer_values.push_back(naive);
    both.values.push_back(rate(options.each, [&] { return awaited(mutex); }));
    one.values.push_back(rate(options.each, [&] { return by_destructor(mutex); }));
    spin.values.push_back(rate(options.each, [&] { return awaited(spun); }));
    embedded.values.push_back(rate(options.each, [&] { return awaited(local); }));
  }
  return {both, one, spin, embedded};
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const test::RedisServer server;
  const int port = server.port();
  const auto store = open(server.url());
  Report report{"lock", options};
  const auto add = [&](std::string_view word, const auto& measure) {
    if (!options.wants(word)) return;
    if constexpr (std::is_same_v<decltype(measure()), Row>) {
      report.add(measure());
    } else {
      for (const Row& row : measure()) report.add(row);
    }
  };
  add("pairs", [&] { return pairs(*store, server, options); });
  add("scripts", [&] { return pair_beside_its_scripts(options); });
  add("one-lock", [&] { return one_lock_of_many_threads(*store, options); });
  add("many-locks", [&] { return many_locks_of_many_threads(*store, options); });
  add("engine", [&] { return locks_of_one_engine(options); });
  add("hand-over", [&] { return hand_over_between_processes(port, options); });
  add("crowd", [&] { return commands_of_a_release(port, 100); });
  add("readers", [&] { return release_of_many_readers(port); });
  add("replica", [&] { return durable_lock_of_many_threads(options); });
  add("java", [&] { return share_of_java(port, options); });
  add("new-name", [&] { return time_of_a_new_name(); });
  add("holds", [&] { return many_holds(*store); });
  add("waiting", [&] { return memory_of_a_waiting_task(); });
  report.print();
}
