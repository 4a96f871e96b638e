#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "engine/embedded_store.hpp"
#include "sluice/id.hpp"
#include "sluice/number.hpp"
#include "sluice/when_all.hpp"

namespace sluice {
namespace {

/// The same store, seen by a program whose own clock is wrong.
class SkewedStore final : public Store {
 public:
  SkewedStore(Store& store, Clock& clock) : store_(store), clock_(clock) {}
  using Store::run;
  Task<Value> run(Words command, CallOptions options) override {
    return store_.run(command, options);
  }
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    return store_.run(script, keys, args, options);
  }
  Task<std::vector<Value>> run(Batch batch, CallOptions options) override {
    return store_.run(std::move(batch), options);
  }
  Task<Listener> listen(std::string channel, MessageHandler handler) override {
    return store_.listen(std::move(channel), std::move(handler));
  }
  Clock& clock() noexcept override { return clock_; }
  Driver* driver() noexcept override { return store_.driver(); }
  std::string describe() const override { return store_.describe(); }

 private:
  Store& store_;
  Clock& clock_;
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
