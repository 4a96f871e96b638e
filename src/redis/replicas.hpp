/// The replicas of one master, for reads that may be a little old: does what topology::Freshness
/// decides.
///
///     Replicas ── ticked by ──> the Reactor of the master's Client
///        └── a Line to each replica: the questions how far it is, and the reads
///
/// A read goes by the very connection by which the replica has said how far it is, or not at all:
/// behind the same address may be another server the next moment, which is empty.
///
/// Bounded: topology::most_followed Lines, a question each at a time, and none while nobody reads.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "redis/client.hpp"
#include "redis/line.hpp"
#include "topology/freshness.hpp"

namespace sluice::redis {

/// Threads: any.
class Replicas final : public Source, public std::enable_shared_from_this<Replicas> {
 public:
  /// How a replica is connected to.
  using OptionsTo = std::function<RedisOptions(const topology::Endpoint& replica)>;

  /// REQUIRES: master->options().replica_max_lag.
  Replicas(std::shared_ptr<Client> master, OptionsTo options_to);

  /// Those of `master` that there are now; it may be among them.
  void follow(const std::optional<topology::Endpoint>& master,
              std::vector<topology::Endpoint> replicas);
  /// Asks one that is fresh enough. Nothing: there is none, or it has not answered so that the
  /// reply could be used: ask the master. `self`: null: there are none.
  static Task<std::optional<Value>> read(std::shared_ptr<Replicas> self, const Request& request,
                                         CallOptions options);
  void close();

  void on_ready(std::uint32_t /*events*/) override {}
  SteadyTime on_tick(SteadyTime now) override;

 private:
  using LinePtr = std::shared_ptr<Line>;
  /// By which connection of which replica.
  struct Choice {
    topology::Endpoint replica;
    LinePtr line;
    std::uint64_t connection;
  };
  struct Place {
    LinePtr line;
    std::uint64_t connection = 0;  ///< by which it has answered last
  };

  std::optional<Choice> pick(SteadyTime as_of);
  void failed(const Choice& choice);
  static Task<void> ask(std::shared_ptr<Replicas> self, LinePtr line,
                        topology::FreshnessQuestion question);
  void take(const topology::FreshnessQuestion& question, const Operation& operation,
            const Value& reply);
  LinePtr add_line(const topology::Endpoint& replica);
  void leave_all();  // REQUIRES: mutex_ is held

  const std::shared_ptr<Client> master_;
  const OptionsTo options_to_;
  Reactor& reactor_;

  std::mutex mutex_;
  topology::Freshness freshness_;
  std::optional<topology::Endpoint> master_endpoint_;
  std::vector<topology::Endpoint> followed_;
  std::map<topology::Endpoint, Place> places_;
  std::vector<LinePtr> left_;  // to be closed
  bool has_news_ = false;      // for on_tick()
  bool is_told_ = false;       // why a server does not answer as it should
  bool closed_ = false;
  SteadyTime next_tick_ = SteadyTime::max();
};

}  // namespace sluice::redis
