/// A master, its replicas, and Sentinels that watch them: real processes on ports of this test,
/// gone with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

class SentinelRig {
 public:
  struct Options {
    std::size_t replicas = 1;
    std::size_t sentinels = 3;
    /// Lines for the master, for all servers, and for all Sentinels.
    std::vector<std::string> master_config = {};
    std::vector<std::string> server_config = {};
    std::vector<std::string> sentinel_config = {};
  };

  /// A Sentinel, which knows its fellows from the start.
  class Sentinel {
   public:
    /// Returns when it listens.
    Sentinel(std::uint16_t port, const std::vector<std::string>& config);

    std::uint16_t port() const noexcept { return port_; }
    Process& process() noexcept { return process_; }

   private:
    std::uint16_t port_;
    TempDir directory_;
    Process process_;
  };

  SentinelRig() : SentinelRig(Options{}) {}
  /// Returns when each Sentinel could fail over.
  explicit SentinelRig(const Options& options);

  /// As the servers are called.
  static constexpr std::string_view name = "m";
  /// The first one is the first master.
  RedisServer& server(std::size_t i) { return *servers_.at(i); }
  Sentinel& sentinel(std::size_t i) { return *sentinels_.at(i); }
  std::size_t sentinels() const noexcept { return sentinels_.size(); }

  /// redis+sentinel://127.0.0.1:P,...; `ports`: of Sentinels, in place of all of them.
  std::string url(const std::vector<std::uint16_t>& ports = {}) const;

  /// By the word of a Sentinel, while the master lives. Throws std::runtime_error when it does not
  /// want to.
  void fail_over(std::size_t sentinel = 0);
  /// Kills those that live.
  void kill_sentinels();

 private:
  void wait_until_ready();

  std::vector<std::unique_ptr<RedisServer>> servers_;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;
};

}  // namespace sluice::test
