#include "sluice/id.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <limits>

#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/output.hpp"

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
  print(globals.json,
        Json::object({{"ok", true}, {"issued_at", issued_at}, {"sequence", parts.sequence}}),
        fmt::format("issued at {}, number {} of that day", issued_at, parts.sequence));
  return exit_ok;
}

int draw(const Globals& globals, const IdArgs& args) {
  const auto store = open_store(globals);
  IdWorker ids{*store, args.name};
  warn_if_in_memory(globals, "the ids");
  TakenList taken{globals.json, "ids"};
  try {
    // As text, since a JSON number holds 53 bits.
    for (std::size_t i = 0; i < args.count; ++i) taken.add(std::to_string(ids.next().get()));
  } catch (const std::exception& failure) {
    taken.end(Json::object({{"ok", false}, {"error", failure.what()}}));
    throw;
  }
  taken.end(Json::object({{"ok", true}}));
  return exit_ok;
}

}  // namespace

Command id_command(const Globals& globals) {
  const auto args = std::make_shared<IdArgs>();
  return {.name = "id",
          .summary = "Draw 64-bit ids that rise over all instances",
          .arguments = {{"NAME", "Name of the sequence", into(args->name), false}},
          .options = {{"-n, --count", "N", "How many", into(args->count, 1, 1'000'000)},
                      {"--explain", "ID", "Tell when an id was issued, instead of drawing one",
                       into(args->explain, 0, std::numeric_limits<std::int64_t>::max())}},
          .action = [&globals, args] {
            return args->explain >= 0 ? explain(globals, args->explain) : draw(globals, *args);
          }};
}

}  // namespace sluice::cli
