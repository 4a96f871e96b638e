#include "proxy/process/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <future>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/json.hpp"
#include "net/notice.hpp"
#include "proxy/config/inspect.hpp"
#include "proxy/config/read.hpp"
#include "proxy/process/daemon.hpp"
#include "proxy/process/handover.hpp"
#include "proxy/process/log_file.hpp"
#include "proxy/process/services.hpp"
#include "proxy/process/signals.hpp"
#include "sluice/error.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::process {
namespace {

using namespace std::chrono_literals;

constexpr int failed = 1;
constexpr auto drain_look = 10ms;  // between two looks whether the last client has left
constexpr std::size_t most_listed = 10'000;

std::string as_json(const std::vector<ClientFigures>& clients) {
  auto all = Json::array();
  for (const auto& client : clients)
    all.add(Json::object({{"id", client.id},
                          {"pool", client.pool},
                          {"address", client.address},
                          {"idle_ms", client.idle.count()},
                          {"under_way", client.under_way},
                          {"bytes", client.bytes}}));
  return all.text();
}

/// Work that other threads leave to the main thread, which alone reloads, upgrades and drains.
class TaskQueue {
 public:
  using Job = std::function<std::string()>;

  TaskQueue() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd") {}
  ~TaskQueue() { end(); }

  /// Any thread but the main one: waits for run_all(), returns what `job` returned or throws what
  /// it threw. Throws Error{closed} after end().
  std::string ask(Job job) {
    Task task{[this, job = std::move(job)] {
      if (has_ended()) throw ending();
      return job();
    }};
    auto done = task.get_future();
    {
      const std::lock_guard lock{mutex_};
      if (ended_) throw ending();
      asked_.push_back(std::move(task));
    }
    static_cast<void>(::eventfd_write(wake_.number(), 1));
    return done.get();
  }

  /// Readable when there is work.
  int descriptor() const noexcept { return wake_.number(); }
  void run_all() {
    eventfd_t count = 0;
    static_cast<void>(::eventfd_read(wake_.number(), &count));
    for (auto& task : take()) task();
  }
  /// Every ask(), now waiting or to come, throws.
  void end() {
    {
      const std::lock_guard lock{mutex_};
      ended_ = true;
    }
    for (auto& task : take()) task();
  }

 private:
  using Task = std::packaged_task<std::string()>;

  static Error ending() { return {Errc::closed, "the proxy is ending"}; }
  bool has_ended() {
    const std::lock_guard lock{mutex_};
    return ended_;
  }
  std::deque<Task> take() {
    const std::lock_guard lock{mutex_};
    return std::exchange(asked_, {});
  }

  const Descriptor wake_;
  std::mutex mutex_;
  std::deque<Task> asked_;
  bool ended_ = false;
};

/// The service manager is told that a reload begins and, however it goes, that it is over.
struct ReloadNotice {
  ReloadNotice() { net::tell_manager("RELOADING=1"); }
  ~ReloadNotice() { net::tell_manager("READY=1"); }
  ReloadNotice(const ReloadNotice&) = delete;
  ReloadNotice& operator=(const ReloadNotice&) = delete;
};

/// What it is given by its process.
struct ProcessParts {
  LogFile& log;
  Signals& signals;
  InheritedSockets& inherited;
};

/// The proxy and the services beside it, from ready to ended. The main thread carries out what
/// signals and the administration ask for, one after the other.
class Serving {
 public:
  /// Opens every socket that the configuration names. Throws Error or std::system_error.
  Serving(const Options& options, const Program& program, Config config, ProcessParts parts)
      : options_(options),
        program_(program),
        log_(parts.log),
        signals_(parts.signals),
        generation_(parts.inherited.generation()),
        predecessor_(parts.inherited.predecessor()),
        actions_(actions()),
        proxy_(system_clock(), std::move(config), options.mbuf_size, parts.inherited.take_pools()) {
    const auto open = [&](std::string_view what, const net::Endpoint& endpoint) {
      auto listening = parts.inherited.open(what, endpoint);
      services_[service_name(what, endpoint)] = listening.descriptor();
      return listening;
    };
    auto services =
        open_services(options_, proxy_.config().process,
                      {proxy_.registry(), actions_, system_clock(), program.version}, open);
    apply(plan_descriptors(proxy_.config()));
    proxy_.inherit_clients(parts.inherited.take_channels(), generation_);
    proxy_.start();
    management_.emplace(std::move(services), system_clock());
  }
  ~Serving() {
    tasks_.end();  // the management server may wait for a task
  }

  /// Serves until a signal or the administration ends it; the exit code.
  int run();

 private:
  AdminActions actions();

