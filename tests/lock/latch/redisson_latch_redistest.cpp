/// The wire, and a Java peer with Redisson 4, played by the steps that its RCountDownLatch takes on
/// the server.
#include <future>
#include <thread>

#include "lock/server_lock.hpp"
#include "sluice/latch.hpp"

namespace sluice {
namespace {

class RedissonLatch : public ServerLock {
 protected:
  Value java_count_down() {
    return side_.command({"EVAL",
                          "local left = redis.call('decr', KEYS[1]) "
                          "if left <= 0 then redis.call('del', KEYS[1]) end "
                          "if left == 0 then redis.call('publish', KEYS[2], '0') end",
                          "2", "stock", latch_channel_});
  }
  Value java_try_set(std::string_view count) {
    return side_.command({"EVAL",
                          "if redis.call('exists', KEYS[1]) == 1 then return 0 end "
                          "redis.call('set', KEYS[1], ARGV[1]) "
                          "redis.call('publish', KEYS[2], '1') return 1",
                          "2", "stock", latch_channel_, count});
  }
  Value java_delete() {
    return side_.command({"EVAL",
                          "if redis.call('del', KEYS[1]) == 0 then return 0 end "
                          "redis.call('publish', KEYS[2], '1') return 1",
                          "2", "stock", latch_channel_});
  }
  std::future<std::chrono::steady_clock::time_point> wait_in_background() {
    auto waiting = std::async(std::launch::async, [this] {
      latch_.wait().get();
      return std::chrono::steady_clock::now();
    });
    await_subscribers(latch_channel_, 1);
    return waiting;
  }
  static std::string heard(test::PlainClient& ear) { return ear.read().as_items().at(2).as_text(); }

  const std::string latch_channel_ = "redisson_countdownlatch__channel__{stock}";
  Latch latch_{*store_, "stock"};
};

TEST_F(RedissonLatch, P06_ItsCountDownWakesUs) {
  EXPECT_TRUE(comes_within(100ms, [&] {
    EXPECT_EQ(java_try_set("2"), Value::integer(1));
    auto waiting = wait_in_background();
    java_count_down();
    EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
    const auto before = std::chrono::steady_clock::now();
    java_count_down();
    return waiting.get() - before;
  }));
}

TEST_F(RedissonLatch, P06_OurCountDownWakesIt) {
  latch_.try_set_count(2).get();
  test::PlainClient ear{server_.port()};
  ear.command({"SUBSCRIBE", latch_channel_});
  EXPECT_EQ(latch_.count_down().get(), 1);
  EXPECT_FALSE(ear.read_for(20ms)) << "only zero is published";
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(latch_.count_down().get(), 0);
  EXPECT_EQ(heard(ear), "0");
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
}

TEST_F(RedissonLatch, ItsDeleteLetsUsThrough) {
  java_try_set("3");
  auto waiting = wait_in_background();
  EXPECT_EQ(java_delete(), Value::integer(1));
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready);
}

TEST_F(RedissonLatch, SeesOurCountInItsForm) {
  test::PlainClient ear{server_.port()};
  ear.command({"SUBSCRIBE", latch_channel_});
  latch_.try_set_count(3).get();
  EXPECT_EQ(heard(ear), "1");
  EXPECT_EQ(side_.command({"GET", "stock"}), Value::bulk_string("3"));
  EXPECT_EQ(side_.command({"TTL", "stock"}), Value::integer(-1));
  EXPECT_EQ(java_try_set("9"), Value::integer(0));
  latch_.reset(5).get();
  EXPECT_EQ(heard(ear), "1");
  EXPECT_EQ(side_.command({"GET", "stock"}), Value::bulk_string("5"));
  latch_.reset(0).get();
  EXPECT_EQ(heard(ear), "0");
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
}

TEST_F(RedissonLatch, CountsTogetherWithUs) {
  java_try_set("4");
  EXPECT_EQ(latch_.count_down().get(), 3);
  java_count_down();
  EXPECT_EQ(latch_.count().get(), 2);
  EXPECT_EQ(latch_.count_down(2).get(), 0);
  java_count_down();  // of an open latch: nothing
  EXPECT_EQ(latch_.count().get(), 0);
}

TEST_F(RedissonLatch, ChannelOfABracedNameHasItsBracesTwice) {
  Latch latch{*store_, "{tag}stock"};
  test::PlainClient ear{server_.port()};
  ear.command({"SUBSCRIBE", "redisson_countdownlatch__channel__{{tag}stock}"});
  latch.try_set_count(1).get();
  EXPECT_EQ(heard(ear), "1");
  latch.count_down().get();
  EXPECT_EQ(heard(ear), "0");
}

TEST_F(RedissonLatch, WhatStaysHasATtl) {
  latch_.try_set_count(1).get();
  latch_.count_down().get();
  const Value keys = side_.command({"KEYS", "*"});
  EXPECT_EQ(keys.as_items().size(), 2U);
  for (const Value& key : keys.as_items()) {
    EXPECT_TRUE(key.as_text().starts_with("sluice_latch_")) << key.as_text();
    EXPECT_GT(side_.command({"PTTL", key.as_text()}).as_integer(), 0) << key.as_text();
  }
}

/// The connection that hears the messages is cut while the latch opens.
TEST_F(RedissonLatch, P03_OpeningDuringALostConnectionIsSeenWhenItIsBack) {
  latch_.try_set_count(1).get();
  EXPECT_EQ(latch_.count().get(), 1);  // the server has learnt the script of a look
  side_.command({"CONFIG", "RESETSTAT"});
  auto waiting = wait_in_background();
  const auto looks = [&] { return side_.command({"INFO", "commandstats"}).as_text(); };
  const auto patience = std::chrono::steady_clock::now() + 60s;
  while (looks().find("cmdstat_evalsha:calls=2,") == std::string::npos) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience) << "no second look: " << looks();
    std::this_thread::yield();
  }
  side_.command({"DEL", "stock"});  // and nobody says so
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  side_.command({"CLIENT", "KILL", "TYPE", "pubsub"});
  side_.command({"CLIENT", "KILL", "TYPE", "normal"});
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready) << "the gap was not noticed";
  EXPECT_NO_THROW(waiting.get());
}

}  // namespace
}  // namespace sluice
