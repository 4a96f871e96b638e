/// Streams in a snapshot, with their groups and what is pending there.
#pragma once

#include <string>

#include "engine/rdb/snapshot_fields.hpp"
#include "engine/rdb/snapshot_reader.hpp"

namespace sluice::engine {

/// Since which version streams are written so.
enum class StreamForm { redis_5, redis_7, redis_7_2 };

/// Runs what makes the stream at `key`. An entry that is pending and was deleted stays pending.
/// Throws as read_snapshot().
void read_stream(SnapshotFields& fields, StreamForm form, const std::string& key,
                 const RunCommand& run);

}  // namespace sluice::engine
