/// Finds the master that Sentinels name: does what topology::SentinelWatch decides, and
/// tells MovingEndpoint.
///
///     MasterFinder ── ticked by ──> the Reactor of the Client
///        ├── tells Replicas, if there are some to be read from
///        ├── two Links to each Sentinel: one for questions, one that hears +switch-master
///        └── a Link to each server that is asked for its role
///
/// Bounded: as many Sentinels as SentinelWatch knows (64), and `most_servers`.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "redis/line.hpp"
#include "redis/reactor.hpp"
#include "redis/replicas.hpp"
#include "redis/sentinel_store.hpp"
#include "topology/sentinel_watch.hpp"

namespace sluice::redis {

/// Threads: any.
class MasterFinder final : public Source, public std::enable_shared_from_this<MasterFinder> {
 public:
  /// REQUIRES: options.server.moving. `replicas`: told which there are; may be null.
  MasterFinder(const SentinelStoreOptions& options, Reactor& reactor,
               std::shared_ptr<Replicas> replicas);

  /// Blocks until a master is known. Throws Error where there is no hope, or at `opens_until`.
  void wait_for_master();
  SteadyTime opens_until() const noexcept { return opens_until_; }
  void close();

  void on_ready(std::uint32_t /*events*/) override {}
  SteadyTime on_tick(SteadyTime now) override;

 private:
  using LinePtr = std::shared_ptr<Line>;
  struct Sentinel {
    LinePtr asked, heard;
  };
  using Questions = std::vector<topology::SentinelQuestion>;
  static constexpr std::size_t most_servers = 16;

  static Task<void> ask(std::shared_ptr<MasterFinder> self, LinePtr line,
                        topology::SentinelQuestion question);
  void take(const topology::SentinelQuestion& question, const std::exception_ptr& failure,
            std::span<const Value> replies);
  void hear(const topology::Endpoint& sentinel, const Message& message);

  // REQUIRES: mutex_ is held
  void tell(SteadyTime now);
  std::optional<Error> hopelessness(SteadyTime now) const;
  void follow_sentinels();
  void leave_servers(SteadyTime now);
  LinePtr line_to_server(const topology::Endpoint& server, SteadyTime now);
  LinePtr make_line(RedisOptions options, const topology::Endpoint& to, Link::Kind kind);
  LinePtr listen_to(const topology::Endpoint& sentinel);

  Reactor& reactor_;
  const std::shared_ptr<MovingEndpoint> moving_;
  const std::shared_ptr<Replicas> replicas_;
  const std::string name_;
  const RedisOptions to_sentinels_;
  const RedisOptions to_servers_;
  const SteadyTime opens_until_;

  std::mutex mutex_;
  std::condition_variable told_;
  topology::SentinelWatch watch_;
  std::optional<topology::Endpoint> master_;  // as MovingEndpoint knows it
  std::map<topology::Endpoint, Sentinel> sentinels_;
  std::map<topology::Endpoint, LinePtr> servers_;
  std::vector<LinePtr> left_;     // to be closed
  std::optional<Error> refused_;  // by the server that is named
  bool is_refused_by_sentinel_ = false;
  std::optional<Error> hopeless_;  // opening
  bool is_open_ = false;           // a master was known once
  bool has_news_ = true;           // for on_tick()
  bool closed_ = false;
  SteadyTime next_tick_{};
};

}  // namespace sluice::redis
