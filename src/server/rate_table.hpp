/// How often each of many names may ask: so many times in a window, and as many at once at most.
///
/// Guarantee: a name that keeps its rate is never refused. A request that is refused is not
///   counted. The table has one size, whatever is asked of it.
/// Not guaranteed: that a name is refused as soon as it is over its rate. Where more names are
///   counted than there are places, the one that has asked for least gives way, and begins anew. So
///   a name is forgotten earlier only by as many others that have each asked as often as it has.
/// Threads: any; names that lie apart do not wait for each other.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/sip_hash.hpp"
#include "sluice/clock.hpp"

namespace sluice::server {

struct Rate {
  std::int64_t quota = 0;  ///< requests in a window; 0: as many as they like
  std::chrono::seconds window{1};
};

class RateTable {
 public:
  /// REQUIRES: the quota and the window are greater than 0.
  RateTable(Clock& clock, Rate rate, std::size_t places = std::size_t{1} << 17);

  /// Empty: the request is counted. Else how long it would have to wait.
  std::optional<std::chrono::nanoseconds> take(std::string_view name);
  /// The same of a request that is not made: nothing is counted, and no name is written down.
  std::optional<std::chrono::nanoseconds> look(std::string_view name);

  const Rate& rate() const noexcept { return rate_; }

 private:
  // A name is known by its hash, whose key is drawn: nobody can find another's.
  struct Place {
    std::uint64_t name = 0;
    std::int64_t paid_until = std::numeric_limits<std::int64_t>::min();  // ns, SteadyTime
  };
  static constexpr std::size_t ways = 8;
  using Set = std::array<Place, ways>;  // where a name can lie
  struct alignas(64) Lock {
    std::mutex mutex;
  };

  std::optional<std::chrono::nanoseconds> ask(std::string_view name, bool takes);
  static Place& place_of(Set& set, std::uint64_t name) noexcept;

  Clock& clock_;
  const Rate rate_;
  const std::int64_t window_;    // ns
  const std::int64_t interval_;  // ns that a request pays for
  const SipKey key_;
  std::vector<Set> sets_;
  std::array<Lock, 64> locks_;
};

}  // namespace sluice::server
