/// SharedBloomFilter on a real server: bit by bit beside a Java peer, and under hostile
/// circumstances.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "sluice/metrics.hpp"
#include "sluice/open.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "support/comes_true.hpp"
#include "support/fault_proxy.hpp"
#include "support/java_peer.hpp"
#include "support/redis_server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::JavaPeer;

class SharedBloom : public testing::Test {
 protected:
  std::unique_ptr<Store> opened() const {
    return open(server_.url() + "?timeout=30s&connect_timeout=30s");
  }
  Value ask(std::initializer_list<std::string_view> words) {
    return test::PlainClient{server_.port()}.command(words);
  }

  test::RedisServer server_;
  std::unique_ptr<Store> store_ = opened();
};

constexpr SharedBloomSize small{.expected = 100, .error_rate = 0.03};  // 729 bits, 5 hashes

struct Vector {
  BloomKey key;
  BloomCodec codec;
  std::vector<std::uint32_t> indexes;
};

std::vector<Vector> vectors() {
  static const std::string a20(20, 'a');
  static const std::string a32(32, 'a');
  static const std::string a40(40, 'a');
  using enum BloomCodec;
  return {
      {"", string, {386, 57, 498, 169, 610}},       {"1", string, {170, 14, 239, 28, 253}},
      {1, string, {170, 14, 239, 28, 253}},         {"123", string, {334, 496, 156, 318, 652}},
      {"hello", string, {662, 410, 398, 146, 134}}, {a20, string, {428, 497, 251, 320, 19}},
      {a32, string, {37, 518, 610, 307, 399}},      {a40, string, {234, 536, 96, 343, 632}},
      {"123", kryo5, {706, 256, 288, 567, 599}},    {"hello", kryo5, {140, 205, 400, 465, 660}}};
}

TEST_F(SharedBloom, BitsAndConfigAreRedissons) {
  for (const auto& [key, codec, indexes] : vectors()) {
    SharedBloomFilter filter{*store_, "users", {.codec = codec}};
    ASSERT_TRUE(filter.try_create(small).get());
    EXPECT_TRUE(filter.add(key).get());
    std::string bits(92, '\0');
    for (const auto index : indexes)
      bits[index / 8] = static_cast<char>(bits[index / 8] | (0x80 >> index % 8));
    while (bits.back() == '\0') bits.pop_back();
    EXPECT_EQ(ask({"GET", "users"}).as_text(), bits);
    const Value config = ask({"HGETALL", "{users}:config"});
    std::vector<std::string> fields;
    for (const auto& field : config.as_items()) fields.push_back(field.as_text());
    EXPECT_EQ(fields,
              (std::vector<std::string>{"size", "729", "hashIterations", "5", "expectedInsertions",
                                        "100", "falseProbability", "0.03", "sluice:bits", "1"}));
    EXPECT_EQ(ask({"DBSIZE"}).as_integer(), 2);
    EXPECT_TRUE(filter.remove().get());
  }
}

TEST_F(SharedBloom, ANameWithItsOwnTagHasNoSecondPairOfBraces) {
  SharedBloomFilter filter{*store_, "{shop}:users"};
  ASSERT_TRUE(filter.try_create(small).get());
  EXPECT_EQ(ask({"EXISTS", "{shop}:users:config"}).as_integer(), 1);
}

TEST_F(SharedBloom, JavaAndWeShareOneFilter) {
  JavaPeer java{server_.port()};
  JavaPeer::BloomFilter theirs{java, "users"};
  SharedBloomFilter ours{*store_, "users"};
  EXPECT_EQ(theirs.add({0, 0, 0, 0, 0}).type(), Value::Type::error) << "not initialised";
  ASSERT_EQ(theirs.try_init("729", "5", "100", "0.03").as_integer(), 1);
  EXPECT_FALSE(ours.try_create(small).get());
  ours.ensure_created(small).get();
  for (const auto& [key, codec, indexes] : vectors()) {
    if (codec != BloomCodec::string || !std::holds_alternative<std::string_view>(key.content()))
      continue;
    const bool by_us = indexes[0] % 2 == 0;
    if (by_us) {
      EXPECT_TRUE(ours.add(key).get());
      EXPECT_EQ(theirs.add(indexes).as_integer(), 0);
    } else {
      EXPECT_EQ(theirs.add(indexes).as_integer(), 1);
      EXPECT_FALSE(ours.add(key).get());
    }
    EXPECT_TRUE(ours.contains(key).get());
    EXPECT_EQ(theirs.contains(indexes).as_integer(), 1);
  }
}

