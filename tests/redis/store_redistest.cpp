// Commands, scripts, batches and channels of a real server, from many threads.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "base/sha1.hpp"
#include "redis/at_server.hpp"
#include "store/subscription.hpp"
#include "support/plain_client.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::at;

class RedisStoreTest : public testing::Test {
 protected:
  test::RedisServer server;
  std::unique_ptr<Store> store = redis::open_redis(at(server));
};

TEST_F(RedisStoreTest, RunsCommands) {
  EXPECT_EQ(store->run({"SET", "key", "value"}).get(), Value::simple_string("OK"));
  EXPECT_EQ(store->run({"GET", "key"}).get(), Value::bulk_string("value"));
  EXPECT_TRUE(store->run({"GET", "other"}).get().is_null());
}

TEST_F(RedisStoreTest, RunsAScriptThatTheServerDoesNotKnowAndThatItHasForgotten) {
  static const std::string text = "return {KEYS[1], ARGV[1]}";
  const auto sha1 = sha1_hex(text);
  const Script script{"test", text, sha1};
  for (int i = 0; i < 3; ++i) {
    const auto reply = store->run(script, {"k"}, {"a"}).get();
    EXPECT_EQ(to_string(reply), R"(["k", "a"])");
  }
  EXPECT_EQ(store->run({"SCRIPT", "FLUSH"}).get().as_text(), "OK");
  EXPECT_EQ(to_string(store->run(script, {"k"}, {"b"}).get()), R"(["k", "b"])");
}

TEST_F(RedisStoreTest, GivesEachOfManyThreadsItsOwnReplies) {
  constexpr int threads = 16;
  constexpr int calls = 500;
  std::latch go{threads};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < threads; ++t) {
      crowd.emplace_back([&, t] {
        go.arrive_and_wait();
        for (int i = 0; i < calls; ++i) {
          const auto word = std::to_string(t) + ":" + std::to_string(i);
          if (store->run({"ECHO", word}).get().as_text() != word) ++wrong;
        }
      });
    }
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(RedisStoreTest, HearsWhatIsPublishedAfterListening) {
  auto subscription = Subscription::open(*store, "news").get();
  EXPECT_EQ(store->run({"PUBLISH", "news", "hello"}).get().as_integer(), 1);
  const auto message = subscription.next(store->clock().steady() + 5s).get();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, "hello");
  EXPECT_FALSE(subscription.next(store->clock().steady() + 10ms).get());
}

TEST_F(RedisStoreTest, ManyThreadsWithASpin) {
  auto options = at(server);
  options.spin = 30us;
  const auto spinning = redis::open_redis(options);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < 4; ++t)
      crowd.emplace_back([&, t] {
        for (int i = 0; i < 500; ++i) {
          const auto word = std::to_string(t * 1000 + i);
          if (spinning->run({"ECHO", word}).get().as_text() != word) ++wrong;
        }
      });
  }
  EXPECT_EQ(wrong, 0);
}

TEST_F(RedisStoreTest, CallsThatAreNotAwaitedKeepTheirOrder) {
  const auto append = [](Store& to, std::string word) -> Task<void> {
    auto asked = to.run({"APPEND", "k", word});
    co_await asked;
  };
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    expected += std::to_string(i);
    spawn(append(*store, std::to_string(i)));
    if (i % 100 == 0) {
      EXPECT_EQ(store->run({"GET", "k"}).get().as_text(), expected);
    }
  }
  EXPECT_EQ(store->run({"GET", "k"}).get().as_text(), expected);
}

TEST_F(RedisStoreTest, ValuesOfManyMegabytesPass) {
  std::string big(40 << 20, 'x');
  big += "end";
  EXPECT_EQ(store->run({"SET", "big", big}, {.timeout = 100s}).get().as_text(), "OK");
  EXPECT_EQ(store->run({"GET", "big"}, {.timeout = 100s}).get().as_text(), big);
}

