// A wall clock that is set, and is set back: the engine's time, and leases, on virtual time.
#include "engine/embedded/engine_time.hpp"

#include <gtest/gtest.h>

#include "engine/embedded_store.hpp"
#include "engine/log/memory_disk.hpp"
#include "engine/types/random.hpp"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;

std::unique_ptr<EmbeddedStore> open_on(test::MemoryDisk& disk, VirtualClock& clock) {
  return open_embedded({.clock = &clock}, disk.folder());
}

class TimeTest : public testing::Test {
 protected:
  void lease(const std::string& key, std::chrono::milliseconds length) {
    const auto ms = std::to_string(length.count());
    store_->run({"SET", key, "v", "PX", ms}).get();
  }
  bool lives(const std::string& key) {
    return store_->run({"EXISTS", key}).get() == Value::integer(1);
  }
  /// How far the engine's time is ahead of the wall.
  microseconds ahead() { return store_->time().get() - clock_.wall(); }

  test::MemoryDisk disk_;
  VirtualClock clock_;
  std::unique_ptr<EmbeddedStore> store_ = open_on(disk_, clock_);
};

TEST_F(TimeTest, E08_ADayForwardAndBackCostsNoLeaseAnything) {
  lease("before", 1h);
  clock_.jump_wall(24h);
  EXPECT_EQ(ahead(), -24h) << "a glitch is not seen";
  clock_.advance(59s);
  EXPECT_EQ(ahead(), -24h);
  clock_.advance(1s);
  EXPECT_EQ(ahead(), 0s) << "what has lasted for a minute is believed";
  lease("meanwhile", 30min);
  clock_.advance(10min);
  clock_.jump_wall(-24h);
  EXPECT_EQ(ahead(), 24h);
  clock_.advance(1min);
  EXPECT_EQ(ahead(), 0s);

  clock_.advance(19min - 1ms);
  EXPECT_TRUE(lives("meanwhile"));
  clock_.advance(2ms);
  EXPECT_FALSE(lives("meanwhile"));
  clock_.advance(28min - 2ms);
  EXPECT_TRUE(lives("before"));
  clock_.advance(2min);
  EXPECT_FALSE(lives("before"));
}

TEST_F(TimeTest, E08_AGlitchThatIsOverWithinAMinuteIsNeverSeen) {
  const auto before = store_->time().get();
  for (const auto glitch : {microseconds{40 * 24h}, microseconds{-40 * 24h}}) {
    clock_.jump_wall(glitch);
    clock_.advance(50s);
    EXPECT_EQ(ahead(), -glitch);
    clock_.jump_wall(-glitch);
    EXPECT_EQ(ahead(), 0s);
  }
  EXPECT_EQ(store_->time().get(), before + 100s);
}

