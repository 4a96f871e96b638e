/// `sluice locks`: who holds and who waits, of all locks of a server; as ps(1) does of processes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/process.hpp"
#include "cli/command.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/command_line/streams.hpp"
#include "cli/lock_text.hpp"
#include "cli/output.hpp"
#include "sluice/lock.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice::cli {
namespace {

struct LocksArgs {
  std::string name;
  bool exact = false;
  bool mine = false;
  bool graph = false;
  bool dot = false;
  bool force_release = false;
  bool watch = false;
  LockWatchOptions options;

  bool is_pattern() const {
    return !exact && (name.empty() || name.find_first_of("*?[") != std::string::npos);
  }
};

/// As holders write it.
std::string this_host() {
  std::string host = host_name();
  std::ranges::replace(host, ' ', '_');
  return host;
}

/// A line on stderr where the search takes longer than a moment.
class SearchProgress {
 public:
  explicit SearchProgress(const Globals& globals) : line_(globals.json, stderr) {}

  void operator()(const LockSearch& search) {
    if (system_clock().steady() < quiet_until_) return;
    line_.show(fmt::format("{} of {} keys looked at, {} locks found", search.looked_at, search.of,
                           search.found));
  }

 private:
  Progress line_;
  const SteadyTime quiet_until_ = system_clock().steady() + std::chrono::seconds{1};
};

void say_if_cut(bool complete, const LocksArgs& args) {
  if (!complete)
    complain("there are more than {} locks; narrow the search or raise --most", args.options.most);
}

int print_graph(const Globals& globals, const LocksArgs& args, LockWatch& watch) {
  LockReport report;
  {
    SearchProgress progress{globals};
    report = watch.report([&](const LockSearch& search) { progress(search); }).get();
  }
  say_if_cut(report.complete, args);
  if (globals.json)
    print(json_of(report));
  else
    put("{}", args.dot ? dot_of(report) : text_of(report));
  return report.deadlocks.empty() ? exit_ok : exit_deadlock;
}

int print_list(const Globals& globals, const LocksArgs& args, const LockList& list) {
  say_if_cut(list.complete, args);
  if (!globals.json) {
    put("{}", table_of(list.locks));
    return exit_ok;
  }
  Json rows = Json::array();
  for (const auto& lock : list.locks) rows.add(json_of(lock));
  print(Json::object({{"ok", true}, {"complete", list.complete}, {"locks", rows}}));
  return exit_ok;
}

int show_one(const Globals& globals, const LocksArgs& args, LockWatch& watch) {
  const auto lock = watch.look(args.name).get();
  if (globals.json) {
    LockList list;
    if (lock) list.locks.push_back(*lock);
    return print_list(globals, args, list);
  }
  put("{}",
      lock ? detail_of(*lock) : fmt::format("{}: nobody holds it or waits for it\n", args.name));
  return exit_ok;
}

int show(const Globals& globals, const LocksArgs& args, LockWatch& watch) {
  if (args.graph || args.dot) return print_graph(globals, args, watch);
  if (!args.is_pattern()) return show_one(globals, args, watch);
  LockList list;
  {
    SearchProgress progress{globals};
    list = watch.list([&](const LockSearch& search) { progress(search); }).get();
  }
  return print_list(globals, args, list);
}

/// Draws again and again, until a signal comes, or nobody can read it.
int show_for_ever(const Globals& globals, const LocksArgs& args, LockWatch& watch,
                  const StopOnSignal& stop) {
  const bool terminal = ::isatty(STDOUT_FILENO) == 1 && !globals.json;
  int code = exit_ok;
  do {
    if (terminal) put("\x1b[H\x1b[2J");
    code = show(globals, args, watch);
    if (!flush_output()) break;
  } while (stop.sleep_for(std::chrono::seconds{1}));
  return code;
}

/// Ends the holds of a lock, whatever they are.
bool force_release(Store& store, const WatchedLock& lock) {
  switch (lock.kind) {
    case LockKind::fair: return FairMutex{store, lock.name}.force_release().get();
    case LockKind::shared: return SharedMutex{store, lock.name}.force_release().get();
    case LockKind::mutex:
    case LockKind::foreign: return Mutex{store, lock.name}.force_release().get();
    case LockKind::semaphore:
    case LockKind::permits: break;
  }
  throw Error{
      Errc::bad_argument,
      fmt::format("'{}' is a semaphore: permits come back when their lease ends", lock.name)};
}

int release_one(const Globals& globals, const LocksArgs& args, Store& store, LockWatch& watch) {
  if (args.name.empty()) throw Error{Errc::bad_argument, "--force-release needs a NAME"};
  const auto lock = watch.look(args.name).get();
  const bool released = lock && !lock->info.holders.empty() && force_release(store, *lock);
  print(globals.json, Json::object({{"ok", released}, {"released", released}}),
        released ? fmt::format("released '{}', which was {}; its holder learns of it with its next "
                               "renewal",
                               args.name, holders_of(*lock))
                 : fmt::format("nobody holds '{}'", args.name));
  return released ? exit_ok : exit_refused;
}

int run(const Globals& globals, LocksArgs args) {
  if (args.mine && !args.options.host.empty())
    throw Error{Errc::bad_argument, "give either --mine or --host"};
  if (args.force_release) args.exact = true;
  if (args.is_pattern() && !args.name.empty()) args.options.pattern = args.name;
  if (args.mine) args.options.host = this_host();
  std::optional<StopOnSignal> stop;
  if (args.watch) stop.emplace();
  const auto store = open_store(globals);
  LockWatch watch{*store, args.options};
  if (args.force_release) return release_one(globals, args, *store, watch);
  return stop ? show_for_ever(globals, args, watch, *stop) : show(globals, args, watch);
}

}  // namespace

Command locks_command(const Globals& globals) {
  const auto args = std::make_shared<LocksArgs>();
  return {
      .name = "locks",
      .summary = "Who holds and who waits, of all locks of a server",
      .arguments = {{"NAME", "One lock in detail; or those that a pattern with * ? [ matches",
                     into(args->name), false}},
      .options = {{"--exact", "", "NAME is a name, whatever is in it", into(args->exact)},
                  {"--mine", "", "Only what this machine holds or waits for", into(args->mine)},
                  {"--host", "NAME", "Only what that machine holds or waits for",
                   into(args->options.host)},
                  {"--most", "N", "How many locks at most", into(args->options.most, 1, 1'000'000)},
                  {"--step", "N", "How many keys the server looks at without serving others",
                   into(args->options.step, 1, 100'000)},
                  {"--graph", "", "Who waits for whom, and the deadlocks; then the exit code is 80",
                   into(args->graph)},
                  {"--dot", "", "The graph for graphviz: dot -Tsvg", into(args->dot)},
                  {"--watch", "", "Once a second, until a signal comes", into(args->watch)},
                  {"--force-release", "", "End all holds of the lock NAME",
                   into(args->force_release)}},
      .action = [&globals, args] { return run(globals, *args); }};
}

}  // namespace sluice::cli
