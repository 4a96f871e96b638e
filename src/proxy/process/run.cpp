#include "proxy/process/run.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "proxy/config/read.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/process/daemon.hpp"
#include "proxy/process/handover.hpp"
#include "proxy/process/log_file.hpp"
#include "proxy/process/serving.hpp"
#include "proxy/process/signals.hpp"
#include "sluice/error.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::process {
namespace {

constexpr int failed = 1;

void say(std::string_view text) { fmt::print(stderr, "{}", text); }

/// Empty: the file is bad, and the log says why.
std::optional<Config> configuration(const std::string& file, Config (*read)(const std::string&)) {
  try {
    return read(file);
  } catch (const std::system_error& bad) {
    log(LogLevel::error, bad.what());
    return std::nullopt;
  }
}

int test_configuration(const Options& options) {
  const bool ok = configuration(options.conf_file, test_config).has_value();
  say(test_conf_text(options.conf_file, ok));
  return ok ? 0 : failed;
}

std::string started(const Program& program) {
  utsname system{};
  ::uname(&system);
  return fmt::format("sluice-{} in the place of nutcracker-{} built for {} {} {} started on pid {}",
                     program.version, nutcracker_version, system.sysname, system.release,
                     system.machine, ::getpid());
}

int serve(const Options& options, const Program& program, LogFile& log) {
  std::optional<Daemon> daemon;
  auto inherited = InheritedSockets::take();
  if (options.daemonize && !inherited.is_successor()) daemon.emplace(Daemon::start());
  Signals signals;
  signals.tell_crashes(options.log_file);
  log.write(LogSeverity::notice, started(program));
  auto config =
      configuration(options.conf_file, config::check);  // the pools read their certificates
  if (!config) {
    say(test_conf_text(options.conf_file, false));
    return failed;
  }
  raise_descriptor_limit();
  Serving serving{options, program, std::move(*config), {log, signals, inherited}};
  std::optional<PidFile> pid_file;
  if (!options.pid_file.empty()) pid_file.emplace(options.pid_file);
  if (daemon) daemon->ready();
  inherited.ready();
  const int code = serving.run();
  log.write(LogSeverity::notice, "done");
  return code;
}

/// The file that an upgrade starts: the path by which this process was started, where it is one,
/// since the path may be a link that leads to a new version by now.
std::string path_of(const Program& program) {
  namespace fs = std::filesystem;
  const bool named =
      !program.arguments.empty() && program.arguments[0].find('/') != std::string::npos;
  return named ? fs::absolute(program.arguments[0]).string()
               : fs::read_symlink("/proc/self/exe").string();
}

/// Tells the terminal, too, when the log goes elsewhere.
int refuse(const Options& options, LogFile& log, const std::exception& why) {
  log.write(LogSeverity::emergency, why.what());
  if (!options.log_file.empty()) say(fmt::format("nutcracker: {}\n", why.what()));
  return failed;
}

}  // namespace

Config test_config(const std::string& path) {
  auto config = config::check(path);
  for (const auto& pool : config.pools) flow::PoolTls::read(pool);
  return config;
}

int run(const Options& options, Program program) try {
  program.path = path_of(program);
  LogFile log{options.log_file, options.log_level};
  log.take_library_log();
  try {
    return options.test_conf ? test_configuration(options) : serve(options, program, log);
  } catch (const std::system_error& failure) {
    return refuse(options, log, failure);
  }
} catch (const Error& no_log) {
  say(fmt::format("{}\n", no_log.what()));
  return failed;
}

}  // namespace sluice::proxy::process
