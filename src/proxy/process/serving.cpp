#include "proxy/process/serving.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "proxy/config/diff.hpp"
#include "proxy/config/read.hpp"
#include "proxy/process/descriptor_limit.hpp"
#include "proxy/process/run.hpp"
#include "proxy/process/services.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto drain_look = 10ms;             // between two looks whether the last client has left
constexpr std::size_t most_clients = 10'000;  // that are listed

std::string as_json(const std::vector<ClientFigures>& clients) {
  auto all = nlohmann::json::array();
  for (const auto& client : clients)
    all.push_back({{"id", client.id},
                   {"pool", client.pool},
                   {"address", client.address},
                   {"idle_ms", client.idle.count()},
                   {"under_way", client.under_way},
                   {"bytes", client.bytes}});
  return all.dump();
}

}  // namespace

Serving::Serving(const Options& options, const Program& program, Config config, ProcessParts parts)
    : options_(options),
      program_(program),
      log_(parts.log),
      signals_(parts.signals),
      actions_(actions()),
      proxy_(system_clock(), std::move(config), options.mbuf_size, parts.heritage.take_pools()) {
  const auto open = [&](std::string_view what, const net::Endpoint& endpoint) {
    auto listening = parts.heritage.open(what, endpoint);
    doors_[door_name(what, endpoint)] = listening.descriptor();
    return listening;
  };
  auto doors = open_services(options_, proxy_.config().process,
                             {proxy_.registry(), actions_, system_clock(), program.version}, open);
  proxy_.set_most_clients(clients_within_limit(proxy_.config()));
  proxy_.start();
  side_server_.emplace(std::move(doors), system_clock());
}

Serving::~Serving() {
  errands_.end();  // the side server may have one under way
}

AdminActions Serving::actions() {
  AdminActions actions;
  actions.reload = [this] { return errands_.ask([this] { return reload(); }); };
  actions.check_config = [this] { return errands_.ask([this] { return check(); }); };
  actions.clients = [this] {
    return errands_.ask([this] { return as_json(proxy_.clients(most_clients)); });
  };
  actions.upgrade = [this] { return errands_.ask([this] { return upgrade(); }); };
  actions.drain = [this] {
    static_cast<void>(errands_.ask([this] {
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
    while (const auto order = signals_.next()) {
      log_.write(LogSeverity::notice, to_string(*order));
      obey(*order);
    }
    errands_.run_all();
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
      {{signals_.descriptor(), POLLIN, 0}, {errands_.descriptor(), POLLIN, 0}}};
  const int patience = drained_by_ ? static_cast<int>(drain_look.count()) : -1;
  if (::poll(waits.data(), waits.size(), patience) < 0 && errno != EINTR)
    throw std::system_error{errno, std::generic_category(), "poll"};
}

void Serving::obey(const SignalOrder& order) {
  switch (order.order) {
    case Order::quit: exit_code_ = 1; break;
    case Order::drain:
      if (drained_by_)
        exit_code_ = 1;  // told twice
      else
        drain("told to end");
      break;
    case Order::reopen:
      log_.reopen();
      log_.write(LogSeverity::notice, "log file reopened after SIGHUP");
      break;
    case Order::louder: set_level(log_.level() + 1); break;
    case Order::quieter: set_level(log_.level() - 1); break;
    case Order::reload: try_reload(); break;
    case Order::nothing: break;
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
  const auto changes = proxy_.reload(check_config(options_.conf_file));
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
  return text_of(diff(proxy_.config(), test_config(options_.conf_file)));
}

std::string Serving::upgrade() {
  if (drained_by_) throw Error{Errc::closed, "it is ending, or has a successor already"};
  const int successor = start_successor(program_.path, program_.arguments,
                                        {.pools = proxy_.listening(), .doors = doors_});
  side_server_->hand_on();
  auto text = fmt::format("upgraded: process {} serves, {} leaves", successor, ::getpid());
  drain(text);
  return text;
}

}  // namespace sluice::proxy
