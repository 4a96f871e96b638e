#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <sstream>

#include "proxy/watch/documents.hpp"

namespace sluice::proxy::watch {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double us_per_second = 1e6;

MetricFamily family(std::string name, std::string help, MetricType type) {
  return {"sluice_proxy_" + std::move(name), std::move(help), type, {}};
}

ClientMetric& add(MetricFamily& to, Labels labels) {
  auto& metric = to.metric.emplace_back();
  metric.label = std::move(labels);
  return metric;
}

std::string help_of(const CounterRow& row) {
  const auto text = row.help.starts_with("# ") ? row.help.substr(2) : row.help;
  if (row.kind != CounterKind::timestamp) return std::string{text};
  return "When the server was last ejected, in seconds since the epoch; 0: it never was";
}

void add_value(MetricFamily& to, const CounterRow& row, std::int64_t value, Labels labels) {
  auto& metric = add(to, std::move(labels));
  const auto number = static_cast<double>(value);
  if (row.kind == CounterKind::counter) metric.counter.value = number;
  if (row.kind == CounterKind::gauge) metric.gauge.value = number;
  if (row.kind == CounterKind::timestamp) metric.gauge.value = number / us_per_second;
}

MetricFamily family_of(const CounterRow& row, std::string_view level) {
  const bool counts = row.kind == CounterKind::counter;
  return family(metric_name(row, level), help_of(row),
                counts ? MetricType::Counter : MetricType::Gauge);
}

void add_histogram(MetricFamily& to, const LatencyCounts& latency, Labels labels) {
  constexpr std::uint64_t first_us = 64;
  constexpr std::uint64_t last_us = LatencyBuckets::most_us / 2 + 1;
  auto& histogram = add(to, std::move(labels)).histogram;
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  for (std::uint64_t bound = first_us; bound <= last_us; bound *= 2) {
    for (; bucket < latency.buckets.size() && LatencyBuckets::lowest(bucket) < bound; ++bucket)
      seen += latency.buckets[bucket];
    histogram.bucket.push_back({seen, static_cast<double>(bound) / us_per_second});
  }
  histogram.sample_count = latency.count();
  histogram.bucket.push_back({histogram.sample_count, std::numeric_limits<double>::infinity()});
  histogram.sample_sum = static_cast<double>(latency.sum_us) / us_per_second;
}

MetricFamily build_info(const std::string& version) {
  auto info = family("build_info", "The version that runs", MetricType::Gauge);
  add(info, {{"version", version}}).gauge.value = 1;
  return info;
}

MetricFamily uptime(const Snapshot& snapshot) {
  auto seconds = family("uptime_seconds", "Since the process began", MetricType::Gauge);
  add(seconds, {}).gauge.value = static_cast<double>(snapshot.uptime.count());
  return seconds;
}

MetricFamily server_state(const Snapshot& snapshot) {
  auto rows = family("server_state", "1 for the state that the server is in", MetricType::Gauge);
  for (const auto& pool : snapshot.pools)
    for (const auto& server : pool.servers)
      for (const auto state : {ServerState::up, ServerState::ejected, ServerState::probing})
        add(rows, {{"pool", pool.name},
                   {"server", server.name},
                   {"state", std::string{to_string(state)}}})
            .gauge.value = server.standing.state == state ? 1 : 0;
  return rows;
}

MetricFamily server_weight(const Snapshot& snapshot) {
  auto rows = family("server_weight", "Weight of the server in the ring", MetricType::Gauge);
  for (const auto& pool : snapshot.pools)
    for (const auto& server : pool.servers)
      if (server.weight)
        add(rows, {{"pool", pool.name}, {"server", server.name}}).gauge.value = *server.weight;
  return rows;
}

std::vector<MetricFamily> families_of(const Snapshot& snapshot, const std::string& version) {
  std::vector<MetricFamily> families{build_info(version), uptime(snapshot)};
  for (const auto& field : pool_fields) {
    auto& rows = families.emplace_back(family_of(field, "pool"));
    for (const auto& pool : snapshot.pools)
      add_value(rows, field, pool.totals.*field.total, {{"pool", pool.name}});
  }
  for (const auto& field : server_fields) {
    auto& rows = families.emplace_back(family_of(field, "server"));
    for (const auto& pool : snapshot.pools)
      for (const auto& server : pool.servers)
        add_value(rows, field, server.totals.*field.total,
                  {{"pool", pool.name}, {"server", server.name}});
  }
  families.push_back(server_state(snapshot));
  families.push_back(server_weight(snapshot));
  auto commands =
      family("command_seconds", "Time to answer a request, by command", MetricType::Histogram);
  auto servers = family("server_seconds", "Time a server took to answer", MetricType::Histogram);
  for (const auto& pool : snapshot.pools) {
    for (const auto& command : pool.commands)
      add_histogram(commands, command.latency, {{"pool", pool.name}, {"command", command.name}});
    for (const auto& server : pool.servers)
      add_histogram(servers, server.latency, {{"pool", pool.name}, {"server", server.name}});
  }
  families.push_back(std::move(commands));
  families.push_back(std::move(servers));
  return families;
}

}  // namespace

std::string metric_name(const CounterRow& row, std::string_view level) {
  std::string name{row.name};
  if (!name.starts_with("client_") && !name.starts_with("server_"))
    name = fmt::format("{}_{}", level, name);
  if (row.kind == CounterKind::counter) name += "_total";
  if (row.kind == CounterKind::timestamp) name += "_seconds";
  return name;
}

std::string metrics_text(const Snapshot& snapshot, const std::string& version) {
  std::ostringstream out;
  prometheus::TextSerializer{}.Serialize(out, families_of(snapshot, version));
  return std::move(out).str();
}

}  // namespace sluice::proxy::watch
