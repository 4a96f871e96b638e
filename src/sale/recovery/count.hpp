/// What the hash of a sale counts, made anew from all orders that the store knows.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/keyed_hash.hpp"
#include "sluice/sale.hpp"

namespace sluice::sale {

struct Count {
  struct Buyer {
    std::int64_t live = 0;
    std::int64_t units = 0;
    std::int64_t orders = 0;
    std::int64_t n = 0;  // of the latest
    std::string written;
  };

  using Units = std::unordered_map<std::int64_t, std::int64_t>;  // of an order's id

  explicit Count(const Units& of_parts) : parts(of_parts) {}
  void add(const SaleOrder& order);
  void add(Buyer& buyer, const SaleOrder& order);
  std::int64_t units_of(const SaleOrder& order) const;

  const Units& parts;  // units that were cancelled while the others stand
  std::int64_t orders = 0;
  std::int64_t sold = 0;
  std::int64_t given_back = 0;
  std::int64_t buyer_gaps = 0;
  std::unordered_map<std::string, Buyer, KeyedHash> buyers;     // with several orders
  std::vector<std::pair<std::string, std::string>> miscounted;  // buyers, and "live units"
  Units ended;
};

}  // namespace sluice::sale
