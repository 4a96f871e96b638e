/// The statistics as text: twemproxy's document, all of it as JSON, and for Prometheus.
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
/// "latency"}], "servers": [{"name", "state", "counters", "latency"}]}]}. A server that is not "up"
/// but "ejected" or "probing" has "ejected_at_us", "cause" and "checks", too. A latency is
/// {"count", "mean_us", "p50_us", "p99_us", "p999_us", "max_us", "buckets": [[bucket, count], ...]}
/// with the buckets of LatencyBuckets, so that a reader can take differences.
std::string statistics_json(const Snapshot& snapshot);

/// The text of /metrics: sluice_proxy_build_info, sluice_proxy_uptime_seconds; for each row of
/// counters.def sluice_proxy_<metric_name> with the labels pool and, of servers, server;
/// sluice_proxy_server_state{pool,server,state}, 1 for the state that a server is in;
/// sluice_proxy_server_weight{pool,server}, of those that the file names;
/// sluice_proxy_command_seconds{pool,command} and sluice_proxy_server_seconds{pool,server},
/// histograms whose bounds are the powers of two from 64 us to 67 s.
std::string metrics_text(const Snapshot& snapshot, const std::string& version);

/// "client_eof" -> "client_eof_total", "requests" of a server -> "server_requests_total".
std::string metric_name(const CounterRow& row, std::string_view level);

}  // namespace sluice::proxy::watch
