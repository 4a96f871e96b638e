/// What counts in sums over all orders of a sale.
#pragma once

#include <string>
#include <string_view>

#include "sale/order_life.hpp"

namespace sluice::sale {

inline const std::string standing = states_where(has_units);
// What somebody wrote there may be beyond any sum.
inline constexpr std::string_view countable_units =
    "(CASE WHEN units BETWEEN 1 AND 1000000000000 THEN units ELSE 0 END)";
/// Of an order: those that were not cancelled while the others stood.
inline constexpr std::string_view countable_rest =
    "(CASE WHEN units BETWEEN 1 AND 1000000000000 AND returned BETWEEN 0 AND units - 1 "
    "THEN units - returned ELSE 0 END)";
inline constexpr std::string_view countable_delta =
    "(CASE WHEN delta BETWEEN -1000000000000 AND 1000000000000 THEN delta ELSE 0 END)";

}  // namespace sluice::sale
