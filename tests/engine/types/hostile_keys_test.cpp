// Keys that an attacker chose, because they collide in a hash that he knows, cost no more than any
// others: counted in comparisons, of all the tables that hold keys from outside.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/core/keyspace.hpp"
#include "engine/core/recent_hashes.hpp"
#include "engine/types/chained_table.hpp"
#include "engine/types/hash.hpp"
#include "engine/types/set.hpp"
#include "engine/types/sorted_set.hpp"

namespace sluice::engine {
namespace {

constexpr std::size_t many = 60'000;
using Keys = std::vector<std::string>;

/// The hash that this engine had: without a key, so that anybody can make it fold to zero.
namespace without_key {

__extension__ using Wide = unsigned __int128;
constexpr std::uint64_t odd1 = 0xa0761d6478bd642fULL;
constexpr std::uint64_t odd2 = 0xe7037ed1a0b428dbULL;

std::uint64_t folded(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load(const char* at) {
  std::uint64_t number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

/// Of texts of at least eight bytes.
std::uint64_t hash(std::string_view text) {
  const char* at = text.data();
  auto left = text.size();
  std::uint64_t hash = left * odd2 ^ odd1;
  for (; left > 16; at += 16, left -= 16) hash = folded(load(at) ^ odd1, load(at + 8) ^ hash);
  return folded(folded(load(at) ^ odd1, load(at + left - 8) ^ hash) ^ odd2, hash ^ odd1);
}

/// A skip list drew its levels from the hash.
int levels(std::string_view text) {
  const auto own = hash(text);
  const auto mixed = (own ^ (own >> 31)) * 0x94d049bb133111ebULL;
  return 1 + __builtin_clzll(mixed | 1) / 2;
}

}  // namespace without_key

std::string bytes_of(std::uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

Keys made(const std::function<std::string(std::uint64_t)>& make) {
  Keys keys;
  for (std::uint64_t i = 0; keys.size() < many; ++i)
    if (auto key = make(i); !key.empty()) keys.push_back(std::move(key));
  return keys;
}

struct Attack {
  std::string_view name;
  Keys keys;
};

/// Each of one hash, or of one level.
std::vector<Attack> attacks() {
  using namespace without_key;
  const auto start = 24 * odd2 ^ odd1;  // of a text of 24 bytes
  return {
      {"blocks of 16 bytes that begin with odd1",
       made([](auto i) { return bytes_of(odd1) + bytes_of(i) + bytes_of(odd1) + "the tail"; })},
      {"one such block", made([](auto i) { return bytes_of(odd1) + bytes_of(i); })},
      {"the second half is what the hash is then",
       made([&](auto i) { return bytes_of(i) + bytes_of(start) + "the tail"; })},
      {"members of one level", made([](auto i) {
         auto key = "order-" + std::to_string(1'000'000 + i);
         return levels(key) == 1 ? key : "";
       })},
  };
}

Keys plain() {
  return made([](auto i) { return "request:" + std::to_string(i * 0x9e3779b97f4a7c15ULL); });
}

/// Comparisons that it takes to find each key once: those of a bucket are compared in turn.
template <class Table>
std::size_t comparisons(const Table& table) {
  std::size_t all = 0;
  std::uint64_t cursor = 0;
  do {
    std::size_t in_bucket = 0;
    cursor = table.scan(cursor, [&](const auto&) { ++in_bucket; });
    all += in_bucket * (in_bucket + 1) / 2;
  } while (cursor != 0);
  return all;
}

std::size_t of_keyspace(const Keys& keys) {
  const bool loading = false;
  std::int64_t soonest_ms = 0;
  Undo* const undo = nullptr;
  Keyspace keyspace{loading, soonest_ms, undo};
  for (const auto& key : keys) keyspace.put(key, std::string{});
  return comparisons(keyspace);
}
std::size_t of_hash(const Keys& keys) {
  Hash hash;
  for (const auto& key : keys) hash.set(key, "", nullptr);
  return comparisons(hash);
}
std::size_t of_set(const Keys& keys) {
  Set set;
  for (const auto& key : keys) set.add(key, nullptr);
  return comparisons(set);
}
std::size_t of_sorted_set(const Keys& keys) {
  SortedSet sorted;
  for (const auto& key : keys) sorted.set(key, 0, nullptr);
  return comparisons(sorted);
}
/// Steps through the skip list to a thousand members.
std::size_t of_skip_list(const Keys& keys) {
  SortedSet sorted;
  for (const auto& key : keys) sorted.set(key, 0, nullptr);
  std::size_t steps = 0;
  for (std::size_t rank = 0; rank < keys.size(); rank += keys.size() / 1000) {
    const std::string member{sorted.at(rank).member};
    sorted.count_while([&](const Scored& other) { return ++steps, other.member < member; });
  }
  return steps;
}

TEST(HostileKeys, E07_CostNoMoreThanOthers) {
  struct Row {
    std::string_view table;
    std::size_t (*cost)(const Keys&);
  };
  const Row rows[] = {{"keys", of_keyspace},
                      {"fields", of_hash},
                      {"members of a set", of_set},
                      {"members of a sorted set", of_sorted_set},
                      {"ranks of a sorted set", of_skip_list}};
  const auto others = plain();
  const auto all = attacks();
  for (const auto& row : rows) {
    const auto usual = row.cost(others);
    for (const auto& attack : all)
      EXPECT_LE(static_cast<double>(row.cost(attack.keys)), 1.5 * static_cast<double>(usual))
          << row.table << ": " << attack.name;
  }
}

TEST(HostileKeys, E07_TheAttacksAreRealOnes) {
  const auto all = attacks();
  for (std::size_t i = 0; i < 3; ++i) {
    std::set<std::uint64_t> hashes;
    for (const auto& key : all[i].keys) hashes.insert(without_key::hash(key));
    EXPECT_EQ(hashes.size(), 1U) << all[i].name;
  }
  for (const auto& attack : all)
    EXPECT_EQ(std::set(attack.keys.begin(), attack.keys.end()).size(), many) << attack.name;
}

TEST(HostileKeys, LevelsOfASkipListAreDrawnAnewForTheSameMembers) {
  SkipList list;
  std::set<std::uint32_t> levels;
  for (int i = 0; i < 1000; ++i) levels.insert(list.draw_levels());
  EXPECT_GE(levels.size(), 4U);  // 1000 draws without the fourth level: 10^-7
  EXPECT_EQ(*levels.begin(), 1U);
}

TEST(RecentHashes, AreThoseOfTheKeysAlsoOfKeysThatShareAPlace) {
  RecentHashes recent;
  for (int times = 0; times < 2; ++times)
    for (std::size_t size = 0; size < 70; ++size)
      for (const char front : {'a', 'b', '\0'}) {
        const auto key = std::string(size > 0 ? 1 : 0, front) + std::string(size, 'x');
        ASSERT_EQ(recent.of(key), hash_of(key)) << key.size() << front;
        ASSERT_EQ(recent.of(key), hash_of(key)) << "remembered";
      }
}

}  // namespace
}  // namespace sluice::engine