TEST_F(SharedBloom, AConfigMismatchIsAsRedissonTreatsItAndWeFollow) {
  JavaPeer java{server_.port()};
  JavaPeer::BloomFilter theirs{java, "users"};
  SharedBloomFilter ours{*store_, "users"};
  ASSERT_TRUE(ours.try_create(small).get());
  EXPECT_EQ(theirs.try_init("1", "1", "1", "0.5").as_integer(), 0);  // takes what is there
  EXPECT_EQ(theirs.add({334, 496, 156, 318, 652}).as_integer(), 1);
  EXPECT_TRUE(ours.contains("123").get());

  // Another Java process defines it anew.
  ask({"DEL", "users", "{users}:config"});
  JavaPeer::BloomFilter other{java, "users"};
  ASSERT_EQ(other.try_init("9585058", "7", "1000000", "0.01").as_integer(), 1);
  const Value refused = theirs.add({334, 496, 156, 318, 652});
  ASSERT_TRUE(refused.is_error());
  EXPECT_NE(refused.as_text().find("Bloom filter config has been changed"), std::string::npos);
  EXPECT_EQ(theirs.contains({334, 496, 156, 318, 652}).as_integer(), 0);

  const auto before = metrics().bloom_followed.load();
  EXPECT_FALSE(ours.contains("123").get());
  EXPECT_TRUE(ours.add("123").get());
  EXPECT_EQ(metrics().bloom_followed.load(), before + 1);
  EXPECT_EQ(
      other.contains({521240, 1161368, 4661478, 5301606, 5822846, 6462974, 378026}).as_integer(),
      1);
}

TEST_F(SharedBloom, ABulkOfAThousandIsOneRoundTripAndOneScript) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create({.expected = 3'000'000, .error_rate = 0.01}).get());
  (void)filter.contains("first").get();  // reads the definition, and teaches the script
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back(std::to_string(i));
  const auto bulk = bloom_keys(keys);
  ask({"CONFIG", "RESETSTAT"});
  const auto writes = metrics().redis_commands.load();
  (void)filter.contains(bulk).get();
  EXPECT_EQ(metrics().redis_commands.load(), writes + 1);
  const std::string stats = ask({"INFO", "commandstats"}).as_text();
  EXPECT_NE(stats.find("cmdstat_evalsha:calls=1,"), std::string::npos) << stats;
}

TEST_F(SharedBloom, AManyTimesLargerBulkThanTheFilterReadsItsBits) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create({.expected = 5000, .error_rate = 0.01}).get());
  std::vector<std::string> keys;
  for (int i = 0; i < 1000; ++i) keys.push_back(std::to_string(i));
  const auto all = bloom_keys(keys);
  (void)filter.add(std::span{all}.first(500)).get();
  (void)filter.contains("first").get();
  ask({"CONFIG", "RESETSTAT"});
  const auto answers = filter.contains(all).get();
  EXPECT_EQ(std::count(answers.begin(), answers.begin() + 500, true), 500);
  EXPECT_LT(std::count(answers.begin() + 500, answers.end(), true), 25);
  const std::string stats = ask({"INFO", "commandstats"}).as_text();
  EXPECT_EQ(stats.find("evalsha"), std::string::npos) << stats;
  EXPECT_NE(stats.find("cmdstat_getrange:calls=1,"), std::string::npos) << stats;

  ask({"DEL", "users", "{users}:config"});
  EXPECT_THROW((void)filter.contains(all).get(), Error);
  ASSERT_TRUE(filter.try_create({.expected = 6000, .error_rate = 0.01}).get());
  EXPECT_EQ(std::ranges::count(filter.contains(all).get(), true), 0);
}

