/// `sluice latch NAME set N | count-down | show | wait [-- CMD]`: a gate that opens when the last
/// of N has reported.
#include "sluice/latch.hpp"

#include "cli/command_line/exit_code.hpp"
#include "cli/hold_and_run.hpp"
#include "cli/output.hpp"

namespace sluice::cli {
namespace {

struct LatchArgs {
  RunArgs run;
  std::int64_t count = 0;
  bool reset = false;
  std::int64_t by = 1;
  std::string part;
};

Json latch_json(bool ok, std::int64_t count) {
  return Json::object({{"ok", ok}, {"count", count}, {"open", count == 0}});
}

int print_count(const Globals& globals, const LatchArgs& args, std::int64_t count) {
  print(globals.json, latch_json(true, count),
        count == 0 ? fmt::format("latch '{}' is open", args.run.name)
                   : fmt::format("latch '{}' opens after {} more", args.run.name, count));
  return exit_ok;
}

int set(const Globals& globals, const LatchArgs& args) {
  const auto store = open_store(globals);
  Latch latch{*store, args.run.name};
  warn_if_in_memory(globals, "the latch");
  if (args.reset) {
    latch.reset(args.count).get();
  } else if (!latch.try_set_count(args.count).get()) {
    const auto left = latch.count().get();
    complain("latch '{}' is not open, {} are still to report; set it all the same with --reset",
             args.run.name, left);
    if (globals.json) print(latch_json(false, left));
    return exit_refused;
  }
  return print_count(globals, args, args.count);
}

/// Nobody has to report to such a latch, so it stops no waiter.
std::string not_set(const LatchArgs& args) {
  return fmt::format(
      "latch '{}' is not set, or was open for long; set it with "
      "'sluice latch {} set N'",
      args.run.name, args.run.name);
}

int print_not_set(const Globals& globals, const LatchArgs& args) {
  print(globals.json, latch_json(true, 0).add("set", false), not_set(args));
  return exit_ok;
}

int count_down(const Globals& globals, const LatchArgs& args) {
  const auto store = open_store(globals);
  Latch latch{*store, args.run.name};
  const auto left = args.part.empty() ? latch.count_down(args.by).get()
                                      : latch.count_down_once(args.part, args.by).get();
  if (left == 0 && latch.state().get() == LatchState::not_set)  // the report went to no latch
    return print_not_set(globals, args);
  return print_count(globals, args, left);
}

int show(const Globals& globals, const LatchArgs& args) {
  const auto store = open_store(globals);
  Latch latch{*store, args.run.name};
  if (latch.state().get() == LatchState::not_set) return print_not_set(globals, args);
  return print_count(globals, args, latch.count().get());
}

/// Nothing is held, so nothing can be lost.
Resource prepare(const Globals& globals, const LatchArgs& args, const OpenOptions& how) {
  const std::shared_ptr<Store> store = open_store(globals, how);
  const auto latch = std::make_shared<Latch>(*store, args.run.name);
  const auto acquire = [store, latch, &args](std::chrono::milliseconds time,
                                             std::stop_token stop) -> std::optional<Holding> {
    const LatchState state = latch->state(time, std::move(stop)).get();
    if (state == LatchState::closed) return std::nullopt;
    if (state == LatchState::not_set) complain_line(not_set(args));
    return Holding{.valid = [] { return true; }, .lost = {}, .release = [] {}, .token = {}};
  };
  const auto obstacle = [store, latch] {
    return fmt::format("{} are still to report", latch->count().get());
  };
  return {.acquire = acquire, .obstacle = obstacle};
}

int wait(const Globals& globals, const LatchArgs& args) {
  const Phrases phrases{.what = fmt::format("latch '{}'", args.run.name),
                        .busy = "is not open",
                        .done = "open",
                        .needs_command = false};
  return hold_and_run(globals, args.run, phrases,
                      [&](const OpenOptions& how) { return prepare(globals, args, how); });
}

}  // namespace

Command latch_command(const Globals& globals) {
  const auto args = std::make_shared<LatchArgs>();
  const auto runs = [&globals, args](int (*verb)(const Globals&, const LatchArgs&)) {
    return [&globals, args, verb] { return verb(globals, *args); };
  };
  return {
      .name = "latch",
      .summary = "Wait until the last of N has reported, then run a command, if there is one",
      .arguments = {{"NAME", "Name of the latch", into(args->run.name)},
                    {"CMD", "The command", into(args->run.command), false, true}},
      .options = wait_options(args->run, "the latch"),
      .commands = {{.name = "set",
                    .summary = "Set the count of an open latch",
                    .arguments = {{"N", "How many have to report; with --reset 0 opens it",
                                   into(args->count, 0, Latch::largest_count)}},
                    .options = {{"--reset", "", "Also if the latch is not open",
                                 into(args->reset)}},
                    .action = runs(set)},
                   {.name = "count-down",
                    .summary = "Report, and show how many are left",
                    .options = {{"--by", "N", "Report so many at once",
                                 into(args->by, 1, Latch::largest_count)},
                                {"--part", "NAME",
                                 "What is done: reported again within ten minutes, it counts once",
                                 into(args->part)}},
                    .action = runs(count_down)},
                   {.name = "show", .summary = "Show how many are left", .action = runs(show)},
                   {.name = "wait",
                    .summary = "Wait until it is open, then run a command, if there is one",
                    .arguments = {command_argument(args->run)},
                    .options = wait_options(args->run, "the latch"),
                    .action = runs(wait)}},
      .details = R"(  sluice latch import set 3
  sluice latch import count-down --part one
  sluice latch import --wait 1h -- ./publish)",
      .action = runs(wait)};
}

}  // namespace sluice::cli
