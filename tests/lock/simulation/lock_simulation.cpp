/// Long campaigns by hand, and a seed that failed once more:
///
///     lock_simulation --seeds 0..1000000
///     lock_simulation --seeds 4711 --trace
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "lock/simulation/campaign.hpp"

int main(int count, char** words) {
  using namespace sluice::simulation;
  CLI::App app{"Plays the locks with virtual time and faults, one seed after another"};
  std::string seeds = "0..1000";
  std::string primitive = "mutex";
  std::string mutation;
  bool trace = false;
  app.add_option("--seeds", seeds, "A..B, or one alone")->capture_default_str();
  app.add_option("--primitive", primitive, "what is played")->capture_default_str();
  app.add_option("--mutation", mutation, "a bug to be put in");
  app.add_flag("--trace", trace, "everything that happens in the first seed");
  CLI11_PARSE(app, count, words);
  try {
    const Campaign campaign{.primitive = primitive, .mutation = mutation};
    const Seeds range = seeds_of(seeds);
    if (trace) {
      for (const auto& line : trace_of(campaign, range.first)) fmt::print("{}\n", line);
      return 0;
    }
    const auto found = first_failure(campaign, range);
    if (found) {
      fmt::print("{}", found->text);
    } else {
      fmt::print("nothing in seeds {}..{} of {}\n", range.first, range.last, primitive);
    }
    return found ? 1 : 0;
  } catch (const std::invalid_argument& wrong) {
    fmt::print(stderr, "{}\n", wrong.what());
    return 2;
  }
}
