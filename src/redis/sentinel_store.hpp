/// The Store of a master that Sentinels watch: that of one server, which is found anew when another
/// one is promoted.
///
///     RedisStore ──> Client ── its Links follow ──> MovingEndpoint <── tells ── MasterFinder
///
/// Guarantee: a master that was replaced is left within half a second, though it lives and would go
/// on acknowledging what is then lost, if a Sentinel that knows can be heard. Calls that were not
/// sent, and those that may be repeated, go to the new one; of the others some end with an effect
/// that is unknown.
/// Not guaranteed: that a write that was acknowledged survives. Replication is asynchronous.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "redis/redis_store.hpp"

namespace sluice::redis {

struct SentinelStoreOptions {
  /// Of the master; its endpoint does not count. A call waits for a new one as for a connection.
  RedisOptions server;
  /// Any that are known: the others are learned of.
  std::vector<net::Endpoint> sentinels;
  std::string name;  ///< of the master, as the Sentinels have it
  /// Of the Sentinels, which have users of their own. Empty: none is told.
  std::string sentinel_user;
  std::string sentinel_password;
  std::shared_ptr<net::TlsClient> sentinel_tls;  ///< towards Sentinels; null: plainly
};

/// Finds the master and connects. Throws as open_redis() does; {connection} where no Sentinel
/// answers, {server} where none knows the name, {timeout} where no server is the master.
std::unique_ptr<Store> open_sentinel(SentinelStoreOptions options);

}  // namespace sluice::redis
