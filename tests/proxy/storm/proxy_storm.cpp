/// Hostile clients against the proxy, for as long as one likes: scripts/storm.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "cli/command_line/command.hpp"
#include "proxy/storm/storm.hpp"
#include "proxy/storm/strangers.hpp"

int main(int count, char** words) {
  using sluice::cli::into;
  using namespace sluice::test;
  StormOptions options;
  bool keeps = false, chaos = false;
  std::size_t hostile = 0, strangers = 0;
  std::chrono::milliseconds pause{20};
  const auto run = [&] {
    const auto tell = [](const std::string& text) {
      std::printf("%s\n", text.c_str());
      std::fflush(stdout);
    };
    if (strangers != 0) return weigh_strangers(strangers, options.stage.program, tell) ? 0 : 1;
    options.shrinks = !keeps;
    Storm storm{options, tell};
    if (hostile != 0) {
      storm.compare_latencies(hostile, pause);
      return 0;
    }
    return (chaos ? storm.run_in_chaos() : storm.run()) == 0 ? 0 : 1;
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
             {"--strict", "", "compat: strict", into(options.strict)},
             {"--chaos", "", "The program is reloaded and upgraded, servers are killed",
              into(chaos)},
             {"--hostile", "N",
              "Compares how long canaries wait with and without so many hostile clients",
              into(hostile, 1, 1000)},
             {"--pause", "TIME", "Between two batches of such a client", into(pause)},
             {"--strangers", "N", "Weighs the proxy with so many clients that do not log in",
              into(strangers, 1, 100'000)},
             {"--program", "PATH", "A sluice-proxy for --chaos, --hostile and --strangers",
              into(options.stage.program)},
             {"--raw", "", "Tells a finding without shrinking it", into(keeps)}},
        .action = run},
       "storm"},
      {words + 1, words + count});
}
