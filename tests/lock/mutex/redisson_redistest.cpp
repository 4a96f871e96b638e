/// The wire, and a Java peer with Redisson 4 that shares a lock with us.
#include <future>

#include "lock/server_lock.hpp"
#include "support/java_peer.hpp"

namespace sluice {
namespace {

class Redisson : public ServerLock {
 protected:
  test::JavaPeer peer_{server_.port(), 42};
  test::JavaPeer::Lock java_{peer_, "stock"};
  Mutex mutex_{*store_, "stock"};
};

TEST_F(Redisson, WaitsForUsAndHearsUs) {
  auto held = mutex_.acquire().get();
  const auto left = java_.acquire().as_integer();
  EXPECT_GT(left, 15'000);
  EXPECT_LE(left, 30'000);
  test::Ear ear{server_.port(), java_.channel()};
  held.release().get();
  EXPECT_EQ(ear.hear(20s), "0");
  EXPECT_TRUE(java_.acquire().is_null());
}

TEST_F(Redisson, WakesUs) {
  EXPECT_TRUE(java_.acquire().is_null());
  EXPECT_FALSE(mutex_.try_acquire().get());
  auto waiting =
      std::async(std::launch::async, [&] { return mutex_.try_acquire(60s).get().has_value(); });
  await_subscribers(channel_, 1);
  EXPECT_EQ(java_.release(), Value::integer(1));
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready);
  EXPECT_TRUE(waiting.get());
}

TEST_F(Redisson, CannotReleaseOrRenewOurHold) {
  const auto held = mutex_.acquire().get();
  EXPECT_TRUE(java_.release().is_null());
  EXPECT_EQ(java_.renew(), Value::integer(0));
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(side_.command({"HGET", "stock", held.owner().text}), Value::bulk_string("1"));
}

TEST_F(Redisson, KeepsItsHoldFromOurLateRelease) {
  auto held = mutex_.acquire().get();
  mutex_.force_release().get();
  EXPECT_TRUE(java_.acquire().is_null());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_EQ(java_.renew(), Value::integer(1));
}

TEST_F(Redisson, SharesTheFencingCounter) {
  const test::JavaPeer::FencedLock fenced{peer_, "stock"};
  EXPECT_EQ(fenced.acquire(), 1U);
  EXPECT_EQ(fenced.release(), Value::integer(1));
  const auto ours = mutex_.acquire().get().token().value;
  EXPECT_GT(ours, 1'000'000'000'000'000U) << "lifted above whatever the counter may have been";
  EXPECT_EQ(fenced.acquire(), ours + 1);
  EXPECT_EQ(fenced.release(), Value::integer(1));
  EXPECT_GT(mutex_.acquire().get().token().value, ours + 1);
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
    EXPECT_GT(side_.command({"TTL", keys.as_items()[0].as_text()}).as_integer(), 24 * 3600)
        << "longer than any lease";
  }
}

TEST_F(Redisson, ChannelOfABracedNameHasNoBracesOfOurs) {
  Mutex mutex{*store_, "{tag}stock"};
  auto held = mutex.acquire().get();
  test::Ear ear{server_.port(), "redisson_lock__channel:{tag}stock"};
  held.release().get();
  EXPECT_EQ(ear.hear(20s), "0");
}

}  // namespace
}  // namespace sluice
