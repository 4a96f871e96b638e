/// Scalable Bloom filters (Almeida, Baquero, Preguiça, Hutchison, 2007): a chain of filters. The
/// last takes the keys until it has what it was made for; then a next one is made, for twice as
/// many keys and at half the error rate. All rates together stay below the one that was asked for.
#pragma once

#include <memory>
#include <vector>

#include "bloom/filter.hpp"

namespace sluice::bloom {

constexpr std::size_t most_parts = 64;

/// Of the first link.
Shape scalable_shape(const BloomFilterOptions& options);
std::unique_ptr<Filter> make_scalable(const BloomFilterOptions& options, std::vector<Part> parts);

}  // namespace sluice::bloom
