/// Hostile clients against the proxy, for as long as one likes: scripts/storm.
#include <cstdint>
#include <cstdio>
#include <string>

#include "cli/command_line/command.hpp"
#include "proxy/storm/storm.hpp"

int main(int count, char** words) {
  using sluice::cli::into;
  using namespace sluice::test;
  StormOptions options;
  bool keeps = false;
  const auto run = [&] {
    options.shrinks = !keeps;
    Storm storm{options, [](const std::string& text) {
                  std::printf("%s\n", text.c_str());
                  std::fflush(stdout);
                }};
    return storm.run() == 0 ? 0 : 1;
  };
  return sluice::cli::run_program(
      {{.name = "proxy_storm",
        .summary = "Sends random requests through the proxy and checks that nothing breaks",
        .options =
            {{"--language", "NAME", "redis or memcached", into(options.language)},
             {"--seed", "N", "Repeats a run", into(options.seed, 0, INT64_MAX)},
             {"--rounds", "N", "How many", into(options.rounds, 1, INT64_MAX)},
             {"--time", "TIME", "How long, instead of --rounds", into(options.time)},
             {"--first", "N", "The round to begin with", into(options.first, 0, INT64_MAX)},
             {"--findings", "N", "Ends with so many", into(options.findings, 1, INT64_MAX)},
             {"--clients", "N", "Hostile ones", into(options.stage.clients, 1, 1000)},
             {"--canaries", "N", "Clients that are checked", into(options.stage.canaries, 1, 1000)},
             {"--patience", "TIME", "Who waits longer waits for ever",
              into(options.stage.canary.patience)},
             {"--avoid", "REGEX", "Requests that match it are not sent", into(options.avoid)},
             {"--setting", "LINE", "A line of the pool's configuration",
              into(options.stage.settings)},
             {"--raw", "", "Tells a finding without shrinking it", into(keeps)}},
        .action = run},
       "storm"},
      {words + 1, words + count});
}
