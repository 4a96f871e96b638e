/// A real Redis Cluster for a test: masters with a replica each, on free loopback ports, in a fresh
/// folder, gone with its owner. It has 1 s of node-timeout.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/certificates.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {

class ClusterRig {
 public:
  struct Options {
    int masters = 3;
    int replicas = 1;  ///< of each master
    std::vector<std::string> config = {};
    /// More lines, of one node.
    std::function<std::vector<std::string>(std::size_t)> own_config = {};
    /// Each node at a Partition::place() of its own, from which it speaks to the others, too.
    bool apart = false;
    /// With these each node speaks TLS as well, and wants a certificate of its clients.
    const Certificates* certificates = nullptr;
  };

  /// Returns when all nodes say that the cluster is whole, and replicas follow.
  ClusterRig();
  explicit ClusterRig(Options options);

  RedisServer& node(std::size_t number) { return *nodes_.at(number); }
  std::size_t size() const noexcept { return nodes_.size(); }
  /// Where it says that it is. At 127.0.0.1 it is always reached.
  std::string host(std::size_t number) const;
  /// "redis+cluster://127.0.0.1:1,127.0.0.1:2,..." of all nodes.
  std::string url() const;
  /// The same by TLS, without the files.
  std::string secure_url() const;
  std::uint16_t tls_port(std::size_t number) const { return tls_ports_.at(number); }

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
  std::string url_of(std::string_view scheme, const std::vector<std::uint16_t>& ports) const;

  std::vector<std::unique_ptr<RedisServer>> nodes_;
  std::vector<std::uint16_t> tls_ports_;
  std::size_t slaves_ = 0;
  bool is_apart_ = false;
};

}  // namespace sluice::test
