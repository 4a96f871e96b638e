/// A file of sales, as `sluice sale create --file` reads it:
///
///     [{"name": "maotai", "stock": 100, "type": "MT", "opens": "2026-11-11T20:00:00+08:00"}]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/sale.hpp"

namespace sluice::cli {

/// As BucketOptions has it.
constexpr std::int64_t most_buckets = 26;

struct PlannedSale {
  SaleDefinition definition;
  std::int64_t buckets = 1;  ///< 1: one stock in one place; see sluice/bucketed_sale.hpp
};

/// The sales of a JSON text: an array of objects, whose members are named as the options of `sale
/// create`. Throws Error{bad_argument}: "FILE:3:14: this is no JSON", "FILE: sale 2: what is
/// wrong".
std::vector<PlannedSale> parse_sales(std::string_view text, const std::string& file);

/// The same of a file, of 1 MiB at most; "-" is the standard input.
std::vector<PlannedSale> read_sales(const std::string& file);

}  // namespace sluice::cli
