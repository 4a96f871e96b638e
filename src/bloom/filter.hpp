/// What every kind of Bloom filter does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bloom/memory.hpp"
#include "sluice/bloom_filter.hpp"

namespace sluice::bloom {

/// What is noted of a filter's words: all but `scalable` have one part.
struct Shape {
  std::uint64_t bits = 0;      ///< a multiple of 64
  std::uint64_t hashes = 0;    ///< 1 to 255
  std::uint64_t capacity = 0;  ///< keys for which it was made
  std::uint64_t keys = 0;      ///< `scalable`: what was added to this part
};

struct Part {
  Shape shape;
  Memory memory;
};

struct PartView {
  Shape shape;
  std::span<const Word> words;
};

using Keys = std::span<const std::string_view>;
using Numbers = std::span<const std::uint64_t>;

/// Threads: any, as BloomFilter says.
class Filter {
 public:
  explicit Filter(const BloomFilterOptions& options) : options_(options) {}
  virtual ~Filter() = default;

  virtual bool add(std::string_view key) = 0;
  virtual bool contains(std::string_view key) const = 0;
  virtual bool add_number(std::uint64_t key);
  virtual bool contains_number(std::uint64_t key) const;
  virtual std::vector<bool> add_keys(Keys keys);
  virtual std::vector<bool> contains_keys(Keys keys) const;
  virtual std::vector<bool> add_numbers(Numbers keys);
  virtual std::vector<bool> contains_numbers(Numbers keys) const;
  virtual bool remove(std::string_view key);

  virtual void merge(const Filter& other) = 0;
  virtual BloomFilterInfo info() const = 0;
  virtual std::vector<PartView> parts() const = 0;

  const BloomFilterOptions& options() const noexcept { return options_; }
  BloomAdders adders() const noexcept { return options_.adders; }
  void set_adders(BloomAdders adders) noexcept { options_.adders = adders; }

 private:
  BloomFilterOptions options_;
};

/// A new filter. Throws Error.
std::unique_ptr<Filter> make_filter(const BloomFilterOptions& options);
/// A filter of these words. Throws Error{corrupt} where no filter of this kind has such parts.
std::unique_ptr<Filter> make_filter(const BloomFilterOptions& options, std::vector<Part> parts);
std::unique_ptr<Filter> copy_of(const Filter& filter);

/// Throws Error{bad_argument} where bits of the one mean nothing in the other.
void require_same_shape(const Filter& one, const Filter& other);

/// For a single part whose keys set `hashes` of its bits, or counters.
BloomFilterInfo describe(const Filter& filter, std::uint64_t bits, std::uint64_t bits_set);
/// How many keys have set so many bits (Swamidass and Baldi 2007).
std::uint64_t estimated_keys(std::uint64_t bits, std::uint64_t bits_set, std::uint64_t hashes);
std::uint64_t count_bits(std::span<const Word> words);

}  // namespace sluice::bloom
