/// The games over some seeds; thousands by hand: topology_simulation.
#include <gtest/gtest.h>

#include "support/sanitized.hpp"
#include "topology/simulation/game.hpp"

namespace sluice::topology::simulation {
namespace {

TEST(ClusterGame, TheMapComesToTheTruth) {
  for (std::uint64_t seed = 0; seed < test::rounds(12U); ++seed) {
    const auto wrong = play_cluster(seed);
    EXPECT_FALSE(wrong) << *wrong << "\nagain: topology_simulation cluster " << seed << ' ' << seed;
  }
}

TEST(SentinelGame, TheMasterIsFoundAndTheOldOneLeft) {
  for (std::uint64_t seed = 0; seed < test::rounds(150U); ++seed) {
    const auto wrong = play_sentinels(seed);
    EXPECT_FALSE(wrong) << *wrong << "\nagain: topology_simulation sentinels " << seed << ' '
                        << seed;
  }
}

TEST(FreshnessGame, AReplicaThatIsReadFromHasWhatItMustHave) {
  for (std::uint64_t seed = 0; seed < test::rounds(50U); ++seed) {
    const auto wrong = play_freshness(seed);
    EXPECT_FALSE(wrong) << *wrong << "\nagain: topology_simulation freshness " << seed << ' '
                        << seed;
  }
}

}  // namespace
}  // namespace sluice::topology::simulation
