// The containers against plain ones of the standard library, through all their sizes.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <string>

#include "engine/core/command.hpp"
#include "engine/core/engine.hpp"
#include "engine/core/keyspace.hpp"
#include "engine/types/hash.hpp"
#include "engine/types/set.hpp"
#include "engine/types/sorted_set.hpp"
#include "engine/types/text.hpp"

namespace sluice::engine {
namespace {

std::string member(std::uint64_t i) { return "m" + std::to_string(i); }

/// Grows to some hundred elements and shrinks again, so that tables resize both ways.
template <class Change>
void grow_and_shrink(SeededRandom& rng, Change&& change) {
  for (int step = 0; step < 6000; ++step) {
    const bool growing = step % 3000 < 1500;
    change(rng.below(400), rng.below(10) < (growing ? 8U : 2U));
  }
}

TEST(Containers, SortedSetKeepsOrderAndRanks) {
  SeededRandom rng{7};
  SortedSet zset;
  std::map<std::string, double> scores;
  std::set<std::pair<double, std::string>> order;
  const auto forget = [&](const std::string& name) {
    const auto old = scores.find(name);
    if (old == scores.end()) return false;
    order.erase({old->second, name});
    scores.erase(old);
    return true;
  };
  grow_and_shrink(rng, [&](std::uint64_t i, bool add) {
    const auto name = member(i);
    if (add) {
      const auto score = static_cast<double>(rng.below(50));
      const bool is_new = !forget(name);
      ASSERT_EQ(zset.set(name, score, nullptr), is_new);
      scores[name] = score;
      order.emplace(score, name);
    } else {
      ASSERT_EQ(zset.erase(name, nullptr), forget(name));
    }
    ASSERT_EQ(zset.size(), order.size());
    if (order.empty()) return;
    const auto rank = rng.below(order.size());
    const auto expected = *std::next(order.begin(), static_cast<std::ptrdiff_t>(rank));
    ASSERT_EQ(zset.at(rank).member, expected.second);
    ASSERT_EQ(zset.rank(expected.second), rank);
    ASSERT_EQ(zset.score(expected.second), expected.first);
  });
  std::vector<std::string> forward, backward;
  zset.for_range(0, zset.size(), false,
                 [&](const Scored& item) { forward.emplace_back(item.member); });
  zset.for_range(0, zset.size(), true,
                 [&](const Scored& item) { backward.emplace_back(item.member); });
  ASSERT_EQ(forward.size(), order.size());
  EXPECT_TRUE(std::ranges::equal(forward, order, {}, {}, &std::pair<double, std::string>::second));
  EXPECT_TRUE(
      std::ranges::equal(forward.rbegin(), forward.rend(), backward.begin(), backward.end()));
}

TEST(Containers, SortedSetRemovesRanges) {
  SortedSet zset;
  for (int i = 0; i < 1000; ++i) zset.set(member(static_cast<std::uint64_t>(i)), i, nullptr);
  zset.erase_range(100, 900, nullptr);
  EXPECT_EQ(zset.size(), 200U);
  EXPECT_EQ(zset.at(99).score, 99);
  EXPECT_EQ(zset.at(100).score, 900);
  EXPECT_FALSE(zset.score("m500"));
  EXPECT_EQ(zset.count_while([](const Scored& item) { return item.score < 950; }), 150U);
}

TEST(Containers, HashAndSetKeepTheirElements) {
  SeededRandom rng{8};
  Hash hash;
  Set set;
  std::map<std::string, std::string> fields;
  grow_and_shrink(rng, [&](std::uint64_t i, bool add) {
    const auto name = member(i);
    if (add) {
      const auto value = std::to_string(rng.below(1000));
      ASSERT_EQ(hash.set(name, value, nullptr), !fields.contains(name));
      ASSERT_EQ(set.add(name, nullptr), !fields.contains(name));
      fields[name] = value;
    } else {
      const bool there = fields.erase(name) > 0;
      ASSERT_EQ(hash.erase(name, nullptr), there);
      ASSERT_EQ(set.erase(name, nullptr), there);
    }
    ASSERT_EQ(hash.size(), fields.size());
    ASSERT_EQ(set.size(), fields.size());
  });
  std::map<std::string, std::string> seen;
  hash.for_each([&](const Hash::Field& field) { seen[field.name] = field.value; });
  EXPECT_EQ(seen, fields);
  for (const auto& [name, value] : fields) EXPECT_TRUE(set.contains(name));
}

TEST(Containers, SetOfNumbersGoesThroughItsForms) {
  Set set;
  for (int i = 0; i < 512; ++i) EXPECT_TRUE(set.add(std::to_string(i), nullptr));
  EXPECT_EQ(set.encoding(), "intset");
  EXPECT_FALSE(set.add("17", nullptr));
  EXPECT_TRUE(set.add("512", nullptr));
  EXPECT_EQ(set.encoding(), "hashtable");
  Set mixed;
  mixed.add("1", nullptr);
  EXPECT_TRUE(mixed.add("word", nullptr));
  EXPECT_EQ(mixed.encoding(), "listpack");
  EXPECT_TRUE(mixed.contains("1"));
  EXPECT_FALSE(mixed.contains("01"));
}

TEST(Containers, AScanMissesNothingHoweverTheTableIsResized) {
  const bool loading = false;
  for (const bool grow : {true, false}) {
    std::int64_t soonest_ms = Engine::no_expiry;
    Undo* undo = nullptr;
    Keyspace keys{loading, soonest_ms, undo};
    for (std::uint64_t i = 0; i < 3000; ++i) keys.put(member(i), std::string{"v"});
    std::set<std::string, std::less<>> seen;
    std::uint64_t cursor = 0, round = 0;
    do {
      cursor = keys.scan(cursor, [&](const Entry& entry) { seen.emplace(entry.key()); });
      ++round;
      if (grow) {
        for (std::uint64_t i = 0; i < 8 && round < 4000; ++i)
          keys.put("new" + std::to_string(round * 8 + i), std::string{});
      } else if (100 + round < 3000) {
        keys.erase(member(100 + round));
      }
      ASSERT_LT(round, 200'000U);
    } while (cursor != 0);
    for (std::uint64_t i = 0; i < 100; ++i) EXPECT_TRUE(seen.contains(member(i))) << member(i);
    if (grow) {
      for (std::uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(seen.contains(member(i))) << member(i);
    }
  }
}

TEST(Containers, KeysEndInTheOrderOfTheirTimes) {
  const bool loading = false;
  std::int64_t soonest_ms = Engine::no_expiry;
  Undo* undo = nullptr;
  Keyspace keys{loading, soonest_ms, undo};
  SeededRandom rng{9};
  std::map<std::string, std::int64_t> times;
  grow_and_shrink(rng, [&](std::uint64_t i, bool add) {
    const auto name = member(i);
    if (add) {
      if (!times.contains(name)) keys.put(name, std::string{});
      times[name] = static_cast<std::int64_t>(1 + rng.below(100'000));
      keys.set_expiry_ms(name, times[name]);
    } else {
      keys.erase(name);
      times.erase(name);
    }
  });
  ASSERT_EQ(keys.expiring(), times.size());
  std::multiset<std::int64_t> order;
  for (const auto& [name, at] : times) order.insert(at);
  for (const auto at : order) {
    EXPECT_EQ(keys.first_expiry_ms(), at);
    EXPECT_FALSE(keys.expire_first(at));  // strictly: at its very time it is still there
    EXPECT_TRUE(keys.expire_first(at + 1));
    EXPECT_EQ(times.at(keys.take_expired().front()), at);
  }
  EXPECT_EQ(keys.size(), 0U);
}

TEST(Containers, CopiesAreTheirOwn) {
  auto hash = std::make_unique<Hash>();
  hash->set("a", "1", nullptr);
  Object original{std::move(hash)};
  Object copy = copy_of(original);
  as<Hash>(copy)->set("a", "2", nullptr);
  EXPECT_EQ(*as<Hash>(original)->find("a"), "1");
}

TEST(NumberText, DoublesAreShortAndExact) {
  struct Row {
    double value;
    std::string_view text;
  };
  const Row rows[] = {{3, "3"},
                      {0.1, "0.1"},
                      {-0.0, "-0"},
                      {1e21, "1e+21"},
                      {1e20, "1e+20"},
                      {123456.789, "123456.789"},
                      {1e-7, "1e-7"},
                      {0.0001, "0.0001"},
                      {1.5e300, "1.5e+300"},
                      {-2.5e-10, "-2.5e-10"},
                      {1.0 / 3, "0.3333333333333333"},
                      {std::numeric_limits<double>::infinity(), "inf"},
                      {-std::numeric_limits<double>::infinity(), "-inf"},
                      {5e-324, "5e-324"},
                      {1.7976931348623157e308, "1.7976931348623157e+308"}};
  for (const auto& row : rows) EXPECT_EQ(DoubleText{row.value}.view(), row.text);
}

TEST(NumberText, IntegersAreStrict) {
  EXPECT_EQ(parse_integer("-9223372036854775808"), std::numeric_limits<std::int64_t>::min());
  for (const auto text :
       {"", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "9223372036854775808", "0x1"})
    EXPECT_FALSE(parse_integer(text)) << text;
  EXPECT_EQ(parse_integer("0"), 0);
}

}  // namespace
}  // namespace sluice::engine
