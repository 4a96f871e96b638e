/// How large a Bloom filter has to be.
#pragma once

#include <cstdint>

namespace sluice::bloom {

/// Bits for `keys` at `error_rate`, each set by the best number of hashes: -n ln p / ln² 2, as
/// Guava and Redisson cut it off.
std::uint64_t optimal_bits(std::uint64_t keys, double error_rate);

/// What Guava's form has room for.
constexpr unsigned most_hashes = 255;

/// The best number of hashes for a rate: -log2 p, as Guava rounds it; at most `most_hashes`.
unsigned hashes_of_rate(double error_rate);

/// The best number of hashes for a size: m/n ln 2, as Redisson rounds it.
unsigned hashes_of_size(std::uint64_t bits, std::uint64_t keys);

/// A split-block filter's rate of false positives when each block of 256 bits has this many keys
/// on average: keys fall on blocks as a Poisson process, and each sets a bit in each of 8 words.
double split_block_error(double keys_a_block);

/// Blocks of 256 bits for `keys` at `error_rate`.
std::uint64_t split_blocks(std::uint64_t keys, double error_rate);

}  // namespace sluice::bloom
