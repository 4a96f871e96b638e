/// The orders of a sale brought together from wherever they lie, in the order of their ids, while
/// an audit looks at their ids, numbers and units.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/sale.hpp"

namespace sluice::sale {

/// What an audit has to know of an order.
struct LedgerLine {
  std::int64_t id = 0;
  std::int64_t units = 0;  ///< 0: it ended, and gave them back
  std::int64_t n = 0;
  std::int64_t day = 0;       ///< 20260102; 0: the number is not of this sale's shape
  std::int64_t sequence = 0;  ///< within the day
};

LedgerLine line_of(const SaleOrder& order, const SaleDefinition& sale);

class Ledger {
 public:
  explicit Ledger(const SaleDefinition& sale) : sale_(sale) {}

  /// REQUIRES: ids rise from call to call.
  void add(const LedgerLine& line);

  std::int64_t orders() const noexcept { return static_cast<std::int64_t>(ids_.size()); }
  std::int64_t units() const noexcept { return units_; }
  std::int64_t above_limit() const noexcept { return above_limit_; }
  std::int64_t numbers_in_place() const noexcept { return in_place_; }
  /// The first number out of place; empty: none.
  const std::string& first_fault() const noexcept { return first_fault_; }

  /// Marks an order as known to the store. False: the ledger has no such id.
  bool mark(std::int64_t id);
  /// Ids that were never marked, up to `most` of them.
  std::vector<std::int64_t> unmarked(std::size_t most) const;
  std::int64_t unmarked_count() const noexcept;

 private:
  const SaleDefinition& sale_;
  std::vector<std::int64_t> ids_;  // rising
  std::vector<bool> marks_;
  std::int64_t units_ = 0;
  std::int64_t above_limit_ = 0;
  std::int64_t in_place_ = 0;
  LedgerLine last_;
  std::string first_fault_;
};

}  // namespace sluice::sale
