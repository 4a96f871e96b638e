/// What a hit in the memory of the process costs.
#pragma once

#include <vector>

#include "support/report.hpp"

namespace sluice::bench {

std::vector<Row> near_rows(const Options& options);

}  // namespace sluice::bench
