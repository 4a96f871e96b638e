/// The masters of a pool whose servers are watched by Sentinels: where each is now, by its name. A
/// thread of its own asks, as topology::SentinelWatch decides; workers look here ten times a
/// second.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "net/endpoint.hpp"
#include "proxy/config/config.hpp"
#include "proxy/flow/asking_lines.hpp"
#include "proxy/flow/replica_watch.hpp"
#include "topology/sentinel_watch.hpp"

namespace sluice::proxy::flow {

struct PoolTls;

/// Threads: any.
class Masters {
 public:
  struct Place {
    std::uint64_t turn = 0;  ///< how often it has changed
    std::string host;        ///< as the Sentinels tell it; empty: no master is known
    std::vector<net::Address> addresses;
  };

  /// `resolver` outlives it.
  Masters(std::shared_ptr<const PoolSettings> settings, std::shared_ptr<const PoolTls> tls,
          Resolver& resolver);
  ~Masters();

  /// Whether other settings make no difference here.
  bool serves(const PoolSettings& settings) const;
  Place of(std::string_view name) const;
  std::vector<ReplicaWatch::Replica> replicas_of(std::string_view name) const;
  /// Somebody reads from them: without it for a while nobody asks how far they are.
  void want_replicas(std::string_view name);
  /// A connection to this master broke.
  void doubt(std::string_view name);

 private:
  struct Master {
    Master(std::string of, topology::SentinelWatch by)
        : name(std::move(of)), watch(std::move(by)) {}
    const std::string name;
    topology::SentinelWatch watch;
    std::optional<topology::Endpoint> told{};
    std::optional<ReplicaWatch> replicas{};  // if they are read from
  };

  void run();
  SteadyTime act(SteadyTime now);
  void tell(Master& master);
  static std::string why_none(const Master& master);
  SteadyTime follow_replicas(Master& master, SteadyTime now);
  void ask(std::size_t master, const topology::SentinelQuestion& question);
  void heard(std::string_view message);
  void is_back(const topology::Endpoint& sentinel);

  const std::shared_ptr<const PoolSettings> settings_;
  AskingLines lines_;            // the thread's
  std::vector<Master> masters_;  // the thread's
  mutable std::mutex mutex_;
  std::map<std::string, Place, std::less<>> places_;
  std::map<std::string, std::vector<ReplicaWatch::Replica>, std::less<>> replicas_;
  std::vector<std::string> doubted_;
  std::vector<std::string> wanted_;  // whose replicas are read from
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sluice::proxy::flow
