#include "sluice/number.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"

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
  nlohmann::json numbers = nlohmann::json::array();
  for (std::size_t i = 0; i < args.count; ++i) {
    const auto number = series.next().get();
    if (!number) {
      if (globals.json)
        fmt::print(
            "{}\n",
            nlohmann::json{{"ok", false}, {"numbers", numbers}, {"full", number.error().period}}
                .dump());
      fmt::print(stderr,
                 "sluice: series '{}' is full for {}: {} numbers were given; use more --digits "
                 "under a new name\n",
                 args.name, number.error().period, number.error().largest);
      return exit_refused;
    }
    if (globals.json) {
      numbers.push_back(number->text);
    } else {
      fmt::print("{}\n", number->text);
    }
  }
  if (globals.json) fmt::print("{}\n", nlohmann::json{{"ok", true}, {"numbers", numbers}}.dump());
  return exit_ok;
}

}  // namespace

void add_number_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const command = app.add_subcommand("number", "Draw business numbers: prefix, day, counter");
  const auto args = std::make_shared<NumberArgs>();
  command->add_option("NAME", args->name, "Name of the series, and prefix unless --prefix is given")
      ->required();
  command->add_option("--prefix", args->options.prefix, "What the number begins with");
  command->add_option("--zone", args->options.zone, "IANA zone whose midnights begin a day")
      ->capture_default_str();
  command->add_option("--digits", args->options.digits, "Width of the counter")
      ->capture_default_str();
  command->add_option("-n,--count", args->count, "How many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command->callback(
      [&globals, &action, args] { action = [&globals, args] { return draw(globals, *args); }; });
}

}  // namespace sluice::cli
