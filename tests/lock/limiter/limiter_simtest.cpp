/// Who is let through when, who waits how long, and what it costs.
#include <fmt/format.h>

#include <list>

#include "lock/limiter/virtual_limiter.hpp"
#include "redisson/limiter_acquire.lua.hpp"

namespace sluice {
namespace {

class LimiterTest : public VirtualLimiter {
 protected:
  RateLimiter limiter_{line_, "stock", {.rate = 3, .interval = 1s}};
};

TEST_F(LimiterTest, GrantsTheRateAndTellsWhenToComeBack) {
  EXPECT_EQ(limiter_.try_acquire().get()->left, 2);
  clock_.advance(300ms);
  EXPECT_EQ(limiter_.try_acquire(2).get()->left, 0);
  clock_.advance(1us);
  const auto refused = limiter_.try_acquire().get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().retry_after, 699'999us);
  EXPECT_EQ(limiter_.try_acquire(2).get().error().retry_after, 999'999us);
  clock_.advance(699'998us);
  EXPECT_FALSE(limiter_.try_acquire().get());
  clock_.advance(1us);
  EXPECT_TRUE(limiter_.try_acquire().get());
}

TEST_F(LimiterTest, WaiterSleepsUntilThenAndAsksOnce) {
  limiter_.try_acquire(3).get();
  Customer customer{limiter_, 1, 1h};
  const auto asked = line_.executed(acquire);
  clock_.advance(1s - 1us);
  EXPECT_TRUE(customer.waits());
  clock_.advance(1us);
  EXPECT_TRUE(customer.served());
  EXPECT_EQ(line_.executed(acquire), asked + 1) << "it polled";
}

TEST_F(LimiterTest, WhoCannotBeServedInTimeIsToldAtOnce) {
  limiter_.try_acquire(3).get();
  const auto refused = limiter_.try_acquire(1, 999ms).get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().retry_after, 1s);
  Customer patient{limiter_, 1, 1s};
  EXPECT_TRUE(patient.waits());
  Customer behind{limiter_, 1, 500ms};
  EXPECT_TRUE(behind.refused());
  EXPECT_EQ(behind.retry_after(), 1s);
  clock_.advance(1s);
  EXPECT_TRUE(patient.served());
}

TEST_F(LimiterTest, WaitersAreServedInTheOrderOfTheirCalls) {
  limiter_.try_acquire(3).get();
  Customer big{limiter_, 3, 1h};
  std::list<Customer> crowd;
  for (int i = 0; i < 6; ++i) crowd.emplace_back(limiter_, 1, 1h);
  const auto asked = line_.executed(acquire);
  clock_.advance(1s);
  EXPECT_TRUE(big.served());
  for (const auto& customer : crowd) EXPECT_TRUE(customer.waits());
  clock_.advance(1s);
  int served = 0;
  for (const auto& customer : crowd) EXPECT_EQ(customer.served(), served++ < 3);
  clock_.advance(1s);
  for (const auto& customer : crowd) EXPECT_TRUE(customer.served());
  EXPECT_LE(line_.executed(acquire), asked + 10) << "one each, and one a wait";
}

TEST_F(LimiterTest, NobodyOfThisProcessOvertakesAWaiter) {
  limiter_.try_acquire().get();
  Customer big{limiter_, 3, 1h};
  const auto asked = line_.executed(acquire);
  RateLimiter again{line_, "stock", {.rate = 3, .interval = 1s}};
  const auto refused = again.try_acquire().get();  // though there would be two
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().retry_after, 1s);
  EXPECT_EQ(line_.executed(acquire), asked) << "no need to ask";
  clock_.advance(1s);
  EXPECT_TRUE(big.served());
}

TEST_F(LimiterTest, AThousandWaitersAreNoHerd) {
  limiter_.try_acquire(3).get();
  std::stop_source stop;
  std::list<Customer> crowd;
  for (int i = 0; i < 1000; ++i) crowd.emplace_back(limiter_, 1, 1h, stop.get_token());
  const auto asked = line_.executed(acquire);
  clock_.advance(1s);
  EXPECT_EQ(line_.executed(acquire), asked + 4) << "three grants, and the next one's refusal";
  EXPECT_EQ(clock_.pending_timers(), 1U + 996U);  // the first sleeps, the others have patience
  stop.request_stop();
  EXPECT_EQ(clock_.pending_timers(), 0U);
}

TEST_F(LimiterTest, StopEndsTheWaitAndCallsTheNext) {
  limiter_.try_acquire(3).get();
  std::stop_source stop;
  Customer first{limiter_, 3, 1h, stop.get_token()};
  Customer second{limiter_, 1, 1h};
  clock_.advance(400ms);
  stop.request_stop();
  EXPECT_TRUE(first.refused());
  EXPECT_EQ(first.retry_after(), 600ms);
  EXPECT_TRUE(second.waits());
  clock_.advance(600ms);
  EXPECT_TRUE(second.served());
  EXPECT_EQ(clock_.pending_timers(), 0U);
}

TEST_F(LimiterTest, WaiterThatFailsCallsTheNext) {
  limiter_.try_acquire(3).get();
  const Customer first{limiter_, 1, 3s};
  const Customer second{limiter_, 1, 1h};
  fail_all(acquire, Fault::refused);
  clock_.advance(3s);
  EXPECT_TRUE(first.failed());
  EXPECT_TRUE(second.waits());
  heal();
  clock_.advance(1s);
  EXPECT_TRUE(second.served());
}

TEST_F(LimiterTest, ClientsHaveRatesOfTheirOwn) {
  const auto options = [](std::string client) {
    return RateLimiterOptions{
        .rate = 2, .interval = 1s, .kind = RateKind::per_client, .client = std::move(client)};
  };
  RateLimiter ann{line_, "each", options("ann")};
  RateLimiter bob{line_, "each", options("bob")};
  EXPECT_TRUE(ann.try_acquire(2).get());
  EXPECT_FALSE(ann.try_acquire().get());
  EXPECT_EQ(bob.available().get(), 2);
  EXPECT_TRUE(exists("{each}:value:ann"));
  clock_.advance(1s - 1us);
  EXPECT_FALSE(ann.try_acquire().get());
  clock_.advance(2s + 2ms);
  EXPECT_FALSE(exists("{each}:value:ann")) << "what nobody uses goes";
  EXPECT_TRUE(exists("each"));
  RateLimiter nameless{line_, "each", options("")};
  RateLimiter of_the_same_process{line_, "each", options("")};
  EXPECT_TRUE(nameless.try_acquire(2).get());
  EXPECT_FALSE(of_the_same_process.try_acquire().get());
}

TEST_F(LimiterTest, OtherNumbersAreAMismatch) {
  EXPECT_TRUE(limiter_.try_set_rate().get());
  for (const RateLimiterOptions& other :
       {RateLimiterOptions{.rate = 4, .interval = 1s},
        RateLimiterOptions{.rate = 3, .interval = 2s},
        RateLimiterOptions{.rate = 3, .interval = 1s, .kind = RateKind::per_client}}) {
    RateLimiter limiter{line_, "stock", other};
    EXPECT_FALSE(limiter.try_set_rate().get());
    try {
      (void)limiter.try_acquire().get();
      FAIL() << "granted by other numbers";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::config_mismatch);
      EXPECT_EQ(failure.effect(), Effect::none);
      EXPECT_NE(failure.message().find("3 in 1000 ms"), std::string::npos) << failure.message();
    }
  }
  EXPECT_EQ(limiter_.available().get(), 3);
}

TEST_F(LimiterTest, LoweredRateCountsWhatWasTaken) {
  RateLimiter follower{line_, "stock", {.rate = 3, .interval = 1s, .follow = true}};
  EXPECT_TRUE(follower.try_acquire(3).get());
  clock_.advance(500ms);
  limiter_.set_rate(2, 1s).get();
  EXPECT_FALSE(follower.try_acquire().get());
  EXPECT_EQ(follower.available().get(), 0);
  clock_.advance(500ms);
  EXPECT_EQ(follower.available().get(), 2);
  EXPECT_TRUE(follower.try_acquire(2).get());
  EXPECT_FALSE(limiter_.try_acquire().get());
  EXPECT_THROW((void)follower.try_acquire(3).get(), Error) << "never so many at once";
}

TEST_F(LimiterTest, LoweredRateBindsEveryClient) {
  const RateLimiterOptions mine{
      .rate = 10, .interval = 1s, .kind = RateKind::per_client, .client = "ann", .follow = true};
  RateLimiter ann{line_, "each", mine};
  EXPECT_TRUE(ann.try_acquire(4).get());
  auto other = mine;
  other.client = "bob";
  RateLimiter bob{line_, "each", other};
  bob.set_rate(5, 1s).get();
  EXPECT_TRUE(ann.try_acquire().get());
  EXPECT_FALSE(ann.try_acquire().get()) << "its free permits were those of the old rate";
}

TEST_F(LimiterTest, RaisedRateIsThereAtOnce) {
  EXPECT_TRUE(limiter_.try_acquire(3).get());
  limiter_.set_rate(5, 1s).get();
  EXPECT_EQ(limiter_.available().get(), 2);
  EXPECT_TRUE(limiter_.try_acquire(2).get());
  EXPECT_FALSE(limiter_.try_acquire().get());
}

TEST_F(LimiterTest, AnotherKindCannotBeSet) {
  limiter_.try_set_rate().get();
  RateLimiter limiter{line_, "stock", {.rate = 3, .kind = RateKind::per_client}};
  try {
    limiter.set_rate(5, 1s).get();
    FAIL() << "changed the kind";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::config_mismatch);
  }
}

