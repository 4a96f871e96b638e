#include "cache/tracked_cache.hpp"

#include <fmt/format.h>

#include <utility>

#include "sluice/log.hpp"
#include "sluice/metrics.hpp"

namespace sluice::cache {

TrackedCache::TrackedCache(Store& store, std::string prefix, const NearCacheOptions& options)
    : store_(store.describe()), prefix_(std::move(prefix)), cache_(options) {
  if (options.bytes == 0) return;
  try {
    listener_ = store.track(prefix_, [this](const Message& message) { take(message); });
  } catch (const Error& error) {
    if (error.errc() != Errc::bad_argument) throw;
    close(error.message());
  }
}

void TrackedCache::take(const Message& message) {
  switch (message.kind) {
    case Message::Kind::published:
      count(metrics().cache_near_invalidations);
      return cache_.invalidate(message.payload);
    case Message::Kind::gap: count(metrics().cache_near_flushes); return cache_.open();
    case Message::Kind::lost: return close(message.payload);
  }
}

/// A server that restarts now and then gives the same reason each time.
void TrackedCache::close(const std::string& why) {
  cache_.close();
  if (std::exchange(last_reason_, why) == why) return;
  log(LogLevel::warning,
      fmt::format("the keys '{}*' have no near cache for now: {} does not tell of changes: {}",
                  prefix_, store_, why));
}

}  // namespace sluice::cache
