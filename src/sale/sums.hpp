/// Sums of figures that others may have changed: at the end of their range they stay there. So an
/// audit finds a figure that differs, and no program ends by it.
#pragma once

#include <cstdint>
#include <limits>

namespace sluice::sale {

/// Units of an order, orders and units of a buyer, and whatever else counts: no sale has more.
inline constexpr std::int64_t most_units = 1'000'000'000'000;

/// Microseconds since 1970. No instant of a sale is later.
inline constexpr std::int64_t end_of_time = 10'000'000'000'000'000;

inline std::int64_t sum(std::int64_t one, std::int64_t other) noexcept {
  std::int64_t result = 0;
  if (!__builtin_add_overflow(one, other, &result)) return result;
  return other < 0 ? std::numeric_limits<std::int64_t>::min()
                   : std::numeric_limits<std::int64_t>::max();
}

inline std::int64_t difference(std::int64_t one, std::int64_t other) noexcept {
  std::int64_t result = 0;
  if (!__builtin_sub_overflow(one, other, &result)) return result;
  return other > 0 ? std::numeric_limits<std::int64_t>::min()
                   : std::numeric_limits<std::int64_t>::max();
}

}  // namespace sluice::sale
