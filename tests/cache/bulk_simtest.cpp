// Many keys at once: each stands for itself, and has all that a single one is promised.
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/random.hpp"
#include "cache/guards.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using namespace test;

using Keys = std::vector<std::string>;
using Outcomes = std::vector<CacheOutcome<std::string>>;

class Bulk : public Guards {
 protected:
  static std::vector<std::string> numbers(int many) {
    std::vector<std::string> all;
    for (int i = 0; i < many; ++i) all.push_back(std::to_string(i));
    return all;
  }
  static CacheGuardOptions near() {
    auto options = plain();
    options.near_bytes = 1 << 20;
    return options;
  }
  /// Loads keys together: "KEY of ROW"; there is none of "none".
  auto loader() {
    return [this](const Keys& missing) {
      const auto row = source_.read();
      const std::lock_guard lock{mutex_};
      loaded_.push_back(missing);
      std::map<std::string, std::string> found;
      for (const auto& key : missing)
        if (key != "none") found[key] = key + " of " + row.value_or("no row");
      return found;
    };
  }
  std::vector<Keys> loaded() {
    const std::lock_guard lock{mutex_};
    return loaded_;
  }
  /// A value, "-": there is none, or "!" and the code of an error.
  static std::string text(const CacheOutcome<std::string>& outcome) {
    try {
      return outcome.get().value_or("-");
    } catch (const Error& failure) {
      return fmt::format("!{}", static_cast<int>(failure.errc()));
    } catch (const std::domain_error& failure) {
      return failure.what();
    }
  }
  static std::string text(const Outcomes& outcomes) {
    std::string all;
    for (const auto& each : outcomes) all += (all.empty() ? "" : ", ") + text(each);
    return all;
  }

 private:
  std::mutex mutex_;
  std::vector<Keys> loaded_;
};

TEST_F(Bulk, BC12_WhatIsMissingIsLoadedTogetherAndEachRoundTripIsOneForAll) {
  Cache here{line_, "user", near()};
  Cache there{far_, "user", plain()};
  there.put("3", "three").get();
  std::map<std::string, int> calls;
  line_.plan = [&](std::string_view call) { return ++calls[std::string{call}], Fault::none; };
  EXPECT_EQ(text(here.get_all({"1", "none", "3", "2", "1"}, loader()).get()),
            "1 of one, -, three, 2 of one, 1 of one");
  EXPECT_EQ(loaded(), (std::vector<Keys>{{"1", "none", "2"}}));
  EXPECT_EQ(calls["GET"], 1);
  EXPECT_EQ(calls["cache/look"], 1);
  EXPECT_EQ(text(there.get_all({"1", "none", "3", "2"}, loader()).get()),
            "1 of one, -, three, 2 of one");
  here.get_all({"1", "2", "3"}, loader()).get();
  EXPECT_EQ(text(here.get_all({"1", "2", "3"}, loader()).get()), "1 of one, 2 of one, three");
  EXPECT_EQ(calls["GET"], 2) << "they are near";
  EXPECT_EQ(loaded().size(), 1U);
  EXPECT_TRUE(here.get_all({}, loader()).get().empty());

  const auto many = numbers(250);
  EXPECT_EQ(here.get_all(many, loader()).get().back().value, "249 of one");
  EXPECT_EQ(loaded().size(), 4U) << "a hundred at a time";
  for (const auto& key : many) EXPECT_FALSE(exists("sluice_cache_lease:{user:" + key + "}"));
}

TEST_F(Bulk, BC12_LoadersOfEveryForm) {
  Cache cache{line_, "user", plain()};
  const auto each = [](const std::string& key) { return "each " + key; };
  EXPECT_EQ(text(cache.get_all({"1", "2"}, each).get()), "each 1, each 2");
  EXPECT_EQ(text(cache.get_all({"3"}, [] { return std::optional<std::string>{}; }).get()), "-");
  using Timed = std::unordered_map<std::string, CacheValue<std::string>>;
  const auto timed = [](const Keys& keys) {
    Timed found;
    for (const auto& key : keys) found.insert({key, {"timed", 5s}});
    return Task<Timed>::ready(std::move(found));
  };
  EXPECT_EQ(text(cache.get_all({"4", "5"}, timed).get()), "timed, timed");
  EXPECT_EQ(ttl("user:5"), 5s);
  const auto maybe = [](const Keys& keys) {
    return std::map<std::string, std::optional<std::string>>{{keys.at(0), std::nullopt}};
  };
  EXPECT_EQ(text(cache.get_all({"6", "7"}, maybe).get()), "-, -");
}

