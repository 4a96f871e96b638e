#include "cli/hold_and_run.hpp"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/duration.hpp"
#include "cli/child.hpp"
#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/signals.hpp"
#include "cli/output.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice::cli {
namespace {

using std::chrono::milliseconds;

/// A shorter --wait may be over before a store far away can have answered.
constexpr milliseconds least_for_a_store{500};

std::string told_by(const std::function<std::string()>& obstacle) {
  try {
    return obstacle();
  } catch (const std::exception&) {
    return {};  // the command itself meets the same failure, and tells it
  }
}

milliseconds left_until(SteadyTime deadline) {
  return std::max(std::chrono::ceil<milliseconds>(deadline - system_clock().steady()),
                  milliseconds{0});
}

/// After a second of waiting: one line on stderr that says for what.
class WaitNotice {
 public:
  WaitNotice(bool wanted, const Phrases& phrases, std::function<std::string()> obstacle) {
    if (!wanted) return;
    thread_ = std::jthread{[&phrases, obstacle = std::move(obstacle)](std::stop_token stop) {
      if (!sleep_for(std::chrono::seconds{1}, stop)) return;
      const std::string why = told_by(obstacle);
      if (!stop.stop_requested())
        complain("waiting for {}{}{}", phrases.what, why.empty() ? "" : ": ", why);
    }};
  }

 private:
  std::jthread thread_;
};

class Run {
 public:
  Run(const Globals& globals, const RunArgs& args, const Phrases& phrases)
      : globals_(globals), args_(args), phrases_(phrases), command_(args.command) {
    if (!args.shell_command.empty()) {
      if (!command_.empty()) throw Error{Errc::bad_argument, "give either -c or a command"};
      command_ = {"/bin/sh", "-c", args.shell_command};
    }
    if (command_.empty() && phrases.needs_command)
      throw Error{Errc::bad_argument, "give a command, after --, or with -c"};
  }

  int operator()(const Prepare& prepare) {
    prepare_signals();
    std::optional<StopOnSignal> interrupted;
    interrupted.emplace(
        std::initializer_list<int>{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2});
    std::optional<Holding> holding = enter(prepare, interrupted->token());
    const int signal = interrupted->finish();
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
  std::optional<Holding> enter(const Prepare& prepare, const std::stop_token& stop) {
    const bool tell = globals_.verbose || ::isatty(STDERR_FILENO) == 1;
    const auto deadline = Clock::add(system_clock().steady(), args_.wait);
    bool told = false;
    for (milliseconds pause{100};; pause = std::min(2 * pause, milliseconds{2000})) {
      try {
        if (!resource_ || resource_->incomplete) resource_ = prepare(within(left_until(deadline)));
        const WaitNotice notice{tell, phrases_, resource_->obstacle};
        return resource_->acquire(left_until(deadline), stop);
      } catch (const Error& failure) {
        const bool may_pass = failure.errc() == Errc::connection ||
                              failure.errc() == Errc::timeout || failure.errc() == Errc::in_use;
        const auto left = left_until(deadline);
        if (!may_pass || left.count() == 0) throw;
        if (!std::exchange(told, true))
          complain("{}: {}; trying again for {}", phrases_.what, failure.message(),
                   duration_text(args_.wait));
        if (!sleep_for(std::min(pause, left), stop)) return std::nullopt;
      }
    }
  }

  /// How to open a store. A caller that does not wait at all gives it the usual time all the same.
  OpenOptions within(milliseconds left) const {
    OpenOptions options;
    if (args_.wait.count() > 0) options.open_timeout = std::max(left, least_for_a_store);
    return options;
  }

  int busy() {
    const std::string why = told_by(resource_->obstacle);
    const std::string state = why.empty()                   ? phrases_.busy
                              : why.starts_with("held by ") ? "is " + why
                                                            : phrases_.busy + ": " + why;
    complain("{} {}; {}", phrases_.what, state,
             args_.wait.count() == 0 ? "wait for it with --wait"
                                     : "waited " + duration_text(args_.wait));
    return say("busy", exit_refused);
  }

  int run(const Holding& holding) {
    if (command_.empty()) {
      holding.release();
      return say(phrases_.done, exit_ok);
    }
    if (token_) ::setenv("SLUICE_TOKEN", std::to_string(*token_).c_str(), 1);
    ::setenv(ancestors_variable, ancestors_of_child().c_str(), 1);
    ChildResult result;
    try {
      result = run_child(command_, holding.lost, args_.grace);
    } catch (const std::system_error& failure) {
      holding.release();
      return cannot_start(failure.code());
    }
    if (result.ended_by_us || !holding.valid()) {
      complain("{} was lost before the command had ended; another may hold it now", phrases_.what);
      return say("lost", exit_lost);
    }
    holding.release();
    return say(phrases_.done, result.exit_code);
  }

  int cannot_start(const std::error_code& why) {
    complain("cannot run '{}': {}", command_.front(), why.message());
    return say("not started",
               why == std::errc::no_such_file_or_directory ? exit_not_found : exit_not_executable);
  }

  int say(std::string_view outcome, int exit_code) const {
    if (!globals_.json) return exit_code;
    Json json = Json::object(
        {{"ok", outcome == phrases_.done}, {"outcome", outcome}, {"exit_code", exit_code}});
    if (token_) json.add("token", std::to_string(*token_));
    print(json);
    return exit_code;
  }

  const Globals& globals_;
  const RunArgs& args_;
  const Phrases& phrases_;
  std::vector<std::string> command_;
  std::optional<Resource> resource_;  ///< must outlive what is held of it
  std::optional<std::uint64_t> token_;
};

}  // namespace

std::string RunArgs::label_or_command() const {
  if (!label.empty()) return label;
  if (!shell_command.empty()) return "sh";
  return command.empty() ? "" : std::filesystem::path{command.front()}.filename().string();
}

Argument command_argument(RunArgs& args) {
  return {"CMD", "The command; write -- before one that has options", into(args.command), false};
}

std::vector<Option> wait_options(RunArgs& args, const std::string& what) {
  const auto no_wait = [&args](const std::string&) { args.wait = milliseconds{0}; };
  return {{"-w, --wait", "TIME",
           "How long to wait for " + what +
               ", and for a store that cannot be reached or a folder in use: 0, 250ms, 5s",
           into(args.wait)},
          {"-n, --nonblock", "", "Do not wait, as --wait 0",
           Target{Target::Takes::nothing, no_wait, {}}},
          {"-c, --command", "TEXT", "The command, for /bin/sh", into(args.shell_command)}};
}

Command command_that_holds(std::string name, std::string summary, RunArgs& args,
                           const std::string& what, std::vector<Option> options) {
  for (const auto& option : wait_options(args, what)) options.push_back(option);
  options.push_back({"--lease", "TIME",
                     "How long a dead holder keeps it; renewed while the command runs",
                     into(args.lease)});
  options.push_back(
      {"--grace", "TIME", "Between TERM and KILL when the hold is lost", into(args.grace)});
  options.push_back({"--label", "TEXT",
                     "What 'sluice locks' shows of this holder; else the command",
                     into(args.label)});
  return {.name = std::move(name),
          .summary = std::move(summary),
          .arguments = {{"NAME", "Name of " + what, into(args.name)}, command_argument(args)},
          .options = std::move(options)};
}

int hold_and_run(const Globals& globals, const RunArgs& args, const Phrases& phrases,
                 const Prepare& prepare) {
  return Run{globals, args, phrases}(prepare);
}

}  // namespace sluice::cli
