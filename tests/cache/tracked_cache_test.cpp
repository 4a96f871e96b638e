// A near cache and the messages of its Store.
#include "cache/tracked_cache.hpp"

#include <gtest/gtest.h>

#include <string>

#include "sluice/log.hpp"
#include "sluice/metrics.hpp"
#include "store/fake_store.hpp"

namespace sluice::cache {
namespace {

class TrackedCaches : public testing::Test {
 protected:
  TrackedCaches() {
    set_log_sink([this](LogLevel, std::string_view text) {
      ++warnings;
      logged = text;
    });
  }
  ~TrackedCaches() override { set_log_sink({}); }

  bool put(TrackedCache& tracked) {
    auto& cache = tracked.cache();
    return cache.fill(cache.begin_fill("shop:1", now), "shop:1", {}, 0, SteadyTime::max());
  }

  SteadyTime now{std::chrono::hours{1}};
  int warnings = 0;
  std::string logged;
  FakeStore store;
};

TEST_F(TrackedCaches, FollowTheirStore) {
  TrackedCache tracked{store, "shop:"};
  EXPECT_FALSE(put(tracked)) << "the store has not begun to tell";
  store.deliver({.kind = Message::Kind::gap, .channel = "shop:", .payload = {}});
  EXPECT_TRUE(put(tracked));
  EXPECT_TRUE(tracked.cache().find("shop:1", now));

  const auto told = metrics().cache_near_invalidations.load();
  store.deliver({.channel = "shop:", .payload = "shop:1"});
  EXPECT_FALSE(tracked.cache().find("shop:1", now));
  EXPECT_EQ(metrics().cache_near_invalidations, told + 1);

  EXPECT_TRUE(put(tracked));
  store.deliver({.kind = Message::Kind::lost, .channel = "shop:", .payload = "the server is gone"});
  EXPECT_FALSE(tracked.cache().find("shop:1", now));
  EXPECT_TRUE(tracked.cache().find_stale("shop:1"));

  const auto flushed = metrics().cache_near_flushes.load();
  store.deliver({.kind = Message::Kind::gap, .channel = "shop:", .payload = {}});
  EXPECT_FALSE(tracked.cache().find_stale("shop:1"));
  EXPECT_TRUE(put(tracked));
  EXPECT_EQ(metrics().cache_near_flushes, flushed + 1);
}

TEST_F(TrackedCaches, SayOnceWhyTheyAreClosed) {
  TrackedCache tracked{store, "shop:"};
  for (int i = 0; i < 3; ++i)
    store.deliver({.kind = Message::Kind::lost, .channel = "shop:", .payload = "NOPERM"});
  EXPECT_EQ(warnings, 1);
  EXPECT_NE(logged.find("the keys 'shop:*' have no near cache for now: fake: "), std::string::npos)
      << logged;
  EXPECT_NE(logged.find("NOPERM"), std::string::npos) << logged;
}

TEST_F(TrackedCaches, StayClosedWhereAStoreNeverTells) {
  store.tells_changes = false;
  TrackedCache tracked{store, "shop:"};
  EXPECT_FALSE(put(tracked));
  EXPECT_EQ(warnings, 1);
  EXPECT_NE(logged.find("does not tell which keys have changed"), std::string::npos) << logged;
}

TEST_F(TrackedCaches, OfNoSizeAskForNothing) {
  const TrackedCache tracked{store, "shop:", {.bytes = 0}};
  EXPECT_EQ(store.listeners(), 0U);
}

TEST_F(TrackedCaches, EndTheirListeners) {
  {
    const TrackedCache tracked{store, "shop:"};
    EXPECT_EQ(store.listeners(), 1U);
  }
  EXPECT_EQ(store.listeners(), 0U);
}

}  // namespace
}  // namespace sluice::cache
