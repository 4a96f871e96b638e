/// The wire, and a Java peer with Redisson 4, played by the steps that its RRateLimiter takes on
/// the server, with a clock of its own.
#include "lock/server_lock.hpp"
#include "sluice/rate_limiter.hpp"

namespace sluice {
namespace {

class RedissonLimiter : public ServerLock {
 protected:
  Value java_set_rate(std::string_view rate, std::string_view interval, std::string_view kind) {
    return side_.command({"EVAL",
                          "redis.call('hsetnx', KEYS[1], 'rate', ARGV[1]) "
                          "redis.call('hsetnx', KEYS[1], 'interval', ARGV[2]) "
                          "redis.call('hsetnx', KEYS[1], 'keepAliveTime', '0') "
                          "return redis.call('hsetnx', KEYS[1], 'type', ARGV[3])",
                          "1", "stock", rate, interval, kind});
  }
  /// Null: granted; else ms to wait.
  Value java_acquire(std::string_view permits, std::chrono::milliseconds clock_off = {}) {
    const auto now = store_->time().get().time_since_epoch() + clock_off;
    const auto now_ms =
        std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
    const std::string id = "java-" + std::to_string(10'000'000'000 + ++requests_);  // 16 bytes
    return side_.command(
        {"EVAL",
         "local rate = tonumber(redis.call('hget', KEYS[1], 'rate')) "
         "local interval = redis.call('hget', KEYS[1], 'interval') "
         "local free = redis.call('get', KEYS[2]) "
         "if not free then redis.call('set', KEYS[2], rate) free = rate end "
         "local old = redis.call('zrangebyscore', KEYS[3], 0, ARGV[2] - interval) "
         "local back = 0 "
         "for _, entry in ipairs(old) do "
         "local id, permits = struct.unpack('Bc0I', entry) back = back + permits end "
         "if back > 0 then redis.call('zremrangebyscore', KEYS[3], 0, ARGV[2] - interval) "
         "free = free + back redis.call('set', KEYS[2], free) end "
         "if tonumber(free) < tonumber(ARGV[1]) then "
         "local first = redis.call('zrange', KEYS[3], 0, 0, 'withscores') "
         "return 3 + interval - (ARGV[2] - first[2]) end "
         "redis.call('zadd', KEYS[3], ARGV[2], struct.pack('Bc0I', #ARGV[3], ARGV[3], ARGV[1])) "
         "redis.call('decrby', KEYS[2], ARGV[1]) return nil",
         "3", "stock", "{stock}:value", "{stock}:permits", permits, now_ms, id});
  }

  int requests_ = 0;
  RateLimiter limiter_{*store_, "stock", {.rate = 3, .interval = 1min}};
};

TEST_F(RedissonLimiter, SeesOurPermitsInItsForm) {
  EXPECT_EQ(limiter_.try_acquire(2).get()->left, 1);
  const auto field = [&](std::string_view name) {
    return side_.command({"HGET", "stock", name}).as_text();
  };
  EXPECT_EQ(field("rate"), "3");
  EXPECT_EQ(field("interval"), "60000");
  EXPECT_EQ(field("type"), "0");
  EXPECT_EQ(field("keepAliveTime"), "0");
  EXPECT_EQ(side_.command({"GET", "{stock}:value"}), Value::bulk_string("1"));
  const Value log = side_.command({"ZRANGE", "{stock}:permits", "0", "-1"});
  ASSERT_EQ(log.as_items().size(), 1U);
  const std::string& entry = log.as_items()[0].as_text();
  ASSERT_EQ(entry.size(), 21U);
  EXPECT_EQ(entry.front(), '\x10');
  EXPECT_EQ(entry.substr(17), (std::string{"\x02\0\0\0", 4}));
  const Value keys = side_.command({"KEYS", "*"});
  EXPECT_EQ(keys.as_items().size(), 3U);
  EXPECT_EQ(java_set_rate("9", "1", "0"), Value::integer(0)) << "it is defined already";
}

TEST_F(RedissonLimiter, SharesTheRateWithUs) {
  EXPECT_EQ(java_set_rate("3", "60000", "0"), Value::integer(1));
  EXPECT_TRUE(java_acquire("1").is_null());
  EXPECT_EQ(limiter_.try_acquire().get()->left, 1);
  EXPECT_TRUE(java_acquire("1").is_null());
  const auto refused = limiter_.try_acquire().get();
  ASSERT_FALSE(refused);
  EXPECT_GT(refused.error().retry_after, 50s);
  EXPECT_LE(refused.error().retry_after, 60s);
  const auto wait = java_acquire("1").as_integer();
  EXPECT_GT(wait, 50'000);
  EXPECT_LE(wait, 60'003);
}

TEST_F(RedissonLimiter, ItsWrongClockHoldsUsUpForOneIntervalAtMost) {
  java_set_rate("3", "60000", "0");
  EXPECT_TRUE(java_acquire("3", 1h).is_null());
  const auto refused = limiter_.try_acquire().get();
  ASSERT_FALSE(refused);
  EXPECT_LE(refused.error().retry_after, 60s);
}

TEST_F(RedissonLimiter, ItsOtherRateIsAMismatch) {
  java_set_rate("4", "60000", "0");
  try {
    (void)limiter_.try_acquire().get();
    FAIL() << "granted by another rate";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::config_mismatch);
  }
  RateLimiter follower{*store_, "stock", {.rate = 3, .interval = 1min, .follow = true}};
  EXPECT_EQ(follower.try_acquire().get()->left, 3);
}

TEST_F(RedissonLimiter, ItsKeepAliveIsKept) {
  java_set_rate("3", "60000", "0");
  side_.command({"HSET", "stock", "keepAliveTime", "90000"});
  limiter_.try_acquire().get();
  for (const char* const key : {"stock", "{stock}:value", "{stock}:permits"})
    EXPECT_GT(side_.command({"PTTL", key}).as_integer(), 80'000) << key;
}

TEST_F(RedissonLimiter, FindsTheKeysOfAClientWhereItsOwnWouldBe) {
  RateLimiter limiter{
      *store_,
      "each",
      {.rate = 1, .interval = 1min, .kind = RateKind::per_client, .client = "6f1c0e7a"}};
  EXPECT_TRUE(limiter.try_acquire().get());
  EXPECT_EQ(side_.command({"GET", "{each}:value:6f1c0e7a"}), Value::bulk_string("0"));
  EXPECT_EQ(side_.command({"ZCARD", "{each}:permits:6f1c0e7a"}), Value::integer(1));
  EXPECT_EQ(side_.command({"HGET", "each", "type"}), Value::bulk_string("1"));
}

}  // namespace
}  // namespace sluice
