/// The checker in memory.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "sluice/fencing.hpp"
#include "sluice/metrics.hpp"

namespace sluice {
namespace {

TEST(FenceGate, AdmitsWhatIsNotSmaller) {
  FenceGate gate;
  EXPECT_TRUE(gate.admit("books", {5}));
  EXPECT_TRUE(gate.admit("books", {5})) << "the same hold";
  EXPECT_TRUE(gate.admit("books", {7}));
  const auto stale = metrics().fence_stale.load();
  const auto refused = gate.admit("books", {6});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().largest.value, 7U);
  EXPECT_EQ(metrics().fence_stale.load(), stale + 1);
  EXPECT_TRUE(gate.admit("other books", {1}));
  EXPECT_TRUE(gate.admit("books", {~std::uint64_t{0}}));
}

TEST(FenceGate, NeverForgetsByItself) {
  FenceGate gate{2};
  EXPECT_TRUE(gate.admit("a", {9}));
  EXPECT_TRUE(gate.admit("b", {9}));
  try {
    (void)gate.admit("c", {9});
    FAIL() << "there is room for two";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::out_of_space);
  }
  EXPECT_FALSE(gate.admit("a", {8}));
  EXPECT_EQ(gate.size(), 2U);
  EXPECT_TRUE(gate.forget("a"));
  EXPECT_FALSE(gate.forget("a"));
  EXPECT_TRUE(gate.admit("c", {9}));
}

TEST(FenceGate, TokenOfNoHoldIsAnError) {
  FenceGate gate;
  EXPECT_THROW((void)gate.admit("books", {0}), Error);
  EXPECT_EQ(gate.size(), 0U);
  EXPECT_THROW((FenceGate{0}), Error);
}

TEST(FenceGate, OfManyThreadsTheLargestStays) {
  FenceGate gate;
  {
    std::vector<std::jthread> crew;
    for (std::uint64_t first = 1; first <= 4; ++first)
      crew.emplace_back([&gate, first] {
        for (std::uint64_t token = first; token <= 4000; token += 4)
          (void)gate.admit("books", {token});
      });
  }
  EXPECT_FALSE(gate.admit("books", {3999}));
  EXPECT_TRUE(gate.admit("books", {4000}));
}

}  // namespace
}  // namespace sluice
