#include "proxy/flow/pool_servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "proxy/config/ring_move.hpp"
#include "proxy/flow/pool.hpp"
#include "proxy/flow/session/subscription.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::chrono::milliseconds between_masters{100};

/// Whether connections to a server that were made with the one settings are as good with the other.
bool connect_alike(const PoolSettings& one, const PoolSettings& other) {
  const auto what = [](const PoolSettings& settings) {
    return std::tie(settings.redis, settings.redis_auth, settings.redis_db, settings.server_user,
                    settings.server_password, settings.server_connections, settings.server_tls,
                    settings.sentinels);
  };
  return what(one) == what(other);
}

/// xorshift32 (Marsaglia): for `distribution: random`, where nothing hangs on its quality.
std::uint32_t next_random(std::uint32_t& state) noexcept {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

}  // namespace

PoolServers::PoolServers(Pool& pool)
    : pool_(pool),
      loop_(pool.loop()),
      random_(static_cast<std::uint32_t>(loop_.clock().wall().time_since_epoch().count()) | 1U) {
  make_servers({});
  make_ring();
  follow_masters();
}

PoolServers::~PoolServers() {
  // Taken out first: what fails with its connection may look for a server.
  for (Servers* const servers : {&servers_, &retired_}) std::exchange(*servers, {}).clear();
  for (const auto& timer : {deadline_timer_, recovery_timer_, subscribers_timer_, masters_timer_})
    loop_.cancel(timer);
}

void PoolServers::apply(const PoolSettings& before) {
  auto old = std::exchange(servers_, {});
  if (!connect_alike(before, pool_.settings()))
    std::ranges::move(std::exchange(old, {}), std::back_inserter(retired_));
  make_servers(std::move(old));
  make_ring();
  loop_.cancel(deadline_timer_);  // a timeout may be shorter than it was
  check_deadlines();
  loop_.cancel(masters_timer_);
  follow_masters();
}

/// Ten times a second, where Sentinels watch the servers.
void PoolServers::follow_masters() {
  masters_timer_ = {};
  if (pool_.settings().sentinels.empty()) return;
  if (const auto masters = pool_.shared().masters())
    for (const auto& server : servers_) server->follow_master(*masters);
  masters_timer_ = loop_.after(between_masters, [this] { follow_masters(); });
}

/// Takes over those of `old` that the settings still name; the rest of them retires.
void PoolServers::make_servers(Servers old) {
  const auto& settings = pool_.settings();
  const auto& context = pool_.context();
  for (const auto& wanted : config::all_servers(settings)) {
    auto shared = pool_.shared().server_of(wanted, settings);
    const auto same = std::ranges::find_if(old, [&](const auto& server) {
      return server && server->settings().name == wanted.name &&
             server->settings().endpoint == wanted.endpoint;
    });
    if (same != old.end()) {
      servers_.push_back(std::move(*same));
      servers_.back()->set_weight(wanted.weight);
      servers_.back()->show_health();
    } else {
      servers_.push_back(std::make_unique<Server>(
          pool_, wanted, std::move(shared),
          context.registry.server(context.worker, settings.name, wanted.name)));
      if (settings.preconnect) servers_.back()->preconnect();
    }
  }
  for (auto& server : old)
    if (server) retired_.push_back(std::move(server));
}

void PoolServers::make_ring() {
  const auto& settings = pool_.settings();
  version_ = pool_.shared().version.load(std::memory_order_acquire);
  std::vector<std::uint32_t> live;
  for (std::uint32_t place = 0; place < servers_.size(); ++place) {
    const bool well = servers_[place]->health().well();
    servers_[place]->counters().server_ejected.set(well ? 0 : 1);
    if (place >= settings.servers.size()) continue;  // of the other ring
    if (well || settings.on_failure == OnFailure::fail) live.push_back(place);
  }
  homes_ = live.empty() ? Homes{} : make_homes(settings, live);
  if (settings.move) make_other_ring(*settings.move->other);
  if (!subscribers_.empty() &&
      subscribers_timer_.second == 0)  // later: a subscriber may be calling
    subscribers_timer_ = loop_.at(loop_.now(), [this] { check_subscribers(); });
  plan_recovery();
}

void PoolServers::make_other_ring(const PoolSettings& other) {
  other_homes_ = make_homes(other);
  other_places_.clear();
  for (const auto& server : other.servers) {
    const auto same = std::ranges::find_if(
        servers_, [&](const auto& one) { return one->settings().endpoint == server.endpoint; });
    other_places_.push_back(static_cast<std::uint32_t>(same - servers_.begin()));
  }
}

