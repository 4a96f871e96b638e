/// How large a Bloom filter has to be.
#pragma once

#include <cstdint>

namespace sluice::bloom {

/// Bits for `keys` at `error_rate`, each set by the best number of hashes: -n ln p / ln² 2, as
/// Guava and Redisson cut it off.
std::uint64_t optimal_bits(std::uint64_t keys, double error_rate);

/// Bits for `keys` with so many hashes, so that the rate holds from one key on, and with a number
/// of hashes that is rounded: some more where two keys may have the same bits, which follow from
/// two hashes. Holds for rates from 1e-5 on. Of many keys it is `optimal_bits`, or a few in a
/// hundred more.
std::uint64_t sure_bits(std::uint64_t keys, double error_rate, unsigned hashes);

/// What Guava's form has room for.
constexpr unsigned most_hashes = 255;

/// The best number of hashes for a rate: -log2 p, as Guava rounds it since 33.4.0; at most
/// `most_hashes`.
unsigned hashes_of_rate(double error_rate);

/// The best number of hashes for a size: m/n ln 2, as Redisson rounds it, and Guava before 33.4.0.
unsigned hashes_of_size(std::uint64_t bits, std::uint64_t keys);

/// A split-block filter's rate of false positives when each block of 256 bits has this many keys
/// on average: keys fall on blocks as a Poisson process, and each sets a bit in each of 8 words.
double split_block_error(double keys_a_block);

/// Blocks of 256 bits for `keys` at `error_rate`.
std::uint64_t split_blocks(std::uint64_t keys, double error_rate);

}  // namespace sluice::bloom
