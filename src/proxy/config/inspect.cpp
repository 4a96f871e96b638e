#include "proxy/config/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "base/hash_slot.hpp"
#include "proxy/config/read.hpp"
#include "proxy/config/settings.hpp"

namespace sluice::proxy::config {
namespace {

std::uint32_t point_of(const Ring& ring, std::uint32_t hash) {
  if (ring.distribution() == Distribution::modula)
    return hash % static_cast<std::uint32_t>(ring.places());
  const auto points = ring.points();
  const auto found = std::ranges::lower_bound(points, hash, {}, &Ring::Point::value);
  return found == points.end() ? points.front().value : found->value;
}

void append_servers(std::string& text, const PoolSettings& pool) {
  text += "  servers:\n";
  for (const auto& server : pool.servers)
    text += fmt::format("   - {}\n", quoted(to_string(server)));
}

template <class Target>
void append_settings(std::string& text, const Target& target) {
  for (const auto& setting : settings_of<Target>()) {
    if constexpr (std::is_same_v<Target, PoolSettings>)
      if (setting.name == "servers" && !target.servers.empty()) {
        append_servers(text, target);
        continue;
      }
    const auto value = setting.text(target);
    if (value.empty())
      text += fmt::format("  # {}:\n", setting.name);
    else
      text += fmt::format("  {}: {}\n", setting.name, setting.is_yaml ? value : quoted(value));
  }
}

template <class Target>
void append_table(std::string& text, std::string_view title, Origin origin) {
  text += fmt::format("\n### {}\n\n| setting | value | default | meaning |\n|---|---|---|---|\n",
                      title);
  for (const auto& row : settings_of<Target>()) {
    if (row.origin != origin) continue;
    const bool is_fixed = std::ranges::find(fixed_settings, row.name) != fixed_settings.end();
    text += fmt::format("| `{}` | {} | {} | {}{} |\n", row.name, row.kind,
                        row.default_text.empty() ? "" : fmt::format("`{}`", row.default_text),
                        row.help, is_fixed ? " A change takes a restart or an upgrade." : "");
  }
}

template <class Target>
Json texts_of(const Target& target) {
  auto all = Json::object();
  for (const auto& setting : settings_of<Target>()) all.add(setting.name, setting.text(target));
  return all;
}

}  // namespace

Explanation explain(const PoolSettings& pool, std::string_view key) {
  if (pool.is_of_cluster()) {
    Explanation in_cluster{.pool = pool.name, .hashed_part = std::string{sluice::hash_tag(key)}};
    in_cluster.slot = hash_slot(key);
    return in_cluster;
  }
  const auto homes = make_homes(pool);
  Explanation result{.pool = pool.name,
                     .hashed_part = std::string{hashed_part(key, pool.hash_tag)},
                     .hash = homes.hash_of(key)};
  if (pool.distribution == Distribution::random && pool.servers.size() > 1) return result;
  const auto& server = pool.servers.at(homes.of(key));
  result.server = server.name;
  result.address = net::to_string(server.endpoint);
  result.point = point_of(homes.ring(), result.hash);
  return result;
}

std::string text_of(const Explanation& explanation) {
  if (explanation.slot)
    return fmt::format("{}: the master of slot {} in its cluster (hashed part \"{}\")",
                       explanation.pool, *explanation.slot, explanation.hashed_part);
  if (explanation.server.empty())
    return fmt::format("{}: any server, whatever the key (distribution: random)", explanation.pool);
  return fmt::format("{}: {} at {} (hashed part \"{}\", hash 0x{:08x}, point 0x{:08x})",
                     explanation.pool, explanation.server, explanation.address,
                     explanation.hashed_part, explanation.hash, explanation.point);
}

Json json_of(const Explanation& explanation) {
  if (explanation.slot)
    return Json::object({{"pool", explanation.pool},
                         {"hashed_part", explanation.hashed_part},
                         {"slot", *explanation.slot}});
  auto json = Json::object({{"pool", explanation.pool},
                            {"hashed_part", explanation.hashed_part},
                            {"hash", explanation.hash}});
  if (explanation.server.empty()) return json;
  return json.add("point", explanation.point)
      .add("server", explanation.server)
      .add("address", explanation.address);
}

std::string describe(const Config& config) {
  std::string text = "sluice:\n";
  append_settings(text, config.process);
  for (const auto& pool : config.pools) {
    text += fmt::format("\n{}:\n", quoted(pool.name));
    append_settings(text, pool);
  }
  return text;
}

std::string settings_as_markdown() {
  std::string text;
  append_table<PoolSettings>(text, "Of a pool, as in twemproxy", Origin::twemproxy);
  append_table<PoolSettings>(text, "Of a pool, beyond twemproxy", Origin::sluice);
  append_table<ProcessSettings>(text, "Of the process: below `sluice:`", Origin::sluice);
  append_table<TlsSettings>(text, "Of `listen_tls`, `server_tls` and `sentinel_tls`",
                            Origin::sluice);
  append_table<LimitSettings>(text, "Of `rate_limit`", Origin::sluice);
  append_table<MirrorSettings>(text, "Of `mirror`", Origin::sluice);
  append_table<UserSettings>(text, "Of a user in `users`", Origin::sluice);
  return text;
}

Json json_of(const Config& config) {
  auto pools = Json::object();
  for (const auto& pool : config.pools) pools.add(pool.name, texts_of(pool));
  return Json::object({{"process", texts_of(config.process)}, {"pools", pools}});
}

}  // namespace sluice::proxy::config