  void wait() {
    std::array<pollfd, 2> waits{
        {{signals_.descriptor(), POLLIN, 0}, {tasks_.descriptor(), POLLIN, 0}}};
    const int patience = drained_by_ ? static_cast<int>(drain_look.count()) : -1;
    if (::poll(waits.data(), waits.size(), patience) < 0 && errno != EINTR)
      throw std::system_error{errno, std::generic_category(), "poll"};
  }

  void obey(const Signal& signal);

  void set_level(int level) {
    log_.set_level(level);
    log_.write(LogSeverity::alert, fmt::format("the log level is {} now", log_.level()));
  }

  void drain(std::string_view why, std::vector<Descriptor> to_successor = {}, char version = 0) {
    if (drained_by_) return;
    const auto patience = proxy_.config().process.drain_timeout;
    log_.write(LogSeverity::notice,
               fmt::format("{}: no more clients are accepted, those that are here have {} ms", why,
                           patience.count()));
    drained_by_ = system_clock().steady() + patience;
    proxy_.drain(std::move(to_successor), version);
  }

  void stop(std::string_view why) {
    if (!drained_by_) net::tell_manager("STOPPING=1");
    drain(why);
  }

  void apply(const DescriptorPlan& plan) noexcept {
    proxy_.set_most_connections(plan.connections, plan.clients);
  }
  std::string reload();
  void try_reload();
  std::string move(std::span<const std::string_view> words);

  std::string check() {
    return text_of(config::diff(proxy_.config(), test_config(options_.conf_file)));
  }

  std::string upgrade() {
    if (drained_by_) throw Error{Errc::closed, "it is ending, or has a successor already"};
    if (proxy_.move_state().phase)
      throw Error{Errc::bad_argument,
                  "keys move to other servers, of which a successor would not know"};
    auto successor = start_successor(program_.path, program_.arguments,
                                     {.pools = proxy_.listening(),
                                      .services = services_,
                                      .channels = proxy_.config().process.workers,
                                      .generation = generation_ + 1});
    management_->hand_on();
    net::tell_manager(fmt::format("MAINPID={}", successor.process));
    auto text =
        fmt::format("upgraded: process {} serves, {} leaves", successor.process, ::getpid());
    drain(text, std::move(successor.channels), successor.version);
    has_successor_ = true;
    try_reload();  // the file that the successor has read
    return text;
  }
  /// What clients here are amid of goes by the successor's settings.
  std::string follow() {
    proxy_.follow(config::check(options_.conf_file));
    tell_predecessor();
    const auto text = fmt::format("the successor's '{}' is followed", options_.conf_file);
    log_.write(LogSeverity::notice, text);
    return text;
  }
  /// It is our parent as long as it lives; that of an older version only logs it.
  void tell_predecessor() const {
    if (predecessor_ != 0 && ::getppid() == predecessor_)
      static_cast<void>(::kill(predecessor_, SIGUSR1));
  }

