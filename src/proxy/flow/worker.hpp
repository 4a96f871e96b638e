/// One thread of the proxy: a loop, and its part of every pool.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/listener.hpp"
#include "proxy/flow/acceptor.hpp"
#include "proxy/flow/pool.hpp"

namespace sluice::proxy {

/// What a worker needs to run a pool.
struct PoolStart {
  std::shared_ptr<const PoolSettings> settings;
  std::shared_ptr<SharedPool> shared;
  PoolTallies tallies;
  std::vector<net::Listener> listeners;
};

class Worker {
 public:
  Worker(Clock& clock, Resolver& resolver);
  /// Stops at once; see drain().
  ~Worker();

  /// The thread begins. Until then the functions below may be called from the thread that made it.
  void start();

  void open(PoolStart start);
  /// No more clients are accepted; those that are here leave when they are idle. Any thread.
  void drain();
  /// No client is left. Any thread.
  bool is_drained() const noexcept { return drained_.load(std::memory_order_acquire); }

  /// Runs `task` in the worker's thread and waits for it.
  void run(const std::function<void()>& task);

  /// One turn, for a test that has no thread.
  void turn(std::chrono::milliseconds patience);
  Loop& loop() noexcept { return loop_; }

 private:
  struct Part {
    std::unique_ptr<Pool> pool;
    std::vector<std::unique_ptr<Acceptor>> acceptors;
  };

  void serve();
  void tick();
  void start_draining();
  std::size_t client_count() const;

  Resolver& resolver_;
  Loop loop_;
  std::map<std::string, Part> parts_;  // by the pool's name
  bool draining_ = false;
  std::atomic<bool> drained_{false};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace sluice::proxy
