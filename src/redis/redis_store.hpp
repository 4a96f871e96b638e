/// The Store of one Redis or Valkey server.
///
///     RedisStore ── shares with its calls ──> Client ── owns ──> Reactor (the background thread)
///                                               │                  └── ticks ──> every Link
///                                               ├── shared Link: all calls and subscriptions
///                                               ├── lent Links: one a blocking command, and spare
///                                               ones └── Channels: the handlers
#pragma once

#include <memory>

#include "redis/options.hpp"
#include "sluice/store.hpp"

namespace sluice::redis {

/// Connects, and returns when the server has greeted. Throws Error{connection | timeout |
/// authentication | server}. Afterwards a lost connection is made again by itself.
std::unique_ptr<Store> open_redis(RedisOptions options);

}  // namespace sluice::redis
