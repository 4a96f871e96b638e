#include "cli/hold_and_run.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cli/child.hpp"
#include "cli/exit_code.hpp"
#include "cli/signals.hpp"

namespace sluice::cli {
namespace {

class Run {
 public:
  Run(const Globals& globals, const RunArgs& args, const Words& words)
      : globals_(globals), args_(args), words_(words) {}

  int operator()(const Prepare& prepare) {
    block_child_signals();
    const auto wait = parse_duration(args_.wait);
    grace_ = parse_duration(args_.grace);
    std::optional<StopOnSignal> interrupted;
    interrupted.emplace(std::initializer_list<int>{SIGINT, SIGTERM, SIGHUP, SIGQUIT});
    const Acquire acquire = prepare();
    std::optional<Holding> holding = acquire(wait, interrupted->token());
    const int signal = interrupted->signal();
    interrupted.reset();
    if (signal != 0) {
      if (holding) holding->release();
      return say("interrupted", 128 + signal);
    }
    if (!holding) return busy();
    token_ = holding->token;
    return run(*holding);
  }

 private:
  int busy() {
    fmt::print(stderr, "sluice: {} {}; waited {}. Wait longer with --wait\n", words_.what,
               words_.busy, args_.wait);
    return say("busy", exit_refused);
  }

  int run(const Holding& holding) {
    if (args_.command.empty()) {
      holding.release();
      return say(words_.done, exit_ok);
    }
    if (token_) ::setenv("SLUICE_TOKEN", std::to_string(*token_).c_str(), 1);
    ChildResult result;
    try {
      result = run_child(args_.command, holding.lost, grace_);
    } catch (const std::system_error& failure) {
      holding.release();
      return cannot_start(failure);
    }
    if (result.ended_by_us || !holding.valid()) {
      fmt::print(stderr,
                 "sluice: {} was lost before the command had ended; another may hold it now\n",
                 words_.what);
      return say("lost", exit_lost);
    }
    holding.release();
    return say(words_.done, result.exit_code);
  }

  int cannot_start(const std::system_error& failure) {
    fmt::print(stderr, "sluice: cannot run '{}'\n", failure.what());
    return say("not started", failure.code() == std::errc::no_such_file_or_directory
                                  ? exit_not_found
                                  : exit_not_executable);
  }

  int say(std::string_view outcome, int exit_code) const {
    if (!globals_.json) return exit_code;
    nlohmann::json json{
        {"ok", outcome == words_.done}, {"outcome", outcome}, {"exit_code", exit_code}};
    if (token_) json["token"] = std::to_string(*token_);
    fmt::print("{}\n", json.dump());
    return exit_code;
  }

  const Globals& globals_;
  const RunArgs& args_;
  const Words& words_;
  std::chrono::milliseconds grace_{};
  std::optional<std::uint64_t> token_;
};

}  // namespace

std::string RunArgs::label_or_command() const {
  if (!label.empty() || command.empty()) return label;
  return std::filesystem::path{command.front()}.filename().string();
}

void add_run_options(CLI::App& command, RunArgs& args, const std::string& what) {
  command.add_option("NAME", args.name, "Name of " + what)->required();
  command.add_option("--wait", args.wait, "How long to wait for " + what + ": 0, 250ms, 5s, 2m")
      ->capture_default_str();
  command.add_option("CMD", args.command, "The command, after --");
}

void add_hold_options(CLI::App& command, RunArgs& args) {
  command.get_option("CMD")->required();
  command
      .add_option("--lease", args.lease,
                  "How long a dead holder keeps it; renewed while the command runs")
      ->capture_default_str();
  command.add_option("--grace", args.grace, "Between TERM and KILL when the hold is lost")
      ->capture_default_str();
  command.add_option("--label", args.label,
                     "What 'sluice locks' shows of this holder; default: the command");
}

int hold_and_run(const Globals& globals, const RunArgs& args, const Words& words,
                 const Prepare& prepare) {
  return Run{globals, args, words}(prepare);
}

}  // namespace sluice::cli
