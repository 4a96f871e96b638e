#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "engine/embedded_store.hpp"
#include "number/layout.hpp"
#include "number/series.lua.hpp"
#include "sluice/id.hpp"
#include "sluice/number.hpp"
#include "sluice/when_all.hpp"
#include "support/forwarding_store.hpp"

namespace sluice {
namespace {

/// The same store, seen by a program whose own clock is wrong.
class SkewedStore final : public test::ForwardingStore {
 public:
  SkewedStore(Store& store, Clock& clock) : ForwardingStore(store), clock_(clock) {}
  Clock& clock() noexcept override { return clock_; }

 private:
  Clock& clock_;
};

/// The same store with a clock that goes where it is set, as that of Redis does: scripts read the
/// time from a key.
class SetClockStore final : public test::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void set(WallTime now) {
    const auto us = now.time_since_epoch().count();
    store_
        .run({"HSET", "clock", "s", std::to_string(us / 1'000'000), "us",
              std::to_string(us % 1'000'000)})
        .get();
    own_.emplace(now);
  }
  using ForwardingStore::run;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    const std::string_view asks = "redis.call('time')";
    std::string text{script.text};
    const auto at = text.find(asks);
    EXPECT_NE(at, std::string::npos);
    text.replace(at, asks.size(), "redis.call('hmget', 'clock', 's', 'us')");
    const std::string count = std::to_string(keys.size());
    std::vector<std::string_view> words{"EVAL", text, count};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), args.begin(), args.end());
    return store_.run(Words{words}, options);
  }
  Clock& clock() noexcept override { return *own_; }

 private:
  std::optional<VirtualClock> own_;
};

