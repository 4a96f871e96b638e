#include "proxy/flow/pool.hpp"

#include <algorithm>
#include <utility>

#include "proxy/flow/client.hpp"

namespace sluice::proxy {
namespace {

CharSign sign_of(const PoolSettings& settings) {
  return settings.key_bytes;
}

/// xorshift32 (Marsaglia): for `distribution: random`, where nothing hangs on it.
std::uint32_t next_random(std::uint32_t& state) noexcept {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

constexpr std::size_t kept_readers = 16;

}  // namespace

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

Pool::Pool(Loop& loop, Resolver& resolver, std::shared_ptr<const PoolSettings> settings,
           std::shared_ptr<SharedPool> shared, PoolTallies tallies)
    : loop_(loop),
      resolver_(resolver),
      settings_(std::move(settings)),
      shared_(std::move(shared)),
      tallies_(std::move(tallies)),
      protocol_(settings_->redis ? make_redis_protocol(*settings_)
                                 : make_memcached_protocol(*settings_)),
      random_(static_cast<std::uint32_t>(loop.clock().wall().time_since_epoch().count()) | 1U),
      reader_(protocol_->request_reader()) {
  make_servers();
  make_ring();
}

Pool::~Pool() {
  loop_.cancel(deadline_timer_);
  loop_.cancel(recovery_timer_);
  while (!clients_.empty()) clients_.back()->close();
  servers_.clear();
}

void Pool::make_servers() {
  for (const auto& server : settings_->servers) {
    servers_.push_back(std::make_unique<Server>(
        *this, server, shared_->health_of(server, *settings_), tallies_.server(server)));
    if (settings_->preconnect) servers_.back()->preconnect();
  }
}

void Pool::make_ring() {
  version_ = shared_->version.load(std::memory_order_acquire);
  std::vector<RingServer> all;
  std::vector<std::uint32_t> live;
  for (const auto& server : servers_) {
    if (settings_->on_failure == OnFailure::fail || server->health().well())
      live.push_back(static_cast<std::uint32_t>(all.size()));
    all.push_back({server->settings().name, server->settings().weight});
  }
  homes_ = live.empty() ? Homes{}
                        : Homes{settings_->hash, sign_of(*settings_), settings_->hash_tag,
                                Ring{settings_->distribution, all, live}, all.size() == 1};
  plan_recovery();
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
  loop_.cancel(recovery_timer_);
  auto earliest = SteadyTime::max();
  for (const auto& server : servers_) earliest = std::min(earliest, server->health().retry_at());
  if (earliest != SteadyTime::max()) recovery_timer_ = loop_.at(earliest, [this] { recover(); });
}

void Pool::recover() {
  const auto now = loop_.now();
  for (const auto& server : servers_) {
    if (server->health().well()) continue;
    if (!server->health().come_back(now)) server->ask_after_health();
  }
  refresh();
  plan_recovery();
}

void Pool::accept(net::Socket socket) {
  counters().client_accepted.add();
  if (draining_ ||
      (settings_->client_connections != 0 && clients_.size() >= settings_->client_connections)) {
    counters().client_refused.add();
    return;  // and the socket closes
  }
  clients_.push_back(std::make_unique<Client>(
      *this, std::make_unique<net::Socket>(std::move(socket)), ++last_client_, clients_.size()));
  counters().client_connections.add();
}

void Pool::remove(Client& client) noexcept {
  counters().client_connections.add(-1);
  std::erase(waiting_for_room_, &client);
  const auto place = client.place();
  std::swap(clients_[place], clients_.back());
  clients_[place]->set_place(place);
  loop_.bury(std::move(clients_.back()));
  clients_.pop_back();
}

void Pool::drain() {
  draining_ = true;
  for (auto place = clients_.size(); place-- > 0;) clients_[place]->drain();
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
  return std::make_unique<net::Socket>(net::Socket::start_connect(server.addresses().front()));
}

void Pool::expect_deadline() {
  if (deadline_timer_.second == 0) {
    const auto soonest = std::min(settings_->timeout.value_or(settings_->connect_timeout),
                                  settings_->connect_timeout);
    deadline_timer_ = loop_.after(soonest, [this] { check_deadlines(); });
  }
}

void Pool::check_deadlines() {
  deadline_timer_ = {};
  auto earliest = SteadyTime::max();
  for (const auto& server : servers_)
    server->for_each_upstream([&](Upstream& upstream) {
      upstream.check_time();
      earliest = std::min(earliest, upstream.next_deadline());
    });
  if (earliest != SteadyTime::max() && deadline_timer_.second == 0)
    deadline_timer_ = loop_.at(earliest, [this] { check_deadlines(); });
}

void Pool::wait_for_room(Client& client) {
  counters().client_paused.add();
  waiting_for_room_.push_back(&client);
}

void Pool::there_is_room() {
  if (waiting_for_room_.empty()) return;
  for (Client* client : std::exchange(waiting_for_room_, {})) client->there_is_room();
}

void Pool::observe(Server& server, const Request& request, std::string_view reply) {
  static_cast<void>(server), static_cast<void>(request), static_cast<void>(reply);
}

}  // namespace sluice::proxy
