#include "sluice/id.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"

namespace sluice::cli {
namespace {

struct IdArgs {
  std::string name = "sluice:id";
  std::size_t count = 1;
  std::int64_t explain = -1;
};

int explain(const Globals& globals, std::int64_t id) {
  const auto parts = IdWorker::parts(id);
  const std::string issued_at =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(parts.issued_at.time_since_epoch().count()));
  if (globals.json) {
    fmt::print("{}\n",
               nlohmann::json{{"ok", true}, {"issued_at", issued_at}, {"sequence", parts.sequence}}
                   .dump());
  } else {
    fmt::print("issued at {}, number {} of that day\n", issued_at, parts.sequence);
  }
  return exit_ok;
}

int draw(const Globals& globals, const IdArgs& args) {
  const auto store = open_store(globals);
  IdWorker ids{*store, args.name};
  nlohmann::json all = nlohmann::json::array();
  for (std::size_t i = 0; i < args.count; ++i) {
    const std::int64_t id = ids.next().get();
    if (globals.json) {
      all.push_back(std::to_string(id));  // as text: a JSON number holds 53 bits
    } else {
      fmt::print("{}\n", id);
    }
  }
  if (globals.json) fmt::print("{}\n", nlohmann::json{{"ok", true}, {"ids", all}}.dump());
  return exit_ok;
}

}  // namespace

void add_id_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const command = app.add_subcommand("id", "Draw 64-bit ids that rise over all instances");
  const auto args = std::make_shared<IdArgs>();
  command->add_option("NAME", args->name, "Name of the sequence")->capture_default_str();
  command->add_option("-n,--count", args->count, "How many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--explain", args->explain, "Tell when an id was issued, instead of drawing one")
      ->check(CLI::NonNegativeNumber);
  command->callback([&globals, &action, args] {
    action = [&globals, args] {
      return args->explain >= 0 ? explain(globals, args->explain) : draw(globals, *args);
    };
  });
}

}  // namespace sluice::cli
