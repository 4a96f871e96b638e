#include "room/draw.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/sha256.hpp"

namespace sluice::room {
namespace {

/// 0, 1, ... 31.
std::string counting_seed() {
  std::string seed;
  for (char i = 0; i < 32; ++i) seed += i;
  return seed;
}

std::string seed_of(int number) { return sha256(std::to_string(number)); }

// Reckoned by compute_shuffled_index of Ethereum's specification, in Python.
TEST(RoomDraw, IsThatOfEthereumsSpecification) {
  std::vector<std::int64_t> positions;
  for (int place = 1; place <= 10; ++place)
    positions.push_back(drawn_position(counting_seed(), 10, place));
  EXPECT_EQ(positions, (std::vector<std::int64_t>{6, 3, 4, 2, 10, 7, 8, 5, 1, 9}));
  EXPECT_EQ(drawn_position(counting_seed(), 1'000'000, 1), 56755);
  EXPECT_EQ(drawn_position(counting_seed(), 1'000'000, 2), 97318);
  EXPECT_EQ(drawn_position(counting_seed(), 1'000'000, 3), 922856);
  EXPECT_EQ(drawn_position(counting_seed(), 1'000'000, 1'000'000), 689546);
  EXPECT_EQ(drawn_position(counting_seed(), 1, 1), 1);
}

TEST(RoomDraw, IsAPermutation) {
  for (const int places : {1, 2, 3, 7, 100, 257}) {
    std::vector<std::int64_t> positions;
    for (int place = 1; place <= places; ++place)
      positions.push_back(drawn_position(seed_of(places), places, place));
    std::ranges::sort(positions);
    for (int i = 0; i < places; ++i) EXPECT_EQ(positions[static_cast<std::size_t>(i)], i + 1);
  }
}

/// Whether a sum of squares is what chance gives: within five deviations of its mean.
void expect_chance(double chi_square, double freedom) {
  EXPECT_LT(chi_square, freedom + 5 * std::sqrt(2 * freedom));
  EXPECT_GT(chi_square, freedom - 5 * std::sqrt(2 * freedom));
}

double chi_square(const std::vector<int>& seen, double expected) {
  double sum = 0;
  for (const int count : seen) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

TEST(RoomDraw, V33_EachPlaceIsAnywhereWithTheSameChance) {
  constexpr int places = 20;
  constexpr int draws = 600;
  std::vector<int> seen(places * places);
  for (int draw = 0; draw < draws; ++draw)
    for (int place = 1; place <= places; ++place)
      ++seen[static_cast<std::size_t>((place - 1) * places - 1 +
                                      drawn_position(seed_of(draw), places, place))];
  expect_chance(chi_square(seen, draws / double{places}), (places - 1) * (places - 1));
}

TEST(RoomDraw, V33_TwoPlacesDoNotKnowOfEachOther) {
  constexpr int places = 8;
  constexpr int draws = 1680;
  std::vector<int> seen(places * places);
  for (int draw = 0; draw < draws; ++draw)
    ++seen[static_cast<std::size_t>((drawn_position(seed_of(draw), places, 3) - 1) * places - 1 +
                                    drawn_position(seed_of(draw), places, 4))];
  std::vector<int> pairs;  // two places are never in one position
  for (int one = 0; one < places; ++one)
    for (int other = 0; other < places; ++other) {
      const int count = seen[static_cast<std::size_t>(one * places + other)];
      if (one == other)
        EXPECT_EQ(count, 0);
      else
        pairs.push_back(count);
    }
  expect_chance(chi_square(pairs, draws / double{places * (places - 1)}),
                places * (places - 1) - 1);
}

}  // namespace
}  // namespace sluice::room
