#include "http/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <system_error>
#include <utility>
#include <variant>

#include "base/callback.hpp"
#include "base/thread.hpp"
#include "sluice/log.hpp"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using Outcome = net::ServerSocket::Outcome;

/// How late a connection may be found overdue.
constexpr auto tick_interval = 100ms;
constexpr int clients_a_turn = 64;
/// No descriptors are left: so long no client is accepted.
constexpr auto rest_time = 100ms;
constexpr auto linger_time = 2s;
/// While it drains, an idle client gets so long to ask what it is about to.
constexpr auto farewell_time = 1s;

/// "127.0.0.1:80" and "[::1]:80" without the port; of a unix socket nothing.
std::string host_of(int descriptor) {
  auto peer = net::peer_of(descriptor);
  const auto colon = peer.rfind(':');
  if (colon == std::string::npos) return {};
  return peer.starts_with('[') ? peer.substr(1, colon - 2) : peer.substr(0, colon);
}

}  // namespace

Worker::Worker(Clock& clock, Shared& shared, std::optional<net::TlsContext> tls,
               net::ServerSocket listener)
    : shared_(shared),
      tls_(std::move(tls)),
      counts_(shared.routes.all().size()),
      tls_failed_([this](const Error&) { counts_.tls.add(); }),
      loop_(clock),
      mailbox_(std::make_shared<Mailbox>(static_cast<Mailbox::Owner&>(*this))),
      listener_(std::move(listener)) {
  loop_.add_listener(listener_.descriptor(), *this);
  loop_.after(tick_interval, [this] { tick(); });
}

Worker::~Worker() {
  stop(0ns, 0ns);
  join();
  mailbox_->close();
  close_all();
}

void Worker::start() {
  thread_ = start_thread([this] { serve(); });
}

void Worker::serve() {
  mailbox_->enter();
  while (!is_ending_.load(std::memory_order_acquire)) loop_.turn(1h);
  mailbox_->close();
  close_all();
}

void Worker::close_all() {
  close_listener();
  while (!introductions_.empty()) end(*introductions_.front());
  while (!connections_.empty()) connections_.begin()->second->close();
}

