#include "proxy/flow/worker.hpp"

#include <malloc.h>

#include <utility>

namespace sluice::proxy {
namespace {

using namespace std::chrono_literals;

constexpr auto tick_interval = 1s;

}  // namespace

Worker::Worker(Clock& clock, Resolver& resolver) : resolver_(resolver), loop_(clock) {
  loop_.after(tick_interval, [this] { tick(); });
}

Worker::~Worker() {
  ending_.store(true, std::memory_order_release);
  loop_.post([] {});
  if (thread_.joinable()) thread_.join();
  parts_.clear();
}

void Worker::start() {
  thread_ = std::thread{[this] { serve(); }};
}

void Worker::serve() {
  while (!ending_.load(std::memory_order_acquire)) turn(1h);
}

void Worker::turn(std::chrono::milliseconds patience) {
  loop_.turn(patience);
  if (draining_ && client_count() == 0) drained_.store(true, std::memory_order_release);
}

void Worker::open(PoolStart start) {
  auto& part = parts_[start.settings->name];
  part.pool = std::make_unique<Pool>(loop_, resolver_, start.settings, start.shared,
                                     std::move(start.tallies));
  for (auto& listener : start.listeners)
    part.acceptors.push_back(std::make_unique<Acceptor>(*part.pool, std::move(listener)));
}

void Worker::drain() {
  loop_.post([this] { start_draining(); });
}

void Worker::start_draining() {
  draining_ = true;
  for (auto& [name, part] : parts_) {
    for (auto& acceptor : part.acceptors) loop_.bury(std::move(acceptor));
    part.acceptors.clear();
    part.pool->drain();
  }
}

void Worker::run(const std::function<void()>& task) {
  std::promise<void> done;
  loop_.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

std::size_t Worker::client_count() const {
  std::size_t count = 0;
  for (const auto& [name, part] : parts_) count += part.pool->client_count();
  return count;
}

/// Gives back what a burst has left, a half each time.
void Worker::tick() {
  const bool blocks = loop_.blocks().trim();
  const bool requests = loop_.requests().trim();
  if (blocks || requests) ::malloc_trim(0);
  loop_.after(tick_interval, [this] { tick(); });
}

}  // namespace sluice::proxy
