#include "bloom/counting_filter.hpp"

#include <algorithm>
#include <bit>
#include <string_view>

#include "bloom/indexes.hpp"
#include "bloom/sizing.hpp"
#include "sluice/error.hpp"

namespace sluice::bloom {
namespace {

constexpr std::uint64_t counter_bits = 4;
constexpr std::uint64_t counters_a_word = 64 / counter_bits;
constexpr Word full = 15;  // has lost count, and is never lowered

/// A counter in its word.
struct Counter {
  std::uint64_t shift;

  Word of(Word word) const noexcept { return word >> shift & full; }
  Word raised(Word word) const noexcept {
    return of(word) == full ? word : word + (Word{1} << shift);
  }
  Word lowered(Word word) const noexcept {
    return of(word) == full || of(word) == 0 ? word : word - (Word{1} << shift);
  }
};

Word sum(Word one, Word other) noexcept {
  Word all = 0;
  for (Counter counter{0}; counter.shift < 64; counter.shift += counter_bits)
    all |= std::min(counter.of(one) + counter.of(other), full) << counter.shift;
  return all;
}

std::uint64_t used_counters(std::span<const Word> words) noexcept {
  constexpr Word lowest = 0x1111'1111'1111'1111;
  std::uint64_t used = 0;
  for (const auto& shared : words) {
    Word word = load(shared);
    word |= word >> 2;
    word |= word >> 1;
    used += static_cast<std::uint64_t>(std::popcount(word & lowest));
  }
  return used;
}

class CountingFilter final : public Filter {
 public:
  CountingFilter(const BloomFilterOptions& options, Part part)
      : Filter(options),
        shape_(part.shape),
        memory_(std::move(part.memory)),
        counters_(part.shape.bits / counter_bits) {}

  bool add(std::string_view key) override {
    bool is_new = false;
    for_each_counter(key, [&](std::uint64_t word, Counter counter) {
      const Word old = exchange(memory_.words()[word], adders(),
                                [counter](Word value) { return counter.raised(value); });
      is_new |= counter.of(old) == 0;
      return true;
    });
    return is_new;
  }

  bool contains(std::string_view key) const override {
    return for_each_counter(key, [&](std::uint64_t word, Counter counter) {
      return counter.of(load(memory_.words()[word])) != 0;
    });
  }

  bool remove(std::string_view key) override {
    if (!contains(key)) return false;
    for_each_counter(key, [&](std::uint64_t word, Counter counter) {
      exchange(memory_.words()[word], adders(),
               [counter](Word value) { return counter.lowered(value); });
      return true;
    });
    return true;
  }

  void merge(const Filter& other) override {
    require_same_shape(*this, other);
    const auto from = other.parts().front().words;
    for (std::size_t i = 0; i < from.size(); ++i)
      exchange(memory_.words()[i], adders(), [&](Word value) { return sum(value, load(from[i])); });
  }

  BloomFilterInfo info() const override {
    return describe(*this, counters_, used_counters(memory_.words()));
  }

  std::vector<PartView> parts() const override { return {{shape_, memory_.words()}}; }

 private:
  template <class Visit>
  bool for_each_counter(std::string_view key, const Visit& visit) const {
    return for_each_index(murmur_hash(key), shape_.hashes, counters_, [&](std::uint64_t index) {
      return visit(index / counters_a_word, Counter{index % counters_a_word * counter_bits});
    });
  }

  Shape shape_;
  Memory memory_;
  std::uint64_t counters_;
};

}  // namespace

Shape counting_shape(const BloomFilterOptions& options) {
  const auto hashes = hashes_of_rate(options.error_rate);
  const auto counters = sure_bits(options.expected, options.error_rate, hashes);
  return {.bits = (counters / counters_a_word + 1) * 64,
          .hashes = hashes,
          .capacity = options.expected};
}

std::unique_ptr<Filter> make_counting(const BloomFilterOptions& options, std::vector<Part> parts) {
  const auto& shape = parts.front().shape;
  if (parts.size() != 1 || shape.bits == 0 || shape.hashes == 0 || shape.hashes > most_hashes)
    throw Error{Errc::corrupt, "a counting Bloom filter of an impossible size"};
  return std::make_unique<CountingFilter>(options, std::move(parts.front()));
}

}  // namespace sluice::bloom
