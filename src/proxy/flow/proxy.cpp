#include "proxy/flow/proxy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "proxy/protocol/protocol.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy {
namespace {

/// What the registry has to know of the pools.
std::vector<watch::WatchedPool> watched(const Config& config, std::size_t mbuf_size) {
  std::vector<watch::WatchedPool> pools;
  for (const auto& settings : config.pools) {
    std::shared_ptr<const Protocol> protocol = settings.redis
                                                   ? make_redis_protocol(settings, mbuf_size)
                                                   : make_memcached_protocol(settings);
    auto& pool = pools.emplace_back(watch::WatchedPool{
        .name = settings.name,
        .servers = {},
        .commands = protocol->command_count(),
        .command_name = {},
        .is_open = settings.is_of_cluster() || settings.read_from == ReadFrom::replica});
    for (const auto& server : config::all_servers(settings)) {
      pool.servers.push_back(server.name);
      pool.weights.push_back(server.weight);
    }
    pool.command_name = [protocol](std::size_t command) {
      return std::string{protocol->command_name(static_cast<std::uint16_t>(command))};
    };
  }
  return pools;
}

net::ListenOptions listen_options(const PoolSettings& settings, std::size_t workers) {
  return {.backlog = settings.backlog,
          .share_port = settings.reuseport || workers > 1,
          .permissions = settings.listen.permissions};
}

/// Half of the time is for clients to become quiet, the other half for those that do not.
std::chrono::milliseconds patience_of(const Config& config) {
  return config.process.drain_timeout / 2;
}

/// The services beside the pools keep their sockets over a reload.
constexpr std::pair<std::string_view, std::string ProcessSettings::*> fixed_settings[] = {
    {"metrics", &ProcessSettings::metrics}, {"admin", &ProcessSettings::admin}};

bool keeps_its_sockets(const PoolSettings& one, const PoolSettings& other) {
  return one.listen.text == other.listen.text && one.reuseport != other.reuseport;
}

std::size_t memory_share(const ProcessSettings& settings) {
  return settings.memory_limit / std::max<std::size_t>(settings.workers, 1);
}

}  // namespace

watch::WatchOptions watch_options(const ProcessSettings& settings) {
  return {.slow_log_entries = settings.slow_log_entries,
          .slow_log_threshold = settings.slow_log_threshold,
          .big_value = settings.big_value,
          .watches_keys = settings.hot_keys,
          .hot_keys = {}};
}

Proxy::Proxy(Clock& clock, Config config, std::size_t mbuf_size, InheritedListeners inherited,
             flow::Resolver::Lookup lookup)
    : clock_(clock),
      config_(std::move(config)),
      mbuf_size_(mbuf_size),
      registry_(std::make_unique<watch::Registry>(std::max<std::size_t>(config_.process.workers, 1),
                                                  watch_options(config_.process), clock)),
      resolver_(std::move(lookup)) {
  registry_->set_pools(watched(config_, mbuf_size_));
  pools_ = pools_for(config_, std::move(inherited));
  auto updates = updates_for(pools_);
  for (std::size_t number = 0; number < registry_->workers(); ++number) {
    workers_.push_back(
        std::make_unique<flow::Worker>(clock_, resolver_, *registry_, limits_, number, mbuf_size_));
    workers_.back()->set_memory_limit(memory_share(config_.process));
    workers_.back()->apply(std::move(updates[number]));
  }
}

Proxy::~Proxy() { resolver_.end(); }

void Proxy::start() {
  for (auto& [name, pool] : pools_) pool.shared->follow_masters(pool.settings, pool.tls, resolver_);
  for (auto& worker : workers_) worker->start();
}

/// One socket for each worker, among which the kernel spreads the clients; a unix socket is one for
/// all.
std::vector<net::ServerSocket> Proxy::open(const PoolSettings& settings,
                                           InheritedListeners& inherited) const {
  if (const auto found = inherited.find(settings.listen.text); found != inherited.end())
    return std::exchange(found->second, {});
  const auto& endpoint = settings.listen.endpoint;
  const auto workers = registry_->workers();
  auto options = listen_options(settings, workers);
  options.first = !settings.reuseport;
  std::vector<net::ServerSocket> listeners;
  const std::size_t count = endpoint.is_unix() ? 1 : workers;
  for (std::size_t i = 0; i < count; ++i) {
    listeners.push_back(net::ServerSocket::open(endpoint, options));
    options.first = false;
  }
  return listeners;
}

