/// What is different between two configurations, above all: how many keys would be somewhere else.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "proxy/config/config.hpp"

namespace sluice::proxy {

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
  std::vector<SettingChange>
      addresses;  ///< servers that keep their name, and so their keys, and live elsewhere now
  bool has_homes = true;  ///< false: `random` before or after, so keys are nowhere in particular
  bool exact = true;      ///< false: `moved` was found on a sample
  double moved = 0;       ///< share of keys whose server has another name
  std::vector<KeyFlow> flows;  ///< those that move, the largest first

  bool changed() const noexcept {
    return added || removed || !settings.empty() || !addresses.empty();
  }
};

struct ConfigDiff {
  std::vector<SettingChange> process;
  std::vector<PoolDiff> pools;  ///< all of both, changed or not
};

/// `keys`: shares are of these; without any, of all that could be.
ConfigDiff diff(const Config& before, const Config& after, std::span<const std::string> keys = {});

std::string text_of(const ConfigDiff& diff);

}  // namespace sluice::proxy
