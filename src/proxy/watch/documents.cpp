#include "proxy/watch/documents.hpp"

#include <fmt/format.h>

#include <iterator>

#include "base/json.hpp"

namespace sluice::proxy::watch {
namespace {

template <class Totals>
void append_fields(std::string& out, const auto& fields, const Totals& totals) {
  for (const auto& field : fields)
    if (field.of_twemproxy) out += fmt::format("\"{}\":{}, ", field.name, totals.*field.total);
}

/// Ends an object in place of the ", " or "," that follows its last member.
void close_object(std::string& out) {
  out.resize(out.find_last_not_of(", ") + 1);
  out += "},";
}

template <class Totals>
Json counters_of(const auto& fields, const Totals& totals) {
  Json json = Json::object();
  for (const auto& field : fields) json.add(field.name, totals.*field.total);
  return json;
}

Json latency_of(const LatencyCounts& latency) {
  Json buckets = Json::array();
  for (std::size_t i = 0; i < latency.buckets.size(); ++i)
    if (latency.buckets[i] > 0) buckets.add(Json::array({i, latency.buckets[i]}));
  return Json::object({{"count", latency.count()},
                       {"mean_us", latency.mean().count()},
                       {"p50_us", latency.quantile(0.5).count()},
                       {"p99_us", latency.quantile(0.99).count()},
                       {"p999_us", latency.quantile(0.999).count()},
                       {"max_us", latency.quantile(1).count()},
                       {"buckets", buckets}});
}

Json json_of(const ServerFigures& server) {
  const auto& standing = server.standing;
  auto json = Json::object({{"name", server.name},
                            {"state", to_string(standing.state)},
                            {"counters", counters_of(server_fields, server.totals)},
                            {"latency", latency_of(server.latency)}});
  if (standing.state == ServerState::up) return json;
  return json.add("ejected_at_us", standing.since.time_since_epoch().count())
      .add("cause", standing.cause)
      .add("checks", standing.checks);
}

Json json_of(const PoolFigures& pool) {
  Json commands = Json::array(), servers = Json::array();
  for (const auto& command : pool.commands)
    commands.add(Json::object({{"name", command.name}, {"latency", latency_of(command.latency)}}));
  for (const auto& server : pool.servers) servers.add(json_of(server));
  return Json::object({{"name", pool.name},
                       {"counters", counters_of(pool_fields, pool.totals)},
                       {"commands", commands},
                       {"servers", servers}});
}

}  // namespace

std::string twemproxy_document(const Snapshot& snapshot, const DocumentHead& head) {
  const auto now = std::chrono::floor<std::chrono::seconds>(snapshot.at).time_since_epoch().count();
  std::string out = fmt::format(
      R"({{"service":{}, "source":{}, "version":{}, "uptime":{}, "timestamp":{}, )"
      R"("total_connections":{}, "curr_connections":{}, )",
      Json{head.service}.text(), Json{head.source}.text(), Json{head.version}.text(),
      snapshot.uptime.count(), now, snapshot.total_connections(), snapshot.current_connections());
  for (const auto& pool : snapshot.pools) {
    out += Json{pool.name}.text() + ": {";
    append_fields(out, pool_fields, pool.totals);
    for (const auto& server : pool.servers) {
      out += Json{server.name}.text() + ": {";
      append_fields(out, server_fields, server.totals);
      close_object(out);
    }
    close_object(out);
  }
  close_object(out);
  out.back() = '\n';
  return out;
}

std::string statistics_json(const Snapshot& snapshot) {
  Json pools = Json::array();
  for (const auto& pool : snapshot.pools) pools.add(json_of(pool));
  return Json::object({{"at_us", snapshot.at.time_since_epoch().count()},
                       {"uptime_s", snapshot.uptime.count()},
                       {"current_connections", snapshot.current_connections()},
                       {"total_connections", snapshot.total_connections()},
                       {"pools", pools}})
      .text();
}

}  // namespace sluice::proxy::watch
