#include "bloom/scalable_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <string_view>

#include "bloom/indexes.hpp"
#include "bloom/sizing.hpp"
#include "sluice/error.hpp"

namespace sluice::bloom {
namespace {

constexpr std::uint64_t largest_capacity = std::uint64_t{1} << 48;  // more than any memory holds

Shape link_shape(std::uint64_t capacity, double error_rate) {
  const auto hashes = hashes_of_rate(error_rate);
  return {.bits = (sure_bits(capacity, error_rate, hashes) / 64 + 1) * 64,
          .hashes = hashes,
          .capacity = capacity};
}

/// One filter of the chain. Its bits are found by the same hash as those of all others.
class GrowingPart {
 public:
  explicit GrowingPart(Part part)
      : shape_(part.shape), memory_(std::move(part.memory)), keys_(part.shape.keys) {}

  void add(Hash hash, BloomAdders adders) {
    bool is_new = false;
    for_each_bit(hash, [&](std::uint64_t bit) {
      auto& word = memory_.words()[bit / 64];
      const Word mask = Word{1} << bit % 64;
      is_new |= set(word, mask, adders) != 0;
      return true;
    });
    if (is_new) keys_.fetch_add(1, std::memory_order_relaxed);
  }

  bool contains(Hash hash) const {
    return for_each_bit(hash, [&](std::uint64_t bit) {
      return (load(memory_.words()[bit / 64]) >> bit % 64 & 1) != 0;
    });
  }

  bool is_full() const noexcept { return keys_.load(std::memory_order_relaxed) >= shape_.capacity; }

  const Shape& shape() const noexcept { return shape_; }
  PartView view() const {
    auto shape = shape_;
    shape.keys = keys_.load(std::memory_order_relaxed);
    return {shape, memory_.words()};
  }

 private:
  template <class Visit>
  bool for_each_bit(Hash hash, const Visit& visit) const {
    return for_each_index(hash, shape_.hashes, shape_.bits, visit);
  }

  Shape shape_;
  Memory memory_;
  std::atomic<std::uint64_t> keys_;
};

class ScalableFilter final : public Filter {
 public:
  ScalableFilter(const BloomFilterOptions& options, std::vector<Part> parts) : Filter(options) {
    for (auto& part : parts) append(std::move(part));
  }

  bool add(std::string_view key) override {
    const auto hash = murmur_hash(key);
    const auto links = in_use();
    if (is_in(links, hash)) return false;
    if (links.back()->is_full()) grow();
    in_use().back()->add(hash, adders());
    return true;
  }

  bool contains(std::string_view key) const override { return is_in(in_use(), murmur_hash(key)); }

  void merge(const Filter& other) override {
    if (other.options().kind != BloomKind::scalable) require_same_shape(*this, other);
    std::vector<Part> parts;
    for (const auto& part : other.parts())
      parts.push_back({part.shape, Memory::copy_of(part.words)});
    const std::scoped_lock lock{growing_};
    if (count_ + parts.size() > most_parts)
      throw Error{
          Errc::bad_argument,
          fmt::format("a scalable Bloom filter chains at most {} filters, and these are {}: "
                      "make one that expects more keys, and add them anew",
                      most_parts, count_ + parts.size())};
    for (auto& part : parts) append(std::move(part));
  }

  BloomFilterInfo info() const override {
    BloomFilterInfo info{.kind = BloomKind::scalable, .filters = 0};
    std::uint64_t bits_set = 0;
    double right = 1;  // that a key which was not added is in no link
    for (const auto& link : in_use()) {
      const auto [shape, words] = link->view();
      const auto here = count_bits(words);
      bits_set += here;
      info.bits += shape.bits;
      info.bytes += words.size_bytes();
      info.hashes = static_cast<unsigned>(shape.hashes);
      ++info.filters;
      info.keys += estimated_keys(shape.bits, here, shape.hashes);
      right *= 1 - std::pow(static_cast<double>(here) / static_cast<double>(shape.bits),
                            static_cast<double>(shape.hashes));
    }
    info.saturation = static_cast<double>(bits_set) / static_cast<double>(info.bits);
    info.error_rate = 1 - right;
    return info;
  }

  std::vector<PartView> parts() const override {
    std::vector<PartView> parts;
    for (const auto& link : in_use()) parts.push_back(link->view());
    return parts;
  }

 private:
  using Links = std::span<const std::unique_ptr<GrowingPart>>;

  Links in_use() const noexcept {
    return Links{links_}.first(count_.load(std::memory_order_acquire));
  }

  /// Most keys are in the last links, which are the largest.
  static bool is_in(Links links, Hash hash) {
    return std::any_of(links.rbegin(), links.rend(),
                       [&](const auto& link) { return link->contains(hash); });
  }

  /// REQUIRES: `growing_`, or that no other thread knows this object.
  void append(Part part) {
    const auto count = count_.load(std::memory_order_relaxed);
    links_[count] = std::make_unique<GrowingPart>(std::move(part));
    count_.store(count + 1, std::memory_order_release);
  }

  /// One thread makes the next link; the others go on with the last one meanwhile, and so does
  /// everybody where the chain may not grow: what was added stays added.
  void grow() {
    if (!may_grow_.load(std::memory_order_relaxed)) return;
    const std::unique_lock lock{growing_, std::try_to_lock};
    if (!lock || !in_use().back()->is_full()) return;
    try {
      if (const auto shape = next_shape())
        append({*shape, Memory{shape->bits / 8}});
      else
        may_grow_ = false;
    } catch (const Error&) {  // there is no memory: as if it were not allowed
      may_grow_ = false;
    }
  }

  std::optional<Shape> next_shape() const {
    const auto links = in_use();
    if (links.size() == most_parts) return std::nullopt;
    std::uint64_t capacity = 0;
    std::uint64_t bytes = 0;
    for (const auto& link : links) {
      capacity = std::max(capacity, link->shape().capacity);
      bytes += link->shape().bits / 8;
    }
    const auto shape = link_shape(
        capacity * 2, std::ldexp(options().error_rate, -static_cast<int>(links.size()) - 1));
    if (capacity >= largest_capacity || bytes + shape.bits / 8 > options().max_bytes)
      return std::nullopt;
    return shape;
  }

  std::array<std::unique_ptr<GrowingPart>, most_parts> links_;
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> may_grow_{true};
  std::mutex growing_;
};

}  // namespace

Shape scalable_shape(const BloomFilterOptions& options) {
  return link_shape(options.expected, options.error_rate / 2);
}

std::unique_ptr<Filter> make_scalable(const BloomFilterOptions& options, std::vector<Part> parts) {
  for (const auto& [shape, memory] : parts)
    if (shape.bits == 0 || shape.hashes == 0 || shape.hashes > most_hashes || shape.capacity == 0)
      throw Error{Errc::corrupt, "a scalable Bloom filter with a link of an impossible size"};
  if (parts.empty() || parts.size() > most_parts)
    throw Error{Errc::corrupt, "a scalable Bloom filter with an impossible number of links"};
  return std::make_unique<ScalableFilter>(options, std::move(parts));
}

}  // namespace sluice::bloom
