#include "proxy/ring/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace sluice::proxy {
namespace {

std::vector<RingServer> servers_of(std::vector<std::uint32_t> weights) {
  std::vector<RingServer> servers;
  for (const auto weight : weights)
    servers.push_back({"server" + std::to_string(servers.size()), weight});
  return servers;
}

/// As the facts say it, without a table: the first point that is not before the place, else the
/// first of all.
std::uint32_t slow_search(const Ring& ring, std::uint32_t place) {
  for (const auto& point : ring.points())
    if (point.value >= place) return point.server;
  return ring.points().front().server;
}

TEST(Ring, KetamaFindsWhatALinearSearchFinds) {
  std::mt19937 random{7};
  for (const auto& weights : std::vector<std::vector<std::uint32_t>>{
           {1}, {1, 1}, {1, 10, 100}, {5, 5, 5, 5, 5, 5, 5}, {1, 1000000}}) {
    const Ring ring{Distribution::ketama, servers_of(weights)};
    std::vector<std::uint32_t> hashes{0, 1, 0x7fff, 0xffffffff, 0xfffffffe};
    for (const auto& point : ring.points())
      hashes.insert(hashes.end(), {point.value - 1, point.value, point.value + 1});
    for (int i = 0; i < 1000; ++i) hashes.push_back(static_cast<std::uint32_t>(random()));
    for (const auto hash : hashes) ASSERT_EQ(ring.server_of(hash), slow_search(ring, hash)) << hash;
  }
}

TEST(Ring, KetamaGivesFourPointsADigestAndAHundredSixtyAServer) {
  const Ring even{Distribution::ketama, servers_of({1, 1, 1, 1})};
  EXPECT_EQ(even.points().size(), 640U);
  const Ring uneven{Distribution::ketama, servers_of({1, 3})};
  EXPECT_EQ(std::ranges::count(uneven.points(), 0U, &Ring::Point::server), 80);
  EXPECT_EQ(std::ranges::count(uneven.points(), 1U, &Ring::Point::server), 240);
  EXPECT_TRUE(std::ranges::is_sorted(uneven.points(), {}, &Ring::Point::value));
}

TEST(Ring, OnlyTheLiveTakePartAndKeepTheirIndices) {
  const std::uint32_t live[] = {0, 2};
  for (const auto distribution :
       {Distribution::ketama, Distribution::modula, Distribution::random}) {
    const Ring ring{distribution, servers_of({1, 1, 1}), live};
    std::map<std::uint32_t, int> hits;
    for (std::uint32_t i = 0; i < 1000; ++i) ++hits[ring.server_of(i * 4294967U, i)];
    EXPECT_EQ(hits.size(), 2U) << to_string(distribution);
    EXPECT_FALSE(hits.contains(1)) << to_string(distribution);
  }
}

TEST(Ring, KetamaMovesOnlyTheKeysOfTheServerThatIsGone) {
  const auto servers = servers_of({1, 1, 1, 1});
  const std::uint32_t live[] = {0, 1, 3};
  const Ring whole{Distribution::ketama, servers};
  const Ring rest{Distribution::ketama, servers, live};
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const auto hash = i * 429497U;
    if (const auto home = whole.server_of(hash); home != 2) {
      ASSERT_EQ(rest.server_of(hash), home);
    }
  }
}

TEST(Ring, ModulaIsATableOfWeights) {
  const Ring ring{Distribution::modula, servers_of({2, 1, 3})};
  const std::uint32_t table[] = {0, 0, 1, 2, 2, 2};
  for (std::uint32_t hash = 0; hash < 60; ++hash)
    EXPECT_EQ(ring.server_of(hash), table[hash % 6]) << hash;
  EXPECT_EQ(ring.server_of(0xffffffff), table[0xffffffff % 6]);
  EXPECT_EQ(ring.places(), 6U);
}

TEST(Ring, ModulaOfVastWeightsIsSmall) {
  const Ring ring{Distribution::modula, servers_of({2'000'000'000, 2'000'000'000})};
  EXPECT_EQ(ring.points().size(), 2U);
  EXPECT_EQ(ring.server_of(1'999'999'999), 0U);
  EXPECT_EQ(ring.server_of(2'000'000'000), 1U);
  EXPECT_EQ(ring.server_of(4'000'000'000U), 0U);
}

TEST(Ring, RandomIgnoresWeightAndHash) {
  const Ring ring{Distribution::random, servers_of({1, 1000})};
  EXPECT_EQ(ring.points().size(), 2U);
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(ring.server_of(12345, i), i % 2);
}

TEST(Ring, WithoutServersIsEmpty) {
  EXPECT_TRUE(Ring{}.empty());
  EXPECT_TRUE((Ring{Distribution::ketama, {}}).empty());
}

TEST(HashTag, IsTheFirstOpeningOneAndTheFirstClosingOneAfterIt) {
  const HashTag braces{'{', '}'};
  EXPECT_EQ(hashed_part("a{b}c", braces), "b");
  EXPECT_EQ(hashed_part("a{b{c}d}", braces), "b{c");
  EXPECT_EQ(hashed_part("a}b{c}", braces), "c");
  EXPECT_EQ(hashed_part("{}{a}", braces), "{}{a}");
  EXPECT_EQ(hashed_part("a{b", braces), "a{b");
  EXPECT_EQ(hashed_part("a{", braces), "a{");
  EXPECT_EQ(hashed_part("ab", braces), "ab");
  EXPECT_EQ(hashed_part("", braces), "");
  EXPECT_EQ(hashed_part("a$b$c", HashTag{'$', '$'}), "b");
  EXPECT_EQ(hashed_part("a{b}c", std::nullopt), "a{b}c");
}

TEST(Homes, AnEmptyKeyHasHashZeroAndAPoolOfOneHashesNothing) {
  const auto servers = servers_of({1, 1, 1});
  const Homes homes{Hash::md5, CharSign::is_signed, std::nullopt,
                    Ring{Distribution::modula, servers}, false};
  EXPECT_EQ(homes.hash_of(""), 0U);
  EXPECT_EQ(homes.of(""), 0U);
  const Homes one{Hash::md5, CharSign::is_signed, std::nullopt,
                  Ring{Distribution::ketama, servers_of({1})}, true};
  EXPECT_EQ(one.of("any key"), 0U);
}

}  // namespace
}  // namespace sluice::proxy