/// What each worker is told. Sockets are dealt out in turn, so that each has a worker; a worker
/// beyond their number shares one.
std::vector<std::vector<flow::PoolUpdate>> Proxy::updates_for(const Pools& pools) const {
  const auto workers = registry_->workers();
  std::vector<std::vector<flow::PoolUpdate>> updates(workers);
  for (const auto& [name, pool] : pools) {
    const auto shares = std::max(workers, pool.listeners.size());
    for (auto& worker : updates)
      worker.push_back({pool.settings, pool.shared, pool.tls, std::nullopt});
    for (std::size_t i = 0; pool.has_new_listeners && i < shares; ++i) {
      auto& listeners = updates[i % workers].back().listeners;
      if (!listeners) listeners.emplace();
      listeners->push_back(pool.listeners[i % pool.listeners.size()].duplicate());
    }
  }
  return updates;
}

/// The sockets that listen there until now, of any pool. Null: none does.
const std::vector<net::ServerSocket>* Proxy::listening_at(const net::Endpoint& endpoint) const {
  for (const auto& [name, pool] : pools_)
    if (pool.settings->listen.endpoint == endpoint) return &pool.listeners;
  return nullptr;
}

Proxy::Pools Proxy::pools_for(const Config& config, InheritedListeners inherited) const {
  Pools pools;
  for (const auto& settings : config.pools)
    pools.emplace(settings.name, pool_for(settings, inherited));
  return pools;
}

/// With sockets of its own, or with those of a pool that is there now.
Proxy::ListeningPool Proxy::pool_for(const PoolSettings& settings,
                                     InheritedListeners& inherited) const {
  const auto old = pools_.find(settings.name);
  const bool known = old != pools_.end();
  ListeningPool pool{std::make_shared<const PoolSettings>(settings),
                     known ? old->second.shared : std::make_shared<flow::SharedPool>(),
                     flow::PoolTls::read(settings),
                     {}};
  const auto* const same = listening_at(settings.listen.endpoint);
  if (!same) {
    pool.listeners = open(settings, inherited);
  } else {
    for (const auto& listener : *same) pool.listeners.push_back(listener.duplicate());
  }
  pool.has_new_listeners =
      !known || same != &old->second.listeners || old->second.settings->redis != settings.redis;
  return pool;
}

std::vector<std::string> Proxy::changes_to(const Config& config) const {
  std::vector<std::string> changes;
  for (const auto& settings : config.pools) {
    const auto old = pools_.find(settings.name);
    if (old == pools_.end())
      changes.push_back(fmt::format("pool '{}' is new", settings.name));
    else if (*old->second.settings != settings)
      changes.push_back(fmt::format("pool '{}' has changed{}", settings.name,
                                    keeps_its_sockets(*old->second.settings, settings)
                                        ? ", but 'reuseport' not before a restart or an upgrade"
                                        : ""));
  }
  for (const auto& [name, pool] : pools_)
    if (std::ranges::find(config.pools, name, &PoolSettings::name) == config.pools.end())
      changes.push_back(fmt::format("pool '{}' is gone", name));
  for (const auto& [name, field] : fixed_settings)
    if (config.process.*field != config_.process.*field)
      changes.push_back(fmt::format("'{}' stays '{}' until a restart or an upgrade", name,
                                    config_.process.*field));
  return changes;
}

std::vector<std::string> Proxy::reload(Config config) {
  if (move_)
    throw Error{Errc::bad_argument,
                "keys move to other servers: when `sluice proxy move` has ended, reload"};
  return apply(std::move(config));
}

void Proxy::move_keys(const Config& after, RingMove::Phase phase, const config::MoveUser& user,
                      std::string_view print) {
  if (move_ && move_->print == print && move_->phase >= phase) return;
  const bool is_back = move_ && move_->print != print;
  if (is_back && (move_->phase != RingMove::Phase::moving || phase != RingMove::Phase::held))
    throw Error{Errc::bad_argument, "other keys are on their way: end that move first"};
  const Config before = is_back ? config::with_rings_of(move_->before, move_->after)
                        : move_ ? move_->before
                                : config_;
  if (config::print_of_move(before, after) != print)
    throw Error{
        Errc::bad_argument,
        "the servers that this proxy has, or those of the new file that it reads, are not those "
        "that the keys shall move between"};
  static_cast<void>(apply(config::in_phase(before, after, phase, user)));
  move_ = Move{before, after, std::string{print}, phase, is_back || (move_ && move_->is_back)};
}

