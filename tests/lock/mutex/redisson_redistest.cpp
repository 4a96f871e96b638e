/// The wire, and a Java peer with Redisson 4, played by the steps that its lock takes on the
/// server.
#include <future>

#include "lock/server_lock.hpp"

namespace sluice {
namespace {

class Redisson : public ServerLock {
 protected:
  /// Null: granted; else the milliseconds that the present hold has left.
  Value java_acquire() {
    return side_.command(
        {"EVAL",
         "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 "
         "then "
         "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) "
         "return nil end return redis.call('pttl', KEYS[1])",
         "1", "stock", "30000", java_});
  }
  /// Null: not the owner; 0: still in; 1: free.
  Value java_release() {
    return side_.command({"EVAL",
                          "if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then return nil end "
                          "if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then "
                          "redis.call('pexpire', KEYS[1], ARGV[1]) return 0 end "
                          "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') return 1",
                          "2", "stock", channel_, "30000", java_});
  }
  Value java_renew() {
    return side_.command({"EVAL",
                          "if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
                          "redis.call('pexpire', KEYS[1], ARGV[1]) return 1 end return 0",
                          "1", "stock", "30000", java_});
  }

  const std::string java_ = "6f1c0e7a-3c57-4b5e-9d0b-2a6c54ad1f00:42";
  Mutex mutex_{*store_, "stock"};
};

TEST_F(Redisson, WaitsForUsAndHearsUs) {
  auto held = mutex_.acquire().get();
  const auto left = java_acquire().as_integer();
  EXPECT_GT(left, 29'000);
  EXPECT_LE(left, 30'000);
  test::PlainClient ear{server_.port()};
  ear.command({"SUBSCRIBE", channel_});
  held.release().get();
  const Value heard = ear.read();
  ASSERT_EQ(heard.as_items().size(), 3U);
  EXPECT_EQ(heard.as_items()[2].as_text(), "0");
  EXPECT_TRUE(java_acquire().is_null());
}

TEST_F(Redisson, WakesUs) {
  EXPECT_TRUE(java_acquire().is_null());
  EXPECT_FALSE(mutex_.try_acquire().get());
  auto waiting =
      std::async(std::launch::async, [&] { return mutex_.try_acquire(20s).get().has_value(); });
  await_subscribers(channel_, 1);
  EXPECT_EQ(java_release(), Value::integer(1));
  ASSERT_EQ(waiting.wait_for(5s), std::future_status::ready);
  EXPECT_TRUE(waiting.get());
}

TEST_F(Redisson, CannotReleaseOrRenewOurHold) {
  const auto held = mutex_.acquire().get();
  EXPECT_TRUE(java_release().is_null());
  EXPECT_EQ(java_renew(), Value::integer(0));
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(side_.command({"HGET", "stock", held.owner().text}), Value::bulk_string("1"));
}

TEST_F(Redisson, KeepsItsHoldFromOurLateRelease) {
  auto held = mutex_.acquire().get();
  mutex_.force_release().get();
  EXPECT_TRUE(java_acquire().is_null());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_EQ(java_renew(), Value::integer(1));
}

TEST_F(Redisson, SharesTheFencingCounter) {
  EXPECT_EQ(mutex_.acquire().get().token().value, 1U);
  side_.command({"INCR", "redisson_lock_token:{stock}"});  // a hold of its RFencedLock
  EXPECT_EQ(mutex_.acquire().get().token().value, 3U);
}

TEST_F(Redisson, SeesOurEntriesInItsForm) {
  const Owner owner;
  EXPECT_EQ(owner.id().text.size() - owner.id().text.find(':') > 1, true);
  EXPECT_EQ(owner.id().text.find(':'), 36U) << "a UUID, a colon, a number: " << owner.id().text;
  EXPECT_EQ(owner.id().text.find_first_not_of("0123456789", 37), std::string::npos);
  const auto outer = mutex_.acquire(owner).get();
  const auto inner = mutex_.acquire(owner).get();
  EXPECT_EQ(side_.command({"HGET", "stock", owner.id().text}), Value::bulk_string("2"));
  EXPECT_EQ(side_.command({"TYPE", "stock"}), Value::simple_string("hash"));
}

TEST_F(Redisson, FindsNothingButTheCounterAfterwards) {
  for (const std::string name : {"stock", "{tag}stock"}) {
    side_.command({"FLUSHALL"});
    {
      Mutex mutex{*store_, name};
      mutex.acquire().get().release().get();
    }
    const Value keys = side_.command({"KEYS", "*"});
    ASSERT_EQ(keys.as_items().size(), 1U) << name;
    EXPECT_EQ(keys.as_items()[0].as_text(),
              name == "stock" ? "redisson_lock_token:{stock}" : "redisson_lock_token:{tag}stock");
    EXPECT_EQ(side_.command({"TTL", keys.as_items()[0].as_text()}), Value::integer(-1));
  }
}

TEST_F(Redisson, ChannelOfABracedNameHasNoBracesOfOurs) {
  Mutex mutex{*store_, "{tag}stock"};
  auto held = mutex.acquire().get();
  test::PlainClient ear{server_.port()};
  ear.command({"SUBSCRIBE", "redisson_lock__channel:{tag}stock"});
  held.release().get();
  EXPECT_EQ(ear.read().as_items().at(2).as_text(), "0");
}

}  // namespace
}  // namespace sluice