TEST_F(LimiterTest, KeepAliveForgetsWhatNobodyUses) {
  RateLimiter limiter{line_, "brief", {.rate = 1, .interval = 1s, .keep_alive = 5s}};
  EXPECT_TRUE(limiter.try_acquire().get());
  clock_.advance(4s);
  EXPECT_EQ(limiter.available().get(), 1);  // a use
  clock_.advance(4s);
  EXPECT_TRUE(exists("brief"));
  clock_.advance(2s);
  EXPECT_FALSE(exists("brief"));
  EXPECT_FALSE(exists("{brief}:value"));
}

// Every change of the time that an unused limiter is kept: no key of it ends before the others.
TEST_F(LimiterTest, LK06_ADefinitionHasTheTimeToLiveThatItSays) {
  const auto kept = {0s, 2s, 3600s};
  for (const auto before : kept) {
    for (const auto after : kept) {
      store_->run({"FLUSHALL"}).get();
      RateLimiter{line_, "brief", {.rate = 5, .interval = 2s, .keep_alive = before}}
          .try_acquire(5)
          .get();
      RateLimiter limiter{
          line_, "brief", {.rate = 5, .interval = 2s, .follow = true, .keep_alive = after}};
      limiter.set_rate(6, 2s).get();
      for (const auto* const key : {"brief", "{brief}:value", "{brief}:permits"})
        EXPECT_EQ(ttl(key), after == 0s ? -1ms : after) << key << " " << before << after;
      clock_.advance(1s);
      EXPECT_EQ(limiter.available().get(), 1) << "five of six were taken a second ago";
    }
  }
}

