#include "proxy/flow/worker.hpp"

#include <malloc.h>

#include <algorithm>
#include <exception>
#include <future>
#include <utility>

#include "base/thread.hpp"
#include "proxy/flow/client.hpp"

namespace sluice::proxy::flow {
namespace {

using namespace std::chrono_literals;

constexpr auto tick_interval = 1s;

}  // namespace

Worker::Worker(Clock& clock, Resolver& resolver, watch::Registry& registry,
               front::ProcessLimits& limits, std::size_t number, std::size_t mbuf_size)
    : resolver_(resolver),
      registry_(registry),
      limits_(limits),
      number_(number),
      mbuf_size_(mbuf_size),
      loop_(clock) {
  loop_.after(tick_interval, [this] { tick(); });
}

template <class Visit>
void Worker::for_each_pool(Visit visit) const {
  for (const auto& [name, served] : served_) visit(*served.pool);
  for (const auto& pool : leaving_) visit(*pool);
}

Worker::~Worker() {
  ending_.store(true, std::memory_order_release);
  loop_.post([] {});
  if (thread_.joinable()) thread_.join();
  heritages_.clear();
  served_.clear();
  leaving_.clear();
}

void Worker::start() {
  thread_ = start_thread([this] { serve(); });
}

void Worker::serve() {
  while (!ending_.load(std::memory_order_acquire)) turn(1h);
}

void Worker::turn(std::chrono::milliseconds patience) {
  loop_.turn(patience);
  if (loop_.blocks().is_overfull()) make_room();  // what was under way when it became full
  if (const bool room = loop_.blocks().has_room(); !std::exchange(had_room_, room) && room)
    for_each_pool([](Pool& pool) { pool.clients().there_is_room(); });
  if (!draining_) return;
  drop_idle();
  if (leaving_.empty()) drained_.store(true, std::memory_order_release);
}

void Worker::apply(std::vector<PoolUpdate> pools, std::chrono::nanoseconds patience) {
  auto before = std::exchange(served_, {});
  for (auto& update : pools) {
    const auto& name = update.settings->name;
    auto& served = served_[name];
    const auto old = before.find(name);
    if (old != before.end() && old->second.pool->settings().redis == update.settings->redis) {
      served = std::move(old->second);
      before.erase(old);
      served.pool->apply(update.settings, update.tls);
    } else {
      served.pool = std::make_unique<Pool>(
          PoolContext{.loop = loop_,
                      .requests = requests_,
                      .resolver = resolver_,
                      .registry = registry_,
                      .worker = number_,
                      .limits = limits_,
                      .mbuf_size = mbuf_size_,
                      .find_pool = [this](std::string_view wanted) { return find_pool(wanted); }},
          update.settings, update.shared, update.tls);
    }
    if (!update.listeners) continue;
    close(served.acceptors);
    for (auto& listener : *update.listeners)
      served.acceptors.push_back(std::make_unique<Acceptor>(*served.pool, std::move(listener)));
  }
  for (auto& [name, served] : before) retire(std::move(served), patience);
}

void Worker::close(std::vector<std::unique_ptr<Acceptor>>& acceptors) {
  for (auto& acceptor : acceptors) {
    acceptor->take_waiting();
    acceptor->close();
    loop_.bury(std::move(acceptor));
  }
  acceptors.clear();
}

void Worker::retire(ServedPool served, std::chrono::nanoseconds patience) {
  close(served.acceptors);
  served.pool->clients().drain(patience, handover_.get());
  leaving_.push_back(std::move(served.pool));
}

void Worker::inherit(Descriptor channel) {
  heritages_.push_back(std::make_unique<ClientHeritage>(
      loop_, std::move(channel), [this](const HandedClient& client) { return heirs_of(client); }));
}

bool Worker::has_predecessor() const noexcept {
  return std::ranges::any_of(heritages_, [](const auto& heritage) { return heritage->is_open(); });
}

/// In an upgrade behind another the pools stay until the predecessor has no more clients for them:
/// these go on to the successor.
void Worker::drop_idle() {
  if (draining_ && has_predecessor()) return;
  std::erase_if(leaving_, [](const auto& pool) { return pool->is_idle(); });
}

PoolClients* Worker::heirs_of(const HandedClient& client) const {
  PoolClients* by_address = nullptr;
  PoolClients* by_name = nullptr;
  for_each_pool([&](Pool& pool) {
    const auto& settings = pool.settings();
    if (settings.redis != client.redis) return;
    const bool has_address = net::to_string(settings.listen.endpoint) == client.listen;
    if (has_address && !by_address) by_address = &pool.clients();
    if (settings.name == client.pool && !by_name) by_name = &pool.clients();
  });
  return by_address ? by_address : by_name;
}

void Worker::drain(std::chrono::nanoseconds patience, Descriptor to_successor, char version) {
  draining_ = true;
  if (to_successor.is_open())
    handover_ = std::make_unique<ClientHandover>(loop_, std::move(to_successor), version);
  for (auto& [name, served] : std::exchange(served_, {})) retire(std::move(served), patience);
}

void Worker::follow(const PoolUpdate& update) {
  for (const auto& pool : leaving_) {
    const auto& settings = pool->settings();
    if (settings.name != update.settings->name || settings.redis != update.settings->redis)
      continue;
    pool->shared().follow_masters(update.settings, update.tls, resolver_);
    pool->apply(update.settings, update.tls);
  }
}

void Worker::run(const std::function<void()>& task) {
  std::promise<void> done;
  loop_.post([&] {
    try {
      task();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());  // thrown to the caller
    }
  });
  done.get_future().get();
}

