#include "port/port.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "engine/core/events.hpp"
#include "engine/core/keyspace.hpp"
#include "port/port_thread.hpp"
#include "sluice/log.hpp"

namespace sluice::port {
namespace {

constexpr int backlog = 511;

}  // namespace

Port::Port(engine::OpenedEngine& opened, PortSettings settings)
    : opened_(opened), settings_(std::move(settings)) {
  places_.set_most(settings_.most_clients);
  for (auto& [endpoint, tls] : settings_.listen) {
    if (tls && !tls_) tls_ = net::TlsContext::for_server(tls_files());
    listeners_.push_back(net::ServerSocket::open(
        endpoint, {.backlog = backlog, .permissions = settings_.unix_permissions}));
    if (!endpoint.is_unix()) endpoint.port = listeners_.back().port();
  }
  for (std::size_t i = 0; i < std::max<std::size_t>(settings_.threads, 1); ++i)
    threads_.push_back(std::make_unique<PortThread>(*this, listeners_));
  {
    const engine::LockedEngine::Section section{engine()};
    engine().set_audience(&audience_);
    engine().engine().notified_events = settings_.notified_events;
    engine().engine().config["notify-keyspace-events"] =
        engine::event_letters(settings_.notified_events);
    tell_info();
  }
  for (const auto& thread : threads_) thread->start();
}

Port::~Port() {
  for (const auto& thread : threads_) thread->stop();
  threads_.clear();
  const engine::LockedEngine::Section section{engine()};
  engine().set_audience(nullptr);
  engine().engine().more_info = nullptr;
  for (const auto& [endpoint, tls] : settings_.listen)
    if (endpoint.is_unix()) ::unlink(endpoint.unix_path.c_str());
}

net::TlsFiles Port::tls_files() const {
  auto files = settings_.tls;
  if (!settings_.asks_for_certificate) files.ca.clear();
  return files;
}

void Port::wait() { stopped_.wait(false); }

Port::Figures Port::figures() {
  const engine::LockedEngine::Section section{engine()};
  Figures figures{.commands = engine().engine().commands_run,
                  .clients = connections_.size(),
                  .has_failed = opened_.committer() && opened_.committer()->has_failed()};
  for (int database = 0; database < engine::Engine::databases; ++database)
    figures.keys += engine().engine().keyspace(database).size();
  return figures;
}

void Port::stop() noexcept {
  stopped_ = true;
  stopped_.notify_all();
}

void Port::pause_clients(SteadyTime until, bool writes_alone) {
  pauses_writes_alone_ = writes_alone;
  paused_until_ = until;
  for (const auto& thread : threads_)
    thread->loop().post([this, until, thread = thread.get()] {
      if (until <= thread->loop().now()) return thread->end_pause();
      thread->loop().at(until, [this, thread] {
        if (!is_paused(thread->loop().now())) thread->end_pause();
      });
    });
}

void Port::tell_info() {
  engine().engine().more_info = [this](std::string_view section, std::string& info) {
    if (section == "server" && !settings_.listen.empty())
      info += fmt::format("tcp_port:{}\r\nio_threads_active:{}\r\n",
                          settings_.listen.front().endpoint.port, threads_.size() > 1 ? 1 : 0);
    if (section == "clients")
      info += fmt::format("connected_clients:{}\r\nmaxclients:{}\r\nblocked_clients:{}\r\n",
                          connections_.size(), settings_.most_clients,
                          std::ranges::count_if(connections_, [](const auto& entry) {
                            return entry.second->is_waiting();
                          }));
  };
}

}  // namespace sluice::port
