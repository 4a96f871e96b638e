/// Guava's BloomFilter, bit by bit (com.google.common.hash.BloomFilterStrategies).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bloom/filter.hpp"

namespace sluice::bloom {

Shape guava_shape(const BloomFilterOptions& options);
std::unique_ptr<Filter> make_guava(const BloomFilterOptions& options, std::vector<Part> parts);

/// BloomFilter.writeTo(): the strategy's number, the hashes (one byte each), the number of words,
/// and the words, big-endian.
std::string guava_form(const Filter& filter);
/// Throws Error{corrupt}.
std::unique_ptr<Filter> read_guava_form(std::string_view form);

}  // namespace sluice::bloom
