#include "proxy/flow/pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <tuple>
#include <utility>

#include "proxy/flow/client.hpp"
#include "proxy/flow/session/subscription.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy {
namespace {

std::unique_ptr<Protocol> make_protocol(const PoolSettings& settings, std::size_t mbuf_size) {
  return settings.redis ? make_redis_protocol(settings, mbuf_size)
                        : make_memcached_protocol(settings);
}

/// Whether connections to a server that were made with the one are as good with the other.
bool greet_alike(const PoolSettings& one, const PoolSettings& other) {
  const auto what = [](const PoolSettings& settings) {
    return std::tie(settings.redis, settings.redis_auth, settings.redis_db, settings.server_user,
                    settings.server_password, settings.server_connections, settings.server_tls);
  };
  return what(one) == what(other);
}

/// xorshift32 (Marsaglia): for `distribution: random`, where nothing hangs on it.
std::uint32_t next_random(std::uint32_t& state) noexcept {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

constexpr std::size_t kept_readers = 16;
constexpr std::chrono::milliseconds drain_look{20};  // between two looks for clients that are quiet

}  // namespace

bool ClientCensus::enter(std::size_t most) noexcept {
  most = std::min(most, most_.load());
  auto here = here_.load();
  do {
    if (here >= most) return false;
  } while (!here_.compare_exchange_weak(here, here + 1));
  return true;
}

std::shared_ptr<Health> SharedPool::health_of(const ServerSettings& server,
                                              const PoolSettings& pool) {
  const std::lock_guard lock{mutex_};
  auto& health = healths_[server.name + ' ' + net::to_string(server.endpoint)];
  if (!health)
    health = std::make_shared<Health>(health_policy(pool), version);
  else
    health->set_policy(health_policy(pool));
  return health;
}

Pool::Pool(PoolSurroundings surroundings, std::shared_ptr<const PoolSettings> settings,
           std::shared_ptr<SharedPool> shared, std::shared_ptr<const PoolTls> tls)
    : around_(surroundings),
      settings_(std::move(settings)),
      shared_(std::move(shared)),
      tls_(std::move(tls)),
      tls_failed_([this](std::string_view reason) { note_tls_failure(reason); }),
      watch_(around_.registry.pool(around_.worker, settings_->name)),
      protocol_(make_protocol(*settings_, around_.mbuf_size)),
      random_(static_cast<std::uint32_t>(loop().clock().wall().time_since_epoch().count()) | 1U),
      reader_(protocol_->request_reader()) {
  make_servers({});
  make_ring();
}

Pool::~Pool() {
  loop().cancel(deadline_timer_);
  loop().cancel(recovery_timer_);
  loop().cancel(drain_timer_);
  loop().cancel(dismissal_timer_);
  loop().cancel(subscribers_timer_);
  while (!clients_.empty()) clients_.back()->close();
  servers_.clear();
  retired_.clear();
}

void Pool::apply(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls) {
  tls_ = std::move(tls);  // the files may be others under the same names
  auto before = std::exchange(settings_, std::move(settings));
  if (*before == *settings_) return;
  protocol_ = make_protocol(*settings_, around_.mbuf_size);
  reader_ = protocol_->request_reader();
  spare_readers_.clear();
  auto old = std::exchange(servers_, {});
  if (greet_alike(*before, *settings_))
    make_servers(std::move(old));
  else {
    for (auto& server : old) retired_.push_back(std::move(server));
    make_servers({});
  }
  make_ring();
  settle_clients(*before);
  loop().cancel(deadline_timer_);  // a timeout may be shorter than it was
  check_deadlines();
}

/// What a client asked for before is answered first: its next requests may go over other
/// connections, or to other servers.
void Pool::settle_clients(const PoolSettings& before) {
  for (const auto& client : clients_) {
    client->settle();
    if (!wants_login()) client->set_logged_in(true);
    if (client->variant().db == before.redis_db) client->variant().db = settings_->redis_db;
  }
}

/// Takes over what serves on of the `old` ones; the rest retires.
void Pool::make_servers(std::vector<std::unique_ptr<Server>> old) {
  for (const auto& wanted : settings_->servers) {
    auto health = shared_->health_of(wanted, *settings_);
    const auto same = std::ranges::find_if(old, [&](const auto& server) {
      return server && server->settings().name == wanted.name &&
             server->settings().endpoint == wanted.endpoint;
    });
    if (same != old.end()) {
      servers_.push_back(std::move(*same));
      servers_.back()->set_weight(wanted.weight);
    } else {
      servers_.push_back(std::make_unique<Server>(
          *this, wanted, std::move(health),
          around_.registry.server(around_.worker, settings_->name, wanted.name)));
      if (settings_->preconnect) servers_.back()->preconnect();
    }
  }
  for (auto& server : old)
    if (server) retired_.push_back(std::move(server));
}

void Pool::make_ring() {
  version_ = shared_->version.load(std::memory_order_acquire);
  std::vector<std::uint32_t> live;
  for (std::uint32_t place = 0; place < servers_.size(); ++place)
    if (settings_->on_failure == OnFailure::fail || servers_[place]->health().well())
      live.push_back(place);
  homes_ = live.empty() ? Homes{} : make_homes(*settings_, live);
  if (!subscribers_.empty() && subscribers_timer_.second == 0)  // not now: we may be anywhere
    subscribers_timer_ = loop().at(loop().now(), [this] { check_subscribers(); });
  plan_recovery();
}

void Pool::check_subscribers() {
  subscribers_timer_ = {};
  const auto moved = std::ranges::count_if(
      subscribers_, [](Subscriptions* subscriber) { return !subscriber->check_homes(); });
  if (moved != 0)
    log(LogLevel::warning,
        fmt::format("pool '{}': {} subscribers are closed, because what they listen to has another "
                    "home now",
                    settings_->name, moved));
}

void Pool::refresh() {
  if (version_ != shared_->version.load(std::memory_order_acquire)) make_ring();
}

Server* Pool::home_of(std::string_view key) {
  if (version_ != shared_->version.load(std::memory_order_acquire)) make_ring();
  if (homes_.empty()) return nullptr;
  const auto random = settings_->distribution == Distribution::random ? next_random(random_) : 0;
  Server& server = *servers_[homes_.of(key, random)];
  return server.health().well() ? &server : nullptr;
}

/// Asks after the health of those that are out when it is time, or takes them back as they are.
void Pool::plan_recovery() {
  loop().cancel(recovery_timer_);
  auto earliest = SteadyTime::max();
  for (const auto& server : servers_) earliest = std::min(earliest, server->health().retry_at());
  if (earliest != SteadyTime::max()) recovery_timer_ = loop().at(earliest, [this] { recover(); });
}

void Pool::recover() {
  const auto now = loop().now();
  for (const auto& server : servers_) {
    if (server->health().well()) continue;
    if (!server->health().come_back(now)) server->ask_after_health();
  }
  refresh();
  plan_recovery();
}

void Pool::accept(net::Socket socket) {
  counters().client_accepted.add();
  if (draining_ || !find_place()) {
    counters().client_refused.add();
    return;  // and the socket closes
  }
  try {
    if (settings_->tcpkeepalive) socket.keep_alive();
    std::unique_ptr<net::Transport> transport;
    if (tls_->listen)
      transport = tls_->listen->accept(std::move(socket), tls_failed_);
    else
      transport = std::make_unique<net::Socket>(std::move(socket));
    clients_.push_back(
        std::make_unique<Client>(*this, std::move(transport), ++last_client_, clients_.size()));
  } catch (const std::system_error& error) {  // epoll takes no more
    log(LogLevel::error,
        fmt::format("pool '{}': a client is refused: {}", settings_->name, error.what()));
    counters().client_refused.add();
    leave_place();
    return;
  }
  counters().client_connections.add();
}

void Pool::list_clients(std::vector<ClientFigures>& figures, std::size_t most) const {
  for (const auto& client : clients_) {
    if (figures.size() >= most) return;
    figures.push_back(client->figures());
  }
}

bool Pool::find_place() noexcept {
  const auto most = settings_->client_connections;
  if (!shared_->clients.enter(most != 0 ? most : SIZE_MAX)) return false;
  if (around_.census.enter()) return true;
  shared_->clients.leave();
  return false;
}

void Pool::leave_place() noexcept {
  shared_->clients.leave();
  around_.census.leave();
}

void Pool::remove(Client& client) noexcept {
  counters().client_connections.add(-1);
  leave_place();
  std::erase(waiting_for_room_, &client);
  std::erase(dismissed_, &client);
  const auto place = client.place();
  std::swap(clients_[place], clients_.back());
  clients_[place]->set_place(place);
  loop().bury(std::move(clients_.back()));
  clients_.pop_back();
}

void Pool::dismiss(Client& client) {
  if (dismissed_.empty())
    dismissal_timer_ = loop().at(loop().now(), [this] {
      for (auto dismissed = std::exchange(dismissed_, {}); Client* const one : dismissed)
        one->close();
    });
  dismissed_.push_back(&client);
}

void Pool::drain(std::chrono::nanoseconds patience) {
  draining_ = true;
  drain_quiet(Clock::add(loop().now(), patience));
}

void Pool::drain_quiet(SteadyTime until) {
  const auto leave = loop().now() < until ? &Client::drain : &Client::drain_now;
  for (const auto& client : clients_) (client.get()->*leave)();
  drain_timer_ = clients_.empty() ? Loop::TimerId{}
                                  : loop().after(drain_look, [this, until] { drain_quiet(until); });
}

std::unique_ptr<RequestReader> Pool::take_reader() {
  auto fresh =
      spare_readers_.empty() ? protocol_->request_reader() : std::move(spare_readers_.back());
  if (!spare_readers_.empty()) spare_readers_.pop_back();
  return std::exchange(reader_, std::move(fresh));
}

void Pool::give_back(std::unique_ptr<RequestReader> reader) {
  if (spare_readers_.size() < kept_readers) spare_readers_.push_back(std::move(reader));
}

std::unique_ptr<net::Transport> Pool::connect(const Server& server) const {
  auto socket = net::Socket::start_connect(server.addresses().current());
  if (!tls_->server) return std::make_unique<net::Socket>(std::move(socket));
  const auto& name = settings_->server_tls.server_name;
  return tls_->server->connect(std::move(socket),
                               name.empty() ? server.settings().endpoint.host : name, tls_failed_);
}

/// Every one is counted; one a second is told.
void Pool::note_tls_failure(std::string_view reason) {
  counters().tls_failures.add();
  if (loop().now() - tls_told_ < std::chrono::seconds{1}) return;
  tls_told_ = loop().now();
  log(LogLevel::warning,
      fmt::format("pool '{}': a TLS handshake failed: {}", settings_->name, reason));
}

void Pool::expect_deadline() {
  if (deadline_timer_.second == 0)
    deadline_timer_ = loop().at(soonest_deadline(), [this] { check_deadlines(); });
}

void Pool::expect_connection() {
  const auto soonest = soonest_deadline();
  if (deadline_timer_.second != 0 && deadline_timer_.first <= soonest) return;
  loop().cancel(deadline_timer_);
  deadline_timer_ = loop().at(soonest, [this] { check_deadlines(); });
}

SteadyTime Pool::soonest_deadline() const noexcept {
  const auto connecting = settings_->connect_timeout;
  return loop().now() + std::min(settings_->timeout.value_or(connecting), connecting);
}

void Pool::check_deadlines() {
  constexpr std::chrono::milliseconds often_enough{1};
  deadline_timer_ = {};
  auto earliest = SteadyTime::max();
  std::vector<Upstream*> upstreams;  // with their time, those that are borrowed may go
  for_each_upstream([&](Upstream& upstream) { upstreams.push_back(&upstream); });
  for (Upstream* upstream : upstreams) upstream->check_time();
  for_each_upstream(
      [&](Upstream& upstream) { earliest = std::min(earliest, upstream.next_deadline()); });
  if (earliest == SteadyTime::max()) return;
  loop().cancel(deadline_timer_);  // one that a receiver's news has made meanwhile
  deadline_timer_ =
      loop().at(std::max(earliest, loop().now() + often_enough), [this] { check_deadlines(); });
}

void Pool::for_each_upstream(const std::function<void(Upstream&)>& visit) {
  for (const auto* const servers : {&servers_, &retired_})
    for (const auto& server : *servers) server->for_each_upstream(visit);
}

void Pool::wait_for_room(Client& client) {
  counters().client_paused.add();
  waiting_for_room_.push_back(&client);
}

void Pool::there_is_room() {
  if (waiting_for_room_.empty()) return;
  for (Client* client : std::exchange(waiting_for_room_, {})) client->there_is_room();
}

void Pool::tick() {
  refresh();
  std::erase_if(retired_, [](const auto& server) { return server->idle(); });
  for (const auto& server : servers_) server->tick();
  there_is_room();
  if (settings_->client_idle_timeout.count() == 0) return;
  const auto before = loop().now() - settings_->client_idle_timeout;
  for (auto place = clients_.size(); place-- > 0;)
    if (clients_[place]->last_active() < before && clients_[place]->is_idle())
      clients_[place]->close();
}

Client* Pool::greediest() const noexcept {
  const auto holds = [](const auto& client) { return client->holds(); };
  const auto most = std::ranges::max_element(clients_, {}, holds);
  return most == clients_.end() || holds(*most) == 0 ? nullptr : most->get();
}

void Pool::evict(Client& client) {
  counters().client_evictions.add();
  client.close();
}

std::uint64_t Pool::id_of(const Client& client) const noexcept {
  return client.number() * around_.registry.workers() + around_.worker;
}

bool Pool::is_idle() const {
  return clients_.empty() && retired_.empty() &&
         std::ranges::all_of(servers_, [](const auto& server) { return server->idle(); });
}

void Pool::observe(Server& server, const Request& request, std::string_view reply) {
  const auto took = loop().now() - request.since;
  watch_->latencies.observe(request.command, took);
  server.watch().latency.observe(took);
  auto& notes = around_.registry.worker(around_.worker);
  if (notes.slow_log.is_slow(took))
    notes.slow_log.note({.took = took,
                         .pool = settings_->name,
                         .command = protocol_->command_name(request.command),
                         .key = noted_key(request),
                         .client = {},
                         .server = server.settings().name},
                        loop().clock().wall());
  if (const auto bytes = std::max<std::size_t>(reply.size(), request.size);
      notes.big_values.is_big(bytes))
    notes.big_values.note(bytes, settings_->name, protocol_->command_name(request.command),
                          noted_key(request), loop().clock().wall());
}

}  // namespace sluice::proxy
