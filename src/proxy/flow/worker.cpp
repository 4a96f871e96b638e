#include "proxy/flow/worker.hpp"

#include <malloc.h>

#include <algorithm>
#include <future>
#include <utility>

#include "proxy/flow/client.hpp"

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto tick_interval = 1s;

}  // namespace

Worker::Worker(Clock& clock, Resolver& resolver, Registry& registry, ClientCensus& census,
               std::size_t number, std::size_t mbuf_size)
    : resolver_(resolver),
      registry_(registry),
      census_(census),
      number_(number),
      mbuf_size_(mbuf_size),
      loop_(clock) {
  loop_.after(tick_interval, [this] { tick(); });
}

Worker::~Worker() {
  ending_.store(true, std::memory_order_release);
  loop_.post([] {});
  if (thread_.joinable()) thread_.join();
  parts_.clear();
  leaving_.clear();
}

void Worker::start() {
  thread_ = std::thread{[this] { serve(); }};
}

void Worker::serve() {
  while (!ending_.load(std::memory_order_acquire)) turn(1h);
}

void Worker::turn(std::chrono::milliseconds patience) {
  loop_.turn(patience);
  if (loop_.blocks().is_overfull()) make_room();  // what was under way when it became full
  if (const bool full = loop_.blocks().is_full(); std::exchange(was_full_, full) && !full) {
    for (auto& [name, part] : parts_) part.pool->there_is_room();
    for (auto& pool : leaving_) pool->there_is_room();
  }
  if (!draining_) return;
  std::erase_if(leaving_, [](const auto& pool) { return pool->is_idle(); });
  if (leaving_.empty()) drained_.store(true, std::memory_order_release);
}

void Worker::apply(std::vector<PoolOrder> pools, std::chrono::nanoseconds patience) {
  auto before = std::exchange(parts_, {});
  for (auto& order : pools) {
    const auto& name = order.settings->name;
    auto& part = parts_[name];
    const auto old = before.find(name);
    if (old != before.end() && old->second.pool->settings().redis == order.settings->redis) {
      part = std::move(old->second);
      before.erase(old);
      part.pool->apply(order.settings, order.tls);
    } else {
      part.pool = std::make_unique<Pool>(PoolSurroundings{.loop = loop_,
                                                          .resolver = resolver_,
                                                          .registry = registry_,
                                                          .worker = number_,
                                                          .census = census_,
                                                          .mbuf_size = mbuf_size_},
                                         order.settings, order.shared, order.tls);
    }
    if (!order.listeners) continue;
    close(part.acceptors);
    for (auto& listener : *order.listeners)
      part.acceptors.push_back(std::make_unique<Acceptor>(*part.pool, std::move(listener)));
  }
  for (auto& [name, part] : before) dismiss(std::move(part), patience);
}

void Worker::close(std::vector<std::unique_ptr<Acceptor>>& acceptors) {
  for (auto& acceptor : acceptors) {
    acceptor->take_waiting();
    acceptor->close();
    loop_.bury(std::move(acceptor));
  }
  acceptors.clear();
}

void Worker::dismiss(Part part, std::chrono::nanoseconds patience) {
  close(part.acceptors);
  part.pool->drain(patience);
  leaving_.push_back(std::move(part.pool));
}

void Worker::drain(std::chrono::nanoseconds patience) {
  draining_ = true;
  for (auto& [name, part] : std::exchange(parts_, {})) dismiss(std::move(part), patience);
}

void Worker::run(const std::function<void()>& task) {
  std::promise<void> done;
  loop_.post([&] {
    try {
      task();
      done.set_value();
    } catch (...) {
      done.set_exception(std::current_exception());  // for the one who asked
    }
  });
  done.get_future().get();
}

std::map<std::string, Pool*> Worker::pools() const {
  std::map<std::string, Pool*> pools;
  for (const auto& [name, part] : parts_) pools.emplace(name, part.pool.get());
  return pools;
}

/// Memory is at its limit and nothing has got less since the last tick: those who hold the most
/// have to go, or nobody would be served any more.
void Worker::end_standstill() {
  const auto used = loop_.blocks().in_use();
  const auto before = std::exchange(used_when_full_, loop_.blocks().is_full() ? used : 0);
  if (used_when_full_ != 0 && before != 0 && used >= before) make_room();
}

void Worker::make_room() {
  while (loop_.blocks().is_full()) {
    Client* const client = greediest();
    if (!client) return;  // it is all on its way to servers
    client->pool().evict(*client);
  }
}

Client* Worker::greediest() const noexcept {
  Client* greediest = nullptr;
  const auto look = [&](const Pool& pool) {
    Client* const found = pool.greediest();
    if (found && (!greediest || found->holds() > greediest->holds())) greediest = found;
  };
  for (const auto& [name, part] : parts_) look(*part.pool);
  for (const auto& pool : leaving_) look(*pool);
  return greediest;
}

void Worker::tick() {
  for (auto& [name, part] : parts_) part.pool->tick();
  for (auto& pool : leaving_) pool->tick();
  std::erase_if(leaving_, [](const auto& pool) { return pool->is_idle(); });
  end_standstill();
  // What a burst has left is given back, a half each time.
  const bool blocks = loop_.blocks().trim();
  const bool requests = loop_.requests().trim();
  if (blocks || requests) ::malloc_trim(0);
  loop_.after(tick_interval, [this] { tick(); });
}

}  // namespace sluice::proxy
