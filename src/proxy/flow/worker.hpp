/// One thread of the proxy: a loop, and its part of every pool.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "net/server_socket.hpp"
#include "proxy/flow/handover.hpp"
#include "proxy/flow/pool.hpp"

namespace sluice::proxy::flow {

/// A pool as a worker shall have it from now on.
struct PoolUpdate {
  std::shared_ptr<const PoolSettings> settings;
  std::shared_ptr<SharedPool> shared;
  std::shared_ptr<const PoolTls> tls;
  std::optional<std::vector<net::ServerSocket>> listeners;  ///< none: it keeps those that it has
};

class Worker {
 public:
  /// `number`: its place among the workers of the registry.
  Worker(Clock& clock, Resolver& resolver, watch::Registry& registry, front::ProcessLimits& limits,
         std::size_t number, std::size_t mbuf_size);
  /// Stops at once; see drain().
  ~Worker();

  /// The thread begins.
  void start();

  /// Serves these pools and no other. The clients of a pool that goes leave it as in drain(). In
  /// the worker's thread, or before start().
  void apply(std::vector<PoolUpdate> pools, std::chrono::nanoseconds patience = {});
  /// Most bytes of buffers that it may use; 0: no limit. In the worker's thread, or before start().
  void set_memory_limit(std::size_t bytes) noexcept { loop_.blocks().set_limit(bytes); }
  /// Bytes of buffers in use. Any thread.
  std::int64_t memory() const noexcept { return loop_.blocks().in_use(); }
  /// A predecessor hands clients over by this channel. Before start().
  void inherit(Descriptor channel);
  /// No more clients are accepted; those that are connected leave as PoolClients::drain() says,
  /// with a channel to the successor if there is one. In the worker's thread.
  void drain(std::chrono::nanoseconds patience, Descriptor to_successor = {},
             char version = ClientHandover::version);
  /// After drain(): as Proxy::follow() says. In the worker's thread.
  void follow(const PoolUpdate& update);
  /// Clients that the successor has taken. In the worker's thread.
  std::size_t handed_over() const noexcept { return handover_ ? handover_->taken() : 0; }
  /// No client is left after drain(). Any thread.
  bool is_drained() const noexcept { return drained_.load(std::memory_order_acquire); }

  /// Runs `task` in the worker's thread, and returns when it has run. Any other thread.
  void run(const std::function<void()>& task);
  /// One turn, for a test that has no thread.
  void turn(std::chrono::milliseconds patience);

  /// In the worker's thread.
  std::map<std::string, Pool*> pools() const;

 private:
  struct ServedPool {
    std::vector<std::unique_ptr<Acceptor>> acceptors;
    std::unique_ptr<Pool> pool;
  };

  void serve();
  void tick();
  bool many_have_left() noexcept;
  void end_standstill();
  void make_room();
  Pool* find_pool(std::string_view name) const;
  Client* greediest() const noexcept;
  void close(std::vector<std::unique_ptr<Acceptor>>& acceptors);
  void retire(ServedPool served, std::chrono::nanoseconds patience);
  template <class Visit>
  void for_each_pool(Visit visit) const;
  PoolClients* heirs_of(const HandedClient& client) const;
  bool has_predecessor() const noexcept;
  void drop_idle();

  Resolver& resolver_;
  watch::Registry& registry_;
  front::ProcessLimits& limits_;
  std::size_t number_;
  std::size_t mbuf_size_;
  RequestPool requests_;  // outlives what the loop buries
  loop::Loop loop_;
  std::unique_ptr<ClientHandover> handover_;                // while it drains in an upgrade
  std::vector<std::unique_ptr<ClientHeritage>> heritages_;  // of workers of the predecessor
  std::map<std::string, ServedPool> served_;                // by the pool's name
  std::vector<std::unique_ptr<Pool>> leaving_;              // with clients or requests from before
  bool draining_ = false;
  bool had_room_ = true;             // in memory, at the end of the last turn
  std::size_t most_clients_ = 0;     // since many left
  std::int64_t used_when_full_ = 0;  // at the last tick, if it was full then
  std::atomic<bool> drained_{false};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace sluice::proxy::flow