TEST_F(Bulk, BC12_AnErrorOfAKeyIsThatKeysAlone) {
  auto options = plain();
  options.is_valid = [](std::string_view key) { return key != "-1"; };
  Cache cache{line_, "user", options};
  const auto keys = numbers(4);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    store_->run({"SET", "user:" + keys[i], "theirs"}).get();
    auto all = keys;
    all.emplace_back("-1");
    all.emplace_back(65'537, 'k');
    std::string expected;
    for (std::size_t at = 0; at < keys.size(); ++at)
      expected += at == i ? fmt::format("!{}, ", static_cast<int>(Errc::wrong_type))
                          : keys[at] + " of one, ";
    expected += fmt::format("-, !{}", static_cast<int>(Errc::bad_argument));
    EXPECT_EQ(text(cache.get_all(all, loader()).get()), expected);
    store_->run({"FLUSHALL"}).get();
  }
  const auto fails = [](const Keys&) -> std::map<std::string, std::string> {
    throw std::domain_error{"no such table"};
  };
  cache.put("1", "one").get();
  EXPECT_EQ(text(cache.get_all({"0", "1", "2"}, fails).get()), "no such table, one, no such table");
  EXPECT_EQ(this->keys(), 1U) << "no lease is left";
  EXPECT_EQ(text(cache.get_all({"0", "1", "2"}, loader()).get()), "0 of one, one, 2 of one");
}

TEST_F(Bulk, BC12_WhatAnotherProcessLoadsIsWaitedForAndTheRestIsNot) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  Source slow;
  slow.hold();
  Get first{there.get("2", slow.loader())};
  slow.await_begun(1);
  Call<Outcomes> all{here.get_all({"1", "2", "3"}, loader())};
  await([&] { return exists("user:1") && exists("user:3"); });
  EXPECT_FALSE(all.is_over());
  EXPECT_EQ(loaded(), (std::vector<Keys>{{"1", "3"}}));
  slow.let_go();
  EXPECT_EQ(text(all.get()), "1 of one, one, 3 of one");
  EXPECT_EQ(loaded().size(), 1U);
}

TEST_F(Bulk, BC12_CallersShareABulkLoadAndNoneIsGivenWhatWasReadBeforeItsInvalidation) {
  for (const bool by_bulk : {false, true}) {
    Cache here{line_, "user", near()};
    Cache there{far_, "user", near()};
    source_.write("one");
    source_.hold();
    const int before = source_.loads();
    Call<Outcomes> all{here.get_all({"1", "2"}, loader())};
    source_.await_begun(before + 1);
    Get shares{here.get("2", source_.loader())};
    source_.write("two");
    if (by_bulk)
      there.invalidate_all({"0", "1"}).get();
    else
      there.invalidate("1").get();
    Get later{here.get("1", [&] { return std::string{"led anew"}; })};
    EXPECT_EQ(later.get(), "led anew") << "it waits for no load that was overtaken";
    source_.let_go();
    EXPECT_EQ(text(all.get()), "1 of one, 2 of one");
    EXPECT_EQ(shares.get(), "2 of one");
    EXPECT_EQ(here.get("1", source_.loader()).get(), "led anew");
    EXPECT_EQ(there.get("1", source_.loader()).get(), "led anew");
    EXPECT_EQ(there.get("2", source_.loader()).get(), "2 of one");
    EXPECT_EQ(source_.loads(), before + 1);
    store_->run({"FLUSHALL"}).get();
  }
}

TEST_F(Bulk, BC12_ALateReplyToABulkReadIsNotKeptNear) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", near()};
  there.get("1", source_.loader()).get();
  for (const auto* const late : {"GET", "cache/look"}) {
    here.put("1", "old").get();
    far_.plan = [&](std::string_view call) {
      return call == late ? Fault::reply_late : Fault::none;
    };
    Call<Outcomes> all{there.get_all({"1", "2"}, loader())};
    here.invalidate_all({"1", "2"}).get();
    here.put("1", "new").get();
    far_.plan = [](std::string_view) { return Fault::none; };
    far_.let_go();
    all.get();
    EXPECT_EQ(there.get("1", source_.loader()).get(), "new") << late;
    here.invalidate_all({"1", "2"}).get();
  }
}

