/// The draw: a permutation of the places by a seed. It is swap-or-not (V. T. Hoang, B. Morris,
/// P. Rogaway, 2012) as Ethereum shuffles its validators (consensus-specs, phase0,
/// compute_shuffled_index): 90 rounds of SHA-256 over any number of places. So one place costs one
/// reckoning, nothing is sorted or stored, and anybody can reckon it again with what he has in his
/// own language.
///
/// In each round a place swaps with its mirror image about a random point, or does not, by the toss
/// of a coin: after it, each place is anywhere with a probability that is twice as near to even as
/// before it.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::room {

/// Where the draw among `places` puts a place; both count from 1. 180 hashes, some
/// 50 microseconds. REQUIRES: 1 <= place <= places < 2^32 * 256.
std::int64_t drawn_position(std::string_view seed, std::int64_t places, std::int64_t place);

}  // namespace sluice::room
