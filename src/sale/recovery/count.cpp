#include "sale/recovery/count.hpp"

#include "sale/differences.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {

/// Those that it still has.
std::int64_t Count::units_of(const SaleOrder& order) const {
  if (!stands(order.state)) return 0;
  const auto part = parts.find(order.id);
  return part == parts.end() ? order.units : difference(order.units, part->second);
}

void Count::add(const SaleOrder& order) {
  ++orders;
  const auto units = units_of(order);
  sold = sum(sold, units);
  given_back = sum(given_back, difference(order.units, units));
  if (!stands(order.state)) ended.emplace(order.id, order.units);
}

void Count::add(Buyer& buyer, const SaleOrder& order) {
  add(order);
  ++buyer.orders;
  if (!stands(order.state)) return;
  ++buyer.live;
  buyer.units = sum(buyer.units, units_of(order));
}

}  // namespace sluice::sale
