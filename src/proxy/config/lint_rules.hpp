/// The rules of lint about one pool, each a function that adds what it finds.
#pragma once

#include <span>
#include <vector>

#include "proxy/config/lint.hpp"

namespace sluice::proxy {

using PoolRule = void (*)(const PoolSettings& pool, std::vector<Finding>& findings);
std::span<const PoolRule> pool_rules() noexcept;

}  // namespace sluice::proxy
