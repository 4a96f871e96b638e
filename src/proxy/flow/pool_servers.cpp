#include "proxy/flow/pool_servers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "proxy/config/ring_move.hpp"
#include "proxy/flow/home_holder.hpp"
#include "proxy/flow/pool.hpp"
#include "sluice/log.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr std::chrono::milliseconds between_masters{100};

/// Whether connections to a server that were made with the one settings are as good with the other.
bool connect_alike(const PoolSettings& one, const PoolSettings& other) {
  const auto what = [](const PoolSettings& settings) {
    return std::tie(settings.redis, settings.redis_auth, settings.redis_db, settings.server_user,
                    settings.server_password, settings.server_connections, settings.server_tls,
                    settings.sentinels, settings.cluster, settings.read_from);
  };
  return what(one) == what(other);
}

/// Nodes that are not in the map, to which others redirect, at a time.
constexpr std::size_t most_strangers = 64;

ServerSettings settings_of(const topology::Endpoint& node) {
  ServerSettings settings;
  settings.endpoint = {.host = node.host, .port = node.port, .unix_path = {}};
  settings.name = settings.text = topology::to_string(node);
  return settings;
}

topology::Endpoint endpoint_of(const Server& server) {
  const auto& endpoint = server.settings().endpoint;
  return {endpoint.host, endpoint.port};
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
  make_servers(config::all_servers(pool.settings()), {});
  make_ring();
  begin_cluster();
  follow_masters();
}

PoolServers::~PoolServers() {
  pool_.detours().end();
  // Taken out first: what fails with its connection may look for a server.
  owners_.clear();
  known_.clear();
  for (Servers* const servers : {&replicas_, &servers_, &strangers_, &retired_})
    std::exchange(*servers, {}).clear();
  for (const auto& timer : {deadline_timer_, recovery_timer_, holders_timer_, masters_timer_})
    loop_.cancel(timer);
}

void PoolServers::apply(const PoolSettings& before) {
  auto old = std::exchange(servers_, {});
  if (!connect_alike(before, pool_.settings()))
    std::ranges::move(std::exchange(old, {}), std::back_inserter(retired_));
  leave_replicas();
  if (pool_.settings().is_of_cluster() && !old.empty()) {
    servers_ = std::move(old);  // its map is still the same
    make_ring();
  } else {
    owners_.clear();
    std::ranges::move(std::exchange(strangers_, {}), std::back_inserter(retired_));
    make_servers(config::all_servers(pool_.settings()), std::move(old));
    make_ring();
    begin_cluster();
  }
  loop_.cancel(deadline_timer_);  // a timeout may be shorter than it was
  check_deadlines();
  loop_.cancel(masters_timer_);
  follow_masters();
}

/// Ten times a second, where Sentinels watch the servers, or a cluster tells them.
void PoolServers::follow_masters() {
  masters_timer_ = {};
  if (pool_.settings().is_of_cluster()) {
    take_map();
    look_for_silence();
    if (awaits_map_ && loop_.now() >= map_due_) end_waiting();
  } else if (pool_.settings().sentinels.empty()) {
    return;
  } else if (const auto masters = pool_.shared().masters()) {
    for (const auto& server : servers_) server->follow_master(*masters);
  }
  if (pool_.settings().read_from == ReadFrom::replica) follow_replicas();
  masters_timer_ = loop_.after(between_masters, [this] { follow_masters(); });
}

void PoolServers::leave_replicas() {
  known_.clear();
  for (auto& server : std::exchange(replicas_, {})) retire_replica(std::move(server));
}

/// It may stand still: then what is under way there goes to the master.
void PoolServers::retire_replica(std::unique_ptr<Server> server) {
  server->deprive();
  retired_.push_back(std::move(server));
}

