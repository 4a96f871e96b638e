// What a server that hangs does to each CacheWhenDown: it is stopped, so that it is there and
// answers nothing, or a line swallows its replies.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "sluice/cache_guard.hpp"
#include "sluice/open.hpp"
#include "support/comes_true.hpp"
#include "support/fault_proxy.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Cache = CacheGuard<std::string>;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::comes_true;

constexpr auto one = [] { return std::string{"one"}; };

class Hang : public testing::Test {
 protected:
  test::RedisServer server_;
  test::PlainClient side_{server_.port()};
};

/// What a call brings, and the error of one that brings nothing.
std::string answer_of(Cache& cache, const std::string& key) {
  try {
    return cache.get(key, one).get().value_or("none");
  } catch (const Error& failure) {
    return fmt::format("error: {}", failure.code().message());
  }
}

/// How many calls of so many threads are answered within a second.
int answered_in_a_second(Cache& cache) {
  std::atomic<int> answered{0};
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < 4; ++i)
      callers.emplace_back([&](const std::stop_token& over) {
        while (!over.stop_requested()) {
          if (answer_of(cache, "1") == "one") ++answered;
        }
      });
    std::this_thread::sleep_for(1s);
    for (auto& caller : callers) caller.request_stop();
    const int counted = answered;
    callers.clear();
    return counted;
  }
}

TEST_F(Hang, BC03_CopiesAnswerNineTenthsOfTheCallsInItsFirstSecond) {
  const auto store = open(server_.url());
  Cache cache{*store, "user", {.when_down = CacheWhenDown::copy}};
  cache.get("1", one).get();
  const int before = answered_in_a_second(cache);
  server_.stop();
  const int after = answered_in_a_second(cache);
  server_.cont();
  EXPECT_GE(after, before * 9 / 10);
  EXPECT_TRUE(comes_true([&] { return answer_of(cache, "2") == "one"; }));
}

/// Where in a call the server falls silent.
struct Moment {
  std::string_view name;
  std::string_view held;  ///< no reply to it comes; empty: the server is stopped
  std::size_t skip = 0;
  bool is_known = false;  ///< the key is in the cache, and so has a copy
};

milliseconds time_of(const std::function<void()>& what) {
  const auto begin = steady_clock::now();
  what();
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
}

TEST_F(Hang, BC03_ACallIsHeldUpForTheSilenceAlone) {
  for (const auto when_down : {CacheWhenDown::copy, CacheWhenDown::load}) {
    for (const Moment& moment :
         {Moment{.name = "stopped, known", .held = {}, .is_known = true},
          Moment{.name = "stopped, new", .held = {}},
          Moment{.name = "GET, known", .held = "GET", .is_known = true},
          Moment{.name = "GET, new", .held = "GET"}, Moment{.name = "look", .held = "EVALSHA"},
          Moment{.name = "store", .held = "EVALSHA", .skip = 1}}) {
      const auto what = fmt::format("{}, {}", static_cast<int>(when_down), moment.name);
      auto shortest = 60'000ms;
      for (int round = 0; round < 2; ++round) {
        side_.command({"FLUSHALL"});
        test::FaultProxy proxy{server_.port()};
        const auto store = open(proxy.url());
        Cache cache{*store, "user", {.when_down = when_down}};
        for (int i = 0; i < 2; ++i) cache.get("known", one).get();
        if (moment.held.empty())
          server_.stop();
        else
          proxy.on(test::reply_to(moment.held),
                   {.fault = test::LineFault::hold, .skip = moment.skip});
        const bool has_value = moment.is_known || when_down == CacheWhenDown::load ||
                               moment.name == "store";  // it was loaded before
        shortest = std::min(shortest, time_of([&] {
                              const auto answer =
                                  answer_of(cache, moment.is_known ? "known" : "new");
                              EXPECT_EQ(answer == "one", has_value) << what << ": " << answer;
                            }));
        server_.cont();
        proxy.let_go();
      }
      EXPECT_LE(shortest, 500ms) << what;
    }
  }
}

TEST_F(Hang, BC03_WhereItFailsTheSecondCallIsToldAtOnce) {
  const auto store = open(server_.url(), {.command_timeout = 300ms});
  Cache cache{*store, "user"};
  cache.get("1", one).get();
  server_.stop();
  EXPECT_NE(answer_of(cache, "1"), "one");
  const auto took = time_of([&] {
    for (int i = 0; i < 50; ++i) EXPECT_NE(answer_of(cache, "1"), "one");
  });
  server_.cont();
  EXPECT_LE(took, 2000ms);  // each 100 ms one looks again
  EXPECT_TRUE(comes_true([&] { return answer_of(cache, "1") == "one"; }));
}

TEST_F(Hang, BC03_WhatHungForAMomentLeavesNoLeaseThatOthersWaitFor) {
  test::FaultProxy proxy{server_.port()};
  const auto store = open(proxy.url());
  Cache cache{*store, "user", {.lease = 30s, .when_down = CacheWhenDown::load}};
  cache.get("known", one).get();
  proxy.on(test::request_of("EVALSHA"), {.fault = test::LineFault::hold});
  EXPECT_EQ(answer_of(cache, "new"), "one");
  proxy.let_go();
  EXPECT_TRUE(comes_true([&] {
    return side_.command({"EXISTS", "sluice_cache_lease:{user:new}"}).as_integer() == 0;
  }));
}

}  // namespace
}  // namespace sluice
