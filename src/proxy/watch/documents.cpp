#include "proxy/watch/documents.hpp"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

namespace sluice::proxy {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes that are no UTF-8, in a name from the file, must not end the document.
std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Fields, class Totals>
void append_fields(std::string& out, Fields fields, const Totals& totals) {
  for (const auto& field : fields)
    if (field.of_twemproxy)
      fmt::format_to(std::back_inserter(out), "\"{}\":{}, ", field.name, totals.*field.total);
}

/// Ends an object in place of the ", " or "," that follows its last member.
void close_object(std::string& out) {
  out.resize(out.find_last_not_of(", ") + 1);
  out += "},";
}

template <class Fields, class Totals>
Json counters_of(Fields fields, const Totals& totals) {
  Json json = Json::object();
  for (const auto& field : fields) json[std::string{field.name}] = totals.*field.total;
  return json;
}

Json latency_of(const LatencyCounts& latency) {
  Json buckets = Json::array();
  for (std::size_t i = 0; i < latency.buckets.size(); ++i)
    if (latency.buckets[i] > 0) buckets.push_back({i, latency.buckets[i]});
  return {{"count", latency.count()},
          {"mean_us", latency.mean().count()},
          {"p50_us", latency.quantile(0.5).count()},
          {"p99_us", latency.quantile(0.99).count()},
          {"p999_us", latency.quantile(0.999).count()},
          {"max_us", latency.quantile(1).count()},
          {"buckets", std::move(buckets)}};
}

Json json_of(const PoolFigures& pool) {
  Json commands = Json::array();
  for (const auto& command : pool.commands)
    commands.push_back({{"name", command.name}, {"latency", latency_of(command.latency)}});
  Json servers = Json::array();
  for (const auto& server : pool.servers)
    servers.push_back({{"name", server.name},
                       {"counters", counters_of(server_fields(), server.totals)},
                       {"latency", latency_of(server.latency)}});
  return {{"name", pool.name},
          {"counters", counters_of(pool_fields(), pool.totals)},
          {"commands", std::move(commands)},
          {"servers", std::move(servers)}};
}

}  // namespace

std::string twemproxy_document(const Snapshot& snapshot, const DocumentHead& head) {
  const auto now = std::chrono::floor<std::chrono::seconds>(snapshot.at).time_since_epoch().count();
  std::string out = fmt::format(
      R"({{"service":{}, "source":{}, "version":{}, "uptime":{}, "timestamp":{}, )"
      R"("total_connections":{}, "curr_connections":{}, )",
      quoted(head.service), quoted(head.source), quoted(head.version), snapshot.uptime.count(), now,
      snapshot.total_connections(), snapshot.current_connections());
  for (const auto& pool : snapshot.pools) {
    out += quoted(pool.name) + ": {";
    append_fields(out, pool_fields(), pool.totals);
    for (const auto& server : pool.servers) {
      out += quoted(server.name) + ": {";
      append_fields(out, server_fields(), server.totals);
      close_object(out);
    }
    close_object(out);
  }
  close_object(out);
  out.back() = '\n';
  return out;
}

std::string statistics_json(const Snapshot& snapshot) {
  Json json = {{"at_us", snapshot.at.time_since_epoch().count()},
               {"uptime_s", snapshot.uptime.count()},
               {"current_connections", snapshot.current_connections()},
               {"total_connections", snapshot.total_connections()},
               {"pools", Json::array()}};
  for (const auto& pool : snapshot.pools) json["pools"].push_back(json_of(pool));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace sluice::proxy
