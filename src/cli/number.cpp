#include "sluice/number.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/process.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/output.hpp"

namespace sluice::cli {
namespace {

struct NumberArgs {
  std::string name;
  SeriesOptions options;
  std::size_t count = 1;
  std::int64_t given = -1;
  std::string why;
  bool dry_run = false;
};

int draw(const Globals& globals, const NumberArgs& args) {
  if (globals.json && !(is_utf8(args.name) && is_utf8(args.options.prefix)))
    throw Error{Errc::bad_argument,
                "a number that is not UTF-8 cannot be told in JSON: draw it without --json"};
  const auto store = open_store(globals);
  Series series{*store, args.name, args.options};
  warn_if_in_memory(globals, "the series");
  TakenList taken{globals.json, "numbers"};
  try {
    for (std::size_t i = 0; i < args.count; ++i) {
      const auto number = series.next().get();
      if (!number) {
        taken.end(Json::object({{"ok", false}, {"full", number.error().period}}));
        complain(
            "series '{}' is full for {}: {} numbers were given; use more --digits under a new name",
            args.name, number.error().period, number.error().largest);
        return exit_refused;
      }
      taken.add(number->text);
    }
  } catch (const std::exception& failure) {
    taken.end(Json::object({{"ok", false}, {"error", failure.what()}}));
    throw;
  }
  taken.end(Json::object({{"ok", true}}));
  return exit_ok;
}

std::string text_of(WallTime instant) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(
                         std::chrono::floor<std::chrono::seconds>(instant))));
}

std::string_view name_of(RepairOutcome outcome) {
  switch (outcome) {
    case RepairOutcome::repaired: return "repaired";
    case RepairOutcome::sound: return "sound";
    case RepairOutcome::no_series: return "no series";
    case RepairOutcome::count_unknown: return "count unknown";
    case RepairOutcome::more_were_given: return "more were given";
  }
  return "?";
}

Json repair_json(const SeriesRepair& repair, bool ok, bool dry_run) {
  Json json =
      Json::object({{"ok", ok}, {"outcome", name_of(repair.outcome)}, {"dry_run", dry_run}});
  if (repair.outcome == RepairOutcome::no_series) return json;
  json.add("now", text_of(repair.now));
  json.add("last", text_of(repair.last));
  json.add("last_day", repair.last_period);
  json.add("last_given", repair.last_sequence ? Json{*repair.last_sequence} : Json{});
  json.add("day", repair.period);
  json.add("given", repair.given ? Json{*repair.given} : Json{});
  return json;
}

/// Which number comes next.
std::string next_of(const SeriesRepair& repair) {
  if (!repair.given) return {};
  const auto number = fmt::format("{:0{}}", *repair.given + 1, repair.digits);
  if (number.size() > static_cast<std::size_t>(repair.digits))
    return fmt::format("{} is full: there is no further number until the next day begins",
                       repair.period);
  return fmt::format("the next number is {}{}{}", repair.prefix, repair.period, number);
}

/// What a repair does: only a series that was ahead of the clock goes back.
std::string done_to(const SeriesRepair& repair, bool dry_run) {
  if (repair.last > repair.now)
    return fmt::format("{} to {}", dry_run ? "would go back" : "went back", repair.period);
  return fmt::format("{} {} numbers of {}", dry_run ? "would count" : "counts",
                     repair.given.value_or(0), repair.period);
}

/// What was found, what was done, and what comes next.
std::string story_of(const NumberArgs& args, const SeriesRepair& repair) {
  const std::string next = next_of(repair);
  const std::string of_last =
      fmt::format("{} ({})", text_of(repair.last),
                  repair.last_sequence
                      ? fmt::format("{} numbers of {}", *repair.last_sequence, repair.last_period)
                      : "a day that was not noted");
  switch (repair.outcome) {
    case RepairOutcome::repaired:
      return fmt::format(
          "series '{}' {} at {}, and the store's clock says {}. It {}; {}. Numbers that were given "
          "are not given again, neither of today nor of the days ahead{}",
          args.name, args.dry_run ? "is" : "was", of_last, text_of(repair.now),
          done_to(repair, args.dry_run), next,
          args.dry_run ? "" : "; the repair is noted in the series' journal");
    case RepairOutcome::sound:
      return fmt::format(
          "series '{}' needs no repair: its last number is of {}, and the store's clock says {}. "
          "If that is wrong, set the clock of the server first. And {}",
          args.name, of_last, text_of(repair.now), next);
    case RepairOutcome::no_series:
      return fmt::format("there is no series '{}': nobody has drawn a number of it", args.name);
    case RepairOutcome::count_unknown:
      return fmt::format(
          "series '{}' is at {}, and the store's clock says {}. Nobody knows how many numbers of "
          "{} were given, so that one could come twice. Find the last one in your own books, and "
          "tell it with --given N; 0: there is none. Nothing was done",
          args.name, of_last, text_of(repair.now), repair.period);
    case RepairOutcome::more_were_given:
      return fmt::format(
          "series '{}' has given {} numbers of {}, more than --given says, so that one would come "
          "twice. Nothing was done",
          args.name, repair.given.value_or(0), repair.period);
  }
  return {};
}

int repair(const Globals& globals, const NumberArgs& args) {
  const auto store = open_store(globals);
  RepairOptions how{.by = fmt::format("uid {} on {}, pid {}", ::getuid(), host_name(), ::getpid()),
                    .why = args.why,
                    .only_look = args.dry_run};
  if (args.given >= 0) how.given = args.given;
  const SeriesRepair done = Series::repair(*store, args.name, how).get();
  const bool ok = done.outcome == RepairOutcome::repaired || done.outcome == RepairOutcome::sound;
  if (globals.json || ok)
    print(globals.json, repair_json(done, ok, args.dry_run), story_of(args, done));
  if (!ok) complain_line(story_of(args, done));
  return ok ? exit_ok : exit_refused;
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
      .commands =
          {{.name = "repair",
            .summary = "Take a series back that a wrong clock of the server has thrown into the "
                       "future",
            .options = {{"--given", "N",
                         "How many numbers of today were given, where the store does not "
                         "know it; never fewer than it knows",
                         into(args->given, 0, 999'999'999'999'999)},
                        {"--why", "TEXT", "For the journal", into(args->why)},
                        {"--dry-run", "", "Tell what would be done, and do nothing",
                         into(args->dry_run)}},
            .details =
                R"(Set the clock of the server first. The series goes on behind the numbers that it
has given today; the days ahead will, too, when they come. Programs may draw
meanwhile. The journal is the stream {NAME}:repairs.

  sluice number INV repair --why 'NTP of db1 was wrong')",
            .action = [&globals, args] { return repair(globals, *args); }}},
      .details = "  sluice number INV --zone Europe/Berlin     # INV202601020001",
      .action = [&globals, args] { return draw(globals, *args); }};
}

}  // namespace sluice::cli
