// What the client costs: a lock's two scripts against blocking hiredis, and what many threads get
// out of one connection. Every figure is the median of rounds that alternate with its peer's, on
// one redis-server started for it.
//     redis_bench [rounds] [pairs] [part of a name]
#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/sha1.hpp"
#include "redis/redis_store.hpp"
#include "store/combiner.hpp"
#include "support/certificates.hpp"
#include "support/free_port.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

const std::string acquire_text = R"(
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1]))";
const std::string release_text = R"(
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then return 0 end
redis.call('del', KEYS[1])
redis.call('publish', 'released:' .. KEYS[1], '0')
return 1)";
const std::string acquire_sha1 = sha1_hex(acquire_text);
const std::string release_sha1 = sha1_hex(release_text);
const Script acquire{"bench/acquire", acquire_text, acquire_sha1};
const Script release{"bench/release", release_text, release_sha1};

/// Operations a second of `body(count)`.
double rate(int count, const std::function<void(int)>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body(count);
  return count / std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Peer {
 public:
  explicit Peer(int port) : context_(redisConnect("127.0.0.1", port), &redisFree) {
    if (!context_ || context_->err != 0) std::abort();
    run("SCRIPT LOAD %b", acquire_text.data(), acquire_text.size());
    run("SCRIPT LOAD %b", release_text.data(), release_text.size());
  }
  void pairs(int count) {
    for (int i = 0; i < count; ++i) {
      run("EVALSHA %s 1 lock 30000 me:1", acquire_sha1.c_str());
      run("EVALSHA %s 1 lock 30000 me:1", release_sha1.c_str());
    }
  }

 private:
  template <class... Args>
  void run(const char* format, Args... args) {
    auto* const reply = static_cast<redisReply*>(redisCommand(context_.get(), format, args...));
    if (!reply || reply->type == REDIS_REPLY_ERROR) std::abort();
    freeReplyObject(reply);
  }
  std::unique_ptr<redisContext, decltype(&redisFree)> context_;
};

void pairs(Store& store, int count) {
  for (int i = 0; i < count; ++i) {
    store.run(acquire, {"lock"}, {"30000", "me:1"}).get();
    store.run(release, {"lock"}, {"30000", "me:1"}).get();
  }
}

Task<void> let_go(Store& store) {
  auto released = store.run(release, {"lock"}, {"30000", "me:1"});
  co_await released;
}

void pairs_with_spawned_release(Store& store, int count) {
  for (int i = 0; i < count; ++i) {
    store.run(acquire, {"lock"}, {"30000", "me:1"}).get();
    spawn(let_go(store));
  }
  store.run({"PING"}).get();
}

void crowd(int threads, int count, const std::function<void()>& call) {
  std::vector<std::jthread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < count / threads; ++i) call();
    });
}

/// A counter whose callers are combined: INCRBY by as many as wait.
class Counter {
 public:
  explicit Counter(Store& store)
      : store_(store), combiner_(store.driver(), 4096, [this](std::vector<int> asked) {
          return next(std::move(asked));
        }) {}
  void next() { combiner_.call(1).get(); }

 private:
  Task<std::vector<std::int64_t>> next(std::vector<int> asked) {
    const auto by = std::to_string(asked.size());
    auto called = store_.run({"INCRBY", "counter", by});
    const Value reply = co_await called;
    std::vector<std::int64_t> numbers(asked.size());
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = reply.as_integer() - static_cast<std::int64_t>(numbers.size() - i) + 1;
    co_return numbers;
  }
  Store& store_;
  Combiner<int, std::int64_t> combiner_;
};

struct Row {
  std::string name;
  double rate;
  double against;
  double floor;
};

void print(const Row& row) {
  fmt::print("{:<58} {:>10.0f}/s {:>7.2f} x", row.name, row.rate, row.rate / row.against);
  if (row.floor > 0)
    fmt::print("   floor {:.2f}{}", row.floor, row.rate / row.against < row.floor ? "  BELOW" : "");
  fmt::print("\n");
}

