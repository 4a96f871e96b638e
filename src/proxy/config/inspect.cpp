#include "proxy/config/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

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

/// In quotes where YAML wants them; lists and maps are YAML already.
template <class Kind>
std::string written(const std::string& text) {
  if constexpr (std::is_base_of_v<kinds::Structured, Kind>) return text;
  return quoted(text);
}

void append_servers(std::string& text, const std::vector<ServerSettings>& servers) {
  text += "  servers:\n";
  for (const auto& server : servers)
    fmt::format_to(std::back_inserter(text), "   - {}\n",
                   quoted(kinds::ServerList::text_of_one(server)));
}

template <class Target>
void append_settings(std::string& text, const Target& target) {
  const auto append = [&]<class Kind>(const SettingRow& row, Kind kind, const auto& value) {
    const auto one = kind.text(value);
    if constexpr (std::is_same_v<Kind, kinds::ServerList>)
      append_servers(text, value);
    else if (one.empty())
      fmt::format_to(std::back_inserter(text), "  # {}:\n", row.name);
    else
      fmt::format_to(std::back_inserter(text), "  {}: {}\n", row.name, written<Kind>(one));
  };
  for_each_setting(append, target);
}

void append_table(std::string& text, std::string_view title, std::span<const SettingRow> rows,
                  Origin origin) {
  auto out = std::back_inserter(text);
  fmt::format_to(out, "\n### {}\n\n| setting | value | default | meaning |\n|---|---|---|---|\n",
                 title);
  for (const auto& row : rows) {
    if (row.origin != origin) continue;
    const bool is_fixed = std::ranges::find(fixed_settings, row.name) != fixed_settings.end();
    fmt::format_to(out, "| `{}` | {} | {} | {}{} |\n", row.name, row.kind,
                   row.default_text.empty() ? "" : fmt::format("`{}`", row.default_text), row.help,
                   is_fixed ? " A change takes a restart or an upgrade." : "");
  }
}

template <class Target>
Json texts_of(const Target& target) {
  auto all = Json::object();
  for_each_setting([&](const SettingRow& row, auto kind,
                       const auto& value) { all.add(row.name, kind.text(value)); },
                   target);
  return all;
}

}  // namespace

Explanation explain(const PoolSettings& pool, std::string_view key) {
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
  if (explanation.server.empty())
    return fmt::format("{}: any server, whatever the key (distribution: random)", explanation.pool);
  return fmt::format("{}: {} at {} (hashed part \"{}\", hash 0x{:08x}, point 0x{:08x})",
                     explanation.pool, explanation.server, explanation.address,
                     explanation.hashed_part, explanation.hash, explanation.point);
}

Json json_of(const Explanation& explanation) {
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
    fmt::format_to(std::back_inserter(text), "\n{}:\n", quoted(pool.name));
    append_settings(text, pool);
  }
  return text;
}

std::string settings_as_markdown() {
  std::string text;
  append_table(text, "Of a pool, as in twemproxy", rows_of<PoolSettings>(), Origin::twemproxy);
  append_table(text, "Of a pool, beyond twemproxy", rows_of<PoolSettings>(), Origin::sluice);
  append_table(text, "Of the process: below `sluice:`", rows_of<ProcessSettings>(), Origin::sluice);
  append_table(text, "Of `listen_tls` and `server_tls`", rows_of<TlsSettings>(), Origin::sluice);
  append_table(text, "Of a user in `users`", rows_of<UserSettings>(), Origin::sluice);
  return text;
}

Json json_of(const Config& config) {
  auto pools = Json::object();
  for (const auto& pool : config.pools) pools.add(pool.name, texts_of(pool));
  return Json::object({{"process", texts_of(config.process)}, {"pools", pools}});
}

}  // namespace sluice::proxy::config
