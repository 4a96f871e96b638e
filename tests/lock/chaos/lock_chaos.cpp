/// Real processes on a real server, and what happens to them: scripts/chaos.
#include <string>
#include <string_view>

#include "cli/command_line/command.hpp"
#include "lock/chaos/conductor.hpp"
#include "lock/chaos/worker.hpp"

int main(int count, char** words) {
  using sluice::cli::into;
  namespace chaos = sluice::chaos;
  if (count >= 8 && words[1] == std::string_view{"--worker"})
    return chaos::work({.url = words[2],
                        .nodes = {words + 8, words + count},
                        .journal = words[3],
                        .who = words[4],
                        .seed = std::stoull(words[5]),
                        .threads = std::stoi(words[6]),
                        .replicas = static_cast<std::uint32_t>(std::stoul(words[7]))});
  chaos::ChaosOptions options{.seed = std::random_device{}()};
  std::chrono::milliseconds time = options.time;
  return sluice::cli::run_program(
      {{.name = "lock_chaos",
        .summary =
            "Stops, kills and deceives processes that use all primitives, and checks what they saw",
        .arguments = {{"SECONDS", "How long", into(time), false}},
        .options = {{"--seed", "N", "Repeats the troubles of a run",
                     into(options.seed, 0, INT64_MAX)},
                    {"--processes", "N", "How many", into(options.workers, 2, 64)},
                    {"--threads", "N", "Of each", into(options.threads, 1, 64)},
                    {"--trouble", "NAME", "This kind alone", into(options.trouble)},
                    {"--cluster", "", "Three masters with a replica each, not one server",
                     into(options.cluster)},
                    {"--careless", "", "Durable locks demand no replica, which has to be found",
                     into(options.careless)},
                    {"--keep", "", "The journals, also where nothing is found", into(options.keep)},
                    {"--only-safety", "", "Check nothing that depends on the machine's speed",
                     into(options.only_safety)}},
        .action =
            [&] {
              options.time = std::chrono::duration_cast<std::chrono::seconds>(time);
              return chaos::Conductor{options}.run();
            }},
       "chaos"},
      {words + 1, words + count});
}
