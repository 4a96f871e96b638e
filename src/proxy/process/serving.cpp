#include "proxy/process/serving.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

#include "base/json.hpp"
#include "proxy/config/diff.hpp"
#include "proxy/config/read.hpp"
#include "proxy/process/daemon.hpp"
#include "proxy/process/run.hpp"
#include "proxy/process/services.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::process {
namespace {

using namespace std::chrono_literals;

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

Error ending() { return Error{Errc::closed, "the proxy is ending"}; }

}  // namespace

TaskQueue::TaskQueue() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) throw std::system_error{errno, std::generic_category(), "eventfd"};
}

TaskQueue::~TaskQueue() {
  end();
  ::close(wake_);
}

std::string TaskQueue::ask(Job job) {
  Task task{[this, job = std::move(job)] {
    {
      const std::lock_guard lock{mutex_};
      if (ended_) throw ending();
    }
    return job();
  }};
  auto done = task.get_future();
  {
    const std::lock_guard lock{mutex_};
    if (ended_) throw ending();
    asked_.push_back(std::move(task));
  }
  static_cast<void>(::eventfd_write(wake_, 1));
  return done.get();
}

std::deque<TaskQueue::Task> TaskQueue::take() {
  const std::lock_guard lock{mutex_};
  return std::exchange(asked_, {});
}

void TaskQueue::run_all() {
  eventfd_t count = 0;
  static_cast<void>(::eventfd_read(wake_, &count));
  for (auto& task : take()) task();
}

void TaskQueue::end() {
  {
    const std::lock_guard lock{mutex_};
    ended_ = true;
  }
  for (auto& task : take()) task();  // each throws ending()
}

Serving::Serving(const Options& options, const Program& program, Config config, ProcessParts parts)
    : options_(options),
      program_(program),
      log_(parts.log),
      signals_(parts.signals),
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
  proxy_.set_most_clients(clients_within_limit(proxy_.config()));
  proxy_.start();
  management_.emplace(std::move(services), system_clock());
}

Serving::~Serving() {
  tasks_.end();  // the management server may wait for a task
}

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
      drain("asked to drain");
      return std::string{};
    }));
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
    exit_code_ = 0;
  }
  return *exit_code_;
}

void Serving::wait() {
  std::array<pollfd, 2> waits{
      {{signals_.descriptor(), POLLIN, 0}, {tasks_.descriptor(), POLLIN, 0}}};
  const int patience = drained_by_ ? static_cast<int>(drain_look.count()) : -1;
  if (::poll(waits.data(), waits.size(), patience) < 0 && errno != EINTR)
    throw std::system_error{errno, std::generic_category(), "poll"};
}

void Serving::obey(const Signal& signal) {
  switch (signal.action) {
    case SignalAction::quit: exit_code_ = 1; break;
    case SignalAction::drain:
      if (drained_by_)
        exit_code_ = 1;  // the second TERM
      else
        drain("told to end");
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

void Serving::set_level(int level) {
  log_.set_level(level);
  log_.write(LogSeverity::alert, fmt::format("the log level is {} now", log_.level()));
}

void Serving::drain(std::string_view why) {
  if (drained_by_) return;
  const auto patience = proxy_.config().process.drain_timeout;
  log_.write(LogSeverity::notice,
             fmt::format("{}: no more clients are accepted, those that are here have {} ms", why,
                         patience.count()));
  drained_by_ = system_clock().steady() + patience;
  proxy_.drain();
}

std::string Serving::reload() {
  if (drained_by_) throw Error{Errc::closed, "it is ending: there is nothing to reload for"};
  const Config before = proxy_.config();
  auto changes = proxy_.reload(config::check(options_.conf_file));
  std::ranges::move(config::setting_changes(before, proxy_.config()), std::back_inserter(changes));
  proxy_.set_most_clients(clients_within_limit(proxy_.config()));
  const auto text =
      changes.empty() ? "nothing has changed" : fmt::format("{}", fmt::join(changes, "; "));
  log_.write(LogSeverity::notice, fmt::format("reloaded '{}': {}", options_.conf_file, text));
  return text;
}

void Serving::try_reload() {
  try {
    reload();
  } catch (const std::system_error& refused) {  // Error is one
    log_.write(LogSeverity::error,
               fmt::format("not reloaded, all goes on as before: {}", refused.what()));
  }
}

std::string Serving::check() {
  return text_of(config::diff(proxy_.config(), test_config(options_.conf_file)));
}

std::string Serving::upgrade() {
  if (drained_by_) throw Error{Errc::closed, "it is ending, or has a successor already"};
  const int successor = start_successor(program_.path, program_.arguments,
                                        {.pools = proxy_.listening(), .services = services_});
  management_->hand_on();
  auto text = fmt::format("upgraded: process {} serves, {} leaves", successor, ::getpid());
  drain(text);
  return text;
}

}  // namespace sluice::proxy::process