/// 23:59:57 in Shanghai on 2026-01-02.
constexpr WallTime before_midnight{std::chrono::seconds{1'767'369'597}};

class SeriesOnVirtualTime : public testing::Test {
 protected:
  VirtualClock server_clock_{before_midnight};
  std::unique_ptr<Store> store_ = engine::open_embedded({.clock = &server_clock_});
};

std::string draw(Series& series) {
  const auto number = series.next().get();
  return number ? number->text : "full " + number.error().period;
}

TEST_F(SeriesOnVirtualTime, StartsFromOneAtMidnightOfTheZone) {
  Series series{*store_, "MT", {.zone = "Asia/Shanghai"}};
  EXPECT_EQ(draw(series), "MT202601020001");
  EXPECT_EQ(draw(series), "MT202601020002");
  server_clock_.advance(std::chrono::microseconds{2'999'999});
  EXPECT_EQ(draw(series), "MT202601020003");
  server_clock_.advance(std::chrono::microseconds{1});
  EXPECT_EQ(draw(series), "MT202601030001");
}

TEST_F(SeriesOnVirtualTime, SeriesAreListedWithTheirLastNumbers) {
  for (int i = 0; i < 250; ++i) {
    Series series{*store_, fmt::format("S{:03}", i), {.digits = 2}};
    ASSERT_TRUE(series.next().get());
  }
  Series tagged{*store_, "{shop}:INV", {.prefix = "INV", .digits = 3}};
  const auto number = tagged.next().get();
  ASSERT_TRUE(number);
  store_->run({"HSET", "{x}:s", "definition", "no series", "prefix", "", "day", "", "taken", ""})
      .get();
  store_->run({"SET", "y:s", "text"}).get();

  const auto all = Series::list(*store_).get();
  ASSERT_EQ(all.series.size(), 251u);
  EXPECT_TRUE(all.complete);
  EXPECT_EQ(all.series.front().name, "S000");
  EXPECT_EQ(all.series.front().left, 98);
  EXPECT_EQ(all.series.back().name, "{shop}:INV");
  EXPECT_EQ(all.series.back().last, number->text);
  EXPECT_EQ(all.series.back().period, number->period);
  EXPECT_EQ(all.series.back().left, 998);

  const auto some = Series::list(*store_, 10).get();
  EXPECT_EQ(some.series.size(), 10u);
  EXPECT_FALSE(some.complete);
}

TEST_F(SeriesOnVirtualTime, ApplicationClocksADayWrongDoNotMatter) {
  VirtualClock slow{before_midnight - std::chrono::hours{24}};
  VirtualClock fast{before_midnight + std::chrono::hours{24}};
  VirtualClock lost{before_midnight - std::chrono::hours{24 * 365}};
  SkewedStore slow_store{*store_, slow};
  SkewedStore fast_store{*store_, fast};
  SkewedStore lost_store{*store_, lost};
  const SeriesOptions options{.zone = "Asia/Shanghai"};
  Series a{slow_store, "MT", options};
  Series b{fast_store, "MT", options};
  Series c{lost_store, "MT", options};
  EXPECT_EQ(draw(a), "MT202601020001");
  EXPECT_EQ(draw(b), "MT202601020002");
  EXPECT_EQ(draw(c), "MT202601020003");
  server_clock_.advance(std::chrono::seconds{3});
  EXPECT_EQ(draw(b), "MT202601030001");
  EXPECT_EQ(draw(c), "MT202601030002");
  EXPECT_EQ(draw(a), "MT202601030003");
  server_clock_.advance(std::chrono::hours{24 * 40});
  EXPECT_EQ(draw(a), "MT202602120001");
}

TEST_F(SeriesOnVirtualTime, AHundredThreadsAcrossMidnight) {
  Series series{*store_, "MT", {.zone = "Asia/Shanghai"}};
  std::vector<std::vector<std::string>> drawn(100);
  {
    std::vector<std::jthread> crew;
    for (auto& mine : drawn) {
      crew.emplace_back([&] {
        for (int i = 0; i < 20; ++i) mine.push_back(draw(series));
      });
    }
    for (int i = 0; i < 100; ++i) {
      server_clock_.advance(std::chrono::milliseconds{60});
      std::this_thread::yield();
    }
  }
  std::map<std::string, std::set<std::string>> days;
  std::size_t count = 0;
  for (const auto& mine : drawn) {
    EXPECT_TRUE(
        std::is_sorted(mine.begin(), mine.end()));  // a later number of one caller is larger
    for (const auto& code : mine) count += days[code.substr(0, 10)].insert(code).second;
  }
  EXPECT_EQ(count, 2000U);                 // none twice
  for (const auto& [day, codes] : days) {  // each day dense from 1
    EXPECT_EQ(std::stoul(codes.begin()->substr(10)), 1U);
    EXPECT_EQ(std::stoul(codes.rbegin()->substr(10)), codes.size()) << day;
  }
}

TEST_F(SeriesOnVirtualTime, ADayDoesNotReopenWhenTheServersClockGoesBack) {
  Series series{*store_, "MT", {.zone = "Asia/Shanghai"}};
  server_clock_.advance(std::chrono::seconds{3});
  EXPECT_EQ(draw(series), "MT202601030001");
  server_clock_.jump_wall(-std::chrono::seconds{1});
  EXPECT_EQ(draw(series), "MT202601030002");
}

TEST_F(SeriesOnVirtualTime, NoNumberIsGivenAgainToASeriesThatHasGivenIt) {
  Series series{*store_, "MT", {.zone = "Asia/Shanghai"}};
  for (int i = 0; i < 3; ++i) draw(series);
  store_->run({"HSET", "{MT}:s", "taken", "1"}).get();  // by a replica that lagged
  EXPECT_EQ(draw(series), "MT202601020004");
  store_->run({"DEL", "{MT}:s"}).get();
  EXPECT_EQ(draw(series), "MT202601020005");
  server_clock_.advance(std::chrono::seconds{3});
  EXPECT_EQ(draw(series), "MT202601030001");
}

TEST_F(SeriesOnVirtualTime, TheWidthUsedUpIsFullUntilTheNextDay) {
  Series series{*store_, "MT", {.zone = "Asia/Shanghai", .digits = 1}};
  std::vector<Task<Expected<Number, SeriesFull>>> calls;
  for (int i = 0; i < 12; ++i) calls.push_back(series.next());
  const auto numbers = when_all(std::move(calls)).get();
  for (std::size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i].has_value(), i < 9) << i;
  EXPECT_EQ(numbers[8]->text, "MT202601029");
  EXPECT_EQ(numbers[9].error().largest, 9);
  EXPECT_EQ(draw(series), "full 20260102");
  server_clock_.advance(std::chrono::seconds{3});
  EXPECT_EQ(draw(series), "MT202601031");
}

TEST_F(SeriesOnVirtualTime, AnotherDefinitionIsRefused) {
  Series first{*store_, "MT", {.zone = "Asia/Shanghai"}};
  Series other{*store_, "MT", {.zone = "Europe/Berlin"}};
  draw(first);
  try {
    draw(other);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
    EXPECT_EQ(error.effect(), Effect::none);
  }
}

using Frictions = SeriesOnVirtualTime;

TEST_F(Frictions, U26_AnotherPrefixOnAnExistingSeriesIsAMismatch) {
  Series first{*store_, "invoices", {.prefix = "MT"}};
  EXPECT_EQ(draw(first).substr(0, 2), "MT");
  Series other{*store_, "invoices", {.prefix = "XX"}};
  try {
    draw(other);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::config_mismatch);
    EXPECT_EQ(error.effect(), Effect::none);
    EXPECT_NE(error.message().find("'MT'"), std::string::npos) << error.message();
  }
  EXPECT_EQ(draw(first).back(), '2');
}