TEST_F(RedisStoreTest, ABatchKeepsItsOrderItsErrorsAndItsScripts) {
  const std::string text = "return redis.call('incr', KEYS[1])";
  const auto sha1 = sha1_hex(text);
  const Script script{"test", text, sha1};
  const std::string_view keys[] = {"n"};
  for (int i = 0; i < 2; ++i) {
    Batch batch;
    batch.add({"SET", "n", "10"})
        .add(script, keys, {})
        .add({"LPUSH", "n", "x"})
        .add(script, keys, {})
        .add({"GET", "n"});
    const auto replies = store->run(batch).get();
    ASSERT_EQ(replies.size(), 5U);
    EXPECT_EQ(replies[1].as_integer(), 11);
    EXPECT_TRUE(replies[2].is_error());
    EXPECT_EQ(replies[3].as_integer(), 12);
    EXPECT_EQ(replies[4].as_text(), "12");
  }
  store->run({"SCRIPT", "FLUSH"}).get();
  Batch batch;
  batch.add(script, keys, {}).add(script, keys, {});
  const auto replies = store->run(batch).get();
  EXPECT_EQ(replies[0].as_integer(), 13);
  EXPECT_EQ(replies[1].as_integer(), 14);
  EXPECT_TRUE(store->run(Batch{}).get().empty());
}

TEST_F(RedisStoreTest, ErrorsAreTyped) {
  store->run({"SET", "text", "x"}).get();
  EXPECT_EQ(test::failure_of([&] {
              store->run({"LPUSH", "text", "x"}).get();
            }).errc(),
            Errc::wrong_type);
  EXPECT_EQ(test::failure_of([&] {
              store->run({"SELECT", "1"}).get();
            }).errc(),
            Errc::bad_argument);
  EXPECT_EQ(test::failure_of([&] { store->run({"NO-SUCH-COMMAND"}).get(); }).errc(), Errc::server);
  store->run({"CONFIG", "SET", "maxmemory", "1"}).get();
  EXPECT_EQ(test::failure_of([&] {
              store->run({"SET", "k", "v"}).get();
            }).errc(),
            Errc::out_of_space);
}

TEST_F(RedisStoreTest, TellsTheTime) {
  const auto told = store->time().get();
  EXPECT_LT(std::chrono::abs(told - store->clock().wall()), 5s);
}

TEST(Frictions, U05_AServersErrorNamesVerbAndKeyAndTheTrueEffect) {
  const test::RedisServer server;
  const auto store = redis::open_redis(test::at(server));
  store->run({"SET", "user:42", "text"}).get();
  const auto plain = test::failure_of([&] { store->run({"HSET", "user:42", "f", "v"}).get(); });
  EXPECT_EQ(plain.errc(), Errc::wrong_type);
  EXPECT_EQ(plain.effect(), Effect::none);
  EXPECT_EQ(plain.message(),
            "HSET of 'user:42': WRONGTYPE Operation against a key holding the wrong "
            "kind of value");

  const auto failed = [&](const std::string& text) {
    const auto sha1 = sha1_hex(text);
    Script script{.name = "shop/count", .text = text, .sha1 = sha1};
    EXPECT_EQ(test::failure_of([&] { store->run(script, {"user:42"}, {}).get(); }).effect(),
              Effect::unknown)
        << "a program's own script may have done anything";
    script.is_of_sluice = true;
    return test::failure_of([&] { store->run(script, {"user:42"}, {}).get(); });
  };
  const auto before = failed("redis.call('get', KEYS[1])\nreturn redis.call('hget', KEYS[1], 'f')");
  EXPECT_EQ(before.effect(), Effect::none);
  EXPECT_EQ(
      before.message(),
      "shop/count of 'user:42': WRONGTYPE Operation against a key holding the "
      "wrong kind of value; the key 'user:42' is something else's: use another name, or delete "
      "what is there");
  const auto after =
      failed("redis.call('set', 'other', 1)\nreturn redis.call('hget', KEYS[1], 'f')");
  EXPECT_EQ(after.effect(), Effect::unknown);
  EXPECT_EQ(after.errc(), Errc::wrong_type);

  store->run({"CONFIG", "SET", "min-replicas-to-write", "1"}).get();
  const auto refused = failed("return redis.call('del', KEYS[1])");
  EXPECT_EQ(refused.errc(), Errc::read_only);
  EXPECT_EQ(refused.effect(), Effect::none);
  EXPECT_EQ(refused.message().find("user_script"), std::string::npos) << refused.message();
  store->run({"CONFIG", "SET", "min-replicas-to-write", "0"}).get();
  store->run({"CONFIG", "SET", "maxmemory", "1"}).get();
  const auto full = failed("return redis.call('append', KEYS[1], 'x')");
  EXPECT_EQ(full.errc(), Errc::out_of_space);
  EXPECT_EQ(full.effect(), Effect::none);
}

}  // namespace
}  // namespace sluice
