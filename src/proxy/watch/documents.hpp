/// The statistics as text: twemproxy's document, and all of it as JSON.
#pragma once

#include <string>

#include "proxy/watch/registry.hpp"

namespace sluice::proxy::watch {

/// What twemproxy's document says of the process.
struct DocumentHead {
  std::string service = "nutcracker";
  std::string source;   ///< name of this host
  std::string version;  ///< of the nutcracker that this stands in for
};

/// Byte for byte in nutcracker's format: one line, its fields alone, in its order. Names are
/// escaped as JSON asks, which nutcracker leaves out.
std::string twemproxy_document(const Snapshot& snapshot, const DocumentHead& head);

/// Everything: {"at_us", "uptime_s", "pools": [{"name", "counters": {...}, "commands": [{"name",
/// "latency"}], "servers": [{"name", "counters", "latency"}]}]}. A latency is {"count", "mean_us",
/// "p50_us", "p99_us", "p999_us", "max_us", "buckets": [[bucket, count], ...]} with the buckets of
/// LatencyBuckets, so that a reader can take differences.
std::string statistics_json(const Snapshot& snapshot);

}  // namespace sluice::proxy::watch
