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

/// Brings the orders of the database and those on their way into a ledger, each once.
class OrdersById {
 public:
  /// Counts ids up to `cut`. REQUIRES: what it is given lives longer.
  OrdersById(Ledger& ledger, const OnTheWay& on_the_way, std::int64_t cut)
      : ledger_(ledger), lines_(on_the_way.lines()), waiting_(lines_.begin()), cut_(cut) {}

  /// REQUIRES: ids rise from call to call.
  void add(const LedgerLine& row);
  /// Call it after the last row.
  void finish();
  /// Orders on their way that are not in the database.
  std::int64_t waiting() const noexcept { return counted_; }

 private:
  void pass_waiting(std::int64_t below);
  bool count(const LedgerLine& line);

  Ledger& ledger_;
  const std::deque<OnTheWay::Line>& lines_;
  std::deque<OnTheWay::Line>::const_iterator waiting_;
  const std::int64_t cut_;
  std::int64_t last_ = -1;
  std::int64_t counted_ = 0;
};

}  // namespace sluice::sale
