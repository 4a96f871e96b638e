/// What replication means for a hold: whether enough replicas have it, and which server answers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "store/durable.hpp"

namespace sluice::lock {

/// What to throw when the grant was given back.
Error unsynced(const std::string& key, const Copies& copies, const Durability& durability);

/// A key of each slot that is asked about; of a Store that is not sharded there is one slot, 0.
using SlotKeys = std::map<std::uint16_t, std::string>;
std::uint16_t slot_on(const Store& store, std::string_view key);

/// The run id and the replication id of the servers that have the slots, as INFO tells them. The
/// text differs after a restart, a failover, or when a slot was moved. Empty: it was not told, and
/// that is logged.
Task<std::map<std::uint16_t, std::string>> server_identities(Store& store, SlotKeys keys);

}  // namespace sluice::lock
