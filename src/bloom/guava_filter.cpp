#include "bloom/guava_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "bloom/hash.hpp"
#include "bloom/sizing.hpp"
#include "sluice/error.hpp"

namespace sluice::bloom {
namespace {

constexpr std::uint64_t most_words = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t form_head_bytes = 6;
constexpr std::uint64_t most_looks = 1'000'000;  // some 1 ms

class GuavaFilter final : public Filter {
 public:
  GuavaFilter(const BloomFilterOptions& options, Part part)
      : Filter(options), shape_(part.shape), memory_(std::move(part.memory)) {}

  bool add(std::string_view key) override {
    bool is_new = false;
    for_each_bit(key, [&](std::uint64_t bit) {
      auto& word = memory_.words()[bit / 64];
      const Word mask = Word{1} << bit % 64;
      is_new |= set(word, mask, adders()) != 0;
      return true;
    });
    return is_new;
  }

  bool contains(std::string_view key) const override {
    return for_each_bit(key, [&](std::uint64_t bit) {
      return (load(memory_.words()[bit / 64]) >> bit % 64 & 1) != 0;
    });
  }

  void merge(const Filter& other) override {
    require_same_shape(*this, other);
    const auto from = other.parts().front().words;
    for (std::size_t i = 0; i < from.size(); ++i) set(memory_.words()[i], load(from[i]), adders());
  }

  BloomFilterInfo info() const override {
    auto info = describe(*this, shape_.bits, count_bits(memory_.words()));
    const bool is_small =
        shape_.bits <= 1000 && shape_.bits * shape_.bits * shape_.hashes <= most_looks;
    if (is_small) info.error_rate = part_of_all_keys();
    return info;
  }

  std::vector<PartView> parts() const override { return {{shape_, memory_.words()}}; }

 private:
  /// Until `visit` says false. Whether it never did.
  template <class Visit>
  bool for_each_bit(std::string_view key, const Visit& visit) const {
    const auto hash = murmur_hash(key);
    return options().kind == BloomKind::guava ? for_each_of_64(hash, visit)
                                              : for_each_of_32(hash.low, visit);
  }

  template <class Visit>
  bool for_each_of_64(Hash hash, const Visit& visit) const {  // MURMUR128_MITZ_64
    constexpr auto positive = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::uint64_t combined = hash.low;
    for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
      if (!visit((combined & positive) % shape_.bits)) return false;
      combined += hash.high;
    }
    return true;
  }

  template <class Visit>
  bool for_each_of_32(std::uint64_t hash, const Visit& visit) const {  // MURMUR128_MITZ_32
    const auto first = static_cast<std::uint32_t>(hash);
    const auto second = static_cast<std::uint32_t>(hash >> 32);
    for (std::uint32_t i = 1; i <= shape_.hashes; ++i) {
      const auto combined = static_cast<std::int32_t>(first + i * second);
      const auto positive = static_cast<std::uint64_t>(combined < 0 ? ~combined : combined);
      if (!visit(positive % shape_.bits)) return false;
    }
    return true;
  }

  /// Each bit of a key follows from two numbers below the size: all pairs are asked.
  double part_of_all_keys() const {
    std::uint64_t found = 0;
    for (std::uint64_t first = 0; first < shape_.bits; ++first)
      for (std::uint64_t second = 0; second < shape_.bits; ++second) found += has(first, second);
    return static_cast<double>(found) / static_cast<double>(shape_.bits * shape_.bits);
  }

  bool has(std::uint64_t bit, std::uint64_t step) const {
    for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
      if ((load(memory_.words()[bit / 64]) >> bit % 64 & 1) == 0) return false;
      bit = (bit + step) % shape_.bits;
    }
    return true;
  }

  Shape shape_;
  Memory memory_;
};

Error no_form(std::string_view why) {
  return Error{Errc::corrupt,
               fmt::format("these bytes are no Bloom filter of Guava: {}; they have to be what its "
                           "writeTo() wrote, whole",
                           why)};
}

}  // namespace