TEST_F(Frictions, U26_ASeriesMadeBeforePrefixesWereStoredGoesOn) {
  Series series{*store_, "invoices", {.prefix = "MT"}};
  draw(series);
  store_->run({"HDEL", "{invoices}:s", "prefix"}).get();
  EXPECT_EQ(draw(series).back(), '2');
}

/// Attacks, by their rows; the clock goes where it is set.
class SeriesAttacks : public testing::Test {
 protected:
  SeriesAttacks() { server_.set(before_midnight); }
  void set_clock(std::chrono::hours from_the_beginning) {
    server_.set(before_midnight + from_the_beginning);
  }
  Value state(const char* field) { return store_->run({"HGET", "{MT}:s", field}).get(); }
  /// As the programs of the first layout left it.
  void old_layout(WallTime last, std::vector<std::pair<const char*, const char*>> counts) {
    store_
        ->run({"HSET", "{MT}:s", "definition", "day;Asia/Shanghai;4", "prefix", "MT", "last",
               std::to_string(last.time_since_epoch().count())})
        .get();
    for (const auto& [day, count] : counts)
      store_->run({"SET", std::string{"{MT}:"} + day, count}).get();
  }

  std::unique_ptr<Store> store_ = engine::open_embedded({});
  SetClockStore server_{*store_};
  Series series_{server_, "MT", {.zone = "Asia/Shanghai"}};
};

using std::chrono::hours;

TEST_F(SeriesAttacks, N03_TheCountOfADayDoesNotExpire) {
  for (int i = 0; i < 3; ++i) draw(series_);
  const Value keys = store_->run({"KEYS", "{MT}*"}).get();
  ASSERT_EQ(keys.as_items().size(), 1U);
  EXPECT_EQ(store_->run({"TTL", "{MT}:s"}).get().as_integer(), -1) << "nothing can expire";
  store_->run({"DEL", "{MT}:20260102"}).get();
  EXPECT_EQ(draw(series_), "MT202601020004");
}

TEST_F(SeriesAttacks, N03_TheFirstLayoutIsTakenOver) {
  old_layout(before_midnight - hours{1}, {{"20260102", "57"}, {"20260101", "9"}});
  EXPECT_EQ(draw(series_), "MT202601020058");
  store_->run({"DEL", "{MT}:20260102"}).get();
  EXPECT_EQ(draw(series_), "MT202601020059");
  EXPECT_EQ(state("definition").as_text(), "day;Asia/Shanghai;4;2") << "old programs are refused";
  set_clock(hours{1});
  EXPECT_EQ(draw(series_), "MT202601030001");
}

TEST_F(SeriesAttacks, N03_ADayWithoutNumbersIsTakenOverFromOne) {
  old_layout(before_midnight - hours{24}, {{"20260101", "9"}});
  EXPECT_EQ(draw(series_), "MT202601020001");
}