/// Also one that is leaving: what is still asked is mirrored.
Pool* Worker::find_pool(std::string_view name) const {
  if (const auto found = served_.find(std::string{name}); found != served_.end())
    return found->second.pool.get();
  const auto leaving = std::ranges::find(
      leaving_, name, [](const auto& pool) -> std::string_view { return pool->settings().name; });
  return leaving == leaving_.end() ? nullptr : leaving->get();
}

std::map<std::string, Pool*> Worker::pools() const {
  std::map<std::string, Pool*> pools;
  for (const auto& [name, served] : served_) pools.emplace(name, served.pool.get());
  return pools;
}

/// If memory was at its limit at the last tick, and no less is in use now, the worker stands still:
/// then the clients that hold the most are closed.
void Worker::end_standstill() {
  const auto used = loop_.blocks().in_use();
  const auto before = std::exchange(used_when_full_, loop_.blocks().is_full() ? used : 0);
  if (used_when_full_ != 0 && before != 0 && used >= before) make_room();
}

void Worker::make_room() {
  while (loop_.blocks().is_full()) {
    Client* const client = greediest();
    if (!client) return;  // all of it is on its way to servers
    client->pool().clients().evict(*client);
  }
}

Client* Worker::greediest() const noexcept {
  Client* greediest = nullptr;
  for_each_pool([&](const Pool& pool) {
    Client* const found = pool.clients().greediest();
    if (found && (!greediest || found->holds() > greediest->holds())) greediest = found;
  });
  return greediest;
}

/// Since it was last so: what they kept, each a little, is worth giving back.
bool Worker::many_have_left() noexcept {
  constexpr std::size_t many = 1000;
  std::size_t clients = 0;
  for_each_pool([&](const Pool& pool) { clients += pool.clients().size(); });
  most_clients_ = std::max(most_clients_, clients);
  const bool have_left = most_clients_ - clients >= many;
  if (have_left) most_clients_ = clients;
  return have_left;
}

void Worker::tick() {
  for_each_pool([](Pool& pool) { pool.tick(); });
  drop_idle();
  end_standstill();
  // After a burst half of the unused memory is given back each time.
  const bool blocks = loop_.blocks().trim();
  const bool requests = requests_.trim();
  if (many_have_left() || blocks || requests) ::malloc_trim(0);
  loop_.after(tick_interval, [this] { tick(); });
}

}  // namespace sluice::proxy::flow