TEST_F(SharedBloom, AUserWhoMayNotIsTold) {
  SharedBloomFilter{*store_, "users"}.try_create(small).get();
  ask({"ACL", "SETUSER", "reader", "on", ">pw", "~*", "+evalsha", "+eval", "+hmget", "+getbit",
       "+hello", "+auth", "+client", "+script", "+ping", "+select", "resetchannels"});
  const auto url = "redis://reader:pw@127.0.0.1:" + std::to_string(server_.port());
  const auto theirs = open(url);
  SharedBloomFilter filter{*theirs, "users"};
  EXPECT_FALSE(filter.contains("anna").get());
  try {
    (void)filter.add("anna").get();
    FAIL() << "added";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::authentication);
    EXPECT_NE(failure.message().find("users"), std::string::npos) << failure.message();
  }
  ask({"ACL", "SETUSER", "reader", "+setbit", "+hget"});  // and may still not publish
  EXPECT_TRUE(filter.add("anna").get());
  EXPECT_TRUE(filter.contains("anna").get());
}

TEST_F(SharedBloom, ARebuildEndsWithItsLease) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create(small).get());
  auto rebuild = filter.try_rebuild(small, {.lease = 1h}).get();
  ASSERT_TRUE(rebuild.has_value());
  EXPECT_TRUE(filter.add("both").get());
  for (const char* const key : {"{users}:next", "{users}:next:config"}) {
    EXPECT_GT(ask({"PTTL", key}).as_integer(), 30 * 60 * 1000) << key;
    ask({"PEXPIRE", key, "1"});
  }
  EXPECT_TRUE(comes_true([&] { return ask({"EXISTS", "{users}:next:config"}).as_integer() == 0; }));
  EXPECT_EQ(ask({"EXISTS", "{users}:next"}).as_integer(), 0);
  EXPECT_TRUE(filter.add("one").get());
  EXPECT_TRUE(filter.contains("both").get());
  auto another = filter.try_rebuild(small).get();
  ASSERT_TRUE(another.has_value());
  EXPECT_THROW(rebuild->finish().get(), Error) << "another has begun since";
  rebuild.reset();
  another->add(std::span<const BloomKey>{}).get();
  another->finish().get();
}

TEST_F(SharedBloom, ARebuildThatWasEvictedIsGivenUp) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create(small).get());
  auto rebuild = filter.try_rebuild(small, {.lease = 1h}).get();
  ASSERT_TRUE(rebuild.has_value());
  EXPECT_TRUE(filter.add("before").get());
  ask({"DEL", "{users}:next"});
  EXPECT_TRUE(filter.add("after").get());
  EXPECT_FALSE(filter.add("after").get());
  EXPECT_TRUE(filter.contains("before").get());
  EXPECT_THROW(rebuild->finish().get(), Error);
  EXPECT_TRUE(filter.try_rebuild(small).get().has_value());
}

TEST_F(SharedBloom, ARebuildGivesWayToAFilterThatDoesNotKnowOfIt) {
  SharedBloomFilter filter{*store_, "users"};
  auto rebuild = filter.try_rebuild(small).get();
  ASSERT_TRUE(rebuild.has_value());
  ASSERT_TRUE(filter.try_create({.expected = 500}).get());  // knows of it
  EXPECT_TRUE(filter.add("ours").get());
  rebuild->finish().get();
  EXPECT_TRUE(filter.contains("ours").get());

  rebuild = filter.try_rebuild(small).get();
  ASSERT_TRUE(rebuild.has_value());
  ask({"DEL", "users", "{users}:config"});
  JavaPeer java{server_.port()};
  JavaPeer::BloomFilter theirs{java, "users"};
  ASSERT_EQ(theirs.try_init("729", "5", "100", "0.03").as_integer(), 1);
  EXPECT_EQ(theirs.add({334, 496, 156, 318, 652}).as_integer(), 1);
  EXPECT_THROW(rebuild->finish().get(), Error);
  EXPECT_TRUE(filter.contains("123").get());
}

TEST_F(SharedBloom, ANextThatWasEvictedNeverTakesThePlace) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create(small).get());
  (void)filter.add("kept").get();
  auto rebuild = filter.try_rebuild(small).get();
  ASSERT_TRUE(rebuild.has_value());
  ask({"DEL", "{users}:next"});
  EXPECT_THROW(rebuild->finish().get(), Error);
  EXPECT_TRUE(filter.contains("kept").get());
}