TEST_F(LimiterTest, PermitsWithoutAnEntryComeBack) {
  EXPECT_TRUE(limiter_.try_acquire().get());
  store_->run({"SET", "{stock}:value", "0"}).get();  // two have got lost
  EXPECT_TRUE(limiter_.try_acquire(2).get());
  EXPECT_FALSE(limiter_.try_acquire().get());
}

TEST_F(LimiterTest, MorePermitsThanTheRateAreNotBelieved) {
  EXPECT_TRUE(limiter_.try_acquire(2).get());
  clock_.advance(500ms);
  EXPECT_TRUE(limiter_.try_acquire().get());
  store_->run({"SET", "{stock}:value", "2"}).get();
  clock_.advance(500ms);  // two come back: 4 of 3
  EXPECT_EQ(limiter_.available().get(), 2);
}

TEST_F(LimiterTest, EntriesOfTheFutureHoldUpForOneInterval) {
  limiter_.try_acquire(3).get();
  const Value log = store_->run({"ZRANGE", "{stock}:permits", "0", "-1"}).get();
  const auto an_hour_ahead = std::to_string(
      std::chrono::duration_cast<std::chrono::milliseconds>(clock_.wall().time_since_epoch() + 1h)
          .count());
  for (const Value& entry : log.as_items())
    store_->run({"ZADD", "{stock}:permits", an_hour_ahead, entry.as_text()}).get();
  Customer customer{limiter_, 1, 1h};
  clock_.advance(1s);
  EXPECT_TRUE(customer.served()) << "waits until the clock is where it was";
}

TEST_F(LimiterTest, JumpOfTheClockForwardCostsOneRate) {
  RateLimiter limiter{line_, "hourly", {.rate = 3, .interval = 1h}};
  limiter.try_acquire(3).get();
  clock_.jump_wall(1h);
  EXPECT_FALSE(limiter.try_acquire().get()) << "the engine waits a minute before it believes it";
  clock_.advance(1min);
  EXPECT_TRUE(limiter.try_acquire(3).get());
  EXPECT_FALSE(limiter.try_acquire().get());
}