TEST_F(Bulk, BC12_ALoaderMayNotAskForWhatItLoadsAndTakesOnePlaceOfTheBulkhead) {
  auto options = plain();
  options.max_loads = 1;
  options.max_waiting_loads = 1;
  Cache cache{line_, "user", options};
  EXPECT_EQ(text(cache.get_all(numbers(3), loader()).get()), "0 of one, 1 of one, 2 of one");
  const auto asks = [&](const Keys& keys) {
    return std::map<std::string, std::string>{
        {keys.at(0), text(cache.get_all({"9", keys.back()}, loader()).get())}};
  };
  EXPECT_EQ(text(cache.get_all({"7", "8"}, asks).get()),
            fmt::format("9 of one, !{}, -", static_cast<int>(Errc::bad_argument)));
}

TEST_F(Bulk, BC12_ASlowBulkLoadKeepsItsLeasesAndEndsNoCallersWait) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  source_.hold();
  Call<Outcomes> all{here.get_all({"1", "2"}, loader(), {.wait = 3s})};
  source_.await_begun(1);
  for (int i = 0; i < 12; ++i) clock_.advance(1s);
  const auto timeout = fmt::format("!{}", static_cast<int>(Errc::timeout));
  EXPECT_EQ(text(all.get()), timeout + ", " + timeout);
  Get other{there.get("2", source_.loader())};
  source_.let_go();
  EXPECT_EQ(other.get(), "2 of one");
  EXPECT_EQ(source_.loads(), 1);
}

TEST_F(Bulk, BC12_WhileTheStoreIsDown) {
  const auto refused = [](std::string_view) { return Fault::refused; };
  for (const auto when_down : {CacheWhenDown::fail, CacheWhenDown::copy, CacheWhenDown::load}) {
    auto options = plain();
    options.when_down = when_down;
    Cache cache{line_, "user", options};
    cache.get_all({"1"}, loader()).get();
    line_.plan = refused;
    const auto none = fmt::format("!{}", static_cast<int>(Errc::connection));
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(text(cache.get_all({"1", "2"}, loader()).get()),
                when_down == CacheWhenDown::fail   ? none + ", " + none
                : when_down == CacheWhenDown::copy ? "1 of one, " + none
                                                   : "1 of one, 2 of one");
    line_.plan = [](std::string_view) { return Fault::none; };
    clock_.advance(1s);
    EXPECT_EQ(text(cache.get_all({"1", "2"}, loader()).get()), "1 of one, 2 of one");
    store_->run({"FLUSHALL"}).get();
  }
}

// A model: what a key has is of a row that it had since its last invalidation that was acknowledged
// before the call.
TEST_F(Bulk, BC12_OnABadLineNothingOlderThanAnAcknowledgedInvalidationIsServed) {
  const CacheGuardOptions options{.ttl = 10s, .jitter = 0.5, .stale = 5s, .lease = 1s};
  Cache here{line_, "user", options};
  Cache there{far_, "user", options};
  line_.plan = far_.plan = [](std::string_view) {
    constexpr Fault faults[] = {Fault::none,    Fault::none,       Fault::none,
                                Fault::refused, Fault::reply_lost, Fault::request_lost,
                                Fault::doubled, Fault::cut_off};
    return faults[random_below(std::size(faults))];
  };
  const Keys keys = numbers(4);
  std::map<std::string, int> acknowledged;
  std::atomic<int> row{0};
  const auto load = [&](const Keys& missing) {
    std::map<std::string, std::string> found;
    for (const auto& key : missing) found[key] = std::to_string(row.load());
    return found;
  };
  int answers = 0;
  for (int i = 0; i < rounds(600); ++i) {
    Cache& cache = random_below(2) == 0 ? here : there;
    Keys some;
    for (const auto& key : keys)
      if (random_below(2) == 0) some.push_back(key);
    if (random_below(4) == 0) {
      ++row;
      if (!error_of(cache.invalidate_all(some)))
        for (const auto& key : some) acknowledged[key] = row;
    } else {
      Call<Outcomes> call{cache.get_all(some, load)};
      while (!call.is_over()) {  // a lease whose grant was lost has to end
        clock_.advance(20ms);
        std::this_thread::yield();
      }
      const auto outcomes = call.get();
      for (std::size_t at = 0; at < some.size(); ++at) {
        if (outcomes[at].error) continue;
        ++answers;
        ASSERT_GE(std::stoi(outcomes[at].value.value()), acknowledged[some[at]]) << "round " << i;
      }
    }
    if (random_below(4) == 0) clock_.advance(std::chrono::milliseconds{random_below(3000)});
  }
  EXPECT_GT(answers, rounds(600) / 4);
}

