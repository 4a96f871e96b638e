#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <fstream>
#include <string>
#include <thread>

#include "sluice/number.hpp"
#include "sluice/open.hpp"
#include "sluice/when_all.hpp"
#include "support/comes_true.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/server_pair.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

const SeriesOptions shanghai{.zone = "Asia/Shanghai"};

/// `threads` threads, released together, draw one number each.
std::vector<std::string> draw_together(Store& store, int threads) {
  Series series{store, "MT", shanghai};
  std::barrier start{threads};
  std::vector<std::string> codes(static_cast<std::size_t>(threads));
  std::vector<std::jthread> crew;
  for (auto& code : codes) {
    crew.emplace_back([&] {
      start.arrive_and_wait();
      const auto number = series.next().get();
      code = number ? number->text : "full";
    });
  }
  crew.clear();
  return codes;
}

/// Distinct, one day, and 1..n without a gap.
void expect_dense(std::vector<std::string> codes) {
  std::sort(codes.begin(), codes.end());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    ASSERT_EQ(codes[i].size(), 14U) << codes[i];
    EXPECT_EQ(codes[i].substr(0, 10), codes[0].substr(0, 10));
    EXPECT_EQ(std::stoul(codes[i].substr(10)), i + 1);
  }
}

TEST(SeriesBarrier, AHundredThreadsGetAHundredDistinctCodes) {
  test::RedisServer server;
  const auto store = open(server.url());
  test::PlainClient{server.port()}.command({"FLUSHALL"});
  expect_dense(draw_together(*store, 100));
}

TEST(SeriesBarrier, FourProcessesOfAHundredThreads) {
  test::RedisServer server;
  const test::TempDir folder;
  std::vector<test::Process> crew;
  for (int i = 0; i < 4; ++i) {
    crew.emplace_back([&server, &folder, i] {
      const auto store = open(server.url());
      // All processes start together: each says that it is there, and waits for the last one.
      const std::int64_t there = store->run({"INCR", "there"}).get().as_integer();
      if (there == 4) store->run({"RPUSH", "go", "1", "2", "3", "4"}).get();
      store->run({"BLPOP", "go", "10"}).get();
      const auto codes = draw_together(*store, 100);
      std::ofstream file{folder / std::to_string(i)};
      for (const auto& code : codes) file << code << '\n';
      return file.good() ? 0 : 1;
    });
  }
  std::vector<std::string> codes;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(crew[static_cast<std::size_t>(i)].wait(), 0);
    std::ifstream file{folder / std::to_string(i)};
    for (std::string code; std::getline(file, code);) codes.push_back(code);
  }
  ASSERT_EQ(codes.size(), 400U);
  expect_dense(codes);
}

TEST(Series, CallersTravelTogether) {
  test::RedisServer server;
  const auto store = open(server.url());
  Series series{*store, "MT", shanghai};
  test::PlainClient side{server.port()};
  series.next().get();
  std::vector<Task<Expected<Number, SeriesFull>>> calls;
  for (int i = 0; i < 1000; ++i) calls.push_back(series.next());
  side.command({"CONFIG", "RESETSTAT"});
  const auto numbers = when_all(std::move(calls)).get();
  const std::string stats = side.command({"INFO", "commandstats"}).as_text();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(numbers[i]->sequence, static_cast<std::int64_t>(i) + 2);
  // The first goes alone, and while it is under way the others gather; more than two flights only
  // where replies come before the last caller has asked.
  const std::string_view counter = "cmdstat_evalsha:calls=";
  const auto at = stats.find(counter);
  ASSERT_NE(at, std::string::npos) << stats;
  EXPECT_LE(std::stoi(stats.substr(at + counter.size())), 50) << stats;
}

TEST(Series, IsOneHashThatDoesNotExpire) {
  test::RedisServer server;
  const auto store = open(server.url());
  Series series{*store, "MT", shanghai};
  const auto number = series.next().get();
  test::PlainClient side{server.port()};
  const Value found = side.command({"KEYS", "*"});
  ASSERT_EQ(found.as_items().size(), 1U);
  EXPECT_EQ(found.as_items()[0].as_text(), "{MT}:s");
  EXPECT_EQ(side.command({"TTL", "{MT}:s"}).as_integer(), -1);
  EXPECT_EQ(side.command({"HGET", "{MT}:s", "day"}).as_text(), number->period);
}

TEST(SeriesAfterAFailover, TheNewServerIsToldAtOnceWhatWasGiven) {
  test::ServerPair servers;
  const auto store = open(servers.url());
  Series series{*store, "MT"};
  series.next().get();
  servers.wait_for_copy_of("{MT}:s");
  servers.cut_off();
  std::int64_t lost = 0;
  for (int i = 0; i < 5; ++i) lost = series.next().get()->sequence;
  servers.replace_primary();

  const auto other = open(servers.url());
  EXPECT_TRUE(test::comes_true([&] {
    return other->run({"HGET", "{MT}:s", "taken"}).get().as_text() == std::to_string(lost);
  })) << "nobody has asked for a number since";
  EXPECT_EQ((Series{*other, "MT"}.next().get()->sequence), lost + 1);
}

TEST(SeriesAfterAFailover, ADurableNumberIsGivenWhenAReplicaHasItAndNeverAgain) {
  test::ServerPair servers;
  const SeriesOptions durable{.durability = {.replicas = 1, .within = std::chrono::seconds{20}}};
  auto store = open(servers.url());
  std::int64_t given = 0;
  for (int i = 0; i < 3; ++i)
    given = Series{*store, "MT", durable}.next().get()->sequence;  // each has no floor of its own
  servers.cut_off();
  try {
    const SeriesOptions hasty{
        .durability = {.replicas = 1, .within = std::chrono::milliseconds{300}}};
    Series{*store, "MT", hasty}.next().get();
    FAIL() << "no replica has it";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::unsynced);
    EXPECT_EQ(error.effect(), Effect::done);
  }
  store.reset();
  servers.replace_primary();
  servers.add_replica();
  store = open(servers.url());
  EXPECT_EQ((Series{*store, "MT", durable}.next().get()->sequence), given + 1);
}

}  // namespace
}  // namespace sluice
