/// The difference between two configurations, and the share of keys that it moves.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "proxy/config/config.hpp"

namespace sluice::proxy::config {

struct SettingChange {
  std::string name, before, after;  ///< as text; secrets are not in it
};

struct KeyFlow {
  std::string from, to;  ///< names of servers
  double share = 0;      ///< of all keys of the pool
};

struct PoolDiff {
  std::string name;
  bool added = false;
  bool removed = false;
  std::vector<SettingChange> settings;
  std::vector<SettingChange> addresses;  ///< of servers that keep their name, and so their keys
  bool has_homes = true;                 ///< false: `random`, before or after: a key has no home
  bool exact = true;                     ///< false: `moved` was found on a sample
  double moved = 0;                      ///< share of keys whose server has another name
  std::vector<KeyFlow> flows;            ///< those that move, the largest first

  bool changed() const noexcept {
    return added || removed || !settings.empty() || !addresses.empty();
  }
};

struct ConfigDiff {
  std::vector<SettingChange> process;
  std::vector<PoolDiff> pools;  ///< all of both, changed or not
};

/// `keys`: shares are of these; without any, of all possible keys.
ConfigDiff diff(const Config& before, const Config& after, std::span<const std::string> keys = {});

std::string text_of(const ConfigDiff& diff);
Json json_of(const ConfigDiff& diff);

/// "timeout: 400 -> 500" for each setting that differs, of pool "alpha" "alpha: timeout: ...".
/// Moves of keys are not computed.
std::vector<std::string> setting_changes(const Config& before, const Config& after);

}  // namespace sluice::proxy::config
