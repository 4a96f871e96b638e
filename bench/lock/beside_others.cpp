/// What locks cost beside others: readers of the same lock, a replica, Redisson.
#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <thread>
#include <vector>

#include "figures.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"
#include "sluice/shared_mutex.hpp"
#include "support/blocking_peer.hpp"
#include "support/java_peer.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;

/// Microseconds that a server has spent in a command, and calls of it.
std::pair<double, double> spent_in(test::PlainClient& side, std::string_view command) {
  const Value stats = side.command({"INFO", "commandstats"});
  const std::string& text = stats.as_text();
  const auto number_behind = [&](std::string_view word, std::size_t from) {
    const auto at = text.find(word, from) + word.size();
    double number = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), number);
    return number;
  };
  const auto at = text.find(fmt::format("cmdstat_{}:", command));
  if (at == std::string::npos) return {};
  return {number_behind("usec=", at), number_behind("calls=", at)};
}

/// Until the replica has what the server has written.
void await_replica(test::PlainClient& server) {
  server.command({"SET", "bench:replicated", "1"});
  while (server.command({"WAIT", "1", "1000"}) != Value::integer(1)) {
  }
}

}  // namespace

Row release_of_many_readers(int port) {
  constexpr int readers = 4000;
  Row row{
      .figure = fmt::format("SharedMutex, {} readers with leases of one end: a release", readers),
      .unit = "us of the server",
      .goal = 30,
      .at_most = true};
  const auto store = open(fmt::format("redis://127.0.0.1:{}", port));
  SharedMutex mutex{*store, "bench:crowd of readers"};
  std::vector<Held> holds;
  for (int i = 0; i < readers; ++i) holds.push_back(mutex.acquire_shared().get());
  test::PlainClient side{static_cast<std::uint16_t>(port)};
  side.command({"EVAL",  // as a renewal leaves them
                "for _, key in ipairs(redis.call('KEYS', '*crowd of readers*')) do "
                "if redis.call('PTTL', key) > 0 then redis.call('PEXPIRE', key, 30000) end end",
                "0"});
  const auto [before, calls_before] = spent_in(side, "evalsha");
  for (auto& hold : holds) hold.release().get();
  const auto [after, calls_after] = spent_in(side, "evalsha");
  row.values.push_back((after - before) / (calls_after - calls_before));
  return row;
}

Row durable_lock_of_many_threads(const Options& options) {
  constexpr int threads = 16;
  Row row{.figure = "16 threads on one lock that a replica has to know",
          .unit = "sections/s",
          .peer = "acquire + WAIT, release by one thread",
          .goal = 5};
  const test::RedisServer server;
  const test::RedisServer replica{{fmt::format("replicaof 127.0.0.1 {}", server.port())}};
  test::PlainClient side{server.port()};
  await_replica(side);
  const auto store = open(server.url());
  const MutexOptions durable{.durability = {.replicas = 1, .within = 5s}};
  Mutex shared{*store, "bench:crowd", durable};
  Mutex alone{*store, "bench:alone", durable};
  const auto section = [](Mutex& mutex) -> std::size_t {
    auto held = mutex.acquire().get();
    held.release().get();
    return 1;
  };
  for (int round = 0; round < options.rounds; ++round) {
    row.peer_values.push_back(rate(options.each, [&] { return section(alone); }));
    row.values.push_back(rate(options.each, threads, [&](int) { return section(shared); }));
  }
  return row;
}

Row share_of_java(int port, const Options& options) {
  Row row{.figure = "four waiters of Redisson beside one thread that never rests, 10 ms each",
          .unit = "sections/s",
          .peer = "that thread",
          .goal = 1.0 / 3};
  const auto store = open(fmt::format("redis://127.0.0.1:{}", port));
  Mutex mutex{*store, "bench:java"};
  const auto each = std::max<std::chrono::milliseconds>(options.each, 1s);
  std::atomic<bool> over{false};
  std::atomic<int> theirs{0};
  std::vector<std::jthread> crew;
  for (unsigned i = 1; i <= 4; ++i)
    crew.emplace_back([&, i] {
      test::JavaPeer peer{static_cast<std::uint16_t>(port), i};
      peer.reaction = 2ms;
      const test::JavaPeer::Lock lock{peer, mutex.name()};
      while (!over) {
        if (lock.acquire_within(5s)) {
          ++theirs;
          std::this_thread::sleep_for(10ms);
          lock.release();
        }
        std::this_thread::sleep_for(20ms);
      }
    });
  for (int round = 0; round < options.rounds; ++round) {
    theirs = 0;
    const double ours = rate(each, [&]() -> std::size_t {
      const auto held = mutex.acquire().get();
      std::this_thread::sleep_for(10ms);
      return 1;
    });
    row.values.push_back(theirs / std::chrono::duration<double>(each).count());
    row.peer_values.push_back(ours);
  }
  over = true;
  return row;
}

}  // namespace sluice::bench
