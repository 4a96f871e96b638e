// Which connection carries what: payload, messages, blocking commands, batches that end with WAIT.
#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "redis/at_server.hpp"
#include "support/plain_client.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

Batch durable(std::string_view key, std::string_view within) {
  Batch batch;
  batch.add({"INCR", key}).add({"WAIT", "1", within});
  return batch;
}

TEST(Lines, K18_PayloadDoesNotCutWhatListens) {
  test::RedisServer server{{"client-output-buffer-limit pubsub 1mb 1mb 1"}};
  const auto store = redis::open_redis(test::at(server));
  std::atomic<int> heard{0};
  std::atomic<int> gaps{0};
  const auto listener = store
                            ->listen("c",
                                     [&](const Message& message) {
                                       ++(message.kind == Message::Kind::gap ? gaps : heard);
                                     })
                            .get();
  store->run({"SETRANGE", "large", "40000000", "x"}).get();
  const auto before = metrics().redis_reconnects.load();
  std::vector<std::jthread> readers;
  for (int i = 0; i < test::rounds(3); ++i)
    readers.emplace_back([&] {
      for (int round = 0; round < test::rounds(2); ++round)
        EXPECT_EQ(store->run({"GET", "large"}, {.timeout = 100s}).get().as_text().size(),
                  40'000'001U);
    });
  readers.clear();
  EXPECT_EQ(store->run({"PUBLISH", "c", "x"}).get().as_integer(), 1);
  for (int i = 0; i < 1000 && heard == 0; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(gaps, 0);
  EXPECT_EQ(metrics().redis_reconnects.load(), before);
}

TEST(Lines, K17_OneMoreBlockingCommandWaitsForAConnection) {
  test::RedisServer server;
  auto options = test::at(server);
  options.most_blocking = 2;
  const auto store = redis::open_redis(options);
  std::vector<std::jthread> waiters;
  std::atomic<int> served{0};
  for (int i = 0; i < 8; ++i)
    waiters.emplace_back([&] {
      if (!store->run({"BLPOP", "list", "20"}).get().is_null()) ++served;
    });
  for (int i = 0; i < 8; ++i) store->run({"RPUSH", "list", "x"}).get();
  waiters.clear();
  EXPECT_EQ(served, 8);
  waiters.emplace_back([&] { store->run({"BLPOP", "other", "0"}).get(); });
  waiters.emplace_back([&] { store->run({"BLPOP", "other", "0"}).get(); });
  test::PlainClient side{server.port()};
  while (side.command({"INFO", "clients"}).as_text().find("blocked_clients:2") ==
         std::string::npos) {
    std::this_thread::sleep_for(1ms);
  }
  const auto failure = test::failure_of([&] {
    store->run({"XREAD", "BLOCK", "1", "STREAMS", "s", "0"}, {.timeout = 50ms}).get();
  });
  EXPECT_EQ(failure.errc(), Errc::connection);
  EXPECT_EQ(failure.effect(), Effect::none);
  store->run({"RPUSH", "other", "x", "y"}).get();
}

TEST(Lines, K17_AHundredThreadsWaitForReplicasTogether) {
  test::RedisServer server;
  const auto store = redis::open_redis(test::at(server));
  std::vector<std::jthread> callers;
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i)
    callers.emplace_back([&] {
      const auto replies = store->run(durable("n", "20")).get();
      ASSERT_EQ(replies.size(), 2U);
      EXPECT_EQ(replies[1].as_integer(), 0);
      ++done;
    });
  callers.clear();
  EXPECT_EQ(done, 100);
  EXPECT_EQ(store->run({"GET", "n"}).get().as_text(), "100");
}

TEST(Lines, BatchesWithManyWaitsDoNotKeepAConnectionEach) {
  const test::RedisServer server;
  const auto store = redis::open_redis(at(server));
  for (int ms = 1; ms <= 60; ++ms)
    store->run(Batch{}.add({"INCR", "k"}).add({"WAIT", "0", std::to_string(ms)})).get();
  test::PlainClient admin{server.port()};
  const auto count = [&] {
    const std::string all = admin.command({"CLIENT", "LIST"}).as_text();
    return std::ranges::count(all, '\n');
  };
  for (int i = 0; i < 1000 && count() > 20; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_LE(count(), 20);
  EXPECT_EQ(store->run({"GET", "k"}).get().as_text(), "60");
}

TEST(Lines, K28_WhatTakesADurableCallBackComesAfterIt) {
  test::RedisServer server;
  const auto store = redis::open_redis(test::at(server));
  const auto one = [&](std::string_view verb) {
    Batch batch;
    batch.add({verb, "list", "x"}).add({"WAIT", "1", "1"});
    return batch;
  };
  store->run(one("RPUSH")).get();  // connected
  server.stop();
  auto first = one("RPUSH");
  EXPECT_EQ(
      test::failure_of([&] { store->run(std::move(first), {.timeout = 100ms}).get(); }).effect(),
      Effect::unknown);
  std::promise<void> done;
  const auto take_back = [&]() -> Task<void> {
    auto asked = store->run(Batch{}.add({"DEL", "list"}).add({"WAIT", "1", "1"}), {.timeout = 30s});
    co_await asked;
    done.set_value();
  };
  spawn(take_back());
  server.cont();
  done.get_future().get();
  EXPECT_EQ(store->run({"EXISTS", "list"}).get().as_integer(), 0);
}

}  // namespace
}  // namespace sluice
