#include "bloom/sizing.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::bloom {

using std::numbers::ln2;

namespace {

/// Cut off. What no memory holds, and what is no number, is so large that it is refused.
std::uint64_t to_count(double value) {
  constexpr double most = 1e18;
  return static_cast<std::uint64_t>(value < most ? value : most);
}

}  // namespace

std::uint64_t optimal_bits(std::uint64_t keys, double error_rate) {
  return to_count(-static_cast<double>(keys) * std::log(error_rate) / (ln2 * ln2));
}

std::uint64_t sure_bits(std::uint64_t keys, double error_rate, unsigned hashes) {
  const double k = hashes;
  const double filled = -k * static_cast<double>(keys) / std::log1p(-std::pow(error_rate, 1 / k));
  // A key whose second hash is 0 has one bit, which is set with k/bits: k/bits² of the keys.
  return to_count(filled + 16 * k + std::sqrt(2 * k / std::max(error_rate, 1e-5)));
}

unsigned hashes_of_rate(double error_rate) {
  return static_cast<unsigned>(
      std::clamp(std::round(-std::log(error_rate) / ln2), 1.0, double{most_hashes}));
}

unsigned hashes_of_size(std::uint64_t bits, std::uint64_t keys) {
  const auto bits_a_key = static_cast<double>(bits) / static_cast<double>(keys);
  return static_cast<unsigned>(std::max(1.0, std::round(bits_a_key * ln2)));
}

double split_block_error(double keys_a_block) {
  const double mean = keys_a_block;
  const double spread = 12 * std::sqrt(mean) + 12;  // beyond it the terms are nothing
  double error = 0;
  for (double keys = std::max(0.0, std::floor(mean - spread)); keys <= mean + spread; ++keys) {
    const double chance = std::exp(keys * std::log(mean) - mean - std::lgamma(keys + 1));
    error += chance * std::pow(1 - std::pow(31.0 / 32, keys), 8);
  }
  return error;
}

std::uint64_t split_blocks(std::uint64_t keys, double error_rate) {
  double low = 0;
  double high = 1024;  // keys a block: all bits are set
  while (high - low > 1e-9 * high) {
    const double middle = (low + high) / 2;
    (split_block_error(middle) <= error_rate ? low : high) = middle;
  }
  return std::max(std::uint64_t{1}, to_count(std::ceil(static_cast<double>(keys) / low)));
}

}  // namespace sluice::bloom
