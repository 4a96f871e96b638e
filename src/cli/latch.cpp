/// `sluice latch NAME set N | count-down | show | wait [-- CMD]`: a gate that opens when the last
/// of N has reported.
#include "sluice/latch.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/exit_code.hpp"
#include "cli/hold_and_run.hpp"

namespace sluice::cli {
namespace {

struct LatchArgs {
  RunArgs run;
  std::int64_t count = 0;
  bool reset = false;
  std::int64_t by = 1;
  std::string part;
};

int print_count(const Globals& globals, const LatchArgs& args, std::int64_t count) {
  if (globals.json)
    fmt::print("{}\n", nlohmann::json{{"ok", true}, {"count", count}, {"open", count == 0}}.dump());
  else if (count == 0)
    fmt::print("latch '{}' is open\n", args.run.name);
  else
    fmt::print("latch '{}' opens after {} more\n", args.run.name, count);
  return exit_ok;
}

int set(const Globals& globals, const LatchArgs& args) {
  const auto store = open_store(globals);
  Latch latch{*store, args.run.name};
  if (args.reset) {
    latch.reset(args.count).get();
  } else if (!latch.try_set_count(args.count).get()) {
    const auto left = latch.count().get();
    fmt::print(stderr,
               "sluice: latch '{}' is not open, {} are still to report; set it all the same with "
               "--reset\n",
               args.run.name, left);
    if (globals.json)
      fmt::print("{}\n", nlohmann::json{{"ok", false}, {"count", left}, {"open", false}}.dump());
    return exit_refused;
  }
  return print_count(globals, args, args.count);
}

int count_down(const Globals& globals, const LatchArgs& args) {
  const auto store = open_store(globals);
  Latch latch{*store, args.run.name};
  return print_count(globals, args,
                     args.part.empty() ? latch.count_down(args.by).get()
                                       : latch.count_down_once(args.part, args.by).get());
}

int show(const Globals& globals, const LatchArgs& args) {
  const auto store = open_store(globals);
  return print_count(globals, args, Latch{*store, args.run.name}.count().get());
}

/// Nothing is held, so nothing can be lost.
int wait(const Globals& globals, const LatchArgs& args) {
  const Words words{
      .what = fmt::format("latch '{}'", args.run.name), .busy = "is not open", .done = "open"};
  return hold_and_run(globals, args.run, words, [&]() -> Acquire {
    const std::shared_ptr<Store> store = open_store(globals);
    const auto latch = std::make_shared<Latch>(*store, args.run.name);
    return [store, latch](std::chrono::milliseconds patience,
                          std::stop_token stop) -> std::optional<Holding> {
      if (!latch->try_wait(patience, std::move(stop)).get()) return std::nullopt;
      return Holding{.valid = [] { return true; }, .lost = {}, .release = [] {}, .token = {}};
    };
  });
}

using Verb = int (*)(const Globals&, const LatchArgs&);

}  // namespace

void add_latch_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const latch = app.add_subcommand(
      "latch", "Wait until the last of N has reported, then run a command, if there is one");
  latch->require_subcommand(0, 1);
  const auto args = std::make_shared<LatchArgs>();
  const auto runs = [&globals, &action, args](CLI::App* command, Verb verb) {
    command->final_callback([&globals, &action, args, verb] {
      action = [&globals, args, verb] { return verb(globals, *args); };
    });
  };
  add_run_options(*latch, args->run, "the latch");
  latch->final_callback([&globals, &action, args, latch] {
    if (latch->get_subcommands().empty())
      action = [&globals, args] { return wait(globals, *args); };
  });

  auto* verb = latch->add_subcommand("set", "Set the count of an open latch");
  verb->add_option("N", args->count, "How many have to report; with --reset 0 opens it")
      ->required();
  verb->add_flag("--reset", args->reset, "Also if the latch is not open");
  runs(verb, set);

  verb = latch->add_subcommand("count-down", "Report, and show how many are left");
  verb->add_option("--by", args->by, "Report so many at once")->capture_default_str();
  verb->add_option("--part", args->part,
                   "What is done: reported again, it counts once (for ten minutes)");
  runs(verb, count_down);

  runs(latch->add_subcommand("show", "Show how many are left"), show);

  verb =
      latch->add_subcommand("wait", "Wait until it is open, then run a command, if there is one");
  verb->add_option("--wait", args->run.wait, "How long: 0, 250ms, 5s, 2m")->capture_default_str();
  verb->add_option("CMD", args->run.command, "The command, after --");
  runs(verb, wait);
}

}  // namespace sluice::cli
