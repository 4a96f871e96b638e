#include "port/port_thread.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/thread.hpp"
#include "port/port.hpp"
#include "sluice/log.hpp"

namespace sluice::port {
namespace {

using namespace std::chrono_literals;

constexpr auto tick_interval = 1s;
constexpr int clients_a_turn = 64;
constexpr auto rest_time = 100ms;  // after an accept that failed
constexpr std::size_t largest_idle_buffer = std::size_t{1} << 20;

constexpr std::string_view too_many = "-ERR max number of clients reached\r\n";
constexpr std::string_view protected_text =
    "-DENIED This server is open to other machines and asks for no password: it answers clients "
    "of its own machine alone. Set a password (requirepass), or listen on the loopback.\r\n";

bool is_of_this_machine(std::string_view peer) noexcept {
  return peer == "unix" || peer.starts_with("127.") || peer.starts_with("[::1]") ||
         peer.starts_with("[::ffff:127.");
}

}  // namespace

class PortThread::Acceptor final : public loop::EventHandler {
 public:
  Acceptor(PortThread& thread, net::ServerSocket listener, bool tls)
      : thread_(thread), listener_(std::move(listener)), tls_(tls) {
    thread_.loop().add_listener(listener_.descriptor(), *this);
  }
  ~Acceptor() override {
    thread_.loop().cancel(rest_);
    thread_.loop().remove(listener_.descriptor());
  }

  void ready(Readiness) override {
    using Outcome = net::ServerSocket::Outcome;
    for (int i = 0; i < clients_a_turn; ++i) {
      auto accepted = listener_.accept();
      if (accepted.outcome == Outcome::none) return;
      if (accepted.outcome != Outcome::accepted) return rest(accepted.error);
      thread_.deal(std::move(accepted.socket), tls_);
    }
  }

 private:
  void rest(int error) {
    auto& loop = thread_.loop();
    if (failures_.is_due(loop.now()))
      log(LogLevel::error,
          fmt::format("a client cannot be accepted: {}", std::generic_category().message(error)));
    loop.remove(listener_.descriptor());
    rest_ =
        loop.after(rest_time, [this, &loop] { loop.add_listener(listener_.descriptor(), *this); });
  }