Shape guava_shape(const BloomFilterOptions& options) {
  const auto bits = std::max<std::uint64_t>(optimal_bits(options.expected, options.error_rate), 1);
  const auto words = (bits - 1) / 64 + 1;
  if (words > most_words)
    throw Error{Errc::bad_argument,
                fmt::format("a Bloom filter of {} bits is larger than any of Guava (2^37 - 64): "
                            "expect fewer keys, or take another kind",
                            bits)};
  const bool is_old = options.guava == GuavaVersion::before_33_4;
  return {.bits = words * 64,
          .hashes = is_old ? std::min(hashes_of_size(bits, options.expected), most_hashes)
                           : hashes_of_rate(options.error_rate),
          .capacity = options.expected};
}

std::unique_ptr<Filter> make_guava(const BloomFilterOptions& options, std::vector<Part> parts) {
  const auto& shape = parts.front().shape;
  if (parts.size() != 1 || shape.bits == 0 || shape.bits > most_words * 64 || shape.hashes == 0 ||
      shape.hashes > most_hashes)
    throw no_form("their size or number of hashes is impossible");
  return std::make_unique<GuavaFilter>(options, std::move(parts.front()));
}

std::string guava_form(const Filter& filter) {
  if (filter.options().kind != BloomKind::guava && filter.options().kind != BloomKind::guava_32)
    throw Error{Errc::bad_argument,
                fmt::format("Guava knows no Bloom filters of the kind '{}': make it of the kind "
                            "BloomKind::guava",
                            to_string(filter.options().kind))};
  const auto part = filter.parts().front();
  const auto words = part.words.first(part.shape.bits / 64);
  std::string form(form_head_bytes + words.size_bytes(), '\0');
  form[0] = filter.options().kind == BloomKind::guava ? 1 : 0;
  form[1] = static_cast<char>(part.shape.hashes);
  const auto count = __builtin_bswap32(static_cast<std::uint32_t>(words.size()));
  std::memcpy(form.data() + 2, &count, sizeof count);
  auto* to = form.data() + form_head_bytes;
  for (const auto& word : words) {
    const Word swapped = __builtin_bswap64(load(word));
    std::memcpy(to, &swapped, sizeof swapped);
    to += sizeof swapped;
  }
  return form;
}

std::unique_ptr<Filter> read_guava_form(std::string_view form) {
  if (form.size() < form_head_bytes) throw no_form("there are fewer than 6");
  if (form[0] != 0 && form[0] != 1)
    throw no_form(fmt::format("their strategy {} is unknown", static_cast<int>(form[0])));
  std::uint32_t count = 0;
  std::memcpy(&count, form.data() + 2, sizeof count);
  count = __builtin_bswap32(count);
  if (count > most_words || form.size() != form_head_bytes + std::uint64_t{count} * sizeof(Word))
    throw no_form(
        fmt::format("they are {}, and say that they have {} words of 8", form.size(), count));
  const Shape shape{.bits = std::uint64_t{count} * 64,
                    .hashes = static_cast<unsigned char>(form[1])};
  std::vector<Part> parts;
  parts.push_back({shape, Memory{shape.bits / 8}});
  const auto* from = form.data() + form_head_bytes;
  for (auto& word : parts.front().memory.words().first(count)) {
    std::memcpy(&word, from, sizeof word);
    word = __builtin_bswap64(word);
    from += sizeof word;
  }
  const BloomFilterOptions options{
      .kind = form[0] == 1 ? BloomKind::guava : BloomKind::guava_32,
      .expected = std::max<std::uint64_t>(
          1, static_cast<std::uint64_t>(
                 static_cast<double>(shape.bits) * std::numbers::ln2 /
                 static_cast<double>(std::max<std::uint64_t>(shape.hashes, 1)))),
      .error_rate = std::pow(0.5, static_cast<double>(std::max<std::uint64_t>(shape.hashes, 1)))};
  return make_guava(options, std::move(parts));
}

}  // namespace sluice::bloom
