/// What `sluice proxy explain` and `describe` tell of a configuration.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.hpp"
#include "proxy/config/config.hpp"

namespace sluice::proxy::config {

/// Where a key goes in a pool, and why.
struct Explanation {
  std::string pool;
  std::string hashed_part;
  std::uint32_t hash = 0;
  std::uint32_t point = 0;  ///< ketama: the server's point that the hash finds; modula: the place
  std::string server;       ///< its name; empty: any, as with `random`
  std::string address;
};

/// `key`: its bytes. All servers live.
Explanation explain(const PoolSettings& pool, std::string_view key);
/// One line.
std::string text_of(const Explanation& explanation);
Json json_of(const Explanation& explanation);

/// A file that means the same, every setting written out. Secrets are "***".
std::string describe(const Config& config);
/// {process: {setting: text}, pools: {name: {setting: text}}}.
Json json_of(const Config& config);

/// The tables of docs/proxy.md.
std::string settings_as_markdown();

}  // namespace sluice::proxy::config