  PortThread& thread_;
  net::ServerSocket listener_;
  const bool tls_;
  loop::Loop::TimerId rest_{};
  RareLine failures_;
};

PortThread::PortThread(Port& port, const std::vector<net::ServerSocket>& listeners)
    : port_(port),
      loop_(port.clock()),
      users_(port.settings().users, port.settings().password),
      parser_(new_parser()) {
  for (std::size_t i = 0; i < listeners.size(); ++i)
    acceptors_.push_back(
        std::make_unique<Acceptor>(*this, listeners[i].duplicate(), port.settings().listen[i].tls));
  tls_failed_ = [this](const Error& why) {
    if (tls_told_.is_due(loop_.now()))
      log(LogLevel::warning, fmt::format("a TLS handshake failed: {}", why.message()));
  };
  loop_.set_before_flush([this] { commit(); });
  loop_.after(tick_interval, [this] { tick(); });
}

PortThread::~PortThread() { stop(); }

void PortThread::stop() {
  ending_ = true;
  loop_.post([] {});
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<resp::RequestParser> PortThread::new_parser() const {
  return std::make_unique<resp::RequestParser>(
      resp::RequestLimits{.bulk = port_.settings().longest_word});
}

void PortThread::start() {
  thread_ = start_thread([this] { serve(); });
}

void PortThread::serve() {
  here_ = this;
  while (!ending_) loop_.turn(1h);
  acceptors_.clear();
  loop_.turn(0ms);  // what was asked is answered
  while (!connections_.empty()) connections_.begin()->second->close();
  loop_.turn(0ms);
}

engine::LockedEngine::Section& PortThread::section() {
  if (!section_) section_.emplace(port_.engine());
  return *section_;
}

void PortThread::leave() {
  section_.reset();
  while (!served_.empty())
    for (const auto& [id, call] : std::exchange(served_, {}))
      if (Connection* const connection = find(id)) connection->served(*call);
}

void PortThread::take_served(std::uint64_t id, std::shared_ptr<engine::WaitingCall> call) {
  if (is_here()) return served_.emplace_back(id, std::move(call)), void();
  loop_.post([this, id, call = std::move(call)] {
    if (Connection* const connection = find(id)) connection->served(*call);
  });
}

bool PortThread::is_committed(std::uint64_t position) noexcept {
  auto* const committer = port_.opened().committer();
  return !committer || committer->is_committed(position);
}

void PortThread::await_commit(Connection& connection, std::uint64_t position) {
  if (is_committed(position)) return;
  connection.await(position);
  awaited_ = std::max(awaited_, position);
  if (uncommitted_.empty() || uncommitted_.back() != connection.id())
    uncommitted_.push_back(connection.id());
}

/// A reply whose effect may be lost is not given: its connection is closed.
void PortThread::commit() {
  while (!uncommitted_.empty()) {
    const auto ids = std::exchange(uncommitted_, {});
    bool done = true;
    try {
      port_.opened().committer()->commit(std::exchange(awaited_, 0));
    } catch (const Error&) {  // the committer has logged it
      done = false;
      port_.opened().look_after_log(false);
    }
    for (const auto id : ids) {
      Connection* const connection = find(id);
      if (!connection) continue;
      done ? connection->committed() : connection->close();
    }
  }
}

Connection* PortThread::find(std::uint64_t id) noexcept {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

/// The kernel wakes the same thread again and again as long as it is idle: they take turns.
void PortThread::deal(net::Socket socket, bool tls) {
  auto& next = port_.next_thread();
  if (&next == this) return accept(std::move(socket), tls);
  next.loop_.post([&next, tls, dealt = std::make_shared<net::Socket>(std::move(socket))] {
    next.accept(std::move(*dealt), tls);
  });
}

void PortThread::accept(net::Socket socket, bool tls) {
  const auto& settings = port_.settings();
  const bool is_open = settings.is_protected && users_.newcomer();
  if (is_open && !is_of_this_machine(net::peer_of(socket.descriptor()))) {
    static_cast<void>(socket.write_some(protected_text));
    return;
  }
  if (!port_.places().enter()) {
    static_cast<void>(socket.write_some(too_many));
    return;
  }
  const auto id = port_.next_id();
  socket.keep_alive();
  try {
    std::unique_ptr<net::Transport> transport;
    if (tls)
      transport = port_.tls()->accept(std::move(socket), tls_failed_);
    else
      transport = std::make_unique<net::Socket>(std::move(socket));
    auto connection = std::make_unique<Connection>(*this, std::move(transport), id);
    static_cast<void>(section());
    port_.connections().emplace(id, connection.get());
    leave();
    connections_.emplace(id, std::move(connection));
  } catch (const std::system_error& error) {  // epoll takes no more
    port_.places().leave();
    log(LogLevel::error, fmt::format("a client is refused: {}", error.what()));
  }
}

void PortThread::remove(Connection& connection) {
  const auto found = connections_.find(connection.id());
  loop_.bury(std::move(found->second));
  connections_.erase(found);
  port_.places().leave();
}

void PortThread::close_soon(std::uint64_t id) {
  loop_.post([this, id] {
    if (Connection* const connection = find(id)) connection->close();
  });
}

void PortThread::fetch_mail(std::uint64_t id) {
  loop_.post([this, id] {
    if (Connection* const connection = find(id)) connection->take_mail();
    leave();
  });
}

void PortThread::end_pause() {
  for (const auto& [id, connection] : connections_) connection->end_pause();
}

void PortThread::tick() {
  loop_.blocks().trim();
  if (out_.capacity() > largest_idle_buffer) std::string{}.swap(out_);
  const auto timeout = port_.settings().idle_timeout;
  std::vector<Connection*> idle;
  if (timeout.count() > 0)
    for (const auto& [id, connection] : connections_)
      if (loop_.now() - connection->last_active() > timeout && !connection->is_listening() &&
          !connection->is_waiting())
        idle.push_back(connection.get());
  for (Connection* const connection : idle) connection->close();
  if (!port_.is_paused(loop_.now())) end_pause();
  loop_.after(tick_interval, [this] { tick(); });
}

}  // namespace sluice::port
