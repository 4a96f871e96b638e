/// Counting Bloom filters (Fan, Cao, Almeida, Broder, "Summary Cache", 1998): counters of 4 bits in
/// the place of bits, so that keys can be removed.
#pragma once

#include <memory>
#include <vector>

#include "bloom/filter.hpp"

namespace sluice::bloom {

Shape counting_shape(const BloomFilterOptions& options);
std::unique_ptr<Filter> make_counting(const BloomFilterOptions& options, std::vector<Part> parts);

}  // namespace sluice::bloom
