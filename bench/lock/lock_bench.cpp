/// Mutex: what an acquire and a release cost, beside two blocking EVALSHA of the same scripts through hiredis.
#include <fmt/format.h>

#include <thread>

#include "lock/mutex/acquire.lua.hpp"
#include "lock/mutex/release.lua.hpp"
#include "sluice/lock.hpp"
#include "sluice/metrics.hpp"
#include "sluice/open.hpp"
#include "support/blocking_peer.hpp"
#include "support/plain_client.hpp"
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
                                          "2",
                                          name + ":peer",
                                          "redisson_lock_token:{" + name + ":peer}",
                                          "6ba7b810-9dad-11d1-80b4-00c04fd430c8:1",
                                          "30000",
                                          request_};
  const std::vector<std::string> release_{"EVALSHA", std::string{scripts::lock_mutex_release.sha1},
                                          "1",       name + ":peer",
                                          request_,  "redisson_lock__channel:{" + name + ":peer}"};
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

/// Commands that a program sends in `span` while it holds `count` locks and does nothing else.
double idle_commands(Store& store, test::PlainClient& side, int count, std::chrono::seconds span) {
  std::vector<std::unique_ptr<Mutex>> mutexes;
  std::vector<Held> holds;
  for (int i = 0; i < count; ++i) {
    mutexes.push_back(std::make_unique<Mutex>(store, fmt::format("idle:{}", i)));
    holds.push_back(mutexes.back()->acquire().get());
  }
  side.command({"CONFIG", "RESETSTAT"});
  const auto before = metrics().redis_commands.load();
  std::this_thread::sleep_for(span);
  fmt::print("server's own count in {} s with {} holds:\n", span.count(), count);
  const Value stats = side.command({"INFO", "commandstats"});
  fmt::print("{}\n", stats.as_text());
  return static_cast<double>(metrics().redis_commands.load() - before);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  const test::RedisServer server;
  const auto store = open(server.url());
  const auto spinning = open(server.url(), {.spin = std::chrono::microseconds{50}});
  const auto memory = open("embedded:");
  Mutex mutex{*store, name};
  Mutex spun{*spinning, name};
  Mutex local{*memory, name};
  PeerPair peer{server.port()};

  const std::string peer_name = "two blocking hiredis EVALSHA of the same scripts";
  Row both{.figure = "acquire + release, both awaited, redis",
           .unit = "pairs/s",
           .peer = peer_name,
           .goal = 0.85};
  Row one{.figure = "acquire, release by the destructor, redis",
          .unit = "pairs/s",
          .peer = peer_name,
          .goal = 1.5};
  Row spin{.figure = "acquire + release, both awaited, spin 50 us, redis",
           .unit = "pairs/s",
           .peer = peer_name,
           .goal = 1.5};
  Row embedded{.figure = "acquire + release, embedded in memory",
               .unit = "pairs/s",
               .peer = peer_name,
               .goal = 40};
  for (int round = 0; round < options.rounds; ++round) {
    const double naive = rate(options.each, std::ref(peer));
    for (auto* const row : {&both, &one, &spin, &embedded}) row->peer_values.push_back(naive);
    both.values.push_back(rate(options.each, [&] { return awaited(mutex); }));
    one.values.push_back(rate(options.each, [&] { return by_destructor(mutex); }));
    spin.values.push_back(rate(options.each, [&] { return awaited(spun); }));
    embedded.values.push_back(rate(options.each, [&] { return awaited(local); }));
  }
  Row idle{.figure = "1000 holds, idle", .unit = "commands in 10 s", .goal = 10, .at_most = true};
  test::PlainClient side{server.port()};
  idle.values.push_back(idle_commands(*store, side, 1000, std::chrono::seconds{10}));

  Report report{"lock", options};
  for (auto* const row : {&both, &one, &spin, &embedded, &idle}) report.add(std::move(*row));
  report.print();
}