TEST_F(LimiterTest, E08_RecoversWithinTwoMinutesOfADayForwardAndBack) {
  const auto take_all = [&] {
    const bool granted = limiter_.try_acquire(3).get().has_value();
    clock_.advance(1s);
    return granted;
  };
  for (const auto jump : {24h, -24h}) {
    clock_.jump_wall(jump);
    int granted = 0;
    for (int i = 0; i < 120; ++i) granted += take_all();
    EXPECT_GE(granted, 118);
    EXPECT_EQ(store_->time().get(), clock_.wall());
  }
}

// --- long logs, and Redisson ---

class LongLog : public LimiterTest {
 protected:
  /// A limiter with so many permits taken one by one, by a process that is gone; half a second ago.
  RateLimiter taken(const std::string& name, int entries) {
    RateLimiter limiter{line_, name, {.rate = 1'000'000, .interval = 1s}};
    limiter.try_acquire().get();
    store_
        ->run({"EVAL",
               "local time = redis.call('TIME') local now = time[1] * 1000 + time[2] / 1000 "
               "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[2], now, "
               "struct.pack('<Bc0I4', 16, string.format('%010d', i) .. '\\0\\0\\0\\0\\0\\0', 1)) "
               "end return redis.call('DECRBY', KEYS[1], ARGV[1])",
               "2", '{' + name + "}:value", '{' + name + "}:permits", std::to_string(entries)})
        .get();
    clock_.advance(500ms);
    return limiter;
  }
  /// The shortest time of a first look by a new process, of a few.
  std::chrono::nanoseconds time_of_first_look(const std::string& name, int entries) {
    auto shortest = std::chrono::nanoseconds::max();
    for (int i = 0; i < 5; ++i) {
      test::FaultyStore line{*store_};
      RateLimiter limiter{line, name, {.rate = 1'000'000, .interval = 1s}};
      const auto began = std::chrono::steady_clock::now();
      EXPECT_EQ(limiter.available().get(), 1'000'000 - 1 - entries);
      shortest =
          std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - began);
    }
    return shortest;
  }
};