  const Options& options_;
  const Program& program_;
  LogFile& log_;
  Signals& signals_;
  const std::uint64_t generation_;  // how many processes were before this one, upgrade by upgrade
  const int predecessor_;           // the one before; 0: none that is known
  bool has_successor_ = false;
  TaskQueue tasks_;
  AdminActions actions_;
  Proxy proxy_;
  std::optional<ManagementServer> management_;
  std::map<std::string, int> services_;   // descriptors, by service_name()
  std::optional<SteadyTime> drained_by_;  // while it drains
  std::optional<int> exit_code_;
};

AdminActions Serving::actions() {
  AdminActions actions;
  actions.reload = [this] { return tasks_.ask([this] { return reload(); }); };
  actions.check_config = [this] { return tasks_.ask([this] { return check(); }); };
  actions.clients = [this] {
    return tasks_.ask([this] { return as_json(proxy_.clients(most_listed)); });
  };
  actions.upgrade = [this] { return tasks_.ask([this] { return upgrade(); }); };
  actions.drain = [this] {
    static_cast<void>(tasks_.ask([this] {
      stop("asked to drain");
      return std::string{};
    }));
  };
  actions.move = [this](std::span<const std::string_view> words) {
    return tasks_.ask([&] { return move(words); });
  };
  actions.log_level = [this] { return log_.level(); };
  actions.set_log_level = [this](int level) { set_level(level); };
  return actions;
}

int Serving::run() {
  while (!exit_code_) {
    wait();
    while (const auto signal = signals_.next()) {
      log_.write(LogSeverity::notice, to_string(*signal));
      obey(*signal);
    }
    tasks_.run_all();
    if (!drained_by_ || exit_code_) continue;
    const bool late = system_clock().steady() >= *drained_by_;
    if (!proxy_.is_drained() && !late) continue;
    log_.write(LogSeverity::notice, late ? "drain_timeout is over: the clients that are left go now"
                                         : "drained: no client is left");
    if (const auto handed_over = proxy_.handed_over(); handed_over != 0)
      log_.write(LogSeverity::notice, fmt::format("{} clients went to the successor", handed_over));
    exit_code_ = 0;
  }
  return *exit_code_;
}

void Serving::obey(const Signal& signal) {
  switch (signal.action) {
    case SignalAction::quit: exit_code_ = 1; break;
    case SignalAction::drain:
      if (drained_by_)
        exit_code_ = 1;  // the second TERM
      else
        stop("told to end");
      break;
    case SignalAction::reopen:
      log_.reopen();
      log_.write(LogSeverity::notice, "log file reopened after SIGHUP");
      break;
    case SignalAction::louder: set_level(log_.level() + 1); break;
    case SignalAction::quieter: set_level(log_.level() - 1); break;
    case SignalAction::reload: try_reload(); break;
    case SignalAction::nothing: break;
  }
}

std::string Serving::reload() {
  if (has_successor_) return follow();
  if (drained_by_) throw Error{Errc::closed, "it is ending: there is nothing to reload for"};
  const ReloadNotice notice;
  const Config before = proxy_.config();
  auto config = config::check(options_.conf_file);
  const auto descriptors = plan_descriptors(config);
  auto changes = proxy_.reload(std::move(config));
  std::ranges::move(config::setting_changes(before, proxy_.config()), std::back_inserter(changes));
  apply(descriptors);
  tell_predecessor();
  const auto text =
      changes.empty() ? "nothing has changed" : fmt::format("{}", fmt::join(changes, "; "));
  log_.write(LogSeverity::notice, fmt::format("reloaded '{}': {}", options_.conf_file, text));
  return text;
}

/// What `sluice proxy move` says (see docs/decisions/0020): the phase, the file with the rings to
/// be, the user and the password by which servers let in whoever knows the phase, and a print of
/// both rings. The answer: the phase, whether it is drained, the print.
std::string Serving::move(std::span<const std::string_view> words) {
  const std::string_view say = words.empty() ? "STATUS" : words[0];
  const bool is_phase = say == "HELD" || say == "MOVING";
  if (is_phase ? words.size() != 5 : words.size() > 1)
    throw Error{Errc::bad_argument,
                fmt::format("MOVE {}: wrong number of words", say.substr(0, 64))};
  if (is_phase) {
    if (drained_by_) throw Error{Errc::closed, "it is ending"};
    if (!proxy_.config().process.admin.starts_with('/'))
      throw Error{
          Errc::bad_argument,
          "keys can be moved where `admin:` is a unix socket: a port of this machine is open "
          "to all its users, who could move them to servers of their own"};
    const auto after = config::load(std::string{words[1]});
    const auto phase_before = proxy_.move_state().phase;
    proxy_.move_keys(after, say == "HELD" ? RingMove::Phase::held : RingMove::Phase::moving,
                     {std::string{words[2]}, std::string{words[3]}}, words[4]);
    if (proxy_.move_state().phase != phase_before)
      log_.write(LogSeverity::notice,
                 fmt::format("keys move to the servers of '{}': {}", words[1], say));
  } else if (say == "READY" || say == "END") {
    const auto config = config::check(options_.conf_file);
    proxy_.end_move(config, say == "END");
    if (say == "END") log_.write(LogSeverity::notice, "keys have moved");
  } else if (say == "CANCEL") {
    proxy_.cancel_move();
    log_.write(LogSeverity::notice, "no key has moved");
  } else if (say != "STATUS") {
    throw Error{Errc::bad_argument, "MOVE: HELD, MOVING, READY, END, CANCEL or STATUS"};
  }
  const auto state = proxy_.move_state();
  return fmt::format("{} {} {}",
                     !state.phase                            ? "none"
                     : *state.phase == RingMove::Phase::held ? "held"
                                                             : "moving",
                     state.drained ? "drained" : "busy", state.print);
}

void Serving::try_reload() {
  try {
    reload();
  } catch (const std::system_error& refused) {  // Error is one
    log_.write(LogSeverity::error,
               fmt::format("not reloaded, all goes on as before: {}", refused.what()));
  }
}

/// A failed write is no reason to end.
void say(std::string_view text) {
  [[maybe_unused]] const auto written = std::fwrite(text.data(), 1, text.size(), stderr);
}

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
  log.write(LogSeverity::notice, to_string(plan_descriptors(*config)));
  Serving serving{options, program, std::move(*config), {log, signals, inherited}};
  std::optional<PidFile> pid_file;
  if (!options.pid_file.empty()) pid_file.emplace(options.pid_file);
  if (daemon) daemon->ready();
  if (!inherited.is_successor())
    net::tell_manager("READY=1");  // of a successor its predecessor tells
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
  static_cast<void>(plan_descriptors(config));
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
