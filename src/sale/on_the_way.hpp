/// The orders that stand in the streams of a sale: on their way to the database, or dead letters.
/// 52 bytes each.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "sale/ledger.hpp"

namespace sluice::sale {

/// The same for orders that are the same in all fields but the state.
std::uint64_t fingerprint_of(const SaleOrder& order);
std::uint64_t fingerprint_of(const BuyerId& buyer);

class OnTheWay {
 public:
  struct Line : LedgerLine {
    std::uint64_t fingerprint;
    std::uint64_t buyer;
  };

  explicit OnTheWay(const SaleDefinition& sale) : sale_(sale) {}

  void add(const SaleOrder& order);
  /// Call it before the functions below, and after the last add(). An order that stands there twice
  /// is there once from now on.
  void sort();

  /// Null: it is not on its way.
  const Line* find(std::int64_t id) const;
  /// Ids rising.
  const std::deque<Line>& lines() const noexcept { return lines_; }
  /// The orders of one buyer.
  std::vector<Line> of(const BuyerId& buyer) const;

 private:
  const SaleDefinition& sale_;
  std::deque<Line> lines_;
  std::vector<std::uint32_t> by_buyer_;  // places in lines_
};

}  // namespace sluice::sale
