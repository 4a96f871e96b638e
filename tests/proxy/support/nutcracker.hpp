/// A real nutcracker (twemproxy) for a test: the peer that our proxy is compared with. One pool or
/// several, on free loopback ports, gone with its owner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {

class Nutcracker {
 public:
  /// A pool "alpha" that listens on port(). `lines`: the other directives and the servers, as in
  /// nutcracker.yml without the indentation of the pool ("redis: true", "servers:", " -
  /// 127.0.0.1:6379:1").
  explicit Nutcracker(std::vector<std::string> lines, std::vector<std::string> arguments = {});

  std::uint16_t port() const noexcept { return port_; }
  std::uint16_t stats_port() const noexcept { return stats_port_; }
  pid_t pid() const noexcept { return process_ ? process_->pid() : -1; }
  std::string config() const;  ///< the file, as it was written
  std::string log() const;

 private:
  bool try_start();

  TempDir directory_;
  std::vector<std::string> lines_, arguments_;
  std::uint16_t port_ = 0, stats_port_ = 0;
  std::optional<Process> process_;
};

/// The directives of a pool of Redis servers at these ports, all of weight 1.
std::vector<std::string> redis_pool(const std::vector<std::uint16_t>& ports);
/// The same of memcached.
std::vector<std::string> memcached_pool(const std::vector<std::uint16_t>& ports);

}  // namespace sluice::test