TEST_F(SeriesAttacks, N03_AClockThatWasNeverSetGivesNoNumbers) {
  const auto refused = [](const std::function<void()>& act) {
    try {
      act();
      ADD_FAILURE() << "of 19700101";
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::server);
      EXPECT_EQ(error.effect(), Effect::none);
      EXPECT_NE(error.message().find("5 s since 1970"), std::string::npos) << error.message();
      EXPECT_NE(error.message().find("set the server's clock"), std::string::npos);
    }
  };
  constexpr WallTime never_set{std::chrono::seconds{5}};
  server_.set(never_set);
  refused([&] { draw(series_); });
  server_.set(before_midnight);
  EXPECT_EQ(draw(series_), "MT202601020001");
  server_.set(never_set);
  refused([&] { Series::repair(server_, "MT").get(); });
  EXPECT_EQ(draw(series_), "MT202601020002") << "a clock that goes back begins no other day";
}

TEST_F(SeriesAttacks, N03_ACountThatTheFirstLayoutLostIsNotBegunAnew) {
  old_layout(before_midnight - hours{1}, {});
  try {
    draw(series_);
    FAIL() << "a number that was given";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::corrupt);
    EXPECT_EQ(error.effect(), Effect::none);
    EXPECT_NE(error.message().find("number MT repair --given N"), std::string::npos)
        << error.message();
  }
  EXPECT_EQ(Series::repair(server_, "MT").get().outcome, RepairOutcome::count_unknown);
  const auto repaired = Series::repair(server_, "MT", {.given = 57}).get();
  EXPECT_EQ(repaired.outcome, RepairOutcome::repaired);
  EXPECT_EQ(draw(series_), "MT202601020058");
}

TEST_F(SeriesAttacks, N04_KeepIsChecked) {
  for (const hours keep : {hours{-48}, hours{0}, hours{23}, hours{24 * 3661}, hours::max(),
                           hours::min(), hours{2'500'000'000'000}})
    EXPECT_THROW((Series{server_, "MT", {.keep = keep}}), Error) << keep.count();
  for (const hours keep : {hours{24}, hours{24 * 3660}})
    EXPECT_NO_THROW((Series{server_, "MT", {.keep = keep}}));
}

TEST_F(SeriesAttacks, N04_SoManyDaysAreRememberedAndNoMore) {
  Series series{server_, "MT", {.zone = "Asia/Shanghai", .keep = hours{24 * 3}}};
  for (int day = 0; day < 10; ++day) {
    set_clock(hours{24 * day});
    EXPECT_EQ(draw(series).substr(10), "0001");
  }
  std::set<std::string> days;
  const Value fields = store_->run({"HKEYS", "{MT}:s"}).get();
  for (const auto& field : fields.as_items())
    if (field.as_text().starts_with("2026")) days.insert(field.as_text());
  EXPECT_EQ(days, (std::set<std::string>{"20260108", "20260109", "20260110"}));
}

TEST_F(SeriesAttacks, N09_OnlyNamesThatMeanTheSameEverywhereAreZones) {
  for (const char* const zone :
       {"localtime", "/etc/localtime", "../../../etc/localtime", "file:/etc/localtime",
        "file:Asia/Shanghai", "posixrules", "right/Asia/Shanghai", "posix/Asia/Shanghai",
        "libc:localtime", ":UTC", "Fixed/UTC+05:00:00", "Factory", "", "Asia/", "/Asia/Shanghai",
        "Asia//Shanghai", "./UTC", "UTC\n", "tzdata.zi"})
    EXPECT_THROW((Series{server_, "MT", {.zone = zone}}), Error) << zone;
  for (const char* const zone : {"UTC", "Etc/GMT+8", "America/Argentina/Buenos_Aires",
                                 "America/Port-au-Prince", "EST5EDT", "GMT0"})
    EXPECT_NO_THROW((Series{server_, "MT", {.zone = zone}})) << zone;
}

TEST_F(SeriesAttacks, N13_KeysOfASeriesHaveOneSlot) {
  for (const char* const name : {"{a", "}x", "a}", "{}x", "}{", "{}", "a{", "{a}", "{a}}"})
    EXPECT_THROW((Series{server_, name}), Error) << name;
  for (const char* const name : {"{a}x", "a{b}c", "a{b{c}"})
    EXPECT_NO_THROW((Series{server_, name})) << name;
}

