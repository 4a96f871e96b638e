/// Whether a key may be in a set: a few bits a key, in the memory of this process.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/standard.hpp"

namespace sluice {

namespace bloom {
class Filter;
}

enum class BloomKind : std::uint8_t {
  blocked,   ///< Split blocks, bit-equal to Parquet's (XXH64): one cache line for each key, with
             ///< AVX2 where the processor has it. The fastest. 10.5 bits a key at 1 %; below 0.1 %
             ///< it takes a third more than `guava`.
  guava,     ///< Bit-equal to Guava's BloomFilter (MURMUR128_MITZ_64): 9.6 bits a key at 1 %.
  guava_32,  ///< Bit-equal to Guava's of before version 11 (MURMUR128_MITZ_32). For old files.
  counting,  ///< Counts to 15 instead of bits, so that keys can be removed: 4 times as large.
  scalable,  ///< Grows beyond the expected keys and keeps its rate: a chain of filters, each twice
             ///< as large and half as often wrong as the last.
};
std::string_view to_string(BloomKind kind) noexcept;

/// Who changes a filter: add(), remove() and merge().
enum class BloomAdders : std::uint8_t {
  many,  ///< Any threads, at once: bits are set by atomic operations.
  one,   ///< One thread at a time, while any others ask: plain loads and stores. With `blocked` an
         ///< add() takes half the time or less. Two threads that add at once would lose keys.
};

/// The Guava that makes the same filter of the same order. Since 33.4.0 (pull request 7494) the
/// hashes follow from the error rate, before from the size: 1.5 % of orders differ, and such
/// filters cannot be merged. Files say how many hashes they have: those of either are read.
enum class GuavaVersion : std::uint8_t { since_33_4, before_33_4 };

struct BloomFilterOptions {
  BloomKind kind = BloomKind::blocked;
  /// How many different keys will be added. More of them: more false positives, which info() tells.
  /// 0 counts as 1.
  std::uint64_t expected = 1'000'000;
  /// The part of keys never added that are contained all the same, once the expected keys are in.
  /// Between 0 and 1. A tenth of it costs 5 bits more a key.
  double error_rate = 0.01;
  /// A filter that takes more memory is refused; one that grows stops growing.
  std::uint64_t max_bytes = 1ULL << 30;
  BloomAdders adders = BloomAdders::many;
  GuavaVersion guava = GuavaVersion::since_33_4;  ///< of the kinds `guava` and `guava_32`
};

/// What a filter is now.
struct BloomFilterInfo {
  BloomKind kind;
  std::uint64_t bits;   ///< Counters, if `counting`.
  std::uint64_t bytes;  ///< Of memory, and of a file but for some hundred.
  unsigned hashes;      ///< Bits set by a key; if `scalable`, in the newest filter of the chain.
  unsigned filters;     ///< In the chain; 1 if not `scalable`.
  std::uint64_t keys;   ///< Different keys that were added; an estimate from the bits.
  double saturation;  ///< The part of the bits that are set; at 0.5 a filter has what it expected.
  double
      error_rate;  ///< What it is now, computed from the bits; of a small filter of Guava exactly.
};

/// A set that says "certainly not" or "probably", and never forgets a key.
///
/// Guarantee: a key that was added is contained, also while other threads add: no false negative. A
///   key that was not added is contained at most at the error rate, while there are no more keys
///   than expected. The same keys make the same bits in each program, on each machine: those of
///   Guava or Parquet where the kind says so. A saved file is loaded whole or refused: one that was
///   cut or changed anywhere is an Error. The tests that hold it: docs/bloom.md#guarantee.
/// Not guaranteed: the rate beyond the expected keys (`scalable` keeps it while it may grow), nor
///   for keys that an attacker chooses: the hashes have no secret. A rate below 1e-5 in a small
///   filter of another kind than `blocked`: all bits of a key follow from two hashes. The rate of a
///   small filter of Guava, whose size is Guava's: with n keys it is up to 1 + 100/n times that
///   ordered, and above 0.3 up to 6 % more; info() tells it up to some 300 bits. Anything
///   after remove() of a key that was not added, or more often than it was: other keys may be gone.
///   Anything where threads add at once to a filter of BloomAdders::one. A file that another
///   program writes into while it is mapped; save() puts a new one in its place.
/// Threads: any, at once and without a lock, but for moves, assignments and the end, and what
///   BloomAdders::one leaves to one thread at a time. merge() makes another merge() into the same
///   filter wait.
/// Cost: `blocked` one cache line a call, the others one for each hash. Many keys of `blocked` in
///   one call are fetched from memory together: where the filter exceeds the cache they take a
///   fifth of the time, to add where many may two fifths.
///
///     BloomFilter seen{{.expected = 10'000'000, .error_rate = 0.001}};
///     if (seen.add(url)) fetch(url);  // certainly the first time
class BloomFilter {
 public:
  /// Throws Error: bad_argument for a rate that is not between 0 and 1, or a filter above
  /// `max_bytes`; out_of_space.
  explicit BloomFilter(BloomFilterOptions options = {});
  /// The same filter with other adders, such as one that was read:
  /// `BloomFilter seen{BloomFilter::load(path), BloomAdders::one};`
  BloomFilter(BloomFilter filter, BloomAdders adders);
  /// A copy has all keys whose add() has returned.
  BloomFilter(const BloomFilter& other);
  BloomFilter& operator=(const BloomFilter& other);
  BloomFilter(BloomFilter&&) noexcept;
  BloomFilter& operator=(BloomFilter&&) noexcept;
  ~BloomFilter();

