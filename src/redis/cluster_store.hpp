/// The Store of a Redis Cluster: each call goes to the node that has the slot of its keys.
///
///     ClusterStore ── shares with its calls ──> Cluster ── owns ──> Reactor (the thread)
///                                                  ├── Refresher: which node is asked for the map
///                                                  ├── a Client for each node that is used
///                                                  ├── ClusterChannels: who listens where
///                                                  ├── ClusterTrackers: who is told of keys
///                                                  └── Callbacks: where the users' handlers run
///
/// Guarantee: what a node refuses because a slot is elsewhere, on its way or without a master is
///   sent again until the caller's deadline. A call never waits for a node that has another slot.
///   Calls that one thread starts one after another on keys of one slot are executed in that order,
///   also while the slot gets another master; blocking commands and batches that end with WAIT
///   have connections of their own.
/// Not guaranteed: that order where a server says TRYAGAIN or CLUSTERDOWN, as while a slot is moved
///   key by key: each call has pauses of its own; and behind a master of before that says nothing
///   for half a second. What a master acknowledged and no replica had is lost with it.
#pragma once

#include <memory>
#include <vector>

#include "redis/redis_store.hpp"

namespace sluice::redis {

struct ClusterStoreOptions {
  /// Of every node: `endpoint`, `kind` and `database` do not count.
  RedisOptions node;
  /// Where the first map is asked for, and another one if no known node answers.
  std::vector<net::Endpoint> seeds;
};

/// "redis+cluster://10.0.0.1:6379,10.0.0.2:6379", without user and password.
std::string describe(const ClusterStoreOptions& options);

/// Returns when a node has told the map. Throws Error{connection | timeout | authentication |
/// server}.
std::unique_ptr<Store> open_cluster(ClusterStoreOptions options);

}  // namespace sluice::redis