TEST_F(SeriesAttacks, N13_AnIdWorkerTellsAStoreThatForgotWhatItHasGiven) {
  IdWorker ids{server_, "ids"};
  std::set<std::int64_t> given;
  for (int i = 0; i < 5; ++i) given.insert(ids.next().get());
  const std::int64_t last = *given.rbegin();
  for (const auto back : {hours{0}, hours{-1}, hours{-24 * 400}}) {
    store_->run({"FLUSHALL"}).get();
    set_clock(back);
    for (int i = 0; i < 5; ++i) {
      const std::int64_t id = ids.next().get();
      EXPECT_GT(id, last);
      EXPECT_TRUE(given.insert(id).second);
    }
  }
}

TEST_F(SeriesAttacks, E08_AGlitchIsRepairedAndNoNumberComesTwice) {
  draw(series_), draw(series_);
  set_clock(hours{24 * 40});
  EXPECT_EQ(draw(series_), "MT202602110001");
  set_clock(hours{0});
  EXPECT_EQ(draw(series_), "MT202602110002") << "it is kept for ever";

  const auto seen = Series::repair(server_, "MT", {.only_look = true}).get();
  EXPECT_EQ(seen.outcome, RepairOutcome::repaired);
  EXPECT_EQ(state("day").as_text(), "20260211") << "nothing was done";
  EXPECT_EQ(store_->run({"EXISTS", "{MT}:repairs"}).get().as_integer(), 0);

  const auto done = Series::repair(server_, "MT", {.by = "ann", .why = "NTP"}).get();
  EXPECT_EQ(done.outcome, RepairOutcome::repaired);
  EXPECT_EQ(done.last_period, "20260211");
  EXPECT_EQ(done.last_sequence, 2);
  EXPECT_EQ(done.period, "20260102");
  EXPECT_EQ(done.given, 2);
  EXPECT_EQ(done.prefix, "MT");
  EXPECT_EQ(draw(series_), "MT202601020003");
  EXPECT_EQ(Series::repair(server_, "MT").get().outcome, RepairOutcome::sound);

  const Value journal = store_->run({"XRANGE", "{MT}:repairs", "-", "+"}).get();
  ASSERT_EQ(journal.as_items().size(), 1U);
  const std::string entry = to_string(journal.as_items()[0]);
  for (const char* const part : {"20260211", "20260102", "ann", "NTP"})
    EXPECT_NE(entry.find(part), std::string::npos) << entry;

  set_clock(hours{24 * 39});
  EXPECT_EQ(draw(series_), "MT202602100001");
  set_clock(hours{24 * 40});
  EXPECT_EQ(draw(series_), "MT202602110003") << "behind those of the glitch";
}

TEST_F(SeriesAttacks, E08_AGlitchWithinADayIsRepaired) {
  set_clock(hours{-20});
  draw(series_);
  set_clock(hours{-1});
  draw(series_);
  set_clock(hours{-19});
  EXPECT_EQ(Series::repair(server_, "MT").get().given, 2);
  const auto number = series_.next().get();
  EXPECT_EQ(number->text, "MT202601020003");
  EXPECT_EQ(number->issued_at, before_midnight - hours{19});
}

TEST_F(SeriesAttacks, E08_ASeriesOfTheFirstLayoutIsRepaired) {
  old_layout(before_midnight + hours{24 * 40}, {{"20260102", "57"}, {"20260211", "3"}});
  const auto done = Series::repair(server_, "MT").get();
  EXPECT_EQ(done.outcome, RepairOutcome::repaired);
  EXPECT_EQ(draw(series_), "MT202601020058");
  for (const char* const day : {"20260102", "20260211"})
    store_->run({"DEL", std::string{"{MT}:"} + day}).get();
  set_clock(hours{24 * 40});
  EXPECT_EQ(draw(series_), "MT202602110004");
}

