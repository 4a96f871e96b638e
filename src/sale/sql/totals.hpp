/// What counts in sums over all orders of a sale.
#pragma once

#include <string_view>

namespace sluice::sale {

inline constexpr std::string_view stands = "state = 'awaiting'";
// What somebody wrote there may be beyond any sum.
inline constexpr std::string_view countable_units =
    "(CASE WHEN units BETWEEN 1 AND 1000000000000 THEN units ELSE 0 END)";
inline constexpr std::string_view countable_delta =
    "(CASE WHEN delta BETWEEN -1000000000000 AND 1000000000000 THEN delta ELSE 0 END)";

}  // namespace sluice::sale