Server* PoolServers::elsewhere(std::string_view key) {
  refresh();
  if (homes_.empty()) return nullptr;
  const auto& here = *servers_[homes_.of(key)];
  auto& there = *servers_[other_places_[other_homes_.of(key)]];
  return here.settings().endpoint == there.settings().endpoint ? nullptr : &there;
}

bool PoolServers::is_drained() const {
  bool drained = true;
  for (const auto& server : retired_)
    server->for_each_upstream([&](const Upstream& upstream) { drained &= upstream.idle(); });
  return drained;
}

void PoolServers::check_subscribers() {
  subscribers_timer_ = {};
  const auto moved = std::ranges::count_if(
      subscribers_, [](Subscriptions* subscriber) { return !subscriber->check_homes(); });
  if (moved != 0)
    log(LogLevel::warning,
        fmt::format("pool '{}': {} subscribers are closed, because what they listen to has another "
                    "home now",
                    pool_.settings().name, moved));
}

void PoolServers::refresh() {
  if (version_ != pool_.shared().version.load(std::memory_order_acquire)) make_ring();
}

bool PoolServers::contains(const Server* server) const noexcept {
  return std::ranges::any_of(servers_, [&](const auto& one) { return one.get() == server; });
}

Server* PoolServers::home_of(std::string_view key) {
  refresh();
  if (homes_.empty()) return nullptr;
  const bool is_random = pool_.settings().distribution == Distribution::random;
  Server& server = *servers_[homes_.of(key, is_random ? next_random(random_) : 0)];
  return server.health().well() ? &server : nullptr;
}

/// When the first ejected server is to be tried again.
void PoolServers::plan_recovery() {
  loop_.cancel(recovery_timer_);
  auto earliest = SteadyTime::max();
  for (const auto& server : servers_) earliest = std::min(earliest, server->health().retry_at());
  if (earliest != SteadyTime::max()) recovery_timer_ = loop_.at(earliest, [this] { recover(); });
}

void PoolServers::recover() {
  for (const auto& server : servers_) server->try_to_recover();
  refresh();
  plan_recovery();
}

void PoolServers::expect_deadline() {
  if (deadline_timer_.second == 0)
    deadline_timer_ = loop_.at(soonest_deadline(), [this] { check_deadlines(); });
}

void PoolServers::expect_connection() {
  const auto soonest = soonest_deadline();
  if (deadline_timer_.second != 0 && deadline_timer_.first <= soonest) return;
  loop_.cancel(deadline_timer_);
  deadline_timer_ = loop_.at(soonest, [this] { check_deadlines(); });
}

SteadyTime PoolServers::soonest_deadline() const noexcept {
  const auto& settings = pool_.settings();
  const auto connecting = settings.connect_timeout;
  return loop_.now() + std::min(settings.timeout.value_or(connecting), connecting);
}

void PoolServers::check_deadlines() {
  constexpr std::chrono::milliseconds often_enough{1};
  deadline_timer_ = {};
  auto earliest = SteadyTime::max();
  std::vector<Upstream*> upstreams;  // a list of their own: check_time() may end borrowed ones
  for_each_upstream([&](Upstream& upstream) { upstreams.push_back(&upstream); });
  for (Upstream* upstream : upstreams) upstream->check_time();
  for_each_upstream(
      [&](Upstream& upstream) { earliest = std::min(earliest, upstream.next_deadline()); });
  if (earliest == SteadyTime::max()) return;
  loop_.cancel(deadline_timer_);  // one that check_time() has set meanwhile
  deadline_timer_ =
      loop_.at(std::max(earliest, loop_.now() + often_enough), [this] { check_deadlines(); });
}

void PoolServers::for_each_upstream(const std::function<void(Upstream&)>& visit) {
  for (const auto* const servers : {&servers_, &retired_})
    for (const auto& server : *servers) server->for_each_upstream(visit);
}

void PoolServers::tick() {
  refresh();
  std::erase_if(retired_, [](const auto& server) { return server->idle(); });
  for (const auto& server : servers_) server->tick();
}

bool PoolServers::is_idle() const {
  return retired_.empty() &&
         std::ranges::all_of(servers_, [](const auto& server) { return server->idle(); });
}

}  // namespace sluice::proxy::flow
