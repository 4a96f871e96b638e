/// Where a command belongs in a cluster, by its words alone.
#pragma once

#include <cstdint>

#include "sluice/store.hpp"

namespace sluice::redis {

/// How the replies of several nodes become one.
enum class Merge : std::uint8_t { first, sum, concatenate, all_elements };

struct Route {
  enum class To : std::uint8_t {
    slot,   ///< the master of the slot
    any,    ///< whichever master: all say the same
    every,  ///< all masters
    scan,   ///< one master after another
  };
  To to = To::slot;
  std::uint16_t slot = 0;
  Merge merge = Merge::first;
};

/// Throws Error{bad_argument} for keys of several slots, for a command that is meant for one
/// server, and for one that changes the state of a connection.
Route route_of(Words command);
/// Of a script, by its keys.
Route route_of_keys(Words keys);

/// REQUIRES: one reply at least, none of them an error.
Value merged(Merge merge, std::vector<Value> replies);

}  // namespace sluice::redis
