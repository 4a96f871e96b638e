/// `sluice loadtest`: a crowd of buyers at a service, and the proof that what they were told is
/// true.
#include "cli/command.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/random.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/load/load_test.hpp"
#include "cli/output.hpp"
#include "cli/programs.hpp"

namespace sluice::cli {
namespace {

struct LoadArgs {
  load::LoadOptions options;
  std::string url;
  std::vector<std::string> more_urls;
  std::uint64_t buyers = 0;
  double rate = 0;
  std::chrono::milliseconds lasts{10'000};
  std::chrono::milliseconds think{};
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds patience{30'000};
  std::chrono::milliseconds slow_time{2'000};
  std::string keys_file;
  std::string prefix;
  std::uint64_t seed = 0;
  bool is_shared = false;
  bool looks_not = false;
};

constexpr std::int64_t most_buyers = 1'000'000;
constexpr std::string_view details =
    R"(Without --rate and --buyers it finds out how many can be served, and measures at 70 % of it.
Each buyer looks at the sale, thinks, and buys with one key; some click twice. After 429 and 503
he comes again when Retry-After says, after a broken connection at once, and with the same key.
Times count from when he meant to ask, also where no connection was free for him.

It proves what it was told: the same key gets the same order, a number is given once, no more units
are sold than there are, and the sale counts them. Exit code 1: a promise was broken; 69: none was
seen broken, but the service did not let all of it be seen.

Examples:
  sluice loadtest http://127.0.0.1:8080 --sale maotai --buyers 10000 --audit
  sluice loadtest http://127.0.0.1:8080 --also http://127.0.0.1:8082 --sale tea --rate 2000)";

load::LoadOptions options_of(const LoadArgs& args) {
  auto options = args.options;
  options.urls = args.more_urls;
  options.urls.insert(options.urls.begin(), args.url);
  auto& crowd = options.crowd;
  crowd.rate = args.rate;
  crowd.buyers = args.buyers != 0 ? args.buyers : static_cast<std::uint64_t>(most_buyers);
  crowd.lasts = args.lasts;
  crowd.think = args.think;
  crowd.looks = !args.looks_not;
  crowd.seed = args.seed != 0 ? args.seed : random_128()[0];
  crowd.prefix = args.prefix.empty() ? "load-" + random_hex_128().substr(0, 8) : args.prefix;
  if (!args.keys_file.empty()) crowd.keys = TokenKeys::load(args.keys_file);
  options.finds_rate = args.rate <= 0 && args.buyers == 0;
  options.alone = !args.is_shared;
  options.wire.timeout = args.timeout;
  options.wire.slow_time = args.slow_time;
  options.patience = args.patience;
  for (const auto time : {args.lasts, args.timeout, args.patience, args.slow_time})
    if (time <= std::chrono::milliseconds{0})
      throw Error{Errc::bad_argument,
                  "--for, --timeout, --patience and --slow-time are some time: "
                  "500ms, 10s"};
  if (crowd.repeats > 1 || crowd.slow > 1)
    throw Error{Errc::bad_argument, "--repeats and --slow are shares of the buyers: 0 to 1"};
  return options;
}

int load_test(const Globals& globals, const LoadArgs& args) {
  const StopOnSignal stop;
  const auto options = options_of(args);
  Progress progress{globals.json, stderr};
  const auto report = load::run_load_test(options, stop.token(),
                                          [&](const std::string& line) { progress.show(line); });
  print(globals.json, load::json_of(report), load::text_of(report));
  if (!report.is_sound()) return exit_check_failed;
  return report.is_seen() || !report.is_complete ? exit_ok : exit_unavailable;
}

}  // namespace

Command load_command(const Globals& globals) {
  const auto args = std::make_shared<LoadArgs>();
  auto& options = args->options;
  return {
      .name = "loadtest",
      .summary = std::string{program_of("loadtest").summary},
      .arguments = {{"URL", "Where it serves: http://127.0.0.1:8080", into(args->url)}},
      .options =
          {{"--sale", "NAME", "What is bought", into(options.crowd.sale), true},
           {"--also", "URL", "Another process of the service; may be repeated",
            into(args->more_urls)},
           {"--rate", "N", "So many buyers come a second, whatever the service does",
            into(args->rate, 0.001, 1e6)},
           {"--buyers", "N", "So many at most; without --rate all at once",
            into(args->buyers, 1, most_buyers)},
           {"--for", "TIME", "How long buyers come", into(args->lasts)},
           {"--think", "TIME", "Between looking and clicking, on average", into(args->think)},
           {"--repeats", "SHARE", "Of those who have bought, so many click again",
            into(options.crowd.repeats, 0, 1)},
           {"--slow", "SHARE", "Of the buyers, so many send their requests byte by byte",
            into(options.crowd.slow, 0, 1)},
           {"--slow-time", "TIME", "How long those need for a request", into(args->slow_time)},
           {"--units", "N", "Each buys 1 to so many", into(options.crowd.most_units, 1, 1'000'000)},
           {"--queue", "", "Each goes through the waiting room first", into(options.crowd.queues)},
           {"--no-look", "", "Nobody looks at the sale first", into(args->looks_not)},
           {"--connections", "N", "At most so many at a time",
            into(options.wire.connections, 1, 20'000)},
           {"--timeout", "TIME", "How long an answer is awaited", into(args->timeout)},
           {"--tries", "N", "Of one question, with the same key",
            into(options.crowd.tries, 1, 1000)},
           {"--patience", "TIME", "How long the last buyers have to finish", into(args->patience)},
           {"--audit", "", "Look at each order afterwards: it stands, and the database has it",
            into(options.audits)},
           {"--shared", "", "Others buy or cancel, too: the figures of the sale are not compared",
            into(args->is_shared)},
           {"--keys", "FILE", "Sign a token for each buyer; without it Sluice-Buyer names him",
            into(args->keys_file)},
           {"--ca", "FILE", "Of https: the authority that is trusted", into(options.ca)},
           {"--remote", "", "Ask machines other than this one: they are yours, and await it",
            into(options.allows_remote)},
           {"--name", "PREFIX", "Of the buyers' names; without it each run has its own",
            into(args->prefix)},
           {"--seed", "N", "Repeats the choices of a run",
            into(args->seed, 1, std::numeric_limits<std::int64_t>::max())}},
      .details = std::string{details},
      .action = [&globals, args] { return load_test(globals, *args); }};
}

}  // namespace sluice::cli
