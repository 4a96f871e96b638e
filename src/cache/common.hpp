/// What the parts of one guard share.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "cache/breaker.hpp"
#include "cache/entry.hpp"
#include "cache/failures.hpp"
#include "cache/loads.hpp"
#include "cache/near_cache.hpp"
#include "cache/under_way.hpp"
#include "cache/wire.hpp"
#include "sluice/cache_guard.hpp"

namespace sluice::cache {

inline constexpr std::size_t longest_key = std::size_t{64} << 10;
inline constexpr std::chrono::milliseconds shortest_ttl{10};
inline constexpr std::chrono::milliseconds longest_time = std::chrono::days{3660};

struct Common {
  /// Throws Error (bad_argument).
  Common(Store& of, std::string name, CacheGuardOptions chosen, detail::CacheForm how);

  /// The object of a value's bytes. Empty: the codec does not know them.
  std::optional<Object> decode(const Entry& entry, std::string_view value_key) const;
  /// A time less a random part of it of up to `jitter`.
  std::chrono::milliseconds spread(std::chrono::milliseconds time) const;
  Clock& clock() const noexcept { return store.clock(); }
  void check_open() const;

  Store& store;
  const CacheGuardOptions options;
  const detail::CacheForm form;
  const Names names;
  Wire wire;
  Loads loads;
  Failures failures;
  Breaker breaker;
  UnderWay under_way;
  std::atomic<bool> closed{false};
};

}  // namespace sluice::cache
