#include "bloom/blocked_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "bloom/lanes.hpp"
#include "bloom/sizing.hpp"
#include "bloom/xxhash.hpp"
#include "sluice/error.hpp"

namespace sluice::bloom {
namespace {

constexpr std::uint64_t most_blocks = std::uint64_t{1} << 32;

template <class Lane>
class BlockedFilter final : public Filter {
 public:
  BlockedFilter(const BloomFilterOptions& options, Part part)
      : Filter(options),
        shape_(part.shape),
        memory_(std::move(part.memory)),
        blocks_{memory_.words().data(), part.shape.bits / block_bits} {}

  bool add(std::string_view key) override { return Lane::add(blocks_, xxh64(key), adders()); }
  bool contains(std::string_view key) const override { return Lane::contains(blocks_, xxh64(key)); }
  bool add_number(std::uint64_t key) override { return Lane::add(blocks_, xxh64(key), adders()); }
  bool contains_number(std::uint64_t key) const override {
    return Lane::contains(blocks_, xxh64(key));
  }

  std::vector<bool> add_keys(Keys keys) override { return add_all(keys); }
  std::vector<bool> contains_keys(Keys keys) const override { return contains_all(keys); }
  std::vector<bool> add_numbers(Numbers keys) override { return add_all(keys); }
  std::vector<bool> contains_numbers(Numbers keys) const override { return contains_all(keys); }

  void merge(const Filter& other) override {
    require_same_shape(*this, other);
    const auto from = other.parts().front().words;
    for (std::size_t i = 0; i < from.size(); ++i) set(memory_.words()[i], load(from[i]), adders());
  }

  BloomFilterInfo info() const override {
    auto info = describe(*this, shape_.bits, count_bits(memory_.words()));
    info.error_rate = error_rate();
    return info;
  }

  std::vector<PartView> parts() const override { return {{shape_, memory_.words()}}; }

 private:
  std::vector<bool> add_all(const auto& keys) {
    return in_batches<1>(keys,
                         [this](Hashes some) { return Lane::add_all(blocks_, some, adders()); });
  }
  std::vector<bool> contains_all(const auto& keys) const {
    return in_batches<0>(keys, [this](Hashes some) { return Lane::contains_all(blocks_, some); });
  }

  /// While a batch is looked at, the memory fetches the blocks of the next: 64 to 128 keys ahead,
  /// since it needs 150 ns for a block and does dozens at once.
  template <int Write, class Look>
  std::vector<bool> in_batches(const auto& keys, const Look& look) const {
    std::vector<bool> answers(keys.size());
    std::array<std::array<std::uint64_t, batch>, 2> turns;
    const auto fetch = [&](std::size_t from) {
      auto& hashes = turns[from / batch % 2];
      const auto some = std::min(batch, keys.size() - from);
      for (std::size_t i = 0; i < some; ++i) {
        hashes[i] = xxh64(keys[from + i]);
        __builtin_prefetch(blocks_.of(hashes[i]), Write);
      }
      return Hashes{hashes}.first(some);
    };
    auto next = fetch(0);
    for (std::size_t from = 0; from < keys.size(); from += batch) {
      const auto now = next;
      if (keys.size() - from > batch) next = fetch(from + batch);
      for (auto found = look(now); found != 0; found &= found - 1)
        answers[from + static_cast<std::size_t>(std::countr_zero(found))] = true;
    }
    return answers;
  }

  /// Of a key that was not added: it falls on any block, and in each word on any bit.
  double error_rate() const {
    const auto words = memory_.words().first(blocks_.count * words_a_block);
    double sum = 0;
    for (std::size_t block = 0; block < blocks_.count; ++block) {
      double all = 1;
      for (const auto& word : words.subspan(block * words_a_block, words_a_block)) {
        const Word bits = load(word);
        all *= std::popcount(bits & 0xffff'ffff) / 32.0 * (std::popcount(bits >> 32) / 32.0);
      }
      sum += all;
    }
    return sum / static_cast<double>(blocks_.count);
  }

  Shape shape_;
  Memory memory_;
  Blocks blocks_;
};

Error no_form(std::uint64_t bytes) {
  return Error{Errc::corrupt,
               fmt::format("{} bytes are no bitset of a split-block Bloom filter: it has 32 for "
                           "each block, without a header",
                           bytes)};
}

}  // namespace

Shape blocked_shape(const BloomFilterOptions& options) {
  const auto blocks = split_blocks(options.expected, options.error_rate);
  if (blocks > most_blocks)
    throw Error{Errc::bad_argument,
                fmt::format("a blocked Bloom filter for {} keys at an error rate of {} takes more "
                            "than 128 GiB: expect fewer keys, or take another kind",
                            options.expected, options.error_rate)};
  return {.bits = blocks * block_bits, .hashes = 8, .capacity = options.expected};
}

std::unique_ptr<Filter> make_blocked(const BloomFilterOptions& options, std::vector<Part> parts,
                                     Lanes lanes) {
  const auto& shape = parts.front().shape;
  if (parts.size() != 1 || shape.bits == 0 || shape.bits % block_bits != 0 ||
      shape.bits / block_bits > most_blocks || shape.hashes != 8)
    throw no_form(shape.bits / 8);
  if (lanes == Lanes::avx2)
    return std::make_unique<BlockedFilter<Avx2Lane>>(options, std::move(parts.front()));
  return std::make_unique<BlockedFilter<ScalarLane>>(options, std::move(parts.front()));
}

std::unique_ptr<Filter> make_blocked(const BloomFilterOptions& options, std::vector<Part> parts) {
  return make_blocked(options, std::move(parts), has_avx2() ? Lanes::avx2 : Lanes::scalar);
}

std::string parquet_form(const Filter& filter) {
  if (filter.options().kind != BloomKind::blocked)
    throw Error{Errc::bad_argument,
                fmt::format("Parquet knows no Bloom filters of the kind '{}': make it of the kind "
                            "BloomKind::blocked",
                            to_string(filter.options().kind))};
  const auto part = filter.parts().front();
  std::string form(part.shape.bits / 8, '\0');
  auto* to = form.data();
  for (const auto& shared : part.words.first(part.shape.bits / 64)) {
    const Word word = load(shared);
    std::memcpy(to, &word, sizeof word);
    to += sizeof word;
  }
  return form;
}

std::unique_ptr<Filter> read_parquet_form(std::string_view bitset) {
  if (bitset.empty() || bitset.size() * 8 % block_bits != 0) throw no_form(bitset.size());
  const Shape shape{.bits = bitset.size() * 8, .hashes = 8};
  std::vector<Part> parts;
  parts.push_back({shape, Memory{bitset.size()}});
  std::memcpy(parts.front().memory.words().data(), bitset.data(), bitset.size());
  const BloomFilterOptions options{
      .kind = BloomKind::blocked,
      .expected = std::max<std::uint64_t>(1, shape.bits / 11),  // at the usual rate
      .error_rate = 0.01};
  return make_blocked(options, std::move(parts));
}

}  // namespace sluice::bloom
