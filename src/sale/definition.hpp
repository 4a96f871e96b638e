/// Where a sale lies in the store, and its definition: what is allowed in it, and how it stands in
/// the sale's hash.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sluice/sale.hpp"
#include "store/key_name.hpp"

namespace sluice::sale {

/// The consumer group of the orders stream.
inline constexpr std::string_view group = "workers";

/// For scripts that do the same when they run twice, as each request carries its id.
inline constexpr CallOptions repeatable{.repeatable = true};

struct SaleKeys {
  explicit SaleKeys(std::string_view name)
      : sale(key_with_suffix(name, "sale")),
        buyers(key_with_suffix(name, "buyers")),
        requests(key_with_suffix(name, "requests")),
        orders(key_with_suffix(name, "orders")),
        dead(key_with_suffix(name, "dead")) {}

  std::string sale;
  std::string buyers;
  std::string requests;
  std::string orders;
  std::string dead;
};

/// Throws Error{bad_argument} that names the field, its value and what it may be.
void check_name(std::string_view name);
void check(const SaleDefinition& definition);

/// The fields of the hash that hold the definition, in a fixed order.
const std::vector<std::string>& definition_fields();
/// Their values, in that order.
std::vector<std::string> values_of(const SaleDefinition& definition);
/// The other way round. Throws Error{corrupt} where a value is not what values_of() writes.
SaleDefinition definition_of(std::string name, const Value::Items& values);

/// "stock 100 there, 200 here; zone ..." ; empty when they are the same.
std::string difference(const SaleDefinition& there, const SaleDefinition& here);

}  // namespace sluice::sale
