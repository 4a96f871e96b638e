#include "proxy/watch/top.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "proxy/watch/notable_requests.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::watch {
namespace {

using Parsed = nlohmann::json;

const Parsed nothing = Parsed::object();

/// The element of a list that has this name, else `nothing`.
const Parsed& named(const Parsed& list, const Parsed& name) {
  for (const auto& one : list)
    if (one.at("name") == name) return one;
  return nothing;
}

const Parsed& member(const Parsed& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

double count_of(const Parsed& counters, std::initializer_list<const char*> names) {
  double sum = 0;
  for (const char* const name : names) sum += counters.value(name, 0.0);
  return sum;
}

struct Interval {
  double seconds;

  /// A counter that is smaller than before belongs to a process that was started anew.
  double rate(const Parsed& before, const Parsed& now,
              std::initializer_list<const char*> names) const {
    const double old = count_of(before, names), fresh = count_of(now, names);
    return (fresh >= old ? fresh - old : fresh) / seconds;
  }
};

LatencyCounts counts_of(const Parsed& latency) {
  LatencyCounts counts;
  if (latency.empty()) return counts;
  counts.buckets.resize(LatencyBuckets::count);
  for (const auto& pair : latency.at("buckets"))
    if (const auto bucket = pair.at(0).get<std::size_t>(); bucket < counts.buckets.size())
      counts.buckets[bucket] = pair.at(1).get<std::uint64_t>();
  return counts;
}

LatencyCounts all_commands(const Parsed& pool) {
  LatencyCounts counts;
  for (const auto& command : member(pool, "commands")) counts += counts_of(command.at("latency"));
  return counts;
}

/// `at_us`: when the statistics were made.
TopServer server_of(const Interval& interval, const Parsed& before, const Parsed& now,
                    std::int64_t at_us) {
  const Parsed &old = member(before, "counters"), &fresh = now.at("counters");
  return {.name = now.at("name"),
          .state = now.value("state", "up"),
          .cause = now.value("cause", ""),
          .ejected_s = (at_us - now.value("ejected_at_us", at_us)) / 1'000'000,
          .requests = interval.rate(old, fresh, {"requests"}),
          .errors = interval.rate(old, fresh, {"server_err", "server_eof", "server_timedout"}),
          .connections = fresh.value("server_connections", 0),
          .waiting = fresh.value("in_queue", 0) + fresh.value("out_queue", 0),
          .latency = counts_of(now.at("latency")).since(counts_of(member(before, "latency")))};
}

TopPool pool_of(const Interval& interval, const Parsed& before, const Parsed& now,
                std::int64_t at_us) {
  const Parsed &old = member(before, "counters"), &fresh = now.at("counters");
  TopPool pool{
      .name = now.at("name"),
      .requests = interval.rate(old, fresh, {"requests"}),
      .errors = interval.rate(old, fresh, {"client_err", "forward_error", "refused_requests"}),
      .limited = interval.rate(old, fresh, {"limited_requests", "delayed_requests"}),
      .mirror_mismatches = interval.rate(old, fresh, {"mirror_mismatches"}),
      .mirror_lost = interval.rate(old, fresh, {"mirror_dropped", "mirror_failures"}),
      .clients = fresh.value("client_connections", 0),
      .latency = all_commands(now).since(all_commands(before)),
      .servers = {}};
  for (const auto& server : now.at("servers"))
    pool.servers.push_back(
        server_of(interval, named(member(before, "servers"), server.at("name")), server, at_us));
  return pool;
}

constexpr std::size_t name_width = 28;

std::string column(const std::string& name, std::size_t indent) {
  return fmt::format("{:{}}{:<{}.{}}", "", indent, excerpt(name), name_width - indent,
                     name_width - indent);
}

std::string milliseconds(const LatencyCounts& latency, double share) {
  if (latency.count() == 0) return "-";
  return fmt::format("{:.2f}", static_cast<double>(latency.quantile(share).count()) / 1000);
}

void append_line(std::string& out, const auto& what, std::size_t indent, std::int64_t peers,
                 const std::string& waiting, std::string_view state) {
  out += fmt::format("{} {:>12.0f} {:>9.1f} {:>9} {:>9} {:>8} {:>8}{}{}\n",
                     column(what.name, indent), what.requests, what.errors,
                     milliseconds(what.latency, 0.5), milliseconds(what.latency, 0.99), peers,
                     waiting, state.empty() ? "" : "  ", state);
}

Json common_json(const auto& what) {
  return Json::object({{"name", what.name},
                       {"requests_per_second", what.requests},
                       {"errors_per_second", what.errors},
                       {"p50_us", what.latency.quantile(0.5).count()},
                       {"p99_us", what.latency.quantile(0.99).count()}});
}

Json json_of(const TopServer& server) {
  auto json = common_json(server)
                  .add("connections", server.connections)
                  .add("waiting", server.waiting)
                  .add("state", server.state);
  if (server.cause.empty()) return json;
  return json.add("ejected_seconds", server.ejected_s).add("cause", server.cause);
}

/// "up"; "ejected 12 s: timed out".
std::string state_text(const TopServer& server) {
  if (server.cause.empty()) return server.state;
  return fmt::format("{} {} s: {}", server.state, server.ejected_s, server.cause);
}

std::string state_text(const TopPool& pool) {
  std::vector<std::string> parts;
  const auto add = [&](double rate, std::string_view what) {
    if (rate > 0) parts.push_back(fmt::format("{:.0f}/s {}", rate, what));
  };
  add(pool.limited, "beyond rate_limit");
  add(pool.mirror_mismatches, "differ in the mirror");
  add(pool.mirror_lost, "lost to the mirror");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

TopFrame top_frame(std::string_view before, std::string_view now) try {
  const Parsed old = before.empty() ? nothing : Parsed::parse(before);
  const Parsed fresh = Parsed::parse(now);
  TopFrame frame;
  frame.uptime_s = fresh.at("uptime_s");
  const double passed =
      fresh.at("at_us").get<double>() - (old.empty() ? 0 : old.at("at_us").get<double>());
  frame.seconds = old.empty() ? static_cast<double>(frame.uptime_s) : passed / 1e6;
  const Interval interval{std::max(frame.seconds, 0.001)};
  for (const auto& pool : fresh.at("pools"))
    frame.pools.push_back(pool_of(interval, named(member(old, "pools"), pool.at("name")), pool,
                                  fresh.at("at_us").get<std::int64_t>()));
  return frame;
} catch (const nlohmann::json::exception& bad) {
  throw Error{Errc::protocol,
              fmt::format("these are no statistics of a sluice proxy: {}", bad.what())};
}

std::string top_text(const TopFrame& frame) {
  std::string out = fmt::format("up {} s\n{:<{}} {:>12} {:>9} {:>9} {:>9} {:>8} {:>8}  {}\n",
                                frame.uptime_s, "pool / server", name_width, "requests/s",
                                "errors/s", "p50 ms", "p99 ms", "conns", "waiting", "state");
  for (const auto& pool : frame.pools) {
    append_line(out, pool, 0, pool.clients, "", state_text(pool));
    for (const auto& server : pool.servers)
      append_line(out, server, 2, server.connections, std::to_string(server.waiting),
                  state_text(server));
  }
  if (!frame.hot_keys.empty()) out += "\nhot keys, at least\n";
  for (const auto& key : frame.hot_keys)
    out += fmt::format("{:>9.0f}/s {:>6.2f} %  {}\n", key.rate, key.share * 100, key.key);
  return out;
}

std::string top_json(const TopFrame& frame) {
  Json pools = Json::array(), hot_keys = Json::array();
  for (const auto& pool : frame.pools) {
    Json servers = Json::array();
    for (const auto& server : pool.servers) servers.add(json_of(server));
    pools.add(common_json(pool)
                  .add("clients", pool.clients)
                  .add("limited_per_second", pool.limited)
                  .add("mirror_mismatches_per_second", pool.mirror_mismatches)
                  .add("mirror_lost_per_second", pool.mirror_lost)
                  .add("servers", servers));
  }
  for (const auto& key : frame.hot_keys)
    hot_keys.add(Json::object({{"key", key.key},
                               {"requests_per_second", key.rate},
                               {"share", key.share},
                               {"requests_per_second_at_most", key.most_rate}}));
  return Json::object({{"uptime_s", frame.uptime_s},
                       {"seconds", frame.seconds},
                       {"pools", pools},
                       {"hot_keys", hot_keys}})
      .text();
}

}  // namespace sluice::proxy::watch
