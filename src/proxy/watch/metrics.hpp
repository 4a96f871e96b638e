/// The statistics for Prometheus. Names and help come from counters.def.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <string>

#include "proxy/watch/registry.hpp"

namespace sluice::proxy {

/// sluice_proxy_build_info, sluice_proxy_uptime_seconds; for each row of counters.def
/// sluice_proxy_<metric_name> with the labels pool and, of servers, server;
/// sluice_proxy_command_seconds{pool,command} and sluice_proxy_server_seconds{pool, server},
/// histograms whose bounds are the powers of two from 64 us to 67 s.
std::vector<prometheus::MetricFamily> metric_families(const Snapshot& snapshot,
                                                      const std::string& version);

/// "client_eof" -> "client_eof_total", "requests" of a server -> "server_requests_total".
std::string metric_name(const CounterRow& row, std::string_view level);

/// metric_families() in the text format of /metrics.
std::string metrics_text(const Snapshot& snapshot, const std::string& version);

/// For a program that has a prometheus::Registry or Exposer of its own. `registry` outlives it.
class MetricsOf final : public prometheus::Collectable {
 public:
  MetricsOf(Registry& registry, std::string version)
      : registry_(registry), version_(std::move(version)) {}
  std::vector<prometheus::MetricFamily> Collect() const override {
    return metric_families(registry_.snapshot(), version_);
  }

 private:
  Registry& registry_;
  std::string version_;
};

}  // namespace sluice::proxy