void run_all(int rounds, int count, std::string_view only) {
  const test::Certificates files;
  const auto tls_port = test::free_port();
  const test::RedisServer server{files.redis(tls_port)};
  const auto tls = std::make_shared<net::TlsClient>(
      net::TlsClientOptions{.files = {.certificate = {}, .key = {}, .ca = files["ca.pem"]}});
  const auto over_tls_with = [&](std::chrono::microseconds spin) {
    redis::RedisOptions options;
    options.endpoint = {.host = "127.0.0.1", .port = tls_port, .unix_path = {}};
    options.tls = tls;
    options.spin = spin;
    return redis::open_redis(options);
  };
  const auto store_with = [&](std::chrono::microseconds spin) {
    redis::RedisOptions options;
    options.endpoint.host = "127.0.0.1";
    options.endpoint.port = server.port();
    options.spin = spin;
    return redis::open_redis(options);
  };
  Peer hiredis{server.port()};
  const auto store = store_with(0us);
  const auto spinning = store_with(50us);
  const auto secure = over_tls_with(0us);
  const auto secure_spinning = over_tls_with(50us);
  Counter counter{*store};

  struct Contest {
    std::string name;
    std::function<void(int)> body;
    double floor;
    int times;
    std::string against{};  // empty: the first
    std::vector<double> rates{};
  };
  std::vector<Contest> contests;
  contests.push_back({"hiredis, blocking: EVALSHA acquire + EVALSHA release",
                      [&](int n) { hiredis.pairs(n); }, 0, 1});
  contests.push_back(
      {"the same by Store, both awaited", [&](int n) { pairs(*store, n); }, 0.85, 1});
  contests.push_back(
      {"... release not awaited", [&](int n) { pairs_with_spawned_release(*store, n); }, 1.5, 1});
  contests.push_back({"... both awaited, spin 50 us", [&](int n) { pairs(*spinning, n); }, 1.5, 1});
  contests.push_back({"... release not awaited, spin 50 us",
                      [&](int n) { pairs_with_spawned_release(*spinning, n); }, 0, 1});
  for (const int threads : {2, 4, 16, 64})
    contests.push_back({fmt::format("INCR by Store, {} threads", threads),
                        [&, threads](int n) {
                          crowd(threads, n, [&] { store->run({"INCR", "n"}).get(); });
                        },
                        0, 4});
  contests.push_back({"a combined counter, 64 threads",
                      [&](int n) { crowd(64, n, [&] { counter.next(); }); }, 0, 16});
  const auto gets = [](Store& of) {
    return [&of](int n) {
      for (int i = 0; i < n; ++i) of.run({"GET", "n"}).get();
    };
  };
  contests.push_back({"GET by Store", gets(*store), 0, 4});
  contests.push_back({"GET by Store, over TLS", gets(*secure), 0.8, 4, "GET by Store"});
  contests.push_back({"GET by Store, spin 50 us", gets(*spinning), 0, 4});
  contests.push_back({"GET by Store, over TLS, spin 50 us", gets(*secure_spinning), 0.8, 4,
                      "GET by Store, spin 50 us"});
  for (int round = 0; round < rounds; ++round)
    for (auto& contest : contests)
      if (contest.name.find(only) != std::string::npos)
        contest.rates.push_back(rate(count * contest.times, contest.body));
  const auto rate_of = [&](const std::string& name) {
    const auto peer = std::ranges::find(contests, name, &Contest::name);
    return peer == contests.end() || peer->rates.empty() ? 1 : median(peer->rates);
  };
  for (auto& contest : contests)
    if (!contest.rates.empty())
      print({contest.name, median(contest.rates),
             rate_of(contest.against.empty() ? contests.front().name : contest.against),
             contest.floor});
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  sluice::run_all(argc > 1 ? std::atoi(argv[1]) : 5, argc > 2 ? std::atoi(argv[2]) : 4000,
                  argc > 3 ? argv[3] : "");
}
