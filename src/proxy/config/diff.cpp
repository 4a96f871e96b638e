#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "proxy/config/inspect.hpp"
#include "proxy/config/settings.hpp"

namespace sluice::proxy::config {
namespace {

/// Compared as values, so that it tells of a secret that changes; shown as texts, which hide it.
template <class Target>
std::vector<SettingChange> changes_of(const Target& before, const Target& after) {
  std::vector<SettingChange> changes;
  for (const auto& setting : settings_of<Target>())
    if (!setting.is_same(before, after))
      changes.push_back({std::string{setting.name}, setting.text(before), setting.text(after)});
  return changes;
}

const PoolSettings* find_pool(const Config& config, std::string_view name) {
  const auto found = std::ranges::find(config.pools, name, &PoolSettings::name);
  return found == config.pools.end() ? nullptr : &*found;
}

/// Whether the file tells where keys are.
bool tells_homes(const PoolSettings& pool) {
  return !pool.is_of_cluster() &&
         (pool.distribution != Distribution::random || pool.servers.size() < 2);
}

std::vector<SettingChange> moved_addresses(const PoolSettings& before, const PoolSettings& after) {
  std::vector<SettingChange> changes;
  for (const auto& server : before.servers) {
    const auto now = std::ranges::find(after.servers, server.name, &ServerSettings::name);
    if (now != after.servers.end() && now->endpoint != server.endpoint)
      changes.push_back(
          {server.name, net::to_string(server.endpoint), net::to_string(now->endpoint)});
  }
  return changes;
}

void find_flows(PoolDiff& result, const PoolSettings& before, const PoolSettings& after,
                std::span<const std::string> keys) {
  const auto movement = movement_of(make_homes(before), make_homes(after), keys);
  result.exact = movement.exact;
  for (const auto& [pair, share] : movement.shares) {
    const auto& from = before.servers.at(pair.first).name;
    const auto& to = after.servers.at(pair.second).name;
    if (from == to) continue;
    result.moved += share;
    result.flows.push_back({from, to, share});
  }
  std::ranges::stable_sort(result.flows, std::greater{}, &KeyFlow::share);
}

void find_parting(PoolDiff& result, const PoolSettings& before, const PoolSettings& after,
                  std::span<const KeyGroup> groups) {
  const auto homes_before = make_homes(before), homes_after = make_homes(after);
  const auto are_together = [](const Homes& homes, const KeyGroup& keys) {
    return std::ranges::all_of(
        keys, [&](const auto& key) { return homes.of(key) == homes.of(keys.front()); });
  };
  for (const auto& keys : groups) {
    if (!are_together(homes_before, keys) || are_together(homes_after, keys)) continue;
    PartingGroup parting{keys, {}};
    for (const auto& key : keys)
      parting.servers.push_back(after.servers.at(homes_after.of(key)).name);
    result.parting.push_back(std::move(parting));
  }
}

PoolDiff diff_pool(const PoolSettings& before, const PoolSettings& after,
                   std::span<const std::string> keys, std::span<const KeyGroup> groups) {
  PoolDiff result{.name = before.name};
  result.settings = changes_of(before, after);
  result.addresses = moved_addresses(before, after);
  result.has_homes = tells_homes(before) && tells_homes(after);
  if (result.has_homes) {
    find_flows(result, before, after, keys);
    find_parting(result, before, after, groups);
  }
  return result;
}

std::string text_of(const SettingChange& change) {
  const auto shown = [](const std::string& value) { return value.empty() ? "(none)" : value; };
  const bool is_fixed = std::ranges::find(fixed_settings, change.name) != fixed_settings.end();
  return fmt::format("{}: {} -> {}{}", change.name, shown(change.before), shown(change.after),
                     is_fixed ? " (takes a restart or an upgrade)" : "");
}

void append_changes(std::string& text, std::string_view indent,
                    const std::vector<SettingChange>& changes) {
  for (const auto& change : changes) text += fmt::format("{}{}\n", indent, text_of(change));
}

/// A line for each of the first: the others are alike, and JSON has all.
void append_parting(std::string& text, const std::vector<PartingGroup>& parting) {
  constexpr std::size_t most_shown = 10;
  if (parting.empty()) return;
  text += fmt::format(
      "  {} of the groups of keys part: what names their keys together is refused "
      "afterwards (-CROSSSLOT); give them a common hash tag first\n",
      parting.size());
  for (std::size_t at = 0; at < std::min(parting.size(), most_shown); ++at) {
    const auto& [keys, servers] = parting[at];
    for (std::size_t key = 0; key < keys.size(); ++key)
      text += fmt::format("{}{} -> {}", key == 0 ? "    " : ", ", keys[key], servers[key]);
    text += '\n';
  }
  if (parting.size() > most_shown)
    text += fmt::format("    and {} more\n", parting.size() - most_shown);
}

void append_pool(std::string& text, const PoolDiff& pool) {
  if (pool.added || pool.removed) {
    text += fmt::format("{}: {}\n", pool.name, pool.added ? "new" : "gone");
    return;
  }
  text += fmt::format("{}:{}\n", pool.name, pool.changed() ? "" : " unchanged");
  append_changes(text, "  ", pool.settings);
  for (const auto& change : pool.addresses)
    text += fmt::format("  server {} keeps its keys, but moves: {} -> {}\n", change.name,
                        change.before, change.after);
  if (!pool.has_homes) {
    text += "  keys are nowhere in particular (distribution: random, or a cluster)\n";
  } else if (pool.changed()) {
    text += fmt::format("  {:.2f} % of the keys move{}\n", pool.moved * 100,
                        pool.exact ? "" : " (estimated on a sample)");
    for (const auto& flow : pool.flows)
      text += fmt::format("    {:6.2f} %  {} -> {}\n", flow.share * 100, flow.from, flow.to);
    append_parting(text, pool.parting);
  }
}

Json json_of(const std::vector<SettingChange>& changes) {
  auto all = Json::array();
  for (const auto& change : changes)
    all.add(
        Json::object({{"name", change.name}, {"before", change.before}, {"after", change.after}}));
  return all;
}

Json json_of(const PoolDiff& pool) {
  const auto* const state = pool.added       ? "new"
                            : pool.removed   ? "gone"
                            : pool.changed() ? "changed"
                                             : "unchanged";
  auto json = Json::object({{"pool", pool.name},
                            {"state", state},
                            {"settings", json_of(pool.settings)},
                            {"addresses", json_of(pool.addresses)}});
  if (pool.added || pool.removed || !pool.has_homes) return json;
  auto flows = Json::array();
  for (const auto& flow : pool.flows)
    flows.add(Json::object({{"from", flow.from}, {"to", flow.to}, {"share", flow.share}}));
  auto parting = Json::array();
  for (const auto& [keys, servers] : pool.parting) {
    auto homes = Json::array();
    for (std::size_t at = 0; at < keys.size(); ++at)
      homes.add(Json::object({{"key", keys[at]}, {"server", servers[at]}}));
    parting.add(homes);
  }
  return json.add("moved", pool.moved)
      .add("exact", pool.exact)
      .add("flows", flows)
      .add("parting", parting);
}

}  // namespace

ConfigDiff diff(const Config& before, const Config& after, std::span<const std::string> keys,
                std::span<const KeyGroup> groups) {
  ConfigDiff result;
  result.process = changes_of(before.process, after.process);
  for (const auto& pool : before.pools) {
    const auto* const now = find_pool(after, pool.name);
    result.pools.push_back(now ? diff_pool(pool, *now, keys, groups)
                               : PoolDiff{.name = pool.name, .removed = true});
  }
  for (const auto& pool : after.pools)
    if (!find_pool(before, pool.name))
      result.pools.push_back(PoolDiff{.name = pool.name, .added = true});
  return result;
}

std::string text_of(const ConfigDiff& diff) {
  std::string text;
  if (!diff.process.empty()) {
    text += "sluice:\n";
    append_changes(text, "  ", diff.process);
  }
  for (const auto& pool : diff.pools) append_pool(text, pool);
  return text;
}

Json json_of(const ConfigDiff& diff) {
  auto pools = Json::array();
  for (const auto& pool : diff.pools) pools.add(json_of(pool));
  return Json::object({{"process", json_of(diff.process)}, {"pools", pools}});
}

std::vector<std::string> setting_changes(const Config& before, const Config& after) {
  std::vector<std::string> lines;
  for (const auto& change : changes_of(before.process, after.process))
    lines.push_back(text_of(change));
  for (const auto& pool : after.pools)
    if (const auto* const old = find_pool(before, pool.name))
      for (const auto& change : changes_of(*old, pool))
        lines.push_back(fmt::format("{}: {}", pool.name, text_of(change)));
  return lines;
}

}  // namespace sluice::proxy::config
