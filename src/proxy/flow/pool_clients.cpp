#include "proxy/flow/pool_clients.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "proxy/flow/handover.hpp"
#include "proxy/flow/pool.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;
using Outcome = net::ServerSocket::Outcome;

constexpr auto drain_look = 20ms;   // between two looks for clients that are quiet
constexpr int clients_a_turn = 64;  // so that connected clients are served as well
constexpr auto rest_time = 100ms;   // out of descriptors: to accept at once again is of no use

}  // namespace

PoolClients::PoolClients(Pool& pool)
    : pool_(pool), loop_(pool.loop()), readers_{make_reader(false), make_reader(true)} {}

PoolClients::~PoolClients() {
  for (const auto& timer : {drain_timer_, dismissal_timer_}) loop_.cancel(timer);
}

void PoolClients::close_all() noexcept {
  while (!clients_.empty()) clients_.back()->close();
}

void PoolClients::apply(const PoolSettings& before) {
  for (const bool trusted : {false, true}) readers_[trusted] = make_reader(trusted);
  for (const auto& client : clients_) client->apply(before);
}

std::unique_ptr<RequestReader> PoolClients::make_reader(bool trusted) const {
  auto reader = pool_.protocol().request_reader();
  if (!trusted) reader->distrust();
  return reader;
}

void PoolClients::accept(net::Socket socket) {
  pool_.counters().client_accepted.add();
  if (draining_ || !find_place()) {
    pool_.counters().client_refused.add();
    if (!draining_) tell_refused();
    return;  // and the socket closes
  }
  static_cast<void>(add(pool_.accept(std::move(socket)), next_id()));
}

bool PoolClients::adopt(net::Socket socket) {
  if (draining_ || !find_place()) return false;
  Client* const client = add(std::make_unique<net::Socket>(std::move(socket)), next_id());
  if (client) client->trust();
  return client != nullptr;
}

/// In the place that was found for it.
Client* PoolClients::add(std::unique_ptr<net::Transport> transport, std::uint64_t id) {
  try {
    clients_.push_back(std::make_unique<Client>(pool_, std::move(transport), id, clients_.size()));
  } catch (const std::system_error& error) {  // epoll takes no more
    log(LogLevel::error,
        fmt::format("pool '{}': a client is refused: {}", pool_.settings().name, error.what()));
    pool_.counters().client_refused.add();
    leave_place();
    return nullptr;
  }
  pool_.counters().client_connections.add();
  return clients_.back().get();
}

Client* PoolClients::take_over(const HandedClient& client, net::Socket socket) {
  if (!find_place()) return nullptr;
  Client* const taken = add(std::make_unique<net::Socket>(std::move(socket)), client.id);
  if (taken) taken->take_over(client);
  if (draining_ && drain_timer_.second == 0)
    drain_timer_ = loop_.after(drain_look, [this] { drain_quiet(); });
  return taken;
}

void PoolClients::take_scripts(const Descriptor& file) {
  struct stat about {};
  if (::fstat(file.number(), &about) != 0) return;
  std::string bytes(static_cast<std::size_t>(about.st_size), '\0');
  const auto got = ::pread(file.number(), bytes.data(), bytes.size(), 0);
  if (got > 0) pool_.scripts().read(std::string_view{bytes}.substr(0, got));
}

void PoolClients::take_back(const HandedClient& client, net::Socket socket) {
  if (Client* const taken = take_over(client, std::move(socket))) taken->stay();
}

/// That no other client of the pool has, in the processes before and after an upgrade either.
std::uint64_t PoolClients::next_id() noexcept {
  const auto& context = pool_.context();
  return context.limits.first_id + ++last_number_ * context.registry.workers() + context.worker;
}

bool PoolClients::empty() const noexcept {
  return on_their_way_ == 0 && std::ranges::all_of(clients_, [](const auto& client) {
           return client->is_mirror() && client->is_idle();
         });
}

bool PoolClients::find_place() noexcept {
  const auto most = pool_.settings().client_connections;
  if (!pool_.shared().clients.enter(most != 0 ? most : SIZE_MAX)) return false;
  auto& limits = pool_.context().limits;
  if (limits.clients.enter()) {
    if (limits.descriptors.enter()) return true;
    limits.clients.leave();
  }
  pool_.shared().clients.leave();
  return false;
}

void PoolClients::tell_refused() {
  if (refusals_.is_due(loop_.now()))
    log(LogLevel::warning,
        fmt::format("pool '{}': {} clients are here, as many as client_connections or the limit of "
                    "open files allows; others are closed at once, {} so far",
                    pool_.settings().name, pool_.counters().client_connections.get(),
                    pool_.counters().client_refused.get()));
}

void PoolClients::leave_place() noexcept {
  pool_.shared().clients.leave();
  pool_.context().limits.clients.leave();
  pool_.context().limits.descriptors.leave();
}

void PoolClients::list(std::vector<ClientFigures>& figures, std::size_t most) const {
  for (const auto& client : clients_) {
    if (figures.size() >= most) return;
    figures.push_back(client->figures());
  }
}

