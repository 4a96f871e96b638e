/// The statistics for Prometheus. Names and help come from counters.def.
#pragma once

#include <string>

#include "proxy/watch/registry.hpp"

namespace sluice::proxy::watch {

/// The text of /metrics: sluice_proxy_build_info, sluice_proxy_uptime_seconds; for each row of
/// counters.def sluice_proxy_<metric_name> with the labels pool and, of servers, server;
/// sluice_proxy_command_seconds{pool,command} and sluice_proxy_server_seconds{pool,server},
/// histograms whose bounds are the powers of two from 64 us to 67 s.
std::string metrics_text(const Snapshot& snapshot, const std::string& version);

/// "client_eof" -> "client_eof_total", "requests" of a server -> "server_requests_total".
std::string metric_name(const CounterRow& row, std::string_view level);

}  // namespace sluice::proxy::watch
