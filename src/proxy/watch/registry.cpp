#include "proxy/watch/registry.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sluice/error.hpp"

namespace sluice::proxy::watch {
namespace {

/// No worker has it any more.
bool is_unused(const auto& per_worker) {
  return std::ranges::all_of(per_worker,
                             [](const auto& watch) { return !watch || watch.use_count() == 1; });
}

Error unknown(std::string_view what, std::string_view name) {
  return Error{Errc::bad_argument,
               fmt::format("the statistics have not been told of the {} '{}'", what, name)};
}

/// Of clients and servers, by these counters, and the listening sockets.
std::int64_t connections(const Snapshot& snapshot, std::int64_t PoolTotals::*of_clients,
                         std::int64_t ServerTotals::*of_servers) noexcept {
  auto count = static_cast<std::int64_t>(snapshot.pools.size());
  for (const auto& pool : snapshot.pools) {
    count += pool.totals.*of_clients;
    for (const auto& server : pool.servers) count += server.totals.*of_servers;
  }
  return count;
}

}  // namespace

std::int64_t Snapshot::current_connections() const noexcept {
  return connections(*this, &PoolTotals::client_connections, &ServerTotals::server_connections);
}

std::int64_t Snapshot::total_connections() const noexcept {
  return connections(*this, &PoolTotals::client_accepted, &ServerTotals::connects);
}

Registry::Registry(std::size_t workers, WatchOptions options, Clock& clock)
    : clock_(clock), started_(clock.steady()), watches_keys_(options.watches_keys) {
  for (std::size_t i = 0; i < workers; ++i)
    per_worker_.push_back(std::make_unique<WorkerWatch>(options, started_));
}

void Registry::set_limits(const WatchOptions& options) {
  watches_keys_.store(options.watches_keys, std::memory_order_relaxed);
  for (const auto& worker : per_worker_) {
    worker->slow_log.set_limits(options.slow_log_entries, options.slow_log_threshold);
    worker->big_values.set_threshold(options.big_value);
  }
}

void Registry::set_pools(std::vector<WatchedPool> pools) {
  const std::lock_guard lock{mutex_};
  for (auto& [name, pool] : pools_) {
    pool.in_force = false;
    for (auto& [server_name, server] : pool.servers) server.in_force = false;
  }
  for (auto& wanted : pools) {
    Pool& pool = pools_[wanted.name];
    // A pool that changes its protocol counts other commands: new counters, in the place of the old
    // ones.
    if (pool.settings.commands != wanted.commands) pool.workers.clear();
    pool.workers.resize(workers());
    pool.in_force = true;
    for (std::size_t i = 0; i < wanted.servers.size(); ++i) {
      Server& server = pool.servers[wanted.servers[i]];
      server.in_force = true;
      server.weight.reset();
      if (i < wanted.weights.size()) server.weight = wanted.weights[i];
      server.workers.resize(workers());
    }
    pool.settings = std::move(wanted);
  }
  forget_unused();
}

Registry::Pool& Registry::find(std::string_view pool) {
  const auto found = pools_.find(pool);
  if (found == pools_.end()) throw unknown("pool", pool);
  return found->second;
}

std::shared_ptr<PoolWatch> Registry::pool(std::size_t worker, std::string_view pool) {
  const std::lock_guard lock{mutex_};
  Pool& found = find(pool);
  auto& watch = found.workers[worker];
  if (!watch) watch = std::make_shared<PoolWatch>(found.settings.commands);
  return watch;
}

std::shared_ptr<ServerWatch> Registry::server(std::size_t worker, std::string_view pool,
                                              std::string_view server) {
  const std::lock_guard lock{mutex_};
  Pool& owner = find(pool);
  auto found = owner.servers.find(server);
  if (found == owner.servers.end()) {
    if (!owner.settings.is_open) throw unknown("server", server);
    found = owner.servers.try_emplace(std::string{server}).first;
    found->second.in_force = false;
    found->second.workers.resize(workers());
  }
  auto& watch = found->second.workers[worker];
  if (!watch) watch = std::make_shared<ServerWatch>(found->second.status);
  return watch;
}

void Registry::forget_unused() {
  for (auto& [name, pool] : pools_)
    std::erase_if(pool.servers, [](const auto& entry) {
      return !entry.second.in_force && is_unused(entry.second.workers);
    });
  std::erase_if(pools_, [](const auto& entry) {
    const Pool& pool = entry.second;
    return !pool.in_force && pool.servers.empty() && is_unused(pool.workers);
  });
}

PoolFigures Registry::figures_of(const std::string& name, const Pool& pool) const {
  PoolFigures figures;
  figures.name = name;
  std::vector<LatencyCounts> commands(pool.settings.commands);
  for (const auto& watch : pool.workers) {
    if (!watch) continue;
    add(pool_fields, figures.totals, watch->counters);
    for (std::size_t command = 0; command < commands.size(); ++command)
      if (const auto* const seen = watch->latencies.of(command)) seen->add_to(commands[command]);
  }
  for (std::size_t command = 0; command < commands.size(); ++command)
    if (!commands[command].buckets.empty())
      figures.commands.push_back(
          {pool.settings.command_name(command), std::move(commands[command])});
  std::ranges::sort(figures.commands, {}, &CommandFigures::name);

  for (const auto& [server_name, server] : pool.servers) {
    auto& of_server = figures.servers.emplace_back();
    of_server.name = server_name;
    of_server.weight = server.weight;
    of_server.standing = server.status->standing();
    for (const auto& watch : server.workers) {
      if (!watch) continue;
      add(server_fields, of_server.totals, watch->counters);
      watch->latency.add_to(of_server.latency);
    }
  }
  return figures;
}

Snapshot Registry::snapshot() {
  const std::lock_guard lock{mutex_};
  forget_unused();
  Snapshot snapshot;
  snapshot.at = clock_.wall();
  snapshot.uptime = std::chrono::floor<std::chrono::seconds>(clock_.steady() - started_);
  for (const auto& [name, pool] : pools_) snapshot.pools.push_back(figures_of(name, pool));
  return snapshot;
}

std::vector<SlowEntry> Registry::slow_log(std::size_t most) const {
  std::vector<SlowEntry> all;
  for (const auto& worker : per_worker_)
    std::ranges::move(worker->slow_log.entries(), std::back_inserter(all));
  std::ranges::sort(all, std::greater{}, &SlowEntry::id);
  if (all.size() > most) all.resize(most);
  return all;
}

void Registry::reset_slow_log() {
  for (const auto& worker : per_worker_) worker->slow_log.reset();
}

std::vector<HotKey> Registry::hot_keys(std::size_t most) const {
  std::vector<HotKeys::Counted> counted;
  for (const auto& worker : per_worker_)
    counted.push_back(worker->hot_keys.counted(clock_.steady()));
  return HotKeys::top(counted, most);
}

std::vector<BigValue> Registry::big_values(std::size_t most) const {
  std::vector<BigValue> all;
  for (const auto& worker : per_worker_)
    std::ranges::move(worker->big_values.values(clock_.wall()), std::back_inserter(all));
  std::ranges::sort(all, std::greater{}, &BigValue::bytes);
  if (all.size() > most) all.resize(most);
  return all;
}

}  // namespace sluice::proxy::watch
