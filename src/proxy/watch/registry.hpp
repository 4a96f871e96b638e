/// All that the workers count, by worker, pool and server, and its sum.
///
/// A worker asks once for its PoolWatch and ServerWatch, when it takes up a configuration, and then
/// counts into them without a lock. What has the same name keeps its counters over reloads; what a
/// reload takes away stays in the sum until the last worker has let go of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/watch/counters.hpp"
#include "proxy/watch/hot_keys.hpp"
#include "proxy/watch/latency_histogram.hpp"
#include "proxy/watch/notable_requests.hpp"
#include "proxy/watch/server_status.hpp"
#include "sluice/clock.hpp"

namespace sluice::proxy::watch {

/// Of one worker and one pool.
struct PoolWatch {
  explicit PoolWatch(std::size_t commands) : latencies(commands) {}
  PoolCounters counters;
  CommandLatencies latencies;  ///< by Plan::command
};

/// Of one worker and one server of a pool.
struct ServerWatch {
  explicit ServerWatch(std::shared_ptr<ServerStatus> of_all) : status(std::move(of_all)) {}
  ServerCounters counters;
  LatencyHistogram latency;
  const std::shared_ptr<ServerStatus> status;  ///< of all workers
};

struct WatchOptions {
  std::size_t slow_log_entries = 128;
  std::chrono::microseconds slow_log_threshold{10000};
  std::uint64_t big_value = std::uint64_t{1} << 20;
  bool watches_keys = false;  ///< whether hot keys are counted at all
  HotKeyOptions hot_keys;
};

/// Of one worker.
struct WorkerWatch {
  WorkerWatch(const WatchOptions& options, SteadyTime now)
      : slow_log(options.slow_log_entries, options.slow_log_threshold),
        hot_keys(options.hot_keys, now),
        big_values(options.big_value) {}
  SlowLog slow_log;
  HotKeys hot_keys;
  BigValues big_values;
};

/// A pool as the configuration now in force has it.
struct WatchedPool {
  std::string name;
  std::vector<std::string> servers;
  std::size_t commands = 0;                              ///< Protocol::command_count()
  std::function<std::string(std::size_t)> command_name;  ///< outlives the configuration
  bool is_open = false;  ///< servers: others may come, and are known while a worker has them
  /// Of each server in the ring, in the order of `servers`; fewer: the rest have none that is
  /// known.
  std::vector<std::uint32_t> weights = {};
};

struct CommandFigures {
  std::string name;
  LatencyCounts latency;
};
struct ServerFigures {
  std::string name;
  std::optional<std::uint32_t> weight = {};  ///< in the ring
  ServerTotals totals;
  LatencyCounts latency;
  ServerStanding standing;
};
struct PoolFigures {
  std::string name;
  PoolTotals totals;
  std::vector<ServerFigures> servers;    ///< by name, shorter ones first, as twemproxy has them
  std::vector<CommandFigures> commands;  ///< those that were seen, by name
};
struct Snapshot {
  WallTime at;
  std::chrono::seconds uptime{0};
  std::vector<PoolFigures> pools;  ///< by name, shorter ones first

  std::int64_t current_connections()
      const noexcept;  ///< of clients and servers, and listening sockets
  std::int64_t total_connections() const noexcept;  ///< the same, all that ever were
};

/// Threads: any.
class Registry {
 public:
  Registry(std::size_t workers, WatchOptions options, Clock& clock);

  std::size_t workers() const noexcept { return per_worker_.size(); }
  /// `worker` < workers().
  WorkerWatch& worker(std::size_t worker) noexcept { return *per_worker_[worker]; }
  /// Whether keys are to be noted. Any thread; a load.
  bool watches_keys() const noexcept { return watches_keys_.load(std::memory_order_relaxed); }
  /// New limits for all workers; hot keys keep theirs.
  void set_limits(const WatchOptions& options);

  /// What is in force now. Call it before the workers ask for what is in it.
  void set_pools(std::vector<WatchedPool> pools);
  /// Throws Error{bad_argument} for a name that set_pools() was not told, unless its pool is_open.
  std::shared_ptr<PoolWatch> pool(std::size_t worker, std::string_view pool);
  std::shared_ptr<ServerWatch> server(std::size_t worker, std::string_view pool,
                                      std::string_view server);

  /// O(workers x (servers + commands seen)); the workers are not disturbed.
  Snapshot snapshot();
  std::vector<SlowEntry> slow_log(std::size_t most) const;  ///< newest first
  void reset_slow_log();
  std::vector<HotKey> hot_keys(std::size_t most) const;
  std::vector<BigValue> big_values(std::size_t most) const;  ///< largest first

 private:
  struct ByTwemproxy {  // shorter names first, then by bytes
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const noexcept {
      return a.size() != b.size() ? a.size() < b.size() : a < b;
    }
  };
  template <class Watch>
  using PerWorker = std::vector<std::shared_ptr<Watch>>;
  struct Server {
    bool in_force = true;
    std::optional<std::uint32_t> weight;
    std::shared_ptr<ServerStatus> status = std::make_shared<ServerStatus>();
    PerWorker<ServerWatch> workers;
  };
  struct Pool {
    bool in_force = true;
    WatchedPool settings;
    PerWorker<PoolWatch> workers;
    std::map<std::string, Server, ByTwemproxy> servers;
  };

  Pool& find(std::string_view pool);
  void forget_unused();
  PoolFigures figures_of(const std::string& name, const Pool& pool) const;

  Clock& clock_;
  const SteadyTime started_;
  std::atomic<bool> watches_keys_;
  std::vector<std::unique_ptr<WorkerWatch>> per_worker_;
  mutable std::mutex mutex_;  // guards the maps, not what they lead to
  std::map<std::string, Pool, ByTwemproxy> pools_;
};

}  // namespace sluice::proxy::watch