TEST_F(SharedBloom, ALocalCopySurvivesAnOutageAndKnowsAfterItWhatItMissed) {
  using Door = test::FaultProxy::Door;
  test::FaultProxy way{server_.port()};
  const auto store = open(way.url() + "?timeout=30s&connect_timeout=30s");
  SharedBloomFilter filter{*store, "users"};
  ASSERT_TRUE(filter.try_create(small).get());
  (void)filter.add("before").get();
  const auto copy = filter.local_copy({.refresh = 24h}).get();
  way.set_door(Door::closed);  // the copy is back after the peer has written, not before
  server_.restart();
  test::PlainClient side{server_.port()};
  JavaPeer java{server_.port()};
  JavaPeer::BloomFilter theirs{java, "users"};
  theirs.read_config();
  EXPECT_EQ(theirs.add({334, 496, 156, 318, 652}).as_integer(), 1);  // tells nobody
  EXPECT_TRUE(copy.contains("before"));
  way.set_door(Door::open);
  EXPECT_TRUE(comes_true([&] { return copy.contains("123"); })) << "a gap is made good";
}

TEST_F(SharedBloom, ALocalCopyThatCannotBeReadStaysAndCounts) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create(small).get());
  (void)filter.add("before").get();
  auto copy = filter.local_copy({.refresh = 24h}).get();
  ask({"HSET", "{users}:config", "size", "lies"});
  const auto failures = metrics().bloom_copy_failures.load();
  EXPECT_THROW(copy.refresh().get(), Error);
  EXPECT_EQ(metrics().bloom_copy_failures.load(), failures + 1);
  EXPECT_TRUE(copy.contains("before"));
}

TEST_F(SharedBloom, AChildOfForkIsToldThatNothingKeepsItsCopyUp) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create(small).get());
  const auto copy = filter.local_copy({.refresh = 24h}).get();
  test::Process child{[&] {
    try {
      return copy.contains("late") ? 1 : 2;
    } catch (const Error& failure) {
      return failure.errc() == Errc::closed ? 0 : 3;
    }
  }};
  EXPECT_EQ(child.wait(), 0);
  EXPECT_FALSE(copy.contains("late"));
}

TEST_F(SharedBloom, FlushallIsSaidAndNotTakenForAnEmptyFilter) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create(small).get());
  auto copy = filter.local_copy({.refresh = 10ms}).get();
  ask({"FLUSHALL"});
  EXPECT_TRUE(comes_true([&] {
    try {
      (void)copy.contains("a");
      return false;
    } catch (const Error& failure) {
      return failure.errc() == Errc::closed;
    }
  }));
  ASSERT_TRUE(filter.try_create(small).get());
  EXPECT_TRUE(comes_true([&] {
    try {
      return !copy.contains("a");
    } catch (const Error&) {
      return false;
    }
  })) << "a filter that is back is followed";
}

TEST_F(SharedBloom, MessagesThatLieAreHarmless) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create(small).get());
  const auto copy = filter.local_copy({.refresh = 24h}).get();
  const std::string channel = "sluice_bloom:{users}";
  for (const std::string& payload :
       {std::string{"x"}, std::string(15, 'x'), std::string(17, 'y'), std::string(1 << 20, 'z')})
    EXPECT_EQ(ask({"PUBLISH", channel, payload}).as_integer(), 1);
  EXPECT_TRUE(filter.add("anna").get());
  EXPECT_TRUE(comes_true([&] { return copy.contains("anna"); }));
}

TEST_F(SharedBloom, ThreadsAddAndAskTogether) {
  SharedBloomFilter filter{*store_, "users"};
  ASSERT_TRUE(filter.try_create({.expected = 500, .error_rate = 0.01, .scalable = true}).get());
  const auto copy = filter.local_copy({.refresh = 10ms}).get();
  std::atomic<int> missing{0};
  std::vector<std::jthread> crew;
  for (int thread = 0; thread < 4; ++thread)
    crew.emplace_back([&, thread] {
      for (int i = 0; i < 40; ++i) {
        std::vector<std::string> keys;
        for (int j = 0; j < 10; ++j)
          keys.push_back(std::to_string(thread) + ':' + std::to_string(10 * i + j));
        (void)filter.add(bloom_keys(keys)).get();
        for (const bool there : filter.contains(bloom_keys(keys)).get()) missing += there ? 0 : 1;
        (void)copy.contains(keys.front());
      }
    });
  crew.clear();
  EXPECT_EQ(missing, 0);
  const auto info = filter.info().get();
  EXPECT_EQ(info.links.size(), 3U) << "500, 1000, 2000";
  EXPECT_NEAR(static_cast<double>(info.keys), 1600, 120) << "an older link may seem to have a key";
}

}  // namespace
}  // namespace sluice
