/// Long campaigns by hand, and a seed that failed once more:
///
///     topology_simulation cluster 0 100000
///     topology_simulation sentinels 4711 4711
///     topology_simulation freshness 0 100000
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/integer.hpp"
#include "topology/simulation/game.hpp"

int main(int count, char** words) {
  using namespace sluice::topology::simulation;
  const std::string_view game = count == 4 ? words[1] : "";
  const auto first = sluice::parse_integer<std::uint64_t>(count == 4 ? words[2] : "");
  const auto last = sluice::parse_integer<std::uint64_t>(count == 4 ? words[3] : "");
  const auto play = game == "cluster"     ? play_cluster
                    : game == "sentinels" ? play_sentinels
                    : game == "freshness" ? play_freshness
                                          : nullptr;
  if (!play || !first || !last) {
    fmt::print(stderr, "usage: topology_simulation cluster|sentinels|freshness FIRST LAST\n");
    return 2;
  }
  GameFigures worst;
  std::size_t failed = 0;
  for (auto seed = *first; seed <= *last; ++seed) {
    GameFigures figures;
    const auto wrong = play(seed, &figures);
    if (wrong) {
      fmt::print("{}\n", *wrong);
      std::fflush(stdout);
      ++failed;
    }
    worst.converged_ms = std::max(worst.converged_ms, figures.converged_ms);
    worst.questions = std::max(worst.questions, figures.questions);
  }
  fmt::print(
      "{} of {} failed; the truth was known {} ms after all had settled at the latest, {} "
      "questions at most\n",
      failed, *last - *first + 1, worst.converged_ms, worst.questions);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
