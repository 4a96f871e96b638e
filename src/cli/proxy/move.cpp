// Keys follow the ring, under load.
#include <filesystem>
#include <memory>

#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/proxy/commands.hpp"
#include "proxy/config/read.hpp"
#include "proxy/move/mover.hpp"

namespace sluice::cli {
namespace {

struct MoveArgs {
  proxy::move::MoveOptions options;
  bool cancel = false;
};

/// The administration that the files name, where the line names none.
std::vector<std::string> proxies_of(const MoveArgs& args) {
  if (!args.options.proxies.empty()) return args.options.proxies;
  const auto admin = proxy::config::load(args.options.before).process.admin;
  return admin.empty() ? std::vector<std::string>{} : std::vector{admin};
}

int move(MoveArgs args) {
  const StopOnSignal signal;
  auto& options = args.options;
  options.proxies = proxies_of(args);
  options.after = std::filesystem::absolute(options.after);
  options.tell = [](std::string_view line) {
    put("{}\n", line);
    static_cast<void>(flush_output());
  };
  options.stop = signal.token();
  proxy::move::Mover mover{options};
  if (args.cancel) {
    mover.cancel();
    return exit_ok;
  }
  if (mover.run()) return exit_ok;
  complain("it pauses: keys move when they are asked for; run it again, and it goes on");
  return exit_refused;
}

}  // namespace

Command move_command() {
  const auto args = std::make_shared<MoveArgs>();
  auto& options = args->options;
  return {
      .name = "move",
      .summary = "Move keys from the servers of one file to those of another, under load",
      .arguments = {{"OLD", "The present file", into(options.before)},
                    {"NEW", "The file to be; proxies read it, too", into(options.after)}},
      .options = {{"--admin", "ADDRESS",
                   "The administration of a proxy; once for each that has these servers",
                   into(options.proxies)},
                  {"--patience", "TIME", "How long clients may take to end what they are amid of",
                   into(options.patience)},
                  {"--batch", "N",
                   "Keys in one command: a server stands still for about 40 us a key",
                   into(options.batch, 1, 1000)},
                  {"--cancel", "", "Instead, end a move of which no key has moved",
                   into(args->cancel)}},
      .details =
          "Run again it goes on where it was; an interrupt (INT, TERM) pauses it. To go back, "
          "move from NEW to OLD.",
      .action = [args] { return move(*args); }};
}

}  // namespace sluice::cli
