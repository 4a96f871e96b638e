/// Long campaigns by hand, and a seed that failed once more:
///
///     lock_simulation --seeds 0..1000000
///     lock_simulation --seeds 4711 --trace
#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "cli/command_line/command.hpp"
#include "lock/simulation/campaign.hpp"
#include "lock/simulation/primitive.hpp"
#include "sluice/log.hpp"

namespace sluice::simulation {
namespace {

struct Args {
  std::string seeds = "0..1000";
  std::string primitive = "mutex";
  std::string profile = "usual";
  std::string mutation;
  std::string drift;
  bool trace = false;
  bool branches = false;
  bool list = false;
  bool all = false;
};

void show_list() {
  for (const auto& trouble : all_troubles())
    for (const auto& primitive : all_primitives())
      if (trouble.plays(primitive.name)) fmt::print("{} {}\n", trouble.name, primitive.name);
}

/// True: each was run.
bool show_branches(const Args& args, Seeds seeds) {
  Branches branches;
  if (args.primitive == "all") {
    run_for_branches(seeds, branches);
  } else {
    run_for_branches({.primitive = args.primitive, .profile = args.profile}, seeds, branches);
  }
  for (const auto& [name, count] : branches.counts()) fmt::print("{:>9} {}\n", count, name);
  fmt::print("{} of {} were not run\n", branches.missed(), branches.counts().size());
  return branches.missed() == 0;
}

/// True: a seed has failed.
bool play_all(const Campaign& campaign, Seeds seeds, bool goes_on) {
  const auto last = seeds.last;
  auto found = first_failure(campaign, seeds);
  const bool failed = found.has_value();
  if (!failed)
    fmt::print("nothing in seeds {}..{} of {}, {}\n", seeds.first, last, campaign.primitive,
               campaign.profile);
  while (found) {
    fmt::print("{}", found->text);
    if (!goes_on || found->seed == last) break;
    found = first_failure(campaign, {found->seed + 1, last});
  }
  return failed;
}

int play(const Args& args) {
  try {
    const Campaign campaign{.primitive = args.primitive,
                            .profile = args.profile,
                            .mutation = args.mutation,
                            .drift = args.drift.empty() ? 0 : std::stod(args.drift)};
    const Seeds range = seeds_of(args.seeds);
    if (args.trace) {
      for (const auto& line : trace_of(campaign, range.first)) fmt::print("{}\n", line);
      return 0;
    }
    if (args.list) {
      show_list();
      return 0;
    }
    if (args.branches) return show_branches(args, range) ? 0 : 1;
    return play_all(campaign, range, args.all) ? 1 : 0;
  } catch (const std::invalid_argument& wrong) {
    fmt::print(stderr, "{}\n", wrong.what());
    return 2;
  }
}

}  // namespace
}  // namespace sluice::simulation

int main(int count, char** words) {
  using sluice::cli::into;
  sluice::simulation::Args args;
  sluice::set_log_sink([](sluice::LogLevel, std::string_view) {});  // losses are what is played
  return sluice::cli::run_program(
      {{.name = "lock_simulation",
        .summary = "Plays the locks with virtual time and faults, one seed after another",
        .options =
            {{"--seeds", "A..B", "From A to B, or one alone", into(args.seeds)},
             {"--primitive", "NAME", "What is played", into(args.primitive)},
             {"--profile", "NAME", "The trouble that meets it", into(args.profile)},
             {"--mutation", "NAME", "A bug to be put in", into(args.mutation)},
             {"--drift", "RATE", "How far clocks are off, for the profile 'clocks'",
              into(args.drift)},
             {"--branches", "",
              "How often each branch of the scripts is run; --primitive all: in all profiles",
              into(args.branches)},
             {"--list", "", "The profiles, and what is played in each", into(args.list)},
             {"--all", "", "Goes on after a seed that failed", into(args.all)},
             {"--trace", "", "Everything that happens in the first seed", into(args.trace)}},
        .action = [&args] { return play(args); }},
       "simulation"},
      {words + 1, words + count});
}
