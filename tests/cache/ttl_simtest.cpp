// Values with a time of their own, beside each protection that also says how long something lives.
#include "cache/guards.hpp"

namespace sluice {
namespace {

using namespace test;

class ValueTtl : public Guards {
 protected:
  /// A loader whose value has a time of its own.
  auto loader_for(std::chrono::milliseconds ttl) {
    return [this, ttl]() -> std::optional<CacheValue<std::string>> {
      if (auto value = source_.read()) return CacheValue<std::string>{*std::move(value), ttl};
      return std::nullopt;
    };
  }
};

TEST_F(ValueTtl, BC12_EndsAValueBeforeTheGuardsAndNeverAfterIt) {
  Cache cache{line_, "user", plain()};
  EXPECT_EQ(cache.get("1", loader_for(5s)).get(), "one");
  EXPECT_EQ(ttl("user:1"), 5s);
  EXPECT_EQ(cache.get("2", loader_for(1h)).get(), "one");
  EXPECT_EQ(ttl("user:2"), 10min);
  for (const auto none : {9ms, 0ms, -1ms}) {
    EXPECT_EQ(cache.get("3", loader_for(none)).get(), "one");
    EXPECT_FALSE(exists("user:3"));
    EXPECT_FALSE(exists("sluice_cache_lease:{user:3}"));
  }
  cache.get("4", [] { return Task<CacheValue<std::string>>::ready({"four", 5s}); }).get();
  cache.put("5", "five", 5s).get();
  cache.put("6", "six", 1h).get();
  cache.put("7", "seven").get();
  EXPECT_EQ(ttl("user:4"), 5s);
  EXPECT_EQ(ttl("user:5"), 5s);
  EXPECT_EQ(ttl("user:6"), 10min);
  EXPECT_EQ(ttl("user:7"), 10min);
  EXPECT_EQ(error_of(cache.put("5", "more", 9ms)), Errc::bad_argument);
  EXPECT_EQ(cache.get("5", source_.loader()).get(), "five");
}

TEST_F(ValueTtl, BC12_JitterShortensItAndStaleFollowsIt) {
  Cache cache{line_, "user", {.jitter = 0.5, .stale = 1min, .early = 0}};
  std::chrono::milliseconds least = 1h, most = 0ms;
  for (int i = 0; i < 200; ++i) {
    const auto key = std::to_string(i);
    cache.get(key, loader_for(10s)).get();
    least = std::min(least, ttl("user:" + key));
    most = std::max(most, ttl("user:" + key));
  }
  EXPECT_GE(least, 65s);
  EXPECT_LT(least, 67s);
  EXPECT_LE(most, 70s);
  source_.write("two");
  clock_.advance(11s);
  await([&] { return cache.get("1", loader_for(10s)).get() == "two"; });
}

TEST_F(ValueTtl, BC12_ANearCopyOfAnyProcessEndsWithIt) {
  auto options = plain();
  options.near_bytes = 1 << 20;
  Cache here{line_, "user", options};
  Cache there{far_, "user", options};
  for (auto* const cache : {&here, &there, &here, &there})
    EXPECT_EQ(cache->get("1", loader_for(5s)).get(), "one");
  const auto asked = line_.executed("GET");
  EXPECT_EQ(here.get("1", loader_for(5s)).get(), "one");
  EXPECT_EQ(line_.executed("GET"), asked) << "it is near";
  source_.write("two");
  for (auto* const line : {&line_, &far_}) line->lose_messages();  // also of its end
  clock_.advance(5s + 1ms);
  EXPECT_EQ(here.get("1", loader_for(5s)).get(), "two");
  EXPECT_EQ(there.get("1", loader_for(5s)).get(), "two");
}

TEST_F(ValueTtl, BC12_ACopyIsServedHoweverOldWhileTheStoreIsDownAndNoLonger) {
  auto options = plain();
  options.when_down = CacheWhenDown::copy;
  Cache cache{line_, "user", options};
  for (const auto* const key : {"1", "2"}) cache.get(key, loader_for(*key == '1' ? 5s : 0s)).get();
  source_.write("two");
  line_.plan = [](std::string_view) { return Fault::refused; };
  clock_.advance(6s);
  EXPECT_EQ(cache.get("1", loader_for(5s)).get(), "one");
  EXPECT_EQ(cache.get("2", loader_for(5s)).get(), "one") << "nor one that was not stored";
  line_.plan = [](std::string_view) { return Fault::none; };
  clock_.advance(1s);
  EXPECT_EQ(cache.get("1", loader_for(5s)).get(), "two");
}

TEST_F(ValueTtl, BC12_AnAbsenceHasTheTimeOfAbsences) {
  auto options = plain();
  options.absent_ttl = 20s;
  Cache cache{line_, "user", options};
  source_.write(std::nullopt);
  EXPECT_EQ(cache.get("1", loader_for(1ms)).get(), std::nullopt);
  EXPECT_GE(ttl("user:1"), 5s);
  EXPECT_LE(ttl("user:1"), 20s);
  source_.write("one");
  clock_.advance(20s);
  EXPECT_EQ(cache.get("1", loader_for(3s)).get(), "one");
  EXPECT_EQ(ttl("user:1"), 3s);
}

}  // namespace
}  // namespace sluice