void PoolClients::remove(Client& client) noexcept {
  pool_.counters().client_connections.add(-1);
  leave_place();
  std::erase(waiting_for_room_, &client);
  std::erase(dismissed_, &client);
  if (const auto delayed = delayed_.find(&client); delayed != delayed_.end()) {
    loop_.cancel(delayed->second);
    delayed_.erase(delayed);
  }
  const auto place = client.place();
  std::swap(clients_[place], clients_.back());
  clients_[place]->set_place(place);
  loop_.bury(std::move(clients_.back()));
  clients_.pop_back();
}

void PoolClients::dismiss(Client& client) {
  if (dismissed_.empty())
    dismissal_timer_ = loop_.at(loop_.now(), [this] {
      for (auto dismissed = std::exchange(dismissed_, {}); Client* const one : dismissed)
        one->close();
    });
  dismissed_.push_back(&client);
}

void PoolClients::drain(std::chrono::nanoseconds patience, ClientHandover* to) {
  draining_ = true;
  handover_ = to;
  drain_until_ = Clock::add(loop_.now(), patience);
  const auto& settings = pool_.settings();
  if (to)
    to->hand_scripts({.pool = settings.name,
                      .listen = net::to_string(settings.listen.endpoint),
                      .redis = settings.redis,
                      .told = {},
                      .unread = {}},
                     pool_.scripts().written());
  drain_quiet();
}

void PoolClients::drain_quiet() {
  const bool is_late = loop_.now() >= drain_until_;
  const bool is_alone = handover_ && !handover_->is_open();  // the successor is gone: serve on
  for (auto place = clients_.size(); place-- > 0;) {
    Client& client = *clients_[place];  // which may leave, and the last one gets its place
    if (client.is_mirror()) continue;   // it ends behind those whose requests it says again
    const bool waits = client.hand_over();
    if (client.closed()) continue;
    if (is_late)
      client.drain_now();
    else if (!waits && !is_alone)
      client.drain();
  }
  drain_timer_ =
      empty() ? loop::Loop::TimerId{} : loop_.after(drain_look, [this] { drain_quiet(); });
}

void PoolClients::wait_for_room(Client& client) {
  pool_.counters().client_paused.add();
  waiting_for_room_.push_back(&client);
}

void PoolClients::there_is_room() {
  if (waiting_for_room_.empty()) return;
  for (Client* client : std::exchange(waiting_for_room_, {})) client->there_is_room();
}

void PoolClients::delay(Client& client, std::chrono::nanoseconds wait) {
  delayed_[&client] = loop_.after(wait, [this, &client] {
    delayed_.erase(&client);
    client.end_delay();
  });
}

void PoolClients::end_delay(Client& client) {
  const auto delayed = delayed_.find(&client);
  if (delayed == delayed_.end()) return;
  loop_.cancel(delayed->second);
  delayed_.erase(delayed);
  client.end_delay();
}

void PoolClients::tick() {
  there_is_room();
  const auto before = [this](std::chrono::milliseconds timeout) {
    return timeout.count() == 0 ? SteadyTime::min() : loop_.now() - timeout;
  };
  const auto idle_since = before(pool_.settings().client_idle_timeout);
  const auto late_since = before(pool_.settings().login_timeout);
  const bool has_strangers = pool_.wants_login() || pool_.settings().listen_tls.on;
  if (idle_since == SteadyTime::min() && !has_strangers) return;
  for (auto place = clients_.size(); place-- > 0;) {
    Client& client = *clients_[place];
    const bool idle = client.last_active() < idle_since && client.is_idle() && !client.is_mirror();
    if (idle || client.is_late(late_since)) client.close();
  }
}

Client* PoolClients::greediest() const noexcept {
  const auto holds = [](const auto& client) { return client->holds(); };
  const auto most = std::ranges::max_element(clients_, {}, holds);
  return most == clients_.end() || holds(*most) == 0 ? nullptr : most->get();
}

void PoolClients::evict(Client& client) {
  pool_.counters().client_evictions.add();
  client.close();
}

Acceptor::Acceptor(Pool& pool, net::ServerSocket listener)
    : pool_(pool), loop_(pool.loop()), listener_(std::move(listener)) {
  loop_.add_listener(listener_.descriptor(), *this);
}

Acceptor::~Acceptor() { close(); }

void Acceptor::close() noexcept {
  if (listener_.descriptor() < 0) return;
  loop_.cancel(resting_);
  loop_.remove(listener_.descriptor());
  listener_ = {};
}

void Acceptor::take_waiting() {
  for (;;) {
    auto accepted = listener_.accept();
    if (accepted.outcome != Outcome::accepted) return;
    pool_.clients().accept(std::move(accepted.socket));
  }
}

void Acceptor::ready(Readiness) {
  if (listener_.descriptor() < 0) return;
  for (int i = 0; i < clients_a_turn; ++i) {
    auto accepted = listener_.accept();
    switch (accepted.outcome) {
      case Outcome::accepted: pool_.clients().accept(std::move(accepted.socket)); break;
      case Outcome::none: return;
      case Outcome::out_of_descriptors:
      case Outcome::failed:
        if (failures_.is_due(loop_.now()))
          log(LogLevel::error, fmt::format("pool '{}': accept failed: {}", pool_.settings().name,
                                           std::generic_category().message(accepted.error)));
        return rest();
    }
  }
}

void Acceptor::rest() {
  loop_.remove(listener_.descriptor());
  resting_ = loop_.after(rest_time, [this] { loop_.add_listener(listener_.descriptor(), *this); });
}

}  // namespace sluice::proxy::flow
