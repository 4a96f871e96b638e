// Commands, scripts, batches and channels of a real server, from many threads.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "base/sha1.hpp"
#include "redis/redis_store.hpp"
#include "store/subscription.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

redis::RedisOptions at(const test::RedisServer& server) {
  redis::RedisOptions options;
  options.endpoint.host = "127.0.0.1";
  options.endpoint.port = server.port();
  return options;
}

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

TEST_F(RedisStoreTest, TellsTheTime) {
  const auto told = store->time().get();
  EXPECT_LT(std::chrono::abs(told - store->clock().wall()), 5s);
}

}  // namespace
}  // namespace sluice
