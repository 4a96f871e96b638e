// All keys of a guard at once, beside what happens meanwhile.
#include <fmt/format.h>

#include <set>
#include <vector>

#include "cache/entry.hpp"
#include "cache/guards.hpp"

namespace sluice {
namespace {

using namespace test;

class Clear : public Guards {
 protected:
  static CacheGuardOptions near() {
    auto options = plain();
    options.near_bytes = 1 << 20;
    return options;
  }
};

TEST_F(Clear, BC12_TakesAllKeysOfItsGuardAndNoOther) {
  const std::vector<std::string> names{"user",        "u*er",   "u[s]er", "us?r",
                                       "{shop}:user", "user:b", "{user}", "u\\ser"};
  std::vector<std::unique_ptr<Cache>> guards;
  for (const auto& name : names) guards.push_back(std::make_unique<Cache>(line_, name, plain()));
  const std::vector<std::string> odd{"", "1", "a:b", "{x}", "b:1", std::string{"\0\r*?", 4}};
  const auto fill = [&] {
    for (std::size_t i = 0; i < names.size(); ++i)
      for (const auto& key : odd) {
        guards[i]->put(key, names[i]).get();
        const cache::Names own{names[i]};
        store_->run({"HSET", cache::Names::lease_of(own.value_of(key)), "owner", "x"}).get();
      }
  };
  for (std::size_t cleared = 0; cleared < names.size(); ++cleared) {
    fill();
    EXPECT_EQ(guards[cleared]->clear().get(), odd.size()) << "each has a load, which ends first";
    for (std::size_t i = 0; i < names.size(); ++i)
      for (const auto& key : odd) {
        const auto value_key = cache::Names{names[i]}.value_of(key);
        EXPECT_EQ(exists(value_key), i != cleared) << names[cleared] << ", " << value_key;
        EXPECT_EQ(exists(cache::Names::lease_of(value_key)), i != cleared) << value_key;
      }
  }
}

TEST_F(Clear, BC12_TakesManyValuesAndAbsences) {
  Cache cache{line_, "user", plain()};
  for (int i = 0; i < 2500; ++i) {
    source_.write(i % 2 == 0 ? std::optional<std::string>{"one"} : std::nullopt);
    cache.get(std::to_string(i), source_.loader()).get();
  }
  EXPECT_EQ(cache.clear().get(), 2500U);
  EXPECT_EQ(keys(), 1U) << "the count of absences";
  EXPECT_EQ(cache.clear().get(), 0U);
}

// A load that began before ends at each point of it, and what comes behind it is new; there are
// values that take it several steps.
TEST_F(Clear, BC12_NoLoadThatBeganBeforeItIsServedBehindIt) {
  int points = 1;
  for (int point = 0; point < points; ++point) {
    store_->run({"FLUSHALL"}).get();
    Cache here{line_, "user", near()};
    Cache there{far_, "user", near()};
    for (int i = 0; i < 1500; ++i) here.put(fmt::format("other {}", i), "one").get();
    Source mine, theirs;
    mine.hold();
    theirs.hold();
    Get own{here.get("1", mine.loader())};
    Get far{there.get("2", theirs.loader())};
    mine.await_begun(1);
    theirs.await_begun(1);
    int calls = 0;
    line_.plan = [&](std::string_view call) {
      if (call != "SCAN" && call != "cache/invalidate") return Fault::none;
      if (calls++ == point) {
        theirs.let_go();
        EXPECT_EQ(far.get(), "one");
      }
      return Fault::none;
    };
    here.clear().get();
    points = calls;
    line_.plan = [](std::string_view) { return Fault::none; };
    const auto load = [] { return std::string{"two"}; };
    EXPECT_EQ(here.get("1", load).get(), "two") << "it waits for no load that was overtaken";
    EXPECT_EQ(there.get("2", load).get(), "two") << "at point " << point;
    EXPECT_EQ(there.get("other 7", load).get(), "two");
    mine.let_go();
    theirs.let_go();
    EXPECT_EQ(own.get(), "one");
    EXPECT_EQ(here.get("1", load).get(), "two");
  }
  EXPECT_GE(points, 5);
}

TEST_F(Clear, BC12_EndsNearCopiesCopiesAndFailuresAlsoOfLateReplies) {
  auto options = near();
  options.when_down = CacheWhenDown::copy;
  options.failure_ttl = 1h;
  Cache here{line_, "user", options};
  Cache there{far_, "user", near()};
  for (auto* const cache : {&here, &there, &here, &there}) cache->get("1", source_.loader()).get();
  EXPECT_THROW(here.get("2", []() -> std::string { throw 1; }).get(), int);
  there.put("3", "one").get();
  far_.plan = [](std::string_view call) { return call == "GET" ? Fault::reply_late : Fault::none; };
  Get late{there.get("3", source_.loader())};
  source_.write("two");
  line_.hold_messages();  // its own changes it need not be told
  here.clear().get();
  far_.plan = [](std::string_view) { return Fault::none; };
  far_.let_go();
  EXPECT_EQ(late.get(), "one");
  EXPECT_EQ(there.get("3", source_.loader()).get(), "two");
  EXPECT_EQ(there.get("1", source_.loader()).get(), "two");
  EXPECT_EQ(here.get("2", source_.loader()).get(), "two");
  here.clear().get();
  line_.plan = [](std::string_view) { return Fault::refused; };
  EXPECT_EQ(error_of(here.get("1", source_.loader())), Errc::connection) << "there is no copy";
}

TEST_F(Clear, BC12_SaysWhatItDidNotReach) {
  Cache cache{line_, "user", plain()};
  const auto failure_of = [&] {
    std::optional<Error> error;
    try {
      cache.clear().get();
    } catch (const Error& failure) {
      error = failure;
    }
    return error;
  };
  for (int i = 0; i < 1500; ++i) cache.put(std::to_string(i), "one").get();
  store_->run({"SET", "user:foreign", "theirs"}).get();
  const auto foreign = failure_of();
  ASSERT_TRUE(foreign);
  EXPECT_EQ(foreign->errc(), Errc::wrong_type);
  EXPECT_NE(foreign->message().find("'user:foreign'"), std::string::npos) << foreign->message();
  EXPECT_EQ(keys(), 1U);
  store_->run({"DEL", "user:foreign"}).get();

  std::set<Effect> effects;
  for (int point = 0; point < 100; ++point) {
    for (int i = 0; i < 1500; ++i) cache.put(std::to_string(i), "one").get();
    int calls = 0;
    line_.plan = [&](std::string_view call) {
      const bool counts = call == "SCAN" || call == "cache/invalidate";
      return counts && calls++ == point ? Fault::refused : Fault::none;
    };
    const auto failure = failure_of();
    line_.plan = [](std::string_view) { return Fault::none; };
    if (!failure) break;
    effects.insert(failure->effect());
    EXPECT_EQ(failure->errc(), Errc::connection);
    EXPECT_NE(failure->message().find("was not cleared beyond"), std::string::npos);
    if (failure->effect() == Effect::none) EXPECT_EQ(keys(), 1500U);
    EXPECT_GT(keys(), 0U);
  }
  EXPECT_EQ(effects.size(), 2U);
}

}  // namespace
}  // namespace sluice
