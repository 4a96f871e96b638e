/// The checks of an audit, as the program prints them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "sluice/sale_audit.hpp"

namespace sluice::cli {

bool all_ok(const std::vector<Check>& checks) noexcept;
nlohmann::json json_of(const std::vector<Check>& checks);
/// A line each: ok or FAILED, name, figure, and where it differs what was expected.
void print_checks(const std::vector<Check>& checks);

}  // namespace sluice::cli
