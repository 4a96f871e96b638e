/// What the tests of a Store of a cluster share: one real cluster a program.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/hash_slot.hpp"
#include "redis/at_server.hpp"
#include "redis/cluster_store.hpp"
#include "support/cluster_rig.hpp"
#include "support/comes_true.hpp"

namespace sluice::test {

inline redis::ClusterStoreOptions at(ClusterRig& rig) {
  redis::ClusterStoreOptions options{.node = {}, .seeds = {}};
  for (std::size_t i = 0; i < rig.size(); ++i)
    options.seeds.push_back({.host = rig.host(i), .port = rig.node(i).port(), .unix_path = {}});
  options.node.connect_timeout = options.node.command_timeout = std::chrono::seconds{30};
  options.node.backoff_min = std::chrono::milliseconds{2};
  options.node.backoff_max = std::chrono::milliseconds{50};
  return options;
}

/// Three masters with a replica each, whole at the begin of each test.
class AtCluster : public testing::Test {
 protected:
  AtCluster() {
    rig().heal();
    store = redis::open_cluster(at(rig()));
    store->run({"FLUSHALL"}).get();
  }

  static ClusterRig& rig() {
    static ClusterRig all;
    return all;
  }

  static std::size_t master_of(const std::string& key) { return rig().master_of(key); }
  /// A master that is not the one of `key`.
  static std::size_t other_than(const std::string& key) {
    for (const auto* const other : {"a", "b", "c"})
      if (master_of(other) != master_of(key)) return master_of(other);
    return 0;
  }
  /// On every node, now.
  static void set(std::string_view name, std::string_view value) {
    for (std::size_t i = 0; i < rig().size(); ++i)
      EXPECT_EQ(rig().client_of(i).command({"CONFIG", "SET", name, value}),
                Value::simple_string("OK"));
  }

  std::unique_ptr<Store> store;
};

}  // namespace sluice::test