void Proxy::end_move(const Config& config, bool now) {
  if (!move_) return;
  if (move_->phase != RingMove::Phase::moving || !config::has_rings_of(config, move_->after))
    throw Error{Errc::bad_argument,
                "its own file does not say the new servers yet: put the new file in its place"};
  if (!now) return;
  static_cast<void>(apply(config));
  move_.reset();
}

void Proxy::cancel_move() {
  if (!move_) return;
  if (move_->phase == RingMove::Phase::moving || move_->is_back)
    throw Error{Errc::bad_argument, "keys have moved already: move them back"};
  static_cast<void>(apply(move_->before));
  move_.reset();
}

Proxy::MoveState Proxy::move_state() const {
  MoveState state;
  if (move_) {
    state.phase = move_->phase;
    state.print = move_->print;
  }
  for (const auto& worker : workers_)
    worker->run([&] {
      for (const auto& [name, pool] : worker->pools())
        state.drained &= pool->servers().is_drained();
    });
  return state;
}

std::vector<std::string> Proxy::apply(Config config) {
  if (config.process.workers != config_.process.workers)
    throw Error{
        Errc::bad_argument,
        "the number of workers cannot be changed by a reload: restart the proxy, or upgrade it"};
  auto changes = changes_to(config);
  for (const auto& [name, field] : fixed_settings) config.process.*field = config_.process.*field;
  auto pools = pools_for(config, {});
  auto updates = updates_for(pools);

  // From here on nothing fails.
  for (const auto& [name, pool] : pools)
    for (const auto& listener : pool.listeners)
      listener.adjust(pool.settings->listen.endpoint,
                      listen_options(*pool.settings, workers_.size()));
  registry_->set_pools(watched(config, mbuf_size_));
  registry_->set_limits(watch_options(config.process));
  for (std::size_t number = 0; number < workers_.size(); ++number)
    workers_[number]->run([&] {
      workers_[number]->set_memory_limit(memory_share(config.process));
      workers_[number]->apply(std::move(updates[number]), patience_of(config));
    });
  pools_ = std::move(pools);
  config_ = std::move(config);
  for (auto& [name, pool] : pools_) pool.shared->follow_masters(pool.settings, pool.tls, resolver_);
  return changes;
}

void Proxy::inherit_clients(std::vector<Descriptor> channels, std::uint64_t generation) {
  constexpr int ids_of_a_process = 40;  // bits
  limits_.first_id = generation << ids_of_a_process;
  for (std::size_t i = 0; i < channels.size(); ++i)
    workers_[i % workers_.size()]->inherit(std::move(channels[i]));
}

void Proxy::drain(std::vector<Descriptor> to_successor, char version) {
  pools_.clear();  // our own descriptors of the listening sockets
  to_successor.resize(workers_.size());
  for (std::size_t i = 0; i < workers_.size(); ++i)
    workers_[i]->run(
        [&] { workers_[i]->drain(patience_of(config_), std::move(to_successor[i]), version); });
}

void Proxy::follow(const Config& config) {
  registry_->set_pools(watched(config, mbuf_size_));
  for (const auto& settings : config.pools) {
    const flow::PoolUpdate its{
        std::make_shared<const PoolSettings>(settings), {}, flow::PoolTls::read(settings), {}};
    for (auto& worker : workers_) worker->run([&] { worker->follow(its); });
  }
}

std::size_t Proxy::handed_over() const {
  std::size_t sum = 0;
  for (const auto& worker : workers_) worker->run([&] { sum += worker->handed_over(); });
  return sum;
}

std::int64_t Proxy::memory() const noexcept {
  std::int64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->memory();
  return sum;
}

std::vector<ClientFigures> Proxy::clients(std::size_t most) const {
  std::vector<ClientFigures> figures;
  for (const auto& worker : workers_)
    worker->run([&] {
      for (const auto& [name, pool] : worker->pools()) pool->clients().list(figures, most);
    });
  return figures;
}

bool Proxy::is_drained() const noexcept {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker->is_drained(); });
}

std::map<std::string, std::vector<int>> Proxy::listening() const {
  std::map<std::string, std::vector<int>> sockets;
  for (const auto& [name, pool] : pools_)
    for (const auto& listener : pool.listeners)
      sockets[pool.settings->listen.text].push_back(listener.descriptor());
  return sockets;
}

}  // namespace sluice::proxy