/// Those that the Sentinels, or the cluster, tell of. What is under way at one that is not fresh
/// any more goes to the master: it may stand still.
void PoolServers::follow_replicas() {
  const auto cluster = this->cluster();
  const auto masters = pool_.shared().masters();
  if (!cluster && !masters) return;
  const bool is_wanted = std::exchange(wants_replicas_, false);
  const auto replicas_of = [&](auto& source, const auto& master) {
    if (is_wanted) source.want_replicas(master);
    return source.replicas_of(master);
  };
  known_.clear();
  auto old = std::exchange(replicas_, {});
  for (const auto& master : servers_) {
    for (const auto& replica : cluster ? replicas_of(*cluster, endpoint_of(*master))
                                       : replicas_of(*masters, master->settings().name)) {
      const auto wanted = settings_of(replica.endpoint);
      const auto same = std::ranges::find_if(
          old, [&](const auto& one) { return one && one->settings().endpoint == wanted.endpoint; });
      replicas_.push_back(same == old.end() ? make_server(wanted, true) : std::move(*same));
      known_.push_back({replicas_.back().get(), master.get(), replica.caught_up});
    }
  }
  for (auto& server : old)
    if (server) retire_replica(std::move(server));
  std::vector<Upstream*> late;
  const auto oldest = loop_.clock().steady() - pool_.settings().replica_max_lag;
  for (const auto& known : known_) {
    if (!known.server->health().well()) known.server->try_to_recover();
    if (known.caught_up >= oldest) continue;
    known.server->for_each_upstream([&](Upstream& upstream) {
      if (upstream.connected() && upstream.under_way() != 0) late.push_back(&upstream);
    });
  }
  for (auto* const upstream : late) upstream->close(Failure::closed);
}

Server* PoolServers::replica_of(const Server& master, SteadyTime as_of, const ConnectionMode& mode,
                                std::size_t client) {
  wants_replicas_ = true;
  const auto oldest = loop_.clock().steady() - pool_.settings().replica_max_lag;
  const auto first = std::ranges::find(known_, &master, &Known::master);
  const auto end = std::ranges::find_if(
      first, known_.end(), [&](const Known& known) { return known.master != &master; });
  const auto count = static_cast<std::size_t>(end - first);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& known = first[static_cast<std::ptrdiff_t>((client + i) % count)];
    if (known.caught_up <= as_of || known.caught_up < oldest || !known.server->health().well())
      continue;
    auto& upstream = known.server->upstream(mode, client);
    if (!upstream.connected() && upstream.begun() + between_masters <= loop_.now())
      upstream.connect();
    // What it has told, it has told since it was connected to: it is not another server by now.
    if (upstream.connected() && upstream.begun() < known.caught_up && !upstream.is_full())
      return known.server;
  }
  return nullptr;
}

std::unique_ptr<Server> PoolServers::make_server(const ServerSettings& wanted, bool is_replica) {
  const auto& settings = pool_.settings();
  const auto& context = pool_.context();
  return std::make_unique<Server>(
      pool_, wanted, pool_.shared().server_of(wanted, settings),
      context.registry.server(context.worker, settings.name, wanted.name), is_replica);
}

/// Takes over those of `old` that are among `all`; the rest of them retires.
void PoolServers::make_servers(const std::vector<ServerSettings>& all, Servers old) {
  const auto& settings = pool_.settings();
  for (const auto& wanted : all) {
    const auto same = std::ranges::find_if(old, [&](const auto& server) {
      return server && server->settings().name == wanted.name &&
             server->settings().endpoint == wanted.endpoint;
    });
    if (same != old.end()) {
      servers_.push_back(std::move(*same));
      static_cast<void>(pool_.shared().server_of(wanted, settings));  // its policy may be new
      servers_.back()->set_weight(wanted.weight);
      servers_.back()->show_health();
    } else {
      servers_.push_back(make_server(wanted));
      if (settings.preconnect) servers_.back()->preconnect();
    }
  }
  for (auto& server : old)
    if (server) retired_.push_back(std::move(server));
}

std::shared_ptr<Cluster> PoolServers::cluster() const {
  auto cluster = pool_.shared().cluster();
  return cluster && cluster->serves(pool_.settings()) ? cluster : nullptr;
}

/// Until a map is there, or no node can be reached in time, requests wait.
void PoolServers::begin_cluster() {
  turn_ = 0;
  const bool awaits = pool_.settings().is_of_cluster();
  note_full((awaits ? 1 : 0) - (awaits_map_ ? 1 : 0));
  awaits_map_ = awaits;
  map_due_ = loop_.now() + pool_.settings().connect_timeout;
  if (awaits) take_map();
}