  /// Whether the key is certainly new. False: it is there already, or seems to be. Two threads that
  /// add one new key at once may both hear that it is new. A key is any bytes, also none; only
  /// `blocked` takes 4 GiB and more (others: bad_argument).
  bool add(std::string_view key);
  bool contains(std::string_view key) const;
  /// A number is its 8 bytes, little-endian: Guava's longFunnel, Parquet's INT64.
  template <std::integral Number>
  bool add(Number key) {
    return add_number(static_cast<std::uint64_t>(key));
  }
  template <std::integral Number>
  bool contains(Number key) const {
    return contains_number(static_cast<std::uint64_t>(key));
  }

  /// Many at once: an answer for each.
  std::vector<bool> add(std::span<const std::string_view> keys);
  std::vector<bool> add(std::span<const std::uint64_t> keys);
  std::vector<bool> contains(std::span<const std::string_view> keys) const;
  std::vector<bool> contains(std::span<const std::uint64_t> keys) const;

  /// Takes back one add() of this key, if `counting`; another kind throws Error (bad_argument).
  /// False: it was not there. A key beyond 14 others in each of its counters stays forever.
  bool remove(std::string_view key);
  template <std::integral Number>
  bool remove(Number key) {
    return remove_number(static_cast<std::uint64_t>(key));
  }

  /// From now on contains what `other` contains, too. Throws Error (bad_argument), having done
  /// nothing, for another kind or size; `scalable` filters may differ in size, and are chained: of
  /// both together at most 64.
  void merge(const BloomFilter& other);

  /// O(size).
  BloomFilterInfo info() const;
  const BloomFilterOptions& options() const noexcept;

  /// Writes a file, durably, and puts it in the place of an older one; killed on the way, it leaves
  /// that one as it was, and a file `path.XXXX.draft`. What is added meanwhile may be in it or not.
  /// The new file has the mode of the old one. A symbolic link stays: what it leads to is written.
  /// Throws Error: bad_argument (also for a folder, pipe or device of that name, and a path with a
  /// byte 0), out_of_space, corrupt (the disk fails).
  void save(const std::string& path) const;
  /// Reads a file into memory. Throws Error: corrupt; bad_argument for what is no file, or has more
  /// than `max_bytes`.
  static BloomFilter load(const std::string& path, std::uint64_t max_bytes = 1ULL << 30);
  /// The same without a copy: processes that map one file share its memory. It is read once, for
  /// the checksum. What is added is in this process alone, and not in the file.
  static BloomFilter map(const std::string& path);

  /// What Guava's writeTo() writes and readFrom() reads; kinds `guava` and `guava_32` (else
  /// bad_argument). Throws Error: corrupt for other bytes.
  std::string to_guava() const;
  static BloomFilter from_guava(std::string_view bytes);
  /// The bitset of Parquet, without its Thrift header; kind `blocked` (else bad_argument). Throws
  /// Error: corrupt for what is no multiple of 32 bytes.
  std::string to_parquet() const;
  static BloomFilter from_parquet(std::string_view bitset);

  /// The keys that Guava's integerFunnel and unencodedCharsFunnel make of a number and a text. Its
  /// other funnels are add(number), and the bytes of a string as they are.
  static std::string int_funnel(std::int32_t number);
  static std::string chars_funnel(std::u16string_view text);

 private:
  explicit BloomFilter(std::unique_ptr<bloom::Filter> filter);
  bool add_number(std::uint64_t key);
  bool contains_number(std::uint64_t key) const;
  bool remove_number(std::uint64_t key);

  std::unique_ptr<bloom::Filter> filter_;
};

}  // namespace sluice
