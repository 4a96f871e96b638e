/// Split-block Bloom filters, bit-equal to Apache Parquet's (parquet-format/BloomFilter.md; Putze,
/// Sanders, Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007).
///
/// A key falls into one block of eight 32-bit words, by the upper half of its XXH64, and sets one
/// bit in each of them, by the lower half.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bloom/filter.hpp"

namespace sluice::bloom {

/// How the eight words of a block are looked at: both do the same to the bits.
enum class Lanes {
  scalar,
  avx2,  ///< REQUIRES: has_avx2()
};
bool has_avx2() noexcept;

Shape blocked_shape(const BloomFilterOptions& options);
std::unique_ptr<Filter> make_blocked(const BloomFilterOptions& options, std::vector<Part> parts,
                                     Lanes lanes);
/// With the best lanes that the processor has.
std::unique_ptr<Filter> make_blocked(const BloomFilterOptions& options, std::vector<Part> parts);

/// Parquet's bitset.
std::string parquet_form(const Filter& filter);
/// Throws Error{corrupt}.
std::unique_ptr<Filter> read_parquet_form(std::string_view bitset);

}  // namespace sluice::bloom
