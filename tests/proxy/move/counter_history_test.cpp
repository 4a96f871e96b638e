#include "proxy/move/counter_history.hpp"

#include <gtest/gtest.h>

namespace sluice::test {
namespace {

CounterEvent add(std::int64_t value, std::int64_t begun, std::int64_t ended) {
  return {.key = "k", .adds = true, .value = value, .begun = begun, .ended = ended};
}
CounterEvent get(std::int64_t value, std::int64_t begun, std::int64_t ended) {
  return {.key = "k", .adds = false, .value = value, .begun = begun, .ended = ended};
}
CounterEvent unknown(std::int64_t begun, std::int64_t ended) {
  return {.key = "k", .adds = true, .value = {}, .begun = begun, .ended = ended};
}
std::size_t count(const std::vector<CounterEvent>& history, std::int64_t last) {
  return contradictions(history, {{"k", last}}).size();
}

TEST(CounterHistory, WhatOverlapsMayComeInAnyOrder) {
  EXPECT_EQ(count({add(2, 0, 10), add(1, 1, 9), get(1, 0, 10), get(2, 11, 12)}, 2), 0);
}
TEST(CounterHistory, AnUnknownOneMayHaveBeenDoneOrNot) {
  EXPECT_EQ(count({add(1, 0, 1), unknown(2, 3)}, 1), 0);
  EXPECT_EQ(count({add(1, 0, 1), unknown(2, 3), get(2, 4, 5)}, 2), 0);
}
TEST(CounterHistory, ALostOneIsFound) {
  EXPECT_NE(count({add(1, 0, 1), add(1, 2, 3)}, 1), 0);
  EXPECT_NE(count({add(1, 0, 1), add(2, 2, 3)}, 1), 0);
}
TEST(CounterHistory, OneThatWasDoneTwiceIsFound) {
  EXPECT_NE(count({add(2, 0, 1)}, 2), 0);
  EXPECT_NE(count({add(1, 0, 1), unknown(2, 3)}, 3), 0);
}
TEST(CounterHistory, AnOldValueIsFound) {
  EXPECT_NE(count({add(1, 0, 1), get(0, 2, 3)}, 1), 0);
  EXPECT_EQ(count({add(1, 0, 2), get(0, 1, 3)}, 1), 0);
}

}  // namespace
}  // namespace sluice::test
