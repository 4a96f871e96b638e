/// A server, and a replica that can take its place and its port.
#pragma once

#include <memory>
#include <string>

#include "support/redis_server.hpp"

namespace sluice::test {

class ServerPair {
 public:
  /// Returns when the replica follows.
  ServerPair();

  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

  void wait_for_copy_of(const std::string& key) const;
  /// The replica goes its own way; what the primary is told after that is lost with it.
  void cut_off() const;
  /// The primary is killed, and the replica answers in its place.
  void replace_primary();
  /// Another one. Returns when it follows.
  void add_replica();

 private:
  std::unique_ptr<RedisServer> primary_;
  std::unique_ptr<RedisServer> replica_;
  std::uint16_t port_;
};

}  // namespace sluice::test