TEST_F(SeriesAttacks, E08_WhereACountIsUnknownNothingIsRepaired) {
  old_layout(before_midnight + hours{24 * 40}, {{"20260211", "3"}});
  EXPECT_EQ(Series::repair(server_, "MT").get().outcome, RepairOutcome::count_unknown);
  EXPECT_EQ(draw(series_), "MT202602110004");
  EXPECT_EQ(Series::repair(server_, "MT").get().outcome, RepairOutcome::count_unknown);
  EXPECT_EQ(Series::repair(server_, "MT", {.given = 12}).get().outcome, RepairOutcome::repaired);
  EXPECT_EQ(draw(series_), "MT202601020013");
  EXPECT_EQ(Series::repair(server_, "MT", {.given = 12}).get().outcome,
            RepairOutcome::more_were_given);
  EXPECT_EQ(Series::repair(server_, "MT", {.given = 20}).get().outcome, RepairOutcome::repaired);
  EXPECT_EQ(draw(series_), "MT202601020021");
  EXPECT_THROW(Series::repair(server_, "MT", {.given = 10'000}).get(), Error);
  EXPECT_THROW(Series::repair(server_, "MT", {.given = -1}).get(), Error);
  EXPECT_EQ(Series::repair(server_, "nobody").get().outcome, RepairOutcome::no_series);
}

/// Clients whose tz databases differ by hours, a clock that jumps, days that are forgotten,
/// repairs: whatever comes, no number comes twice, and none is smaller than one before but after a
/// repair.
TEST_F(SeriesAttacks, N05_WhateverClientsAndClockDoNumbersRiseAndNoneComesTwice) {
  const Calendar calendar{"Asia/Shanghai"};
  std::mt19937 random{20260102};
  const auto below = [&](unsigned most) { return static_cast<int>(random() % most); };
  for (int round = 0; round < 40; ++round) {
    const std::string name = "S" + std::to_string(round);
    std::set<std::string> given;
    std::string latest;
    WallTime now = before_midnight;
    const auto draw_as = [&](hours shift, int count) {
      auto table = calendar.around(now);
      for (int attempt = 0; attempt < 3; ++attempt) {
        for (auto& day : table.periods) day.start += shift;
        table.end += shift;
        number::DayWords words{name, table};
        for (const auto& word :
             {std::to_string(count), std::string{"9999"}, std::string{"day;Asia/Shanghai;4;2"},
              name, std::string{"day;Asia/Shanghai;4"}, std::string{"3"}})
          words.args.push_back(word);
        const std::vector<std::string_view> keys{words.keys.begin(), words.keys.end()};
        const std::vector<std::string_view> args{words.args.begin(), words.args.end()};
        const Value reply = server_.run(scripts::number_next, Words{keys}, Words{args}, {}).get();
        const auto& parts = reply.as_items();
        if (parts[0].as_text() == "range") {
          table = calendar.around(WallTime{std::chrono::microseconds{parts[1].as_integer()}});
          continue;
        }
        ASSERT_EQ(parts[0].as_text(), "issued");
        for (std::int64_t i = 0; i < parts[4].as_integer(); ++i) {
          const auto number = fmt::format("{}{:04}", parts[2].as_text(), parts[3].as_integer() + i);
          ASSERT_TRUE(given.insert(number).second) << number << " again";
          ASSERT_LT(latest, number);
          latest = number;
        }
        return;
      }
      FAIL() << "no day";
    };
    for (int step = 0; step < 200; ++step) {
      switch (below(8)) {
        case 0: now += hours{below(30)}; break;
        case 1: now += hours{below(24 * 60) - 24 * 30}; break;
        case 2: store_->run({"DEL", "{" + name + "}:20260102"}).get(); break;
        case 3: {
          const auto done = Series::repair(server_, name).get();
          if (done.outcome == RepairOutcome::repaired) latest.clear();
          break;
        }
        default: break;
      }
      server_.set(now);
      draw_as(hours{3 * below(3) - 3}, 1 + below(4));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(SeriesOnVirtualTime, BadArgumentsAreRefused) {
  EXPECT_THROW((Series{*store_, ""}), Error);
  EXPECT_THROW((Series{*store_, "MT", {.digits = 0}}), Error);
  EXPECT_THROW((Series{*store_, "MT", {.digits = 16}}), Error);
  EXPECT_THROW((Series{*store_, "MT", {.zone = "Nowhere/Land"}}), Error);
}

TEST_F(SeriesOnVirtualTime, OddNamesWork) {
  for (const std::string& name : {std::string{"a\0b", 3}, std::string(100'000, 'n'),
                                  std::string{"{tag}:x"}, std::string{"\r\n*1"}}) {
    Series series{*store_, name, {.prefix = "P", .zone = "Asia/Shanghai"}};
    EXPECT_EQ(draw(series), "P202601020001");
  }
}

TEST_F(SeriesOnVirtualTime, IdsRiseWhateverTheClockDoes) {
  IdWorker ids{*store_, "ids"};
  std::int64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t id = ids.next().get();
    EXPECT_GT(id, last);
    last = id;
    if (i % 10 == 0) server_clock_.advance(std::chrono::seconds{i * 7});
    if (i % 100 == 0) server_clock_.jump_wall(-std::chrono::seconds{30});
  }
}

TEST_F(SeriesOnVirtualTime, AWishHasItsNumbersHoweverOftenItAsks) {
  Series one{*store_, "MT"};
  Series other{*store_, "MT"};
  const auto texts = [](const auto& numbers) {
    std::vector<std::string> all;
    for (const auto& number : numbers.value()) all.push_back(number.text);
    return all;
  };
  const auto first = texts(one.next_of("ann", 3).get());
  EXPECT_EQ(first.size(), 3);
  const auto between = one.next().get();
  EXPECT_EQ(between->sequence, 4) << "without a gap";
  EXPECT_EQ(texts(other.next_of("ann", 3).get()), first) << "of another process";
  EXPECT_EQ(texts(other.next_of("bob", 1).get()).front().substr(10), "0005");
  EXPECT_EQ(other.next().get()->sequence, 6) << "an older answer does not set it back";
  EXPECT_THROW(one.next_of("ann", 2).get(), Error);
  EXPECT_THROW(one.next_of("", 1).get(), Error);
  EXPECT_THROW(one.next_of("ann", 0).get(), Error);
  EXPECT_THROW(one.next_of("carl", Series::most_of_wish + 1).get(), Error);
  server_clock_.advance(Series::wish_kept + std::chrono::milliseconds{1});
  EXPECT_NE(texts(one.next_of("ann", 3).get()), first) << "forgotten after a day";
}

TEST_F(SeriesOnVirtualTime, AWishGetsWhatADayHasLeft) {
  Series series{*store_, "MT", {.digits = 1}};
  EXPECT_EQ(series.next_of("ann", 7).get()->size(), 7);
  EXPECT_EQ(series.next_of("bob", 7).get()->size(), 2);
  EXPECT_EQ(series.next_of("bob", 7).get()->size(), 2);
  EXPECT_EQ(series.next_of("carl", 1).get().error().largest, 9);
}

TEST_F(SeriesOnVirtualTime, AnIdTellsItsSecond) {
  IdWorker ids{*store_, "ids"};
  const std::int64_t id = ids.next().get();
  const auto parts = IdWorker::parts(id);
  EXPECT_EQ(parts.issued_at, std::chrono::floor<std::chrono::seconds>(before_midnight));
  EXPECT_EQ(parts.sequence, 1U);
  EXPECT_EQ(IdWorker::compose(parts), id);
}

TEST(IdWorker, EndsByAnErrorAndNotByANegativeId) {
  VirtualClock clock{WallTime{IdWorker::epoch} + std::chrono::seconds{0x7fff'ffffLL}};
  const auto store = engine::open_embedded({.clock = &clock});
  IdWorker ids{*store, "ids"};
  EXPECT_GT(ids.next().get(), 0);
  clock.advance(std::chrono::seconds{1});
  EXPECT_THROW(ids.next().get(), Error);
}

TEST(IdWorker, RefusesAClockBeforeItsEpoch) {
  VirtualClock clock{WallTime{IdWorker::epoch} - std::chrono::seconds{1}};
  const auto store = engine::open_embedded({.clock = &clock});
  IdWorker ids{*store, "ids"};
  EXPECT_THROW(ids.next().get(), Error);
}

}  // namespace
}  // namespace sluice
