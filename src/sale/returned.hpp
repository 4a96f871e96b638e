/// Units that came back, as the store has them: a hash, "order:seq" to units.
#pragma once

#include <functional>
#include <string>

#include "sale/definition.hpp"

namespace sluice::sale {

using VisitReturned = std::function<void(const std::string& name, const std::string& units)>;

/// One that stands there all the while is visited once, or several times.
void each_returned(Store& store, const SaleKeys& keys, const VisitReturned& visit);

}  // namespace sluice::sale
