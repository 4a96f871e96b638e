/// The orders of a sale brought together from wherever they lie, in the order of their ids, while
/// an audit looks at their ids, numbers and units. Keeps none of them.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/sale.hpp"

namespace sluice::sale {

/// What an audit has to know of an order.
struct LedgerLine {
  std::int64_t id = 0;
  std::int64_t units = 0;
  std::int64_t day = 0;       ///< 20260102; 0: the number is not of this sale's shape
  std::int64_t sequence = 0;  ///< within the day
};

LedgerLine line_of(const SaleOrder& order, const SaleDefinition& sale);

class Ledger {
 public:
  /// REQUIRES: ids rise from call to call.
  void add(const LedgerLine& line);

  std::int64_t orders() const noexcept { return orders_; }
  std::int64_t units() const noexcept { return units_; }
  /// Orders whose number follows the highest of those before.
  std::int64_t in_place() const noexcept { return in_place_; }
  /// The first order out of place; empty: none.
  const std::string& first_fault() const noexcept { return first_fault_; }
  const LedgerLine& last() const noexcept { return last_; }
  /// That of the highest number of the last day: the last one, unless a number was free before it.
  const LedgerLine& highest() const noexcept { return highest_; }

 private:
  std::int64_t orders_ = 0;
  std::int64_t units_ = 0;
  std::int64_t in_place_ = 0;
  LedgerLine last_;
  LedgerLine highest_;
  std::string first_fault_;
};

}  // namespace sluice::sale