void PoolServers::end_waiting() {
  if (!std::exchange(awaits_map_, false)) return;
  note_full(-1);
  pool_.clients().there_is_room();
}

/// Servers are the nodes that have slots, in the order of the first that each has.
void PoolServers::take_map() {
  const auto cluster = this->cluster();
  if (!cluster || cluster->turn() == turn_) return;
  turn_ = cluster->turn();
  const auto map = cluster->map();
  if (map->knows_nothing()) return;

  std::vector<ServerSettings> nodes;
  std::map<topology::Endpoint, std::uint16_t> places;
  std::vector<std::uint16_t> owners(hash_slots, nobody);
  const topology::Node* last = nullptr;
  std::uint16_t last_place = nobody;
  for (std::uint16_t slot = 0; slot < hash_slots; ++slot) {
    const auto* const owner = map->owner(slot);
    if (owner != last) {
      last = owner;
      last_place = nobody;
      if (owner && owner->endpoint) {
        const auto [at, is_new] =
            places.try_emplace(*owner->endpoint, static_cast<std::uint16_t>(nodes.size()));
        if (is_new) nodes.push_back(settings_of(*owner->endpoint));
        last_place = at->second;
      }
    }
    owners[slot] = last_place;
  }

  for (std::size_t block = 0; block < block_owners_.size(); ++block) {
    const auto its = std::span{owners}.subspan(block << block_bits, std::size_t{1} << block_bits);
    block_owners_[block] =
        std::ranges::adjacent_find(its, std::not_equal_to{}) == its.end() ? its.front() : several;
  }

  auto old = std::exchange(servers_, {});
  std::vector<const Server*> before;
  for (const auto& server : old) before.push_back(server.get());
  const auto old_owners = std::exchange(owners_, std::move(owners));
  std::ranges::move(std::exchange(strangers_, {}), std::back_inserter(old));
  const auto others = retired_.size();
  make_servers(nodes, std::move(old));
  for (const auto& server : std::span{retired_}.subspan(others)) server->deprive();
  std::erase_if(known_, [this](const Known& known) { return !contains(known.master); });
  make_ring();
  bool has_moved = false;
  for (std::uint16_t slot = 0; slot < hash_slots && !old_owners.empty() && !has_moved; ++slot)
    has_moved = old_owners[slot] != nobody && before[old_owners[slot]] != home_of_slot(slot);
  // What is under way to the one before may be refused there, and come to the new one later.
  if (has_moved) pool_.clients().for_each([](Client& client) { client.finish_earlier(); });
  end_waiting();
}

Server* PoolServers::home_of_slot(std::uint16_t slot) const noexcept {
  if (owners_.empty()) return nullptr;
  auto owner = block_owners_[slot >> block_bits];
  if (owner == several) owner = owners_[slot];
  return owner == nobody ? nullptr : servers_[owner].get();
}

Server* PoolServers::node_at(const topology::Endpoint& endpoint) {
  const auto wanted = settings_of(endpoint);
  for (const auto* const servers : {&servers_, &strangers_})
    for (const auto& server : *servers)
      if (server->settings().endpoint == wanted.endpoint) return server.get();
  if (strangers_.size() >= most_strangers) return nullptr;
  return strangers_.emplace_back(make_server(wanted)).get();
}

bool PoolServers::knows_node(const topology::Endpoint& endpoint) const {
  const auto cluster = this->cluster();
  return cluster && cluster->map()->find(endpoint);
}

void PoolServers::slot_moved(std::uint16_t slot, const topology::Endpoint& from,
                             const topology::Endpoint& to) {
  const auto cluster = this->cluster();
  if (!cluster) return;
  cluster->moved(slot, from, to);
  take_map();
}

void PoolServers::doubt(const Server& server) {
  if (const auto cluster = this->cluster()) return cluster->doubt();
  if (const auto masters = pool_.shared().masters()) masters->doubt(server.settings().name);
}

void PoolServers::tell_lost(const Server& server) {
  if (const auto cluster = this->cluster()) cluster->lost(endpoint_of(server));
}

void PoolServers::tell_back(const Server& server) {
  if (const auto cluster = this->cluster()) cluster->is_back(endpoint_of(server));
}

