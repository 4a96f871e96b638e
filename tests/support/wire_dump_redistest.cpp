#include <gtest/gtest.h>

#include <stdexcept>

#include "support/java_peer.hpp"
#include "support/redis_server.hpp"
#include "support/wire_dump.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Show = WireDump::Show;

class Dump : public testing::Test {
 protected:
  void run(std::initializer_list<std::string_view> words) {
    const Value reply = side_.command(words);
    ASSERT_FALSE(reply.is_error()) << reply.as_text();
  }

  RedisServer server_;
  PlainClient side_{server_.port()};
  WireDump dump_{server_.port()};
};

TEST_F(Dump, EmptyServerIsAnEmptyText) { EXPECT_EQ(dump_.step(), ""); }

TEST_F(Dump, ShowsEveryTypeInTheOrderOfNames) {
  run({"SET", "e", "5"});
  run({"HSET", "d", "z", "1", "y", "2"});
  run({"RPUSH", "c", "second", "first"});
  run({"SADD", "b", "3", "1"});
  run({"ZADD", "a", "7", "seven", "2", "two"});
  EXPECT_EQ(dump_.step(),
            "a zset\n  two at 2\n  seven at 7\n"
            "b set\n  1\n  3\n"
            "c list\n  second\n  first\n"
            "d hash\n  y = 2\n  z = 1\n"
            "e = 5\n");
}

TEST_F(Dump, TimesBecomeClasses) {
  run({"SET", "a", "1", "PX", "29900"});
  run({"SET", "b", "1", "PX", "990"});
  const Value time = side_.command({"TIME"});
  const auto now = time.as_items().at(0).as_integer();
  run({"ZADD", "c", std::to_string((now + 300) * 1000), "in ms"});
  run({"ZADD", "d", std::to_string((now + 60) * 1'000'000), "in us"});
  run({"ZADD", "e", "922337203685477", "never"});
  run({"ZADD", "f", std::to_string((now - 60) * 1000), "over"});
  run({"ZADD", "g", std::to_string(now * 1000), "now"});
  EXPECT_EQ(
      dump_.step(),
      "a = 1, ttl 30s\nb = 1, ttl 1s\nc zset\n  in ms at now+300s\nd zset\n  in us at now+60s\n"
      "e zset\n  never at never\nf zset\n  over at past\ng zset\n  now at now\n");
}

TEST_F(Dump, IdsBecomeLettersAndKeepThem) {
  const std::string one = "6f1c0e7a-3c57-4b5e-9d0b-2a6c54ad1f00";
  const std::string two = "00000000-3c57-4b5e-9d0b-2a6c54ad1f00";
  run({"RPUSH", "queue", one + ":7", two + ":1", one + ":8", one + ":7"});
  run({"RPUSH", "requests", std::string(32, 'f'), std::string(32, '0') + "-12", one});
  const std::string expected =
      "queue list\n  A\n  B\n  C\n  A\nrequests list\n  R1\n  R2\n  client A\n";
  EXPECT_EQ(dump_.step(), expected);
  EXPECT_EQ(dump_.step(), expected);
}

TEST_F(Dump, OwnersCanBeNamedBeforehand) {
  const std::string one = "6f1c0e7a-3c57-4b5e-9d0b-2a6c54ad1f00:1";
  dump_.letters().name(one, "java");
  run({"SET", "{stock}:" + one + ":rwlock_timeout:1", "1"});
  EXPECT_EQ(dump_.step(), "{stock}:java:rwlock_timeout:1 = 1\n");
}

TEST_F(Dump, FencingCountersMayBeginAnywhere) {
  run({"SET", "redisson_lock_token:{a}", "1700000000000000"});
  EXPECT_EQ(dump_.step(), "redisson_lock_token:{a} = counter 1\n");
  run({"INCR", "redisson_lock_token:{a}"});
  EXPECT_EQ(dump_.step(), "redisson_lock_token:{a} = counter 2\n");
}

TEST_F(Dump, MessagesAreThoseSinceTheLastStep) {
  run({"PUBLISH", "c", "0"});
  run({"PUBLISH", "d", "two words"});
  EXPECT_EQ(dump_.step(), "> c 0\n> d two words\n");
  EXPECT_EQ(dump_.step(), "");
}

TEST_F(Dump, HidesWhatWeAdd) {
  run({"HSET", "stock", "mode", "read", "sluice:request", "1"});
  run({"SET", "sluice_queue:{stock}", "1"});
  run({"PUBLISH", "sluice_inbox", "1"});
  EXPECT_EQ(dump_.step(),
            "sluice_queue:{stock} = 1\nstock hash\n  mode = read\n  sluice:request = 1\n"
            "> sluice_inbox 1\n");
  run({"PUBLISH", "sluice_inbox", "1"});
  EXPECT_EQ((WireDump{server_.port(), Show::redisson}.step()), "stock hash\n  mode = read\n");
}

TEST_F(Dump, PermitsAndGrantsAreSpelledOut) {
  JavaPeer java{server_.port()};
  const JavaPeer::PermitSemaphore semaphore{java, "seats"};
  const JavaPeer::RateLimiter limiter{java, "calls"};
  semaphore.try_set_permits(2);
  semaphore.acquire(60s);
  limiter.try_set_rate(JavaPeer::RateLimiter::Type::overall, 5, 10s);
  limiter.acquire(3);
  EXPECT_EQ(dump_.step(),
            "calls hash\n  interval = 10000\n  keepAliveTime = 0\n  rate = 5\n  type = 0\n"
            "seats = 1\n"
            "{calls}:permits zset\n  P1 x 3 at now\n"
            "{calls}:value = 2\n"
            "{seats}:timeout zset\n  P2 at now+60s\n"
            "> redisson_sc:{seats} 2\n");
}

TEST_F(Dump, ATypeThatItDoesNotKnowIsAnError) {
  run({"XADD", "s", "*", "a", "b"});
  EXPECT_THROW(dump_.step(), std::runtime_error);
}

}  // namespace
}  // namespace sluice::test
