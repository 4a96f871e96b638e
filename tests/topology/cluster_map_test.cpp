#include "topology/cluster_map.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "lock/simulation/dice.hpp"
#include "support/sanitized.hpp"
#include "topology/views.hpp"

namespace sluice::topology::test {
namespace {

ClusterMap map_of(std::initializer_list<ClusterView> views) {
  return ClusterMap{}.merged(std::vector(views));
}

std::string owner_of(const ClusterMap& map, std::uint16_t slot) {
  const Node* const owner = map.owner(slot);
  return owner ? to_string(owner->endpoint.value()) : "nobody";
}

TEST(Map, KnowsOwnersAndReplicas) {
  const auto map = map_of({view(three)});
  EXPECT_EQ(owner_of(map, 0), "10.0.0.1:7001");
  EXPECT_EQ(owner_of(map, 16383), "10.0.0.1:7003");
  EXPECT_EQ(map.epoch(16383), 3U);
  EXPECT_EQ(map.uncovered(), 0U);
  const Node& first = *map.find(id_of(1));
  ASSERT_EQ(map.replicas_of(first).size(), 1U);
  EXPECT_EQ(map.replicas_of(first)[0]->id, id_of(4));
  EXPECT_EQ(map.slots_of(first), (std::vector<SlotRange>{{0, 5460}}));
  EXPECT_TRUE(map.has_slots(first));
  EXPECT_FALSE(map.has_slots(*map.find(at(7004))));
  EXPECT_EQ(map.find(at(7099)), nullptr);
  EXPECT_TRUE(ClusterMap{}.knows_nothing());
  EXPECT_EQ(ClusterMap{}.owner(7), nullptr);
  EXPECT_EQ(ClusterMap{}.uncovered(), 16384U);
}

TEST(Map, TheLatestEpochHasTheSlotWhoeverAnswersFirst) {
  const auto stale = view(line(1, 1, " 0-100") + line(2, 2, " 101-200"));
  const auto later = view(line(1, 1, " 0-50") + line(2, 5, " 51-200"));
  for (const auto& map : {map_of({stale, later}), map_of({later, stale})}) {
    EXPECT_EQ(owner_of(map, 50), "10.0.0.1:7001");
    EXPECT_EQ(owner_of(map, 51), "10.0.0.1:7002");
    EXPECT_EQ(map.epoch(51), 5U);
  }
}

TEST(Map, T06_DoesNotGoBack) {
  const auto promoted = line(1, 1) + line(4, 9, " 0-100");
  const auto map = map_of({view(promoted)});
  EXPECT_EQ(owner_of(map.merged(std::vector{view(line(1, 1, " 0-100"))}), 7), "10.0.0.1:7004")
      << "the old master does not know yet";
  EXPECT_EQ(owner_of(map.merged(std::vector{view(line(1, 99, " 0-100"), 99, "fail")}), 7),
            "10.0.0.1:7004")
      << "a node in state fail is not heard";
  EXPECT_EQ(map.merged({}), map);
}

TEST(Map, AtTheSameEpochTheRoundDecidesByVotesThenById) {
  const auto one = view(line(1, 3, " 7") + line(2, 3));
  const auto two = view(line(1, 3) + line(2, 3, " 7"));
  EXPECT_EQ(owner_of(map_of({one, two, two}), 7), "10.0.0.1:7002");
  EXPECT_EQ(owner_of(map_of({two, one}), 7), "10.0.0.1:7001");
  EXPECT_EQ(owner_of(map_of({one}).merged(std::vector{two}), 7), "10.0.0.1:7002")
      << "servers that tell no epochs fail over, too";
}

TEST(Map, WhatNoViewTellsStays) {
  const auto map = map_of({view(three)}).merged(std::vector{view(line(2, 2, " 5461-10922"))});
  EXPECT_EQ(owner_of(map, 0), "10.0.0.1:7001");
  EXPECT_EQ(map.find(id_of(4)), nullptr) << "T22: neither told of nor an owner";
  EXPECT_NE(map.find(id_of(3)), nullptr);
}

TEST(Map, T07_MovedIsBelievedOfTheOwnerAlone) {
  const auto map = map_of({view(three)});
  EXPECT_FALSE(map.moved(0, at(7002), at(7003))) << "it has the older map";
  EXPECT_FALSE(map.moved(0, at(7001), at(7001)));
  const auto moved = map.moved(0, at(7001), at(7777));
  ASSERT_TRUE(moved);
  EXPECT_EQ(owner_of(*moved, 0), "10.0.0.1:7777") << "unknown until now";
  EXPECT_EQ(owner_of(*moved, 1), "10.0.0.1:7001");
  EXPECT_EQ(owner_of(moved->merged(std::vector{view(three)}), 0), "10.0.0.1:7777")
      << "a node that does not know yet is not heard";

  std::string nodes = three;
  nodes.replace(nodes.find(" 0-5460"), 7, " 1-5460");
  nodes += fmt::format("{} 10.0.0.1:7777@1 master - 0 0 8 connected 0\n", id_of(8));
  const auto known = moved->merged(std::vector{view(nodes)});
  EXPECT_EQ(known.owner(0)->id, id_of(8));
  EXPECT_EQ(known.epoch(0), 8U);
  EXPECT_EQ(known.nodes().size(), 5U);

  const auto back = moved->moved(0, at(7777), at(7001));
  ASSERT_TRUE(back);
  EXPECT_EQ(owner_of(*back, 0), "10.0.0.1:7001");
}

TEST(Map, AMovedSlotFailsOverWithServersThatTellNoEpochs) {
  auto map =
      *map_of({view(line(1, 0, " 7") + line(2, 0) + line(3, 0))}).moved(7, at(7001), at(7002));
  map = map.merged(std::vector{view(line(1, 0) + line(2, 0) + line(3, 0, " 7"))});
  EXPECT_EQ(owner_of(map, 7), "10.0.0.1:7003");
}

TEST(Map, T15_KnowsItsClusterByIds) {
  const auto map = map_of({view(three)});
  EXPECT_TRUE(map.is_of_the_cluster_of(view(line(3, 7) + line(9, 9))));
  EXPECT_FALSE(map.is_of_the_cluster_of(view(line(9, 9, " 0-16383"))));
  EXPECT_TRUE(ClusterMap{}.is_of_the_cluster_of(view(line(9, 9))));
}

TEST(Map, T22_TellsWhatHasGoneAndWhatHasMoved) {
  const auto before = map_of({view(three)});
  const auto after =
      before.merged(std::vector{view(line(2, 9, " 0-10922") + line(3, 3, " 10923-16383"))});
  const auto told = difference(before, after);
  EXPECT_EQ(told.gone, (std::vector{at(7001), at(7004)}));
  EXPECT_EQ(told.moved, (std::vector<SlotRange>{{0, 5460}}));
  EXPECT_TRUE(difference({}, before).moved.empty());
  EXPECT_TRUE(difference(before, before).gone.empty());
}

TEST(Map, IsTheSameButForOffsets) {
  auto one = view(three);
  auto two = one;
  two.nodes[0].node.offset = 5;
  EXPECT_TRUE(map_of({one}).is_as(map_of({two})));
  EXPECT_NE(map_of({one}), map_of({two}));
  two.nodes[0].node.health = Health::failed;
  EXPECT_FALSE(map_of({one}).is_as(map_of({two})));
}

/// Views of any nodes, epochs and slots: the order in which they come makes no difference, hearing
/// them twice neither, and no slot goes back.
TEST(Map, MergesAnyViewsInAnyOrder) {
  for (std::uint64_t seed = 0; seed < sluice::test::rounds(100U); ++seed) {
    sluice::simulation::Dice dice{seed};
    const auto some_view = [&] {
      std::string nodes;
      std::uint64_t slot = 0;
      for (int node = 0; node < 6; ++node) {
        const auto first = slot + dice.below(3000);
        slot = first + dice.below(3000);
        if (slot > 16383) break;
        if (dice.chance(80)) nodes += line(node, dice.below(4), fmt::format(" {}-{}", first, slot));
        ++slot;
      }
      return view(nodes, 99, dice.chance(90) ? "ok" : "fail",
                  at(static_cast<std::uint16_t>(dice.below(1000) + 1)));
    };
    const auto before = map_of({some_view(), some_view()});
    std::vector views{some_view(), some_view(), some_view()};
    const auto after = before.merged(views);
    std::ranges::reverse(views);
    EXPECT_EQ(before.merged(views), after) << seed;
    EXPECT_EQ(after.merged(views), after) << seed;
    for (std::uint16_t slot = 0; slot < hash_slots; slot += 64) {
      EXPECT_GE(after.epoch(slot), before.epoch(slot)) << seed;
      EXPECT_TRUE(after.owner(slot) || !before.owner(slot)) << seed;
    }
  }
}

/// T20. Its time is in docs/performance.md.
TEST(Map, T20_HasARangeForEachSlot) {
  std::vector<std::string> slots(200);
  for (int slot = 0; slot < hash_slots; ++slot)
    slots[static_cast<std::size_t>(slot % 200)] += fmt::format(" {}", slot);
  std::string nodes;
  for (int node = 0; node < 200; ++node)
    nodes += line(node, static_cast<std::uint64_t>(node), slots[static_cast<std::size_t>(node)]);
  const auto map = map_of({view(nodes, 200)});
  EXPECT_EQ(map.uncovered(), 0U);
  for (int slot = 0; slot < hash_slots; ++slot)
    ASSERT_EQ(map.owner(static_cast<std::uint16_t>(slot))->id, id_of(slot % 200));
}

TEST(ClusterMapTest, ANodeThatRedirectsToEverywhereDoesNotFillTheMap) {
  ClusterMap map;
  const Endpoint liar{"10.0.0.1", 1};
  for (std::uint16_t slot = 0; slot < 5000; ++slot)
    if (auto after = map.moved(slot, liar, {"10.0.0.2", static_cast<std::uint16_t>(slot + 1)}))
      map = std::move(*after);
  EXPECT_EQ(map.nodes().size(), 64U);
}

}  // namespace
}  // namespace sluice::topology::test