std::string PoolServers::certified_host(const Server& server) const {
  const auto cluster = this->cluster();
  const auto map = cluster ? cluster->map() : nullptr;
  const auto* const node = map ? map->find(endpoint_of(server)) : nullptr;
  const bool has_name = node && !node->hostname.empty() && net::is_numeric(server.host());
  return has_name ? node->hostname : server.host();
}

void PoolServers::look_for_silence() {
  for (const auto* const servers : {&servers_, &strangers_, &retired_})
    for (const auto& server : *servers) server->look_for_silence();
}

void PoolServers::make_ring() {
  ++rings_;
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
  if (!holders_.empty() && holders_timer_.second == 0)  // later: one of them may be calling
    holders_timer_ = loop_.at(loop_.now(), [this] { check_holders(); });
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

void PoolServers::check_holders() {
  holders_timer_ = {};
  const std::vector<HomeHolder*> all{holders_.begin(), holders_.end()};
  const auto moved = std::ranges::count_if(  // the end of one may be that of another
      all, [this](HomeHolder* one) { return holders_.contains(one) && !one->check_homes(); });
  if (moved != 0)
    log(LogLevel::warning,
        fmt::format("pool '{}': {} subscribers are closed, because what they listen to has another "
                    "home now",
                    pool_.settings().name, moved));
}

bool PoolServers::have_left(const Server& server, const std::vector<std::string>& keys) {
  const auto& settings = pool_.settings();
  if (settings.is_of_cluster() || settings.distribution == Distribution::random) return false;
  return std::ranges::any_of(keys, [&](const auto& key) {
    const Server* const home = home_of(key);
    return home && home->settings().endpoint != server.settings().endpoint;
  });
}

void PoolServers::refresh() {
  if (version_ != pool_.shared().version.load(std::memory_order_acquire)) make_ring();
}

bool PoolServers::contains(const Server* server) const noexcept {
  return std::ranges::any_of(servers_, [&](const auto& one) { return one.get() == server; });
}

Server* PoolServers::home_of(std::string_view key) {
  if (!owners_.empty()) return home_of_slot(hash_slot(key));
  refresh();
  if (homes_.empty()) return nullptr;
  const bool is_random = pool_.settings().distribution == Distribution::random;
  Server& server = *servers_[homes_.of(key, is_random ? next_random(random_) : 0)];
  return server.health().well() ? &server : nullptr;
}

bool PoolServers::have_one_home(std::string_view key, std::string_view other) {
  if (!owners_.empty()) return hash_slot(key) == hash_slot(other);
  return home_of(key) == home_of(other);
}

/// A node of a cluster refuses keys of two slots, though it has both.
std::vector<HomePart> PoolServers::parts_of(std::span<const std::string_view> keys) {
  std::vector<HomePart> parts;
  std::map<std::uint16_t, std::size_t> by_slot;
  for (std::uint32_t place = 0; place < keys.size(); ++place) {
    Server* const home = home_of(keys[place]);
    auto part = parts.size();
    if (!owners_.empty())
      part = by_slot.try_emplace(hash_slot(keys[place]), part).first->second;
    else
      part =
          static_cast<std::size_t>(std::ranges::find(parts, home, &HomePart::home) - parts.begin());
    if (part == parts.size()) parts.push_back({home, {}});
    parts[part].keys.push_back(place);
  }
  return parts;
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
  for (const auto* const servers : {&servers_, &strangers_, &replicas_, &retired_})
    for (const auto& server : *servers) server->for_each_upstream(visit);
}

void PoolServers::tick() {
  refresh();
  for (auto* const servers : {&strangers_, &retired_})
    std::erase_if(*servers, [](const auto& server) { return server->idle(); });
  for (const auto* const servers : {&servers_, &replicas_})
    for (const auto& server : *servers) server->tick();
}

bool PoolServers::is_idle() const {
  return retired_.empty() && pool_.detours().empty() &&
         std::ranges::all_of(servers_, [](const auto& server) { return server->idle(); }) &&
         std::ranges::all_of(replicas_, [](const auto& server) { return server->idle(); });
}

}  // namespace sluice::proxy::flow