TEST_F(LongLog, K15_FirstLookDoesNotCountIt) {
  const RateLimiter few = taken("few", 3'000);
  const auto short_time = time_of_first_look("few", 3'000);
  const RateLimiter many = taken("many", 60'000);
  EXPECT_LT(time_of_first_look("many", 60'000), 5 * short_time);
}

TEST_F(LongLog, K15_WhatIsOverIsForgottenInSteps) {
  RateLimiter limiter = taken("stock", 5'000);
  EXPECT_EQ(limiter.try_acquire(990'000).get()->left, 4'999);
  clock_.advance(501ms);
  for (int step = 1; step <= 5; ++step) EXPECT_EQ(limiter.available().get(), 4'999 + step * 1'000);
  EXPECT_EQ(limiter.available().get(), 10'000);
}

TEST_F(LongLog, K15_LoweredRateBindsWithoutACount) {
  RateLimiter limiter = taken("stock", 5'000);
  limiter.set_rate(5'100, 1s).get();
  EXPECT_EQ(limiter.available().get(), 99);
  EXPECT_FALSE(limiter.try_acquire(100).get());
  test::FaultyStore line{*store_};
  EXPECT_EQ((RateLimiter{line, "stock", {.rate = 5'100, .interval = 1s}}.available().get()), 99);
}

/// A thread of a Java program that takes one permit after another. `tick`: of the timer by which it
/// sleeps (HashedWheelTimer of Redisson's ServiceManager: 100 ms); 0: exact.
class HungryJava {
 public:
  HungryJava(Store& store, Clock& clock, int number, std::chrono::milliseconds tick = 0ms)
      : store_(store), clock_(clock), number_(number), tick_(tick), began_(clock.steady()) {
    ask();
  }
  int taken() const { return taken_; }

 private:
  void ask() {
    const auto now =
        std::chrono::floor<std::chrono::milliseconds>(clock_.wall().time_since_epoch());
    const std::string_view keys[] = {"stock", "{stock}:value", "{stock}:permits", "none", "none"};
    const std::string time = std::to_string(now.count());
    const std::string id = fmt::format("java {:03} {:07}", number_, ++asked_);
    const std::string_view args[] = {"1", time, id};
    const Value reply = store_.run(scripts::redisson_limiter_acquire, keys, args).get();
    taken_ += reply.is_null() ? 1 : 0;
    auto until = clock_.steady() - began_ + 1ms;
    if (!reply.is_null()) {
      until += std::chrono::milliseconds{reply.as_integer() - 1};
      if (tick_ > 0ms) until = (until / tick_ + 1) * tick_;
    }
    const auto late = 500us + std::chrono::microseconds{asked_ * 37 % 1000};
    clock_.at(began_ + until + late, [this] { ask(); });
  }

  Store& store_;
  Clock& clock_;
  const int number_;
  const std::chrono::milliseconds tick_;
  const SteadyTime began_;
  int asked_ = 0;
  int taken_ = 0;
};

Task<void> take_until(RateLimiter& limiter, Clock& clock, SteadyTime end, int& taken) {
  while (clock.steady() < end) {
    auto acquiring = limiter.acquire();
    co_await acquiring;
    ++taken;
  }
}

TEST_F(LimiterTest, K35_JavaHasItsShareOfASaturatedRate) {
  RateLimiter limiter{line_, "stock", {.rate = 20, .interval = 1s}};
  int ours = 0;
  spawn(take_until(limiter, clock_, clock_.steady() + 1min, ours));
  std::vector<std::unique_ptr<HungryJava>> java;
  for (int i = 0; i < 3; ++i) {
    clock_.advance(7ms);
    java.push_back(std::make_unique<HungryJava>(*store_, clock_, i));
  }
  clock_.advance(62s);
  int theirs = 0;
  for (const auto& thread : java) theirs += thread->taken();
  EXPECT_GE(3 * theirs, ours);
  EXPECT_GE(9 * ours, theirs) << "a quarter is our share";
}

/// What the header says of a Java thread beside two processes of ours, where a third were fair.
TEST_F(LimiterTest, BC08_AJavaThreadThatSleepsByTicksGetsLittle) {
  double least = 1, most = 0, sum = 0;
  constexpr int seeds = 40;
  for (int seed = 0; seed < seeds; ++seed) {
    VirtualClock clock;
    const auto store = engine::open_embedded({.clock = &clock});
    test::FaultyStore one{*store}, two{*store};
    const RateLimiterOptions options{.rate = 3 + seed, .interval = 1s};
    RateLimiter here{one, "stock", options}, there{two, "stock", options};
    const auto end = clock.steady() + 2min;
    int ours = 0;
    spawn(take_until(here, clock, end, ours));
    clock.advance(std::chrono::milliseconds{1 + seed * 29 % 400});
    spawn(take_until(there, clock, end, ours));
    clock.advance(std::chrono::milliseconds{1 + seed * 83 % 900});
    const auto java = std::make_unique<HungryJava>(*store, clock, seed, 100ms);
    clock.advance(2min + 2s);
    const double share = static_cast<double>(java->taken()) / (java->taken() + ours);
    least = std::min(least, share);
    most = std::max(most, share);
    sum += share;
  }
  fmt::print("share of a Java thread: {:.3f} to {:.3f}, {:.3f} in the mean\n", least, most,
             sum / seeds);
  EXPECT_LT(sum / seeds, 0.06);
  EXPECT_GT(most, 0);
}

TEST_F(LimiterTest, LostReplyTakesItsPermitsOnce) {  // T04
  fail_next(acquire, Fault::reply_lost);
  EXPECT_EQ(limiter_.try_acquire(2).get()->left, 1);
  EXPECT_EQ(line_.executed(acquire), 2U);
  EXPECT_EQ(limiter_.available().get(), 1);
  line_.plan = [](std::string_view) { return Fault::doubled; };
  EXPECT_TRUE(limiter_.try_acquire().get());
  heal();
  EXPECT_EQ(limiter_.available().get(), 0);
}

TEST_F(LimiterTest, UnknownAcquireIsAnErrorAndItsPermitsComeBack) {
  fail_next(acquire, Fault::cut_off);
  try {
    (void)limiter_.try_acquire(3).get();
    FAIL() << "granted without a reply";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.effect(), Effect::unknown);
  }
  EXPECT_EQ(limiter_.available().get(), 0);
  clock_.advance(1s);
  EXPECT_EQ(limiter_.available().get(), 3);
}

TEST_F(LimiterTest, CountsWhatItDoes) {
  const auto granted = metrics().rate_granted.load();
  const auto refused = metrics().rate_refused.load();
  (void)limiter_.try_acquire(3).get();
  (void)limiter_.try_acquire().get();
  EXPECT_EQ(metrics().rate_granted.load(), granted + 3);
  EXPECT_EQ(metrics().rate_refused.load(), refused + 1);
}

TEST_F(LimiterTest, ArgumentsOutOfRangeAreRefused) {
  using Options = RateLimiterOptions;
  EXPECT_THROW((RateLimiter{line_, "", {}}), Error);
  for (const Options& bad : {Options{.rate = 0}, Options{.rate = std::int64_t{1} << 31},
                             Options{.interval = 0ms}, Options{.interval = std::chrono::days{367}},
                             Options{.kind = RateKind::per_client, .client = std::string(257, 'x')},
                             Options{.interval = 1s, .keep_alive = 999ms}})
    EXPECT_THROW((RateLimiter{line_, "x", bad}), Error);
  EXPECT_THROW((void)limiter_.try_acquire(0).get(), Error);
  EXPECT_THROW((void)limiter_.try_acquire(4).get(), Error);
  EXPECT_THROW((void)limiter_.acquire(-1).get(), Error);
  EXPECT_THROW(limiter_.set_rate(0, 1s).get(), Error);
  EXPECT_EQ(line_.executed(acquire), 0U) << "nothing was asked";
}

TEST_F(LimiterTest, KeyOfAnotherKindIsAnError) {
  store_->run({"SET", "stock", "text"}).get();
  try {
    (void)limiter_.try_acquire().get();
    FAIL() << "granted by a string";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type);
  }
}

// --- U03: what a new user met ---

class LimiterFrictions : public VirtualLimiter {
 protected:
  void expect_refused(std::string_view key) {
    const std::string before = contents(key);
    RateLimiter limiter{line_, "shop", {.rate = 3, .interval = 1s}};
    EXPECT_EQ(error_of(limiter.try_acquire(1, 1h)), Errc::wrong_type) << "at once";
    EXPECT_EQ(error_of(limiter.available()), Errc::wrong_type);
    EXPECT_EQ(error_of(limiter.try_set_rate()), Errc::wrong_type);
    EXPECT_EQ(contents(key), before);
  }
};

TEST_F(LimiterFrictions, U03_WhatIsNoLimiterIsRefusedAndLeftAsItIs) {
  for (const auto& value : {std::vector<std::string_view>{"HSET", "shop", "name", "tea"},
                            {"SET", "shop", "3"},
                            {"ZADD", "shop", "1", "tea"}}) {
    SCOPED_TRACE(value.front());
    store_->run({"DEL", "shop"}).get();
    store_->run(Words{value}).get();
    expect_refused("shop");
    RateLimiter limiter{line_, "shop", {.rate = 3, .interval = 1s}};
    const std::string before = contents("shop");
    EXPECT_EQ(error_of(limiter.set_rate(5, 1s)), Errc::wrong_type);
    EXPECT_EQ(contents("shop"), before);
  }
}

TEST_F(LimiterFrictions, U03_WhatLiesBesideItsNameIsLeftAsItIs) {
  store_->run({"ZADD", "{shop}:permits", "1", "the permit of Mr Smith"}).get();
  expect_refused("{shop}:permits");
  EXPECT_FALSE(exists("shop"));
  store_->run({"DEL", "{shop}:permits"}).get();
  store_->run({"SET", "{shop}:value", "a million"}).get();
  expect_refused("{shop}:value");
  EXPECT_FALSE(exists("shop"));
}

TEST_F(LimiterFrictions, Attack_ForeignEntriesOfADefinedLimiterAreRefused) {
  RateLimiter{line_, "shop", {.rate = 3, .interval = 1s}}.try_set_rate().get();
  store_->run({"ZADD", "{shop}:permits", "9e15", "the permit of Mr Smith"}).get();
  store_->run({"DEL", "{shop}:value"}).get();
  expect_refused("{shop}:permits");
}

TEST_F(LimiterFrictions, Attack_ARateThatIsNoNumberIsAMismatchWhoeverFollows) {
  store_->run({"HSET", "shop", "rate", "nan", "interval", "nan", "type", "0"}).get();
  RateLimiter limiter{line_, "shop", {.rate = 3, .interval = 1s, .follow = true}};
  EXPECT_EQ(error_of(limiter.try_acquire()), Errc::config_mismatch);
  EXPECT_EQ(error_of(limiter.available()), Errc::config_mismatch);
}

}  // namespace
}  // namespace sluice
