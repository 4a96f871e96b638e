/// The Java peer does what Redisson does: replies, keys and messages of each object.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "support/java_peer.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

const Value yes = Value::integer(1);
const Value no = Value::integer(0);

class Java : public testing::Test {
 protected:
  Value ask(std::initializer_list<std::string_view> words) { return side_.command(words); }
  std::int64_t left(std::string_view key) { return ask({"PTTL", key}).as_integer(); }
  bool gone(std::string_view key) { return ask({"EXISTS", key}) == no; }
  void await_subscriber(const std::string& channel) {
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (ask({"PUBSUB", "NUMSUB", channel}).as_items().at(1) != yes) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << channel;
      std::this_thread::yield();
    }
  }
  /// `wait` waits on `channel` until `wake` is done; its result.
  template <class Wait, class Wake>
  auto woken(const std::string& channel, Wait wait, Wake wake) {
    auto waiting = std::async(std::launch::async, wait);
    await_subscriber(channel);
    wake();
    return waiting.get();
  }

  RedisServer server_;
  PlainClient side_{server_.port()};
  JavaPeer a_{server_.port()};
  JavaPeer b_{server_.port()};
};

TEST_F(Java, LockCountsItsEntries) {
  const JavaPeer::Lock lock{a_, "stock"};
  const JavaPeer::Lock other{b_, "stock"};
  EXPECT_TRUE(lock.acquire().is_null());
  EXPECT_TRUE(lock.acquire().is_null());
  EXPECT_EQ(ask({"HGETALL", "stock"}),
            Value::array({Value::bulk_string(a_.owner()), Value::bulk_string("2")}));
  EXPECT_GT(other.acquire().as_integer(), 29'000);
  EXPECT_TRUE(other.release().is_null());
  EXPECT_EQ(other.renew(), no);
  EXPECT_EQ(lock.renew(), yes);
  EXPECT_EQ(lock.release(), no);
  EXPECT_EQ(lock.release(), yes);
  EXPECT_TRUE(gone("stock"));
  EXPECT_EQ(ask({"KEYS", "*"}), Value::array({})) << "the latches are deleted";
}

TEST_F(Java, LockIsReleasedOnceByTwoRequests) {
  const JavaPeer::Lock lock{a_, "stock"};
  lock.acquire();
  lock.acquire();
  EXPECT_EQ(lock.release_twice(), std::pair(no, no));
  EXPECT_EQ(ask({"HGET", "stock", a_.owner()}), Value::bulk_string("1"));
}

TEST_F(Java, LockWaiterIsWokenByTheReleaseAndByForce) {
  const JavaPeer::Lock lock{a_, "stock"};
  const JavaPeer::Lock other{b_, "stock"};
  lock.acquire();
  const auto wait = [&] { return other.acquire_within(10s); };
  EXPECT_TRUE(woken(other.channel(), wait, [&] { lock.release(); }));
  EXPECT_FALSE(lock.acquire_within(5ms));
  EXPECT_EQ(lock.force(), yes);
  EXPECT_EQ(lock.force(), no);
}

TEST_F(Java, LockWaiterIsWokenByTheEndOfTheLease) {
  const JavaPeer::Lock lock{a_, "stock"};
  lock.acquire(20ms);
  EXPECT_TRUE((JavaPeer::Lock{b_, "stock"}.acquire_within(10s)));
}

TEST_F(Java, FencedLockCountsEveryEntry) {
  const JavaPeer::FencedLock lock{a_, "stock"};
  EXPECT_EQ(lock.acquire(), 1U);
  EXPECT_EQ(lock.acquire(), 2U);
  EXPECT_EQ((JavaPeer::FencedLock{b_, "stock"}.acquire()), std::nullopt);
  EXPECT_EQ(ask({"GET", "redisson_lock_token:{stock}"}), Value::bulk_string("2"));
}

TEST_F(Java, FairLockServesInOrder) {
  JavaPeer c{server_.port()};
  const JavaPeer::FairLock first{a_, "stock"};
  const JavaPeer::FairLock second{b_, "stock"};
  const JavaPeer::FairLock third{c, "stock"};
  EXPECT_TRUE(first.acquire().is_null());
  EXPECT_EQ(second.try_acquire(), yes);
  EXPECT_TRUE(gone(second.queue()));
  EXPECT_GT(second.acquire().as_integer(), 29'000);
  EXPECT_GT(third.acquire().as_integer(), 329'000) << "the lease, and the wait of the second";
  EXPECT_EQ(ask({"LRANGE", second.queue(), "0", "-1"}),
            Value::array({Value::bulk_string(b_.owner()), Value::bulk_string(c.owner())}));
  Ear ear{server_.port(), second.channel()};
  EXPECT_EQ(first.release(), yes);
  EXPECT_TRUE(ear.hears("0", 5s));
  EXPECT_GE(third.acquire().as_integer(), 0) << "not its turn";
  EXPECT_TRUE(second.acquire().is_null());
  EXPECT_EQ(third.give_up(), yes);
  EXPECT_TRUE(gone(second.queue()));
  EXPECT_TRUE(gone(second.deadlines()));
  EXPECT_EQ(second.force(), yes);
}

TEST_F(Java, FairLockPassesOverADeadHead) {
  const JavaPeer::FairLock first{a_, "stock"};
  const JavaPeer::FairLock second{b_, "stock"};
  first.acquire();
  second.acquire();
  EXPECT_EQ(first.release(), yes);
  EXPECT_GT(first.acquire().as_integer(), 0) << "free, but it is the turn of the head";
  a_.clock_skew = 6min;
  EXPECT_TRUE(first.acquire().is_null()) << "five minutes later it is dropped";
  EXPECT_TRUE(gone(first.queue()));
}

TEST_F(Java, FairLockWaiterIsWoken) {
  const JavaPeer::FairLock lock{a_, "stock"};
  const JavaPeer::FairLock other{b_, "stock"};
  lock.acquire();
  const auto wait = [&] { return other.acquire_within(10s); };
  EXPECT_TRUE(woken(other.channel(), wait, [&] { lock.release(); }));
  EXPECT_FALSE(lock.acquire_within(5ms));
  EXPECT_TRUE(gone(lock.queue())) << "it gave up its place";
}

TEST_F(Java, ReadersShareAndTheWriterIsAlone) {
  const JavaPeer::ReadLock a{a_, "book"};
  const JavaPeer::ReadLock b{b_, "book"};
  const JavaPeer::WriteLock write{b_, "book"};
  EXPECT_TRUE(a.acquire().is_null());
  EXPECT_TRUE(b.acquire(60s).is_null());
  EXPECT_TRUE(a.acquire().is_null());
  EXPECT_GT(left("{book}:" + a_.owner() + ":rwlock_timeout:2"), 29'000);
  EXPECT_GT(left("book"), 59'000);
  EXPECT_GT(write.acquire().as_integer(), 0) << "an upgrade is refused";
  EXPECT_EQ(b.release(), no);
  EXPECT_LE(left("book"), 30'000) << "the longest of the other readers";
  EXPECT_EQ(a.renew(), yes);
  EXPECT_EQ(a.release(), no);
  EXPECT_EQ(a.release(), yes);
  EXPECT_EQ(ask({"KEYS", "*"}), Value::array({}));
}

TEST_F(Java, WriterMayReadAndGoOnReading) {
  const JavaPeer::WriteLock write{a_, "book"};
  const JavaPeer::ReadLock read{a_, "book"};
  EXPECT_TRUE(write.acquire().is_null());
  EXPECT_TRUE(write.acquire().is_null());
  EXPECT_GT(left("book"), 59'000) << "the leases add up";
  EXPECT_TRUE(read.acquire().is_null());
  EXPECT_EQ(write.renew(), yes);
  EXPECT_EQ(write.release(), no);
  EXPECT_EQ(write.release(), yes);
  EXPECT_EQ(ask({"HGET", "book", "mode"}), Value::bulk_string("read"));
  EXPECT_EQ(write.force(), no);
  EXPECT_EQ(read.force(), yes);
}

TEST_F(Java, ReadersAreWokenByTheWriter) {
  const JavaPeer::WriteLock write{a_, "book"};
  const JavaPeer::ReadLock read{b_, "book"};
  write.acquire();
  const auto wait = [&] { return read.acquire_within(10s); };
  EXPECT_TRUE(woken(read.channel(), wait, [&] { write.release(); }));
  const auto wait_to_write = [&] { return write.acquire_within(10s); };
  EXPECT_TRUE(woken(write.channel(), wait_to_write, [&] { read.release(); }));
}

TEST_F(Java, SemaphoreCounts) {
  const JavaPeer::Semaphore semaphore{a_, "seats"};
  const JavaPeer::Semaphore other{b_, "seats"};
  EXPECT_EQ(semaphore.acquire(), no) << "not there: no permits";
  EXPECT_EQ(semaphore.try_set_permits(3), yes);
  EXPECT_EQ(semaphore.try_set_permits(5), no);
  EXPECT_EQ(semaphore.acquire(2), yes);
  EXPECT_EQ(semaphore.acquire(2), no);
  const auto wait = [&] { return other.acquire_within(10s, 2); };
  EXPECT_TRUE(woken(other.channel(), wait, [&] { semaphore.release(); }));
  EXPECT_EQ(ask({"GET", "seats"}), Value::bulk_string("0"));
}

TEST_F(Java, PermitsEnd) {
  const JavaPeer::PermitSemaphore semaphore{a_, "seats"};
  semaphore.try_set_permits(1);
  const auto first = semaphore.acquire(20ms);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->size(), 16U);
  EXPECT_EQ(semaphore.acquire(), std::nullopt);
  const auto second = semaphore.acquire_within(10s);
  ASSERT_TRUE(second) << "the first ended";
  EXPECT_EQ(semaphore.release(*first), no);
  EXPECT_EQ(ask({"ZSCORE", semaphore.ends(), *second}).as_number(), 922337203685477.0);
  EXPECT_EQ(semaphore.acquire(), std::nullopt) << "and this one never";
  EXPECT_EQ(semaphore.release(*second), yes);
  EXPECT_EQ(ask({"GET", "seats"}), Value::bulk_string("1"));
}

TEST_F(Java, LatchOpensAtZero) {
  const JavaPeer::Latch latch{a_, "start"};
  const JavaPeer::Latch other{b_, "start"};
  EXPECT_TRUE(latch.await(0ms)) << "not there: open";
  EXPECT_EQ(latch.try_set_count(2), yes);
  EXPECT_EQ(latch.try_set_count(2), no);
  EXPECT_FALSE(latch.await(5ms));
  EXPECT_EQ(latch.count_down(), yes);
  const auto wait = [&] { return other.await(10s); };
  EXPECT_TRUE(woken(other.channel(), wait, [&] { latch.count_down(); }));
  EXPECT_TRUE(gone("start"));
  EXPECT_EQ(latch.remove(), no);
  EXPECT_EQ((JavaPeer::Latch{a_, "{tag}start"}.channel()),
            "redisson_countdownlatch__channel__{{tag}start}");
}

TEST_F(Java, RateLimiterGivesBackAfterTheInterval) {
  using Type = JavaPeer::RateLimiter::Type;
  const JavaPeer::RateLimiter limiter{a_, "calls"};
  EXPECT_TRUE(limiter.acquire().is_error()) << "no rate yet";
  EXPECT_EQ(limiter.try_set_rate(Type::overall, 3, 1s), yes);
  EXPECT_EQ(limiter.try_set_rate(Type::overall, 9, 1s), no);
  EXPECT_TRUE(limiter.acquire(4).is_error()) << "more than the rate";
  EXPECT_TRUE(limiter.acquire(2).is_null());
  const auto sleep = limiter.acquire(2).as_integer();
  EXPECT_GT(sleep, 500);
  EXPECT_LE(sleep, 1003);
  const Value member = ask({"ZRANGE", "{calls}:permits", "0", "0"});
  EXPECT_EQ(member.as_items().at(0).as_text().size(), 21U);
  a_.clock_skew = 2s;
  EXPECT_TRUE(limiter.acquire(3).is_null());
}

TEST_F(Java, RateLimiterPerClient) {
  using Type = JavaPeer::RateLimiter::Type;
  const JavaPeer::RateLimiter limiter{a_, "calls"};
  limiter.try_set_rate(Type::per_client, 1, 60s);
  EXPECT_TRUE(limiter.acquire().is_null());
  EXPECT_FALSE(limiter.acquire().is_null());
  EXPECT_TRUE((JavaPeer::RateLimiter{b_, "calls"}.acquire().is_null()));
  EXPECT_FALSE(gone("{calls}:value:" + a_.uuid()));
}

}  // namespace
}  // namespace sluice::test
