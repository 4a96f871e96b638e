/// A real Redis Cluster for a test: masters with a replica each, on free loopback ports, in a fresh
/// folder, gone with its owner. It has 1 s of node-timeout.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {

class ClusterRig {
 public:
  struct Options {
    int masters = 3;
    int replicas = 1;  ///< of each master
    std::vector<std::string> config = {};
  };

  /// Returns when all nodes say that the cluster is whole, and replicas follow.
  ClusterRig();
  explicit ClusterRig(Options options);

  RedisServer& node(std::size_t number) { return *nodes_.at(number); }
  std::size_t size() const noexcept { return nodes_.size(); }
  /// "redis+cluster://127.0.0.1:1,127.0.0.1:2,..." of all nodes.
  std::string url() const;

  /// The number of the node that says that it is the slot's master; of a node that runs.
  std::size_t master_of(const std::string& key);
  std::size_t master_of_slot(int slot);
  /// A replica of that master.
  std::size_t replica_of(std::size_t master);
  std::string id_of(std::size_t number);
  PlainClient client_of(std::size_t number) { return PlainClient{node(number).port()}; }

  /// CLUSTER FAILOVER: the replica of `master` takes its place. Returns its number when both know.
  std::size_t fail_over(std::size_t master);
  /// Moves a slot with its keys, in steps.
  void begin_move(int slot, std::size_t from, std::size_t to);
  void move_keys(int slot, std::size_t from, std::size_t to);
  void end_move(int slot, std::size_t from, std::size_t to);
  void move_slot(int slot, std::size_t from, std::size_t to);

  /// All nodes run and agree, and each master has its replicas. For the begin of a test.
  void heal();
  bool is_whole();

 private:
  void create(const Options& options);
  bool agrees(std::size_t number);

  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::vector<std::string> config_;
  std::size_t slaves_ = 0;
};

}  // namespace sluice::test
