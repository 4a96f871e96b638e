/// `sluice locks`: who holds and who waits, of all locks of a server; as ps(1) does of processes.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "cli/command.hpp"
#include "cli/exit_code.hpp"
#include "cli/lock_text.hpp"
#include "cli/progress.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice::cli {
namespace {

struct LocksArgs {
  std::string name;
  bool exact = false;
  bool mine = false;
  bool graph = false;
  bool dot = false;
  LockWatchOptions options;

  bool is_pattern() const {
    return !exact && (name.empty() || name.find_first_of("*?[") != std::string::npos);
  }
};

/// As holders write it.
std::string this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  std::string host{name.data()};
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
    fmt::print(stderr, "sluice: there are more than {} locks; narrow the search or raise --most\n",
               args.options.most);
}

int print_graph(const Globals& globals, const LocksArgs& args, LockWatch& watch) {
  LockReport report;
  {
    SearchProgress progress{globals};
    report = watch.report([&](const LockSearch& search) { progress(search); }).get();
  }
  say_if_cut(report.complete, args);
  if (globals.json)
    fmt::print("{}\n",
               json_of(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  else
    fmt::print("{}", args.dot ? dot_of(report) : text_of(report));
  return report.deadlocks.empty() ? exit_ok : exit_deadlock;
}

int print_list(const Globals& globals, const LocksArgs& args, const LockList& list) {
  say_if_cut(list.complete, args);
  if (!globals.json) {
    fmt::print("{}", table_of(list.locks));
    return exit_ok;
  }
  auto rows = nlohmann::json::array();
  for (const auto& lock : list.locks) rows.push_back(json_of(lock));
  const nlohmann::json json{{"ok", true}, {"complete", list.complete}, {"locks", std::move(rows)}};
  fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return exit_ok;
}

int show_one(const Globals& globals, const LocksArgs& args, LockWatch& watch) {
  const auto lock = watch.look(args.name).get();
  if (globals.json) {
    LockList list;
    if (lock) list.locks.push_back(*lock);
    return print_list(globals, args, list);
  }
  fmt::print("{}", lock ? detail_of(*lock)
                        : fmt::format("{}: nobody holds it or waits for it\n", args.name));
  return exit_ok;
}

int run(const Globals& globals, LocksArgs args) {
  if (args.is_pattern() && !args.name.empty()) args.options.pattern = args.name;
  if (args.mine) args.options.host = this_host();
  const auto store = open_store(globals);
  LockWatch watch{*store, args.options};
  if (args.graph || args.dot) return print_graph(globals, args, watch);
  if (!args.is_pattern()) return show_one(globals, args, watch);
  LockList list;
  {
    SearchProgress progress{globals};
    list = watch.list([&](const LockSearch& search) { progress(search); }).get();
  }
  return print_list(globals, args, list);
}

}  // namespace

void add_locks_command(CLI::App& app, const Globals& globals, Action& action) {
  auto* const command =
      app.add_subcommand("locks", "Who holds and who waits, of all locks of a server");
  const auto args = std::make_shared<LocksArgs>();
  command->add_option("NAME", args->name,
                      "One lock in detail; or those that a pattern with * ? [ matches");
  command->add_flag("--exact", args->exact, "NAME is a name, whatever is in it");
  command->add_flag("--mine", args->mine, "Only what somebody on this machine holds or waits for");
  command->add_option("--host", args->options.host, "... on that machine")->excludes("--mine");
  command->add_option("--most", args->options.most, "How many locks at most")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  command
      ->add_option("--step", args->options.step,
                   "How many keys the server looks at without serving others")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  command->add_flag("--graph", args->graph,
                    "Who waits for whom, and whether in a circle; then the exit code is 80");
  command->add_flag("--dot", args->dot, "The graph for graphviz: dot -Tsvg");
  command->callback(
      [&globals, &action, args] { action = [&globals, args] { return run(globals, *args); }; });
}

}  // namespace sluice::cli
