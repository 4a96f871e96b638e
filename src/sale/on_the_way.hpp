/// The orders that stand in the streams of a sale: on their way to the database, or dead letters.
/// 32 bytes each.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sluice/sale.hpp"

namespace sluice::sale {

/// The same for orders that are the same in all fields but the state.
std::uint64_t fingerprint_of(const SaleOrder& order);
std::uint64_t fingerprint_of(const BuyerId& buyer);

class OnTheWay {
 public:
  struct Line {
    std::int64_t id;
    std::uint64_t fingerprint;
    std::uint64_t buyer;
    std::int64_t units;
  };

  void add(const SaleOrder& order);
  /// Call it before the functions below, and after the last add(). An order that stands there twice
  /// is there once from now on.
  void sort();

  /// Null: it is not on its way.
  const Line* find(std::int64_t id) const;
  /// Ids rising.
  const std::vector<Line>& lines() const noexcept { return lines_; }
  /// The orders of one buyer.
  std::vector<Line> of(const BuyerId& buyer) const;

 private:
  std::vector<Line> lines_;
  std::vector<std::uint32_t> by_buyer_;  // places in lines_
};

}  // namespace sluice::sale
