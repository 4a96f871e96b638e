#include "proxy/config/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "proxy/config/settings.hpp"
#include "proxy/ring/movement.hpp"

namespace sluice::proxy {
namespace {

/// Compared as values, so that a secret that changes is seen; shown as texts, which hide it.
template <class Target>
std::vector<SettingChange> changes_of(const Target& before, const Target& after) {
  std::vector<SettingChange> changes;
  for_each_setting(before, after,
                   [&](const SettingRow& row, auto kind, const auto& old, const auto& now) {
                     if (!(old == now))
                       changes.push_back({std::string{row.name}, kind.text(old), kind.text(now)});
                   });
  return changes;
}

const PoolSettings* find_pool(const Config& config, std::string_view name) {
  const auto found = std::ranges::find(config.pools, name, &PoolSettings::name);
  return found == config.pools.end() ? nullptr : &*found;
}

bool is_random(const PoolSettings& pool) {
  return pool.distribution == Distribution::random && pool.servers.size() > 1;
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

PoolDiff diff_pool(const PoolSettings& before, const PoolSettings& after,
                   std::span<const std::string> keys) {
  PoolDiff result{.name = before.name};
  result.settings = changes_of(before, after);
  result.addresses = moved_addresses(before, after);
  result.has_homes = !is_random(before) && !is_random(after);
  if (result.has_homes) find_flows(result, before, after, keys);
  return result;
}

void append_changes(std::string& text, std::string_view indent,
                    const std::vector<SettingChange>& changes) {
  const auto shown = [](const std::string& value) { return value.empty() ? "(none)" : value; };
  for (const auto& change : changes)
    fmt::format_to(std::back_inserter(text), "{}{}: {} -> {}\n", indent, change.name,
                   shown(change.before), shown(change.after));
}

void append_pool(std::string& text, const PoolDiff& pool) {
  auto out = std::back_inserter(text);
  if (pool.added || pool.removed) {
    fmt::format_to(out, "{}: {}\n", pool.name, pool.added ? "new" : "gone");
    return;
  }
  fmt::format_to(out, "{}:{}\n", pool.name, pool.changed() ? "" : " unchanged");
  append_changes(text, "  ", pool.settings);
  for (const auto& change : pool.addresses)
    fmt::format_to(out, "  server {} keeps its keys, but moves: {} -> {}\n", change.name,
                   change.before, change.after);
  if (!pool.has_homes) {
    fmt::format_to(out, "  keys are nowhere in particular (distribution: random)\n");
  } else if (pool.changed()) {
    fmt::format_to(out, "  {:.2f} % of the keys move{}\n", pool.moved * 100,
                   pool.exact ? "" : " (estimated on a sample)");
    for (const auto& flow : pool.flows)
      fmt::format_to(out, "    {:6.2f} %  {} -> {}\n", flow.share * 100, flow.from, flow.to);
  }
}

}  // namespace

ConfigDiff diff(const Config& before, const Config& after, std::span<const std::string> keys) {
  ConfigDiff result;
  result.process = changes_of(before.process, after.process);
  for (const auto& pool : before.pools) {
    const auto* const now = find_pool(after, pool.name);
    result.pools.push_back(now ? diff_pool(pool, *now, keys)
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

}  // namespace sluice::proxy