TEST_F(Bulk, BC12_ABulkInvalidationIsOneRoundTripAndEndsLoadsAndNearCopies) {
  Cache here{line_, "user", near()};
  Cache there{far_, "user", near()};
  const auto keys = numbers(300);
  for (int times = 0; times < 2; ++times)
    for (const auto& key : keys) there.get(key, source_.loader()).get();
  source_.hold();
  const int loads = source_.loads();
  Get slow{there.get("slow", source_.loader())};
  source_.await_begun(loads + 1);
  source_.write("two");

  int calls = 0;
  line_.plan = [&](std::string_view) { return ++calls, Fault::none; };
  auto all = keys;
  all.emplace_back("slow");
  here.invalidate_all(all).get();
  here.invalidate_all({}).get();
  EXPECT_EQ(calls, 1);
  source_.let_go();
  EXPECT_EQ(slow.get(), "one");
  for (const auto& key : all) {
    EXPECT_FALSE(exists("user:" + key)) << key;
    EXPECT_EQ(there.get(key, source_.loader()).get(), "two") << key;
    EXPECT_EQ(here.get(key, source_.loader()).get(), "two") << key;
  }
}

TEST_F(Bulk, BC12_AKeyThatFailsIsNamedAndKeepsNoOtherFromBeingInvalidated) {
  Cache cache{line_, "user", plain()};
  const auto keys = numbers(5);
  for (const auto& foreign : keys) {
    for (const auto& key : keys) cache.put(key, "old").get();
    store_->run({"SET", "user:" + foreign, "theirs"}).get();
    try {
      cache.invalidate_all(keys).get();
      ADD_FAILURE() << foreign << " is not ours";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::wrong_type);
      EXPECT_EQ(failure.effect(), Effect::unknown);
      for (const auto& key : keys)
        EXPECT_EQ(failure.message().find("'user:" + key + "'") != std::string::npos, key == foreign)
            << failure.message();
      EXPECT_NE(failure.message().find("4 of 5 calls were done"), std::string::npos);
    }
    for (const auto& key : keys) EXPECT_EQ(exists("user:" + key), key == foreign);
    store_->run({"DEL", "user:" + foreign}).get();
  }
}

TEST_F(Bulk, BC12_ABulkInvalidationThatIsNotSentHasNoEffectAndOneThatIsLostIsSentAgain) {
  Cache cache{line_, "user", plain()};
  const auto keys = numbers(5);
  for (const auto fault :
       {Fault::refused, Fault::reply_lost, Fault::request_lost, Fault::cut_off}) {
    for (const auto& key : keys) cache.put(key, "old").get();
    line_.plan = [&](std::string_view) { return fault; };
    std::optional<Effect> effect;
    try {
      cache.invalidate_all(keys).get();
    } catch (const Error& failure) {
      effect = failure.effect();
    }
    line_.plan = [](std::string_view) { return Fault::none; };
    for (const auto& key : keys) EXPECT_EQ(exists("user:" + key), effect == Effect::none);
    EXPECT_EQ(effect.has_value(), fault == Fault::refused || fault == Fault::cut_off);
  }
}

// The reply to a read of before is on its way when the invalidation is acknowledged.
TEST_F(Bulk, BC12_ALateReplyIsNotKeptNearOverABulkInvalidation) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", near()};
  there.get("1", source_.loader()).get();
  far_.plan = [](std::string_view call) { return call == "GET" ? Fault::reply_late : Fault::none; };
  Get late{there.get("1", source_.loader())};
  source_.write("two");
  here.invalidate_all({"0", "1", "2"}).get();
  far_.plan = [](std::string_view) { return Fault::none; };
  far_.let_go();
  EXPECT_EQ(late.get(), "one");
  EXPECT_EQ(there.get("1", source_.loader()).get(), "two");
}

}  // namespace
}  // namespace sluice