void Worker::stop(std::chrono::nanoseconds notice, std::chrono::nanoseconds within) {
  loop_.post([this, notice, within] {
    loop_.after(notice, [this] { drain(); });
    loop_.after(within, [this] { is_ending_.store(true, std::memory_order_release); });
  });
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::close_listener() {
  if (listener_.descriptor() < 0) return;
  loop_.cancel(resting_);
  loop_.remove(listener_.descriptor());
  listener_ = {};
}

void Worker::drain() {
  if (std::exchange(is_draining_, true)) return;
  for (;;) {  // whom the kernel has accepted already is served
    auto accepted = listener_.accept();
    if (accepted.outcome != Outcome::accepted) break;
    accept(std::move(accepted.socket));
  }
  close_listener();
  std::vector<Connection*> streams{waiting_for(Phase::streaming).begin(),
                                   waiting_for(Phase::streaming).end()};
  for (auto* connection : streams) connection->end_stream();
  for (auto* connection : waiting_for(Phase::idle)) connection->since_ = loop_.now();
  std::vector<std::stop_source> watches;  // first all of them: who is told may answer
  for (const auto& [id, connection] : connections_)
    std::ranges::move(connection->take_watches(), std::back_inserter(watches));
  for (auto& gone : watches) gone.request_stop();
}

void Worker::replace(const net::TlsContext& tls) {
  loop_.post([this, tls] {
    if (tls_) tls_ = tls;
  });
}

void Worker::ready(Readiness) {
  if (listener_.descriptor() < 0) return;
  for (int i = 0; i < clients_a_turn; ++i) {
    auto accepted = listener_.accept();
    switch (accepted.outcome) {
      case Outcome::accepted: accept(std::move(accepted.socket)); break;
      case Outcome::none: return;
      case Outcome::out_of_descriptors:
      case Outcome::failed:
        if (failures_.is_due(loop_.now()))
          log(LogLevel::error, fmt::format("http: accept failed: {}",
                                           std::generic_category().message(accepted.error)));
        return rest();
    }
  }
}

void Worker::rest() {
  loop_.remove(listener_.descriptor());
  resting_ = loop_.after(rest_time, [this] { loop_.add_listener(listener_.descriptor(), *this); });
}

void Worker::accept(net::Socket socket) {
  auto peer = host_of(socket.descriptor());
  if (shared_.balancers.has(peer))
    await_introduction(std::move(socket), std::move(peer));
  else
    admit(std::move(socket), std::move(peer));
}

void Worker::await_introduction(net::Socket socket, std::string balancer) {
  if (!enters({})) return;
  const auto descriptor = socket.descriptor();
  introductions_.push_back(
      std::make_unique<Introduction>(*this, std::move(socket), std::move(balancer), loop_.now()));
  auto& introduction = *introductions_.back();
  introduction.in_list_ = std::prev(introductions_.end());
  try {
    loop_.add(descriptor, introduction);
  } catch (const std::exception& error) {
    end(introduction);
    report_unserved(error);
  }
}

net::Socket Worker::end(Introduction& introduction) {
  auto socket = std::move(introduction.socket_);
  loop_.remove(socket.descriptor());
  shared_.places.leave({});
  const auto in_list = introduction.in_list_;
  loop_.bury(std::move(*in_list));
  introductions_.erase(in_list);
  return socket;
}

void Worker::introduced(Introduction& introduction) {
  const auto& header = introduction.header_;
  // A balancer that asks for itself counts for nobody, as whoever comes by a unix socket.
  auto client = header.names_client() ? header.client() : std::string{};
  admit(end(introduction), std::move(client));
}

void Worker::left(Introduction& introduction) { end(introduction); }

void Worker::turn_away(Introduction& introduction, std::string_view why) {
  counts_.proxy_header.add();
  if (failures_.is_due(loop_.now()))
    log(LogLevel::warning,
        fmt::format("http: {} was to begin with the PROXY protocol: {}",
                    introduction.balancer_.empty() ? "a unix socket" : introduction.balancer_,
                    why));
  end(introduction);
}

/// A proxy speaks for many.
std::string Worker::place_of(const std::string& client) const {
  const bool is_proxy = shared_.trusted.has(client) || shared_.balancers.has(client);
  return is_proxy ? std::string{} : network_of(client);
}

bool Worker::enters(const std::string& place) {
  switch (shared_.places.enter(place)) {
    case Places::Outcome::entered: return true;
    case Places::Outcome::full: counts_.connections.add(); return false;
    case Places::Outcome::too_many_of_a_client: counts_.connections_of_a_client.add(); return false;
  }
  return false;
}

void Worker::admit(net::Socket socket, std::string client) {
  const auto place = place_of(client);
  if (!enters(place)) return;
  try {
    welcome(std::move(socket), std::move(client), place);
  } catch (const std::exception& error) {
    shared_.places.leave(place);
    report_unserved(error);
  }
}

/// Memory or room in epoll is short: the client may come again.
void Worker::report_unserved(const std::exception& error) {
  if (failures_.is_due(loop_.now()))
    log(LogLevel::error, fmt::format("http: a client cannot be served: {}", error.what()));
}

void Worker::welcome(net::Socket socket, std::string client, const std::string& place) {
  auto transport = tls_ ? tls_->accept(std::move(socket), tls_failed_)
                        : std::make_unique<net::Socket>(std::move(socket));
  const auto id = ++last_id_;
  auto made = std::make_unique<Connection>(*this, id, std::move(transport), std::move(client),
                                           place, tls_.has_value());
  std::list<Connection*> place_in_list{made.get()};
  made->in_list_ = place_in_list.begin();
  made->since_ = loop_.now();
  connections_.emplace(id, std::move(made));
  auto& idle = waiting_for(Phase::idle);
  idle.splice(idle.end(), place_in_list);
  counts_.open_connections.add();
}

void Worker::forget(Connection& connection) {
  shared_.places.leave(connection.place());
  waiting_for(connection.phase_).erase(connection.in_list_);
  counts_.open_connections.add(-1);
  const auto found = connections_.find(connection.id());
  loop_.bury(std::move(found->second));
  connections_.erase(found);
}

void Worker::enter(Connection& connection, Phase phase) {
  auto& from = waiting_for(connection.phase_);
  auto& to = waiting_for(phase);
  to.splice(to.end(), from, connection.in_list_);
  connection.phase_ = phase;
  connection.since_ = loop_.now();
}

std::chrono::nanoseconds Worker::time_of(Phase phase) const noexcept {
  switch (phase) {
    case Phase::idle: return is_draining_ ? farewell_time : limits().idle_time;
    case Phase::head: return limits().head_time;
    case Phase::body: return limits().body_time;
    case Phase::answering: return std::chrono::nanoseconds::max();  // its handler says when
    case Phase::sending: return limits().send_time;
    case Phase::streaming: return limits().comment_time;
    case Phase::lingering: return linger_time;
  }
  return {};
}

void Worker::tick() {
  for (std::size_t phase = 0; phase < phases; ++phase) {
    auto& waiting = waiting_[phase];
    const auto time = time_of(static_cast<Phase>(phase));
    while (!waiting.empty() && Clock::add(waiting.front()->since_, time) <= loop_.now())
      waiting.front()->overdue();
  }
  while (!introductions_.empty() &&
         Clock::add(introductions_.front()->since_, limits().head_time) <= loop_.now())
    turn_away(*introductions_.front(), "it did not come in time");
  static_cast<void>(loop_.blocks().trim());
  if (is_draining_ && connections_.empty() && introductions_.empty())
    is_ending_.store(true, std::memory_order_release);
  loop_.after(tick_interval, [this] { tick(); });
}

std::string_view Worker::date() {
  if (loop_.now() >= date_ends_) {
    const auto now = loop_.clock().wall();
    const auto second = std::chrono::floor<std::chrono::seconds>(now);
    date_ = http_date(now);
    date_ends_ = loop_.now() + (second + 1s - now);
  }
  return date_;
}

void Worker::wake() {
  loop_.post([this] { mailbox_->collect(); });
}

void Worker::at_end_of_turn(std::function<void()> call) {
  at_end_of_turn_.push_back(std::move(call));
  loop_.flush_later(*this);
}

/// The end of a turn. Connections that are answered here are flushed behind it, in the same turn.
void Worker::flush() {
  ending_.swap(at_end_of_turn_);
  for (const auto& call : ending_) call_user("the end of a turn", call);
  ending_.clear();
}

void Worker::deliver(Mailbox::Letter letter) {
  const auto found = connections_.find(letter.connection);
  if (found == connections_.end()) {
    if (const auto* begin = std::get_if<Mailbox::Begin>(&letter.content))
      begin->state->is_open.store(false, std::memory_order_release);
    if (auto* watch = std::get_if<Mailbox::Watch>(&letter.content)) watch->gone.request_stop();
    return;
  }
  auto& connection = *found->second;
  if (auto* response = std::get_if<Response>(&letter.content))
    connection.answer(letter.request, std::move(*response));
  else if (auto* begin = std::get_if<Mailbox::Begin>(&letter.content))
    connection.begin_stream(letter.request, std::move(begin->state));
  else if (const auto* bytes = std::get_if<Mailbox::Bytes>(&letter.content))
    connection.send_event(bytes->bytes);
  else if (auto* watch = std::get_if<Mailbox::Watch>(&letter.content))
    connection.watch(letter.request, std::move(watch->gone));
  else
    connection.end_stream();
}

}  // namespace sluice::http
