// `sluice engine move`: all keys to another store.
#include <fmt/format.h>

#include "base/json.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/engine/commands.hpp"
#include "cli/engine/move.hpp"

namespace sluice::cli {
namespace {

Json report_of(const EngineArgs& args, const Move& move) {
  auto refused = Json::array();
  for (const auto& [key, why] : move.refused())
    refused.add(Json::object({{"database", key.first}, {"key", key.second}, {"why", why}}));
  auto report = Json::object({{"moved", move.refused().empty()},
                              {"copied", move.copied()},
                              {"compared", move.compared()},
                              {"refused", refused}});
  if (!args.is_still) report.add("paused_ms", move.paused_for().count());
  if (!move.digest().empty()) report.add("digest", move.digest());
  return report;
}

void tell_end(const EngineArgs& args, const Move& move) {
  if (args.json) {
    put("{}\n", report_of(args, move).text());
  } else if (!move.refused().empty()) {
    put("{} keys were refused, and programs stay where they are\n", move.refused().size());
  } else {
    put("moved: {} keys copied, {} compared\n", move.copied(), move.compared());
    if (!args.is_still) put("writes were paused for {} ms\n", move.paused_for().count());
    if (!move.digest().empty()) put("digest of both: {}\n", move.digest());
  }
  flush_output();
}

/// False: keys were refused, or it was stopped.
bool run(Move& move, const StopOnSignal& signals) {
  try {
    return move.run();
  } catch (const Error&) {
    if (!signals.token().stop_requested()) throw;
    complain("it was stopped: run it again, and it goes on");
    return false;
  }
}

int move_keys(const EngineArgs& args) {
  const StopOnSignal signals;  // before any other thread
  Move move{{.source = args.source,
             .target = args.target,
             .is_still = args.is_still,
             .into_used = args.into_used,
             .compares_all = args.compares_all,
             .stop = signals.token(),
             .tell = [](std::string_view line) { complain_line(line); }}};
  const bool moved = run(move, signals);
  if (!moved && move.refused().empty()) return exit_refused;
  for (const auto& [key, why] : move.refused())
    complain("refused: '{}' of database {}: {}", key.second, key.first, why);
  tell_end(args, move);
  if (!moved) return exit_bad_data;
  if (args.is_still || args.hold.count() == 0) return exit_ok;
  complain("writes at the source stay paused for {} ms, or until INT or TERM", args.hold.count());
  const auto until = system_clock().steady() + args.hold;
  for (auto now = until - args.hold; now < until; now = system_clock().steady()) {
    move.pause();
    if (!signals.sleep_for(std::min<std::chrono::nanoseconds>(until - now, Move::renewal))) break;
  }
  return exit_ok;
}

}  // namespace

Command move_command(EngineArgs& args) {
  return {
      .name = "move",
      .summary = "Copy all keys of a store to another, while programs run on it",
      .arguments = {{"SOURCE", "The URL of the store that has the keys", into(args.source)},
                    {"TARGET", "The URL of the store to be", into(args.target)}},
      .options = {{"--hold", "TIME", "Keep writes at the source paused so long when all is done",
                   into(args.hold)},
                  {"--still", "", "No program writes at the source: watch no changes, pause none",
                   into(args.is_still)},
                  {"--into-used", "", "The target may have keys of its own", into(args.into_used)},
                  {"--compare-paused", "", "Compare all keys once more while writes are paused",
                   into(args.compares_all)}},
      .details =
          "Programs are pointed to the target while --hold keeps writes paused. Killed or "
          "interrupted before, run it again, and it goes on. Keys that the target refuses "
          "are named, and it ends with 65 before it pauses anything.",
      .action = [&args] { return move_keys(args); }};
}

}  // namespace sluice::cli
