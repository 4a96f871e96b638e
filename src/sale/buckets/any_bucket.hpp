/// Whether a sale of some name has buckets.
#pragma once

#include <optional>
#include <string>

#include "sluice/order_store.hpp"
#include "sluice/sale.hpp"

namespace sluice::sale {

/// The first bucket of that sale that is there, of as many as there can be; an ordinary sale with
/// the name of a bucket is none.
Task<std::optional<SaleDefinition>> any_bucket(Store& store, std::string name);
/// The first one that the database knows.
std::optional<SaleDefinition> any_bucket(OrderStore& orders, const std::string& name);

/// Throws Error{bad_argument}: no sale without buckets is made beside those of its name.
[[noreturn]] void refuse_beside(const SaleDefinition& bucket);

}  // namespace sluice::sale
