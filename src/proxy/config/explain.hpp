/// Where a key goes in a pool, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/config/config.hpp"

namespace sluice::proxy {

struct Explanation {
  std::string pool;
  std::string hashed_part;
  std::uint32_t hash = 0;
  std::uint32_t point =
      0;  ///< of ketama: the server's point that the hash finds; of modula: hash % sum of weights
  std::string server;  ///< its name; empty: any, as with `random`
  std::string address;
};

/// `key`: its bytes. All servers live.
Explanation explain(const PoolSettings& pool, std::string_view key);

/// One line: pool, hashed part, hash, point, server.
std::string text_of(const Explanation& explanation);

}  // namespace sluice::proxy
