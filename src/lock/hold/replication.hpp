/// What replication means for a hold: whether enough replicas have it, and which server answers.
#pragma once

#include <string>

#include "store/durable.hpp"

namespace sluice::lock {

/// What to throw when the grant was given back.
Error unsynced(const std::string& key, const DurableReply& reply, const Durability& durability);

/// The run id and the replication id, as INFO tells them. The text differs after a restart or a
/// failover.
Task<std::string> server_identity(Store& store);

}  // namespace sluice::lock