TEST_F(TimeTest, ASmallStepBackIsMadeUpWithoutGoingBack) {
  auto last = store_->time().get();
  for (const int ms : {500, 1000, 5000, 30'000}) {
    const std::chrono::milliseconds step{ms};
    clock_.jump_wall(-step);
    for (int i = 0; i < 2 * 61; ++i) {
      const auto now = store_->time().get();
      EXPECT_GE(now, last);
      last = now;
      clock_.advance(500ms);
    }
    EXPECT_EQ(ahead(), 0s) << step.count();
  }
}

TEST_F(TimeTest, AfterARestartLeasesAreAsTheyWere) {
  lease("a", 1h);
  lease("for ever", 1h);
  store_->run({"PERSIST", "for ever"}).get();
  clock_.jump_wall(24h);
  lives("a");
  clock_.advance(1min);
  lives("a");  // the step
  clock_.jump_wall(-24h);
  lives("a");
  clock_.advance(1min);
  lives("a");
  store_.reset();
  store_ = open_on(disk_, clock_);
  clock_.advance(58min - 1ms);
  EXPECT_TRUE(lives("a"));
  clock_.advance(2ms);
  EXPECT_FALSE(lives("a"));
  EXPECT_TRUE(lives("for ever"));
}

TEST_F(TimeTest, E08_AGlitchThatEndsBetweenTwoProcessesCostsNoLeaseAnything) {
  for (const bool rewritten : {false, true}) {
    clock_.jump_wall(24h);
    store_.reset();
    store_ = open_on(disk_, clock_);  // takes the wall as it is
    lease("a", 1h);
    if (rewritten) store_->rewrite();
    store_.reset();
    clock_.jump_wall(-24h);
    for (int restart = 0; restart < 3; ++restart) {
      store_ = open_on(disk_, clock_);
      EXPECT_EQ(ahead(), 0s);
      clock_.advance(19min);
      EXPECT_TRUE(lives("a"));
      store_.reset();
    }
    store_ = open_on(disk_, clock_);
    clock_.advance(3min + 1s);
    EXPECT_FALSE(lives("a"));
  }
}

TEST_F(TimeTest, OfTenThousandKeysEachEndsInItsTime) {
  for (int i = 0; i < 10'000; ++i) lease("k" + std::to_string(i), 1h + i * 1ms);
  clock_.jump_wall(24h);
  lives("k");
  clock_.advance(1min);
  lives("k");
  EXPECT_EQ(ahead(), 0s);
  store_.reset();
  store_ = open_on(disk_, clock_);
  clock_.advance(59min + 5s);
  EXPECT_FALSE(lives("k4999"));
  EXPECT_TRUE(lives("k5001"));
}

TEST_F(TimeTest, ATimeOfExpiryAtTheEndOfTimeStaysThere) {
  store_->run({"SET", "k", "v", "PXAT", "9223372036854775807"}).get();
  store_->run({"SET", "soon", "v", "PXAT", "1800000000000"}).get();
  for (const auto jump : {microseconds{24h}, microseconds{-24h * 365 * 54}}) {
    clock_.jump_wall(jump);
    lives("k");
    clock_.advance(1min);
    EXPECT_TRUE(lives("k"));
  }
  EXPECT_EQ(ahead(), 0s);
}

/// Any settings of the clock, large and small, at any times.
/// A time of expiry before 1970 would be logged, and refused when the log is loaded.
TEST(ClockBefore1970, RefusesTimesOfExpiryAndTheLogLoads) {
  test::MemoryDisk disk;
  VirtualClock clock{WallTime{-24h}};
  {
    const auto store = open_on(disk, clock);
    store->run({"SET", "p", "1"}).get();
    const auto expect_refused = [&](std::initializer_list<std::string_view> words) {
      try {
        store->run(Words{words.begin(), words.size()}).get();
        ADD_FAILURE() << *words.begin();
      } catch (const Error& error) {
        EXPECT_NE(error.message().find("clock"), std::string::npos) << error.message();
      }
    };
    expect_refused({"SET", "q", "1", "EX", "10"});
    expect_refused({"SETEX", "q", "10", "1"});
    expect_refused({"PEXPIRE", "p", "10"});
    expect_refused({"GETEX", "p", "EX", "5"});
    EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(1));
  }
  const auto store = open_on(disk, clock);
  EXPECT_EQ(store->run({"MGET", "p", "q"}).get(), Value::array({Value::bulk_string("1"), Value{}}));
}

TEST(EngineTime, E08_KeepsItsPromisesHoweverTheClockIsSet) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom rng{seed};
    VirtualClock clock;
    EngineTime time{clock};
    const microseconds jumps[] = {300ms, 900ms, 5s, 29s, 31s, 10min, 1h, 24h, 24h * 40};
    auto last = time.now_us();
    auto set_at = clock.steady();
    auto set_by_much_at = set_at;  // by more than a second
    for (int i = 0; i < 400; ++i) {
      if (rng.below(12) == 0) {
        const auto by = jumps[rng.below(std::size(jumps))];
        clock.jump_wall(rng.below(2) == 0 ? by : -by);
        set_at = clock.steady();
        if (by > 1s) set_by_much_at = set_at;
      }
      const auto now = time.now_us();
      const auto step = time.take_step_us();
      const auto wall = clock.wall().time_since_epoch().count();
      const auto since = clock.steady() - set_at;
      if (step != 0) {
        ASSERT_GE(clock.steady() - set_by_much_at, 1min) << "seed " << seed;
        ASSERT_EQ(now, wall) << "seed " << seed;
        ASSERT_TRUE(step > 0 || step < -29'000'000) << "seed " << seed << ": " << step;
      }
      ASSERT_GE(now, last + std::min<std::int64_t>(step, 0)) << "seed " << seed;
      if (since > 62s) {
        ASSERT_EQ(now, wall) << "seed " << seed;
      }
      last = now;
      clock.advance(std::chrono::milliseconds{rng.below(rng.below(4) == 0 ? 20'000 : 2'000)});
    }
  }
}

}  // namespace
}  // namespace sluice::engine
