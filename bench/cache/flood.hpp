/// What random ids, none of which exists, leave in Redis and ask of the loader.
#pragma once

#include <vector>

#include "support/report.hpp"

namespace sluice::bench {

std::vector<Row> flood_rows();

}  // namespace sluice::bench
