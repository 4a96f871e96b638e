#include "sluice/number.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/output.hpp"

namespace sluice::cli {
namespace {

struct NumberArgs {
  std::string name;
  SeriesOptions options;
  std::size_t count = 1;
};

int draw(const Globals& globals, const NumberArgs& args) {
  const auto store = open_store(globals);
  Series series{*store, args.name, args.options};
  warn_if_in_memory(globals, "the series");
  Json numbers = Json::array();
  for (std::size_t i = 0; i < args.count; ++i) {
    const auto number = series.next().get();
    if (!number) {
      if (globals.json)
        print(Json::object({{"ok", false}, {"numbers", numbers}, {"full", number.error().period}}));
      complain(
          "series '{}' is full for {}: {} numbers were given; use more --digits under a new name",
          args.name, number.error().period, number.error().largest);
      return exit_refused;
    }
    if (globals.json)
      numbers.add(number->text);
    else
      fmt::print("{}\n", number->text);
  }
  if (globals.json) print(Json::object({{"ok", true}, {"numbers", numbers}}));
  return exit_ok;
}

}  // namespace

Command number_command(const Globals& globals) {
  const auto args = std::make_shared<NumberArgs>();
  return {
      .name = "number",
      .summary = "Draw business numbers: prefix, day, counter",
      .arguments = {{"NAME", "Name of the series, and prefix unless --prefix is given",
                     into(args->name)}},
      .options = {{"--prefix", "TEXT", "What the number begins with", into(args->options.prefix)},
                  {"--zone", "ZONE", "IANA zone whose midnights begin a day",
                   into(args->options.zone)},
                  {"--digits", "N", "Width of the counter", into(args->options.digits, 1, 15)},
                  {"-n, --count", "N", "How many", into(args->count, 1, 1'000'000)}},
      .details = "  sluice number INV --zone Europe/Berlin     # INV202601020001",
      .action = [&globals, args] { return draw(globals, *args); }};
}

}  // namespace sluice::cli
