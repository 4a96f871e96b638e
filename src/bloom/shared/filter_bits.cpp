#include "bloom/shared/filter_bits.hpp"

#include <algorithm>
#include <ranges>

namespace sluice::bloom {
namespace {

constexpr std::size_t word_bytes = 8;

std::size_t words_of(const Link& link) noexcept { return (link.bits + 63) / 64; }

/// Redis counts bits from the highest of the first byte.
std::uint64_t bit_at(std::uint64_t index) noexcept {
  return std::uint64_t{1} << (index / 8 % 8 * 8 + 7 - index % 8);
}

}  // namespace

FilterBits::FilterBits(const Definition& definition) : bytes_(bytes_of(definition)) {
  for (const Link& link : definition.links)
    parts_.push_back(
        {link.modulus, link.hashes, words_of(link), std::make_unique<Word[]>(words_of(link))});
}

std::uint64_t FilterBits::bytes_of(const Definition& definition) noexcept {
  std::uint64_t bytes = 0;
  for (const Link& link : definition.links) bytes += words_of(link) * word_bytes;
  return bytes;
}

bool FilterBits::contains(const KeyHash& key) const noexcept {
  return std::ranges::any_of(parts_ | std::views::reverse, [&key](const Part& part) {
    return each_index(key, part.modulus, part.hashes, [&part](std::uint64_t index) {
      return (part.bits[index / 64].load(std::memory_order_relaxed) & bit_at(index)) != 0;
    });
  });
}

void FilterBits::add(const KeyHash& key) noexcept {
  const Part& part = parts_.back();
  each_index(key, part.modulus, part.hashes, [&part](std::uint64_t index) {
    part.bits[index / 64].fetch_or(bit_at(index), std::memory_order_relaxed);
    return true;
  });
}

void FilterBits::add_bytes(std::size_t link, std::uint64_t offset,
                           std::string_view bytes) noexcept {
  const Part& part = parts_[link];
  for (std::size_t word = offset / word_bytes; word < part.words && !bytes.empty(); ++word) {
    const auto piece = bytes.substr(0, word_bytes);
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < piece.size(); ++i)
      bits |= std::uint64_t{static_cast<unsigned char>(piece[i])} << 8 * i;
    if (bits != 0) part.bits[word].fetch_or(bits, std::memory_order_relaxed);
    bytes.remove_prefix(piece.size());
  }
}

}  // namespace sluice::bloom
