// What each protection of a CacheGuard does, and what users and their loaders may do to it.
#include <fmt/format.h>

#include <limits>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/random.hpp"
#include "cache/failures.hpp"
#include "cache/guards.hpp"
#include "support/sanitized.hpp"

namespace sluice {

struct Point {
  int x = 0;
  int y = 0;
};

template <>
struct CacheCodec<Point> {
  static std::string encode(const Point& point) { return fmt::format("{} {}", point.x, point.y); }
  static Point decode(std::string_view bytes) {
    const auto blank = bytes.find(' ');
    if (blank == bytes.npos) throw std::invalid_argument{"no point"};
    return {std::stoi(std::string{bytes.substr(0, blank)}),
            std::stoi(std::string{bytes.substr(blank + 1)})};
  }
};

namespace {

using namespace test;

class Guard : public Guards {};

TEST_F(Guard, LoadsOnceAndThenHasIt) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(there.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(source_.loads(), 1);
  EXPECT_EQ(keys(), 1U);
  here.invalidate("1").get();
  EXPECT_EQ(keys(), 0U);
  clock_.advance(1s);
  here.put("1", "two").get();
  EXPECT_EQ(there.get("1", source_.loader()).get(), "two");
}

TEST_F(Guard, AHitIsOneGetAndNowAndThenTheTime) {
  Cache cache{line_, "user", plain()};
  cache.get("1", source_.loader()).get();
  std::size_t all = 0;
  line_.plan = [&](std::string_view) { return ++all, Fault::none; };
  for (int i = 0; i < 10; ++i) cache.get("1", source_.loader()).get();
  EXPECT_EQ(all, 10U);
}

TEST_F(Guard, LoadersOfEveryForm) {
  CacheGuard<Point> cache{line_, "point", plain()};
  const auto x = [](const std::optional<Point>& point) { return point ? point->x : 0; };
  EXPECT_EQ(x(cache.get("1", [] { return Point{1, 2}; }).get()), 1);
  EXPECT_EQ(x(cache
                  .get("2",
                       [](const std::string& key) {
                         return std::optional<Point>{{std::stoi(key), 0}};
                       })
                  .get()),
            2);
  EXPECT_EQ(x(cache.get("3", [] { return Task<Point>::ready({3, 0}); }).get()), 3);
  auto owned = std::make_unique<int>(4);
  EXPECT_EQ(x(cache.get("4", [owned = std::move(owned)] { return Point{*owned, 0}; }).get()), 4);
  EXPECT_EQ(x(cache.get("5", []() -> Task<std::optional<Point>> { co_return std::nullopt; }).get()),
            0);
  EXPECT_EQ(x(cache.get("1", [] { return Point{9, 9}; }).get()), 1) << "decoded";
}

TEST_F(Guard, WhatTheCodecDoesNotKnowIsLoadedAnew) {
  Cache texts{line_, "point", plain()};
  texts.put("1", "another form").get();
  CacheGuard<Point> points{line_, "point", plain()};
  int loads = 0;
  const auto load = [&] { return ++loads, Point{7, 8}; };
  EXPECT_EQ(points.get("1", load).get()->y, 8);
  EXPECT_EQ(points.get("1", load).get()->y, 8);
  EXPECT_EQ(loads, 1);
}

TEST_F(Guard, AValueOfAnotherVersionIsLoadedAnew) {
  store_->run({"SET", "user:1", "SLC9 of the future\nvalue"}).get();
  Cache cache{line_, "user", plain()};
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(source_.loads(), 1);
}

TEST_F(Guard, AForeignKeyIsRefusedAndLeftAsItIs) {
  Cache cache{line_, "user", plain()};
  store_->run({"SET", "user:1", "theirs"}).get();
  store_->run({"LPUSH", "user:2", "theirs"}).get();
  store_->run({"SET", "sluice_cache_lease:{user:3}", "theirs"}).get();
  for (const char* const key : {"1", "2", "3"})
    EXPECT_EQ(error_of(cache.get(key, source_.loader())), Errc::wrong_type) << key;
  EXPECT_EQ(source_.loads(), 0);
  for (const char* const key : {"1", "2"}) {
    EXPECT_EQ(error_of(cache.put(key, "ours")), Errc::wrong_type) << key;
    EXPECT_EQ(error_of(cache.invalidate(key)), Errc::wrong_type) << key;
    EXPECT_EQ(error_of(cache.invalidate_twice(key, 1s)), Errc::wrong_type) << key;
  }
  clock_.advance(20s);
  EXPECT_EQ(store_->run({"GET", "user:1"}).get().as_text(), "theirs");
  EXPECT_EQ(store_->run({"LLEN", "user:2"}).get().as_integer(), 1);
  EXPECT_EQ(keys(), 3U);  // no second invalidation is tried for ever
}

TEST_F(Guard, AForeignKeyThatComesDuringALoadIsLeftAsItIs) {
  Cache cache{line_, "user", plain()};
  source_.hold();
  Get call{cache.get("1", source_.loader())};
  source_.await_begun(1);
  store_->run({"SET", "user:1", "theirs"}).get();
  source_.let_go();
  EXPECT_EQ(call.get(), "one");
  EXPECT_EQ(store_->run({"GET", "user:1"}).get().as_text(), "theirs");
}

TEST_F(Guard, ValidatorRefusesAKeyBeforeAnyIo) {
  auto options = plain();
  options.is_valid = [](std::string_view key) { return !key.starts_with('-'); };
  Cache cache{line_, "user", options};
  EXPECT_EQ(cache.get("-1", source_.loader()).get(), std::nullopt);
  EXPECT_EQ(line_.executed("GET"), 0U);
  EXPECT_EQ(source_.loads(), 0);
}

TEST_F(Guard, JitterSpreadsWhatWasWrittenTogether) {
  Cache cache{line_, "user", {.ttl = 100s, .jitter = 0.2, .early = 0}};
  std::set<std::int64_t> ends;
  for (int i = 0; i < 300; ++i) {
    const std::string key = std::to_string(i);
    cache.get(key, source_.loader()).get();
    ends.insert(ttl("user:" + key).count());
  }
  EXPECT_GE(*ends.begin(), 80'000);
  EXPECT_LE(*ends.rbegin(), 100'000);
  EXPECT_GT(*ends.rbegin() - *ends.begin(), 15'000);
  EXPECT_GT(ends.size(), 250U);
}

TEST_F(Guard, StaleValueIsServedWhileOneLoadRuns) {
  const CacheGuardOptions options{.ttl = 10s, .jitter = 0, .stale = 1min, .early = 0};
  Cache here{line_, "user", options};
  Cache there{far_, "user", options};
  here.get("1", source_.loader()).get();
  there.get("1", source_.loader()).get();
  clock_.advance(11s);
  source_.write("two");
  source_.hold();
  await([&] {
    EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
    EXPECT_EQ(there.get("1", source_.loader()).get(), "one");
    return source_.loads() == 2;
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
    EXPECT_EQ(there.get("1", source_.loader()).get(), "one");
  }
  source_.let_go();
  await([&] { return here.get("1", source_.loader()).get() == "two"; });
  EXPECT_EQ(there.get("1", source_.loader()).get(), "two");
  EXPECT_EQ(source_.loads(), 2);
}

TEST_F(Guard, ARefreshThatFailsIsTriedAgainAfterALease) {
  Cache cache{line_, "user", {.ttl = 10s, .jitter = 0, .stale = 1min, .early = 0}};
  cache.get("1", source_.loader()).get();
  clock_.advance(11s);
  std::atomic<int> loads{0};
  const auto fails = [&]() -> std::string {
    ++loads;
    throw std::domain_error{"no such table"};
  };
  await([&] {
    EXPECT_EQ(cache.get("1", fails).get(), "one");
    return loads == 1;
  });
  await([&] { return !exists("sluice_cache_lease:{user:1}"); });
  for (int i = 0; i < 10; ++i) EXPECT_EQ(cache.get("1", fails).get(), "one");
  EXPECT_EQ(loads, 1);
  source_.write("two");
  await([&] {
    clock_.advance(100ms);
    return cache.get("1", source_.loader()).get() == "two";
  });
}

TEST_F(Guard, AfterStaleItWaitsForTheLoad) {
  Cache cache{line_, "user", {.ttl = 10s, .jitter = 0, .stale = 10s, .early = 0}};
  cache.get("1", source_.loader()).get();
  source_.write("two");
  clock_.advance(21s);
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "two");
}

TEST_F(Guard, AnInvalidatedValueIsNotServedStale) {
  Cache cache{line_, "user", {.ttl = 10s, .jitter = 0, .stale = 1h, .early = 0}};
  cache.get("1", source_.loader()).get();
  clock_.advance(11s);
  source_.write("two");
  cache.invalidate("1").get();
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "two");
}

// XFetch: nothing long before the end, one load for all shortly before it.
TEST_F(Guard, EarlyRefreshIsOneLoadShortlyBeforeTheEnd) {
  const CacheGuardOptions options{.ttl = 100s, .jitter = 0, .early = 1};
  Cache here{line_, "user", options};
  Cache there{far_, "user", options};
  const auto slow = [&] {
    auto value = source_.read();
    if (source_.loads() == 1) clock_.advance(2s);  // what a load takes
    return value;
  };
  here.get("1", slow).get();
  source_.hold();
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(here.get("1", slow).get(), "one");
    EXPECT_EQ(there.get("1", slow).get(), "one");
  }
  EXPECT_EQ(source_.loads(), 1) << "some e^-49 of the calls refresh 98 s before the end";
  clock_.advance(99s);
  await([&] {
    EXPECT_EQ(here.get("1", slow).get(), "one");
    EXPECT_EQ(there.get("1", slow).get(), "one");
    return source_.loads() == 2;
  });
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(here.get("1", slow).get(), "one");
    EXPECT_EQ(there.get("1", slow).get(), "one");
  }
  source_.write("two");
  EXPECT_EQ(source_.loads(), 2);
  source_.let_go();
  await([&] { return store_->run({"PTTL", "user:1"}).get().as_integer() > 50'000; });
  EXPECT_EQ(source_.loads(), 2);
}

TEST_F(Guard, AtMostSoManyLoadsRunAtOnce) {
  auto options = plain();
  options.max_loads = 3;
  Cache cache{line_, "user", options};
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  const auto load = [&] {
    const int now = ++at_once;
    for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
    }
    for (int i = 0; i < 3; ++i) std::this_thread::yield();
    --at_once;
    return std::string{"one"};
  };
  std::vector<Get> calls;
  for (int i = 0; i < 40; ++i) calls.emplace_back(cache.get(std::to_string(i), load));
  for (auto& call : calls) EXPECT_EQ(call.get(), "one");
  EXPECT_LE(most, 3);
}

TEST_F(Guard, ALongLoadKeepsItsLeaseAndIsStored) {
  auto options = plain();
  options.wait = 1min;
  Cache here{line_, "user", options};
  Cache there{far_, "user", options};
  source_.hold();
  Get first{here.get("1", source_.loader())};
  source_.await_begun(1);
  Get second{there.get("1", source_.loader())};
  for (int i = 0; i < 29; ++i) clock_.advance(1s);
  EXPECT_EQ(source_.loads(), 1);
  source_.let_go();
  EXPECT_EQ(first.get(), "one");
  EXPECT_EQ(second.get(), "one");
  EXPECT_EQ(source_.loads(), 1);
  EXPECT_TRUE(exists("user:1"));
  const auto renewed = line_.executed("cache/renew");
  clock_.advance(1min);
  EXPECT_EQ(line_.executed("cache/renew"), renewed) << "the load has ended";
}

TEST_F(Guard, ABriefLoadRenewsNothing) {
  Cache cache{line_, "user", plain()};
  cache.get("1", source_.loader()).get();
  clock_.advance(1min);
  EXPECT_EQ(line_.executed("cache/renew"), 0U);
}

TEST_F(Guard, AsManyFailuresAreRememberedAsFitIntoTheirRoom) {
  cache::Failures failures{true};
  const auto error = std::make_exception_ptr(42);
  const SteadyTime now = clock_.steady();
  constexpr int many = 20'000;
  for (int i = 0; i < many; ++i) {
    const std::string key = std::to_string(i);
    failures.keep(failures.begin(key, now), key, error, now + 1h);
  }
  EXPECT_TRUE(failures.find(std::to_string(many - 1), now));
  int known = 0;
  for (int i = 0; i < many; ++i) known += failures.find(std::to_string(i), now) != nullptr;
  EXPECT_GT(known, 1000);
  EXPECT_LT(known, 4000);
}

TEST_F(Guard, TooManyThatWaitForTheirTurnAreRefusedAndTheLeaseIsGivenBack) {
  auto options = plain();
  options.max_loads = 1;
  options.max_waiting_loads = 1;
  Cache cache{line_, "user", options};
  source_.hold();
  Get first{cache.get("1", source_.loader())};
  source_.await_begun(1);
  Get second{cache.get("2", source_.loader())};
  EXPECT_EQ(error_of(cache.get("3", source_.loader())), Errc::overloaded);
  EXPECT_FALSE(exists("sluice_cache_lease:{user:3}"));
  source_.let_go();
  first.get();
  second.get();
}

TEST_F(Guard, ALoadWhoseTurnComesAfterItsLeaseAsksForTheLeaseAgain) {
  auto options = plain();
  options.max_loads = 1;
  Cache cache{line_, "user", options};
  Source first;
  first.hold();
  Get one{cache.get("1", first.loader())};
  first.await_begun(1);
  Get two{cache.get("2", source_.loader())};
  clock_.advance(6s);
  first.let_go();
  EXPECT_EQ(two.get(), "one");
  EXPECT_TRUE(exists("user:2"));
  EXPECT_EQ(source_.loads(), 1);
}

TEST_F(Guard, ALargeValueIsGivenAndNotStored) {
  auto options = plain();
  options.largest_value = 1000;
  Cache cache{line_, "user", options};
  const auto large = [] { return std::string(1001, 'x'); };
  EXPECT_EQ(cache.get("1", large).get()->size(), 1001U);
  EXPECT_EQ(keys(), 0U);
  EXPECT_EQ(error_of(cache.put("1", large())), Errc::bad_argument);
}

TEST_F(Guard, KeysOfNoBytesAndOfAnyBytes) {
  Cache cache{line_, "user", plain()};
  const std::string odd{"\0\r\n{}%\xff", 7};
  for (const std::string& key : {std::string{}, odd, std::string(65'536, 'k')}) {
    EXPECT_EQ(cache.get(key, source_.loader()).get(), "one");
    EXPECT_EQ(cache.get(key, source_.loader()).get(), "one");
    cache.invalidate_twice(key, 1s).get();
  }
  EXPECT_EQ(source_.loads(), 3);
  clock_.advance(2s);
  EXPECT_EQ(keys(), 0U);
  EXPECT_EQ(error_of(cache.get(std::string(10'000'000, 'k'), source_.loader())),
            Errc::bad_argument);
}

TEST_F(Guard, ALoaderMayThrowAnything) {
  Cache cache{line_, "user", plain()};
  EXPECT_THROW(cache.get("1", []() -> std::string { throw 42; }).get(), int);
  EXPECT_THROW(cache.get("1",
                         []() -> std::string {
                           throw Error{Errc::database, "gone"};
                         })
                   .get(),
               Error);
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
}

TEST_F(Guard, ALoaderThatAsksForItsOwnKeyIsToldSo) {
  Cache cache{line_, "user", plain()};
  const auto asks_itself = [&] { return cache.get("1", source_.loader()).get(); };
  EXPECT_EQ(error_of(cache.get("1", asks_itself)), Errc::bad_argument);
  const auto round_about = [&] {
    return cache.get("2", [&] { return cache.get("1", source_.loader()).get(); }).get();
  };
  EXPECT_EQ(error_of(cache.get("1", round_about)), Errc::bad_argument);
  EXPECT_EQ(source_.loads(), 0);
}

TEST_F(Guard, ACircleOverTwoGuardsIsToldSo) {
  Cache users{line_, "user", plain()};
  Cache teams{line_, "team", plain()};
  const auto team = [&] { return *users.get("1", [] { return std::string{"never"}; }).get(); };
  const auto user = [&] { return *teams.get("1", team).get(); };
  EXPECT_EQ(error_of(users.get("1", user)), Errc::bad_argument);
  Cache again{line_, "user", plain()};
  const auto same = [&] { return *again.get("1", source_.loader()).get(); };
  EXPECT_EQ(error_of(users.get("1", same)), Errc::bad_argument);
  EXPECT_EQ(source_.loads(), 0);
}

TEST_F(Guard, ALoadThatGoesOnBehindItsCallerIsNoCircle) {
  Cache users{line_, "user", plain()};
  Cache teams{line_, "team", plain()};
  source_.hold();
  const auto team = [&] {
    (void)source_.read();
    return *users.get("1", [] { return std::string{"two"}; }).get();
  };
  std::optional<Get> asked;
  const auto user = [&]() -> std::string {
    asked.emplace(teams.get("1", team));
    source_.await_begun(1);
    throw std::runtime_error{"not now"};
  };
  EXPECT_THROW(users.get("1", user).get(), std::runtime_error);
  source_.let_go();
  EXPECT_EQ(asked->get(), "two");
}

TEST_F(Guard, ALoaderMayAskForOtherKeysByAnotherGuardThoughTheBulkheadIsFull) {
  auto options = plain();
  options.max_loads = 1;
  Cache users{line_, "user", options};
  Cache teams{line_, "team", options};
  const auto chief = [&] { return *users.get("2", [] { return std::string{"chief"}; }).get(); };
  const auto user = [&] { return *teams.get("1", chief).get(); };
  EXPECT_EQ(users.get("1", user).get(), "chief");
}

TEST_F(Guard, ALoaderMayAskForOtherKeysThoughTheBulkheadIsFull) {
  auto options = plain();
  options.max_loads = 1;
  Cache cache{line_, "user", options};
  const auto nested = [&] { return cache.get("2", source_.loader()).get(); };
  EXPECT_EQ(cache.get("1", nested).get(), "one");
  EXPECT_TRUE(exists("user:2"));
}

TEST_F(Guard, TheEndOfAGuardWaitsForItsLoadsAndEndsItsCalls) {
  std::optional<Cache> cache{std::in_place, line_, "user", plain()};
  source_.hold();
  Get waiting{cache->get("1", source_.loader())};
  source_.await_begun(1);
  std::jthread ending{[&] { cache.reset(); }};
  try {
    waiting.get();
    FAIL() << "the guard has ended";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::closed);
  }
  source_.let_go();
}

TEST_F(Guard, ACallThatIsAnsweredMayEndTheGuard) {
  auto cache = std::make_unique<Cache>(line_, "user", plain());
  auto asking = cache->get("1", source_.loader());
  std::atomic<bool> ended = false;
  const auto end_it = [](Task<std::optional<std::string>> asked, std::unique_ptr<Cache>& guard,
                         std::atomic<bool>& done) -> Task<void> {
    co_await asked;
    guard.reset();
    done = true;
  };
  spawn(end_it(std::move(asking), cache, ended));
  await([&] { return ended.load(); });
}

TEST_F(Guard, IsMoved) {
  Cache first{line_, "user", plain()};
  Cache second{std::move(first)};
  EXPECT_EQ(second.get("1", source_.loader()).get(), "one");
  Cache third{line_, "other", plain()};
  third = std::move(second);
  EXPECT_EQ(third.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(source_.loads(), 1);
}

TEST_F(Guard, OptionsAndNamesAreChecked) {
  const auto refused = [&](std::string name, CacheGuardOptions options) {
    try {
      Cache cache{line_, std::move(name), std::move(options)};
    } catch (const Error& failure) {
      return failure.errc() == Errc::bad_argument;
    }
    return false;
  };
  for (const char* const name : {"", "a}", "{a", "a{}b"}) EXPECT_TRUE(refused(name, {})) << name;
  EXPECT_TRUE(refused(std::string(1025, 'n'), {}));
  EXPECT_TRUE(refused("a", {.ttl = 9ms}));
  EXPECT_TRUE(refused("a", {.ttl = std::chrono::days{4000}}));
  EXPECT_TRUE(refused("a", {.jitter = 0.91}));
  EXPECT_TRUE(refused("a", {.jitter = std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_TRUE(refused("a", {.stale = -1ms}));
  EXPECT_TRUE(refused("a", {.early = -1}));
  EXPECT_TRUE(refused("a", {.absent_budget = 1}));
  EXPECT_TRUE(refused("a", {.lease = 1ms}));
  EXPECT_TRUE(refused("a", {.longest_load = -1ms}));
  EXPECT_TRUE(refused("a", {.failure_ttl = -1ms}));
  EXPECT_TRUE(refused("a", {.wait = 0ms}));
  EXPECT_TRUE(refused("a", {.max_loads = 0}));
  EXPECT_TRUE(refused("a", {.max_loads = 1025}));
  EXPECT_TRUE(refused("a", {.largest_value = 512'000'001}));
  EXPECT_FALSE(refused("{shop}:user", {}));
}

TEST_F(Guard, AClockOfTheStoreThatJumpsMakesNoValueOlderThanItsTtl) {
  Cache cache{line_, "user", {.ttl = 10s, .jitter = 0, .early = 1}};
  cache.get("1", source_.loader()).get();
  for (const auto jump : {-60min, 120min, -30min}) {
    clock_.jump_wall(jump);
    EXPECT_TRUE(cache.get("1", source_.loader()).get());
  }
  source_.write("two");
  clock_.advance(11s);
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "two");
}

TEST_F(Guard, AClockOfTheStoreThatIsSetBackKeepsNoValueForLong) {
  Cache cache{line_, "user", {.ttl = 10s, .jitter = 0, .early = 1}};
  cache.get("1", source_.loader()).get();
  source_.write("two");
  // What a server has that was set back by an hour: the end of the value is an hour away.
  const auto seconds = std::stoll(store_->run({"TIME"}).get().as_items().at(0).as_text());
  const auto value = fmt::format("SLC1v {}000000 1000\none", seconds + 3610);
  store_->run({"SET", "user:1", value, "EX", "3610"}).get();
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
  await([&] { return cache.get("1", source_.loader()).get() == "two"; });
}

// What may be lost, doubled and late on the way, and a model: a value is one that the row had since
// the last invalidation that was acknowledged before the call.
TEST_F(Guard, OnABadLineNothingOlderThanAnAcknowledgedInvalidationIsServed) {
  Cache here{line_, "user", {.ttl = 10s, .jitter = 0.5, .early = 1, .lease = 1s}};
  Cache there{far_, "user", {.ttl = 10s, .jitter = 0.5, .stale = 5s, .early = 1, .lease = 1s}};
  const auto bad = [](std::string_view) {
    constexpr Fault faults[] = {Fault::none,    Fault::none,       Fault::none,
                                Fault::refused, Fault::reply_lost, Fault::request_lost,
                                Fault::doubled, Fault::cut_off};
    return faults[random_below(std::size(faults))];
  };
  line_.plan = bad;
  far_.plan = bad;
  int row = 0;
  int acknowledged = 0;
  for (int i = 0; i < rounds(600); ++i) {
    Cache& cache = random_below(2) == 0 ? here : there;
    if (random_below(4) == 0) {
      source_.write(std::to_string(++row));
      if (!error_of(cache.invalidate("1"))) acknowledged = row;
    } else {
      try {
        Get call{cache.get("1", source_.loader())};
        while (!call.is_over()) {  // a lease whose grant was lost has to end
          clock_.advance(20ms);
          std::this_thread::yield();
        }
        const auto value = call.get();
        ASSERT_TRUE(value);
        ASSERT_GE(*value == "one" ? 0 : std::stoi(*value), acknowledged) << "round " << i;
      } catch (const Error& failure) {
        ASSERT_TRUE(failure.errc() == Errc::connection || failure.errc() == Errc::timeout)
            << failure.what();
        clock_.advance(200ms);
      }
    }
    if (random_below(4) == 0) clock_.advance(std::chrono::milliseconds{random_below(3000)});
  }
  EXPECT_GT(acknowledged, rounds(600) / 30);
}

}  // namespace
}  // namespace sluice
