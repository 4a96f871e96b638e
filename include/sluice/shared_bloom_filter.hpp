/// A Bloom filter that lives in the Store: "may this exist?", asked by every process.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sluice/store.hpp"

namespace sluice {

namespace bloom {
class LocalFilter;
class RebuildTarget;
class SharedFilter;
}  // namespace bloom

/// How a key becomes the bytes that are hashed. Nothing in Redis says which one a filter has: all
/// its programs must use the same.
enum class BloomCodec {
  string,  ///< the text itself, numbers in decimal: Redisson's StringCodec
  kryo5,   ///< Redisson's default, Kryo5Codec, of a String, an Integer or a Long
};

/// A key of a filter: a text, an Integer or a Long of Java. With BloomCodec::string the number 7
/// and the text "7" are the same key; with kryo5 an Integer, a Long and a text are three.
class BloomKey {
 public:
  // NOLINTBEGIN(*-explicit-constructor): a text or a number is given where a key is asked for
  /// REQUIRES: the text lives until the call that it is given to has returned its Task.
  BloomKey(std::string_view text) : value_(text) {}
  BloomKey(const std::string& text) : value_(std::string_view{text}) {}
  BloomKey(const char* text) : value_(std::string_view{text}) {}
  /// An Integer up to 32 bits, else a Long.
  template <std::signed_integral Number>
    requires(!std::same_as<Number, char> && !std::same_as<Number, wchar_t>)
  BloomKey(Number number) {
    if constexpr (sizeof(Number) <= sizeof(std::int32_t))
      value_ = static_cast<std::int32_t>(number);
    else
      value_ = static_cast<std::int64_t>(number);
  }
  // NOLINTEND(*-explicit-constructor)

  using Content = std::variant<std::string_view, std::int32_t, std::int64_t>;
  const Content& content() const noexcept { return value_; }

 private:
  Content value_;
};

/// Any range of what makes a key, as keys: `filter.contains(bloom_keys(numbers))`.
template <class Range>
std::vector<BloomKey> bloom_keys(const Range& range) {
  std::vector<BloomKey> keys;
  for (const auto& key : range) keys.emplace_back(key);
  return keys;
}

/// How large a filter is made.
struct SharedBloomSize {
  static constexpr std::uint64_t most_bits = 4'294'967'294;  ///< of one key in Redis, as Redisson

  /// How many keys it is for, from 1 to 10^12. With more of them the error rate rises.
  std::uint64_t expected = 0;
  /// Of how many absent keys it may say that they are there: above 0, below 1. A tenth of it costs
  /// 4.8 bits more for each key.
  double error_rate = 0.03;
  /// Grow beyond `expected` by further links of a chain, each twice as large, so that the error
  /// rate holds, but for the first links of one that is ordered for few keys: see below. A Java
  /// program sees the first link alone. Costs a bit more for each key, and a question to each link.
  bool scalable = false;
  /// A filter that needs more bits is a chain of links of at most so many. From 64 to `most_bits`.
  std::uint64_t largest_link = most_bits;
};

struct SharedBloomOptions {
  BloomCodec codec = BloomCodec::string;
  /// Publish the keys that are new, as 16 bytes each, so that local copies of all programs know
  /// them at once. Off: they know them after their next refresh.
  bool announce = true;
};

struct SharedBloomInfo {
  struct Link {
    std::uint64_t bits = 0;
    unsigned hashes = 0;
    std::uint64_t capacity = 0;  ///< keys for which its share of the error rate holds
    std::uint64_t bits_set = 0;
    std::uint64_t bytes = 0;  ///< that the string has in Redis; it grows with its bits
  };
  std::uint64_t expected = 0;
  double error_rate = 0;      ///< as it was ordered
  double error_rate_now = 0;  ///< by the bits that are set
  std::uint64_t keys = 0;     ///< estimated by the bits that are set, as Redisson's count()
  std::vector<Link> links;    ///< more than one: a chain
  bool scalable = false;
  std::optional<std::chrono::milliseconds> left;  ///< until it expires; empty: it does not
  bool rebuilding = false;
};

struct BloomRebuildOptions {
  /// A rebuild that adds nothing for so long is given up, so that one that died leaves nothing.
  /// From 1 s to 7 days.
  std::chrono::milliseconds lease = std::chrono::minutes{10};
};

struct LocalBloomOptions {
  /// How often the bits are read anew: what other programs than ours have added is known after so
  /// long. Shorter costs the server and the network the size of the filter each time. From 10 ms to
  /// 7 days.
  std::chrono::milliseconds refresh = std::chrono::minutes{1};
  /// A larger filter is refused. While it is refreshed a copy needs twice its size.
  std::uint64_t max_bytes = 256 << 20;
};

/// The filter that will take another's place. While it is filled, programs of ours add their keys
/// to both, and readers ask the old one. When it is dropped without `finish` it is given up.
///
/// Threads: any. It must not outlive the Store.
class BloomRebuild {
 public:
  BloomRebuild(BloomRebuild&&) noexcept;
  BloomRebuild& operator=(BloomRebuild&&) noexcept;
  ~BloomRebuild();

  /// Adds to the new filter. One round trip for a thousand keys and more. Throws Error: closed
  /// (effect none) when it was given up, or the filter was removed.
  Task<void> add(std::span<const BloomKey> keys);
  Task<void> add(std::span<const std::string_view> keys);
  /// Puts the new filter into the place of the old one, in one step; a time to live stays. Throws
  /// Error (closed, effect none) when it was given up, or the filter was removed or has expired
  /// meanwhile; with effect unknown look at `info()`.
  Task<void> finish();

 private:
  friend class bloom::SharedFilter;
  explicit BloomRebuild(std::shared_ptr<bloom::RebuildTarget> target);
  std::shared_ptr<bloom::RebuildTarget> target_;
};

/// A copy of a shared filter in the memory of this process.
///
/// Guarantee: a key that a program of ours has added is known within the time of a message after
///   its `add` returned, one of any program at the end of the next refresh; a message that was lost
///   is made good by a refresh as soon as the connection is back. A filter that is rebuilt, made
///   anew or removed is followed.
/// Not guaranteed: more than that: right after an `add` elsewhere the copy may say no. `age` says
///   how old the bits are. While the store cannot be reached they get older, and the log says so
///   (sluice_bloom_copy_failures_total).
/// Threads: any; readers do not wait for a refresh. The Store must outlive it. In a child of fork()
///   contains() throws closed, since nothing keeps the copy up there.
class LocalBloomFilter {
 public:
  LocalBloomFilter(LocalBloomFilter&&) noexcept;
  LocalBloomFilter& operator=(LocalBloomFilter&&) noexcept;
  ~LocalBloomFilter();

  /// False: it was not there. From memory, some 100 ns. Throws Error (closed) where the filter was
  /// removed or has expired.
  bool contains(const BloomKey& key) const;
  /// Reads the bits now. Throws what the store throws; the copy stays as it was then.
  Task<void> refresh();
  /// How long ago the bits were read.
  std::chrono::milliseconds age() const;
  std::uint64_t bytes() const;

 private:
  friend class bloom::SharedFilter;
  explicit LocalBloomFilter(std::shared_ptr<bloom::LocalFilter> copy);
  std::shared_ptr<bloom::LocalFilter> copy_;
};

/// A Bloom filter shared by every process that names it, Java processes with Redisson's
/// RBloomFilter included.
///
/// Guarantee: `contains` is true for every key whose `add` has returned, at any time after, also
///   while the filter grows, is rebuilt by programs of ours or is made anew with another size: a
///   definition that has changed is noticed by the same script that would have read wrong bits, and
///   followed. Bits, config, hash and indexes are Redisson's. A bulk has an answer for each key.
///   The tests that hold it: docs/shared_bloom.md#guarantee.
/// Not guaranteed: the error rate of a small filter, whose size and hashes are Redisson's: with n
///   keys it is up to 1 + 100/n times that ordered, and above 0.3 up to 6 % more, which info() does
///   not tell; nor one below 1e-5: all bits of a key follow from two hashes. That what a Java
///   program adds during a rebuild is in the new filter, or what it adds while the first link of a
///   chain is full has the error rate. That a store which lost its data has the keys. Where a link
///   is missing, evicted or left behind by Java's rename(), calls throw corrupt (effect none) with
///   its key; but of a filter that Java made, bits that are lost are no keys. That the keys of
///   a bulk are added together: a bulk that fails in its midst has added some.
/// Threads: any. The Store must outlive the filter, the filter its Tasks.
/// In Redis: string NAME, the bits, and hash {NAME}:config {size, hashIterations,
///   expectedInsertions, falseProbability}, as Redisson's, and sluice:bits, where programs of ours
///   made it; of a chain also the fields sluice:links and sluice:count and the strings
///   {NAME}:link:1, {NAME}:link:2 ...; during a rebuild the field sluice:next, string {NAME}:next
///   and hash {NAME}:next:config, with a TTL; channel sluice_bloom:{NAME}. The first call asks one
///   round trip more, for the definition. `add` and `contains` are one round trip, for some 1,400
///   keys a script and 16 scripts a round trip.
///
///     SharedBloomFilter users{*store, "users"};
///     users.try_create({.expected = 1'000'000, .error_rate = 0.01}).get();
///     users.add("anna").get();
///     if (!users.contains(name).get()) return not_found();
class SharedBloomFilter {
 public:
  /// Throws Error (bad_argument): a name that is empty, above 1 MiB or refused by
  /// docs/lock.md#names, one with half a pair of braces, one that is a key of another filter: with
  /// braces, and ':next', ':config' or ':link:1' behind.
  explicit SharedBloomFilter(Store& store, std::string name, SharedBloomOptions options = {});
  ~SharedBloomFilter();
  SharedBloomFilter(SharedBloomFilter&&) noexcept;
  SharedBloomFilter& operator=(SharedBloomFilter&&) noexcept;

  /// Creates the filter, unless there is one, as Redisson's tryInit. True: created. Throws Error:
  /// bad_argument (a size out of range), wrong_type (effect none; something else is at one of its
  /// keys, or bits whose config was lost; strings {NAME}:link:1 and so on are taken for what a
  /// deleted chain has left, and go). After an effect that is unknown the same call again is
  /// safe; the first one may make the filter late, when it was removed meanwhile.
  Task<bool> try_create(SharedBloomSize size);
  /// The same, and throws Error (config_mismatch, effect none) when one of another size, error rate
  /// or kind is there.
  Task<void> ensure_created(SharedBloomSize size);
  Task<bool> exists();

  /// Whether the key is new: at least one of its bits was not set. Throws Error: closed (effect
  /// none) where there is no filter; with effect unknown add again, and do not rely on that answer.
  Task<bool> add(BloomKey key);
  /// False: it was never added. Throws Error (closed) where there is no filter: not false, as
  /// Redisson does, since that would say that nothing exists.
  Task<bool> contains(BloomKey key);
  /// The same of many, in their order. No keys: no round trip.
  Task<std::vector<bool>> add(std::span<const BloomKey> keys);
  Task<std::vector<bool>> add(std::span<const std::string_view> keys);
  Task<std::vector<bool>> contains(std::span<const BloomKey> keys);
  Task<std::vector<bool>> contains(std::span<const std::string_view> keys);

  /// For operators; O(size) in the server, some 0.1 ms for a million bits. Throws closed where
  /// there is none.
  Task<SharedBloomInfo> info();

  /// Adds all keys of other filters, by BITOP, O(size). They must have the same size and hashes,
  /// and lie in the slot of this one: share a {tag}. Throws Error: config_mismatch (effect none),
  /// in_use while this one is rebuilt, closed where one is missing.
  Task<void> merge(std::vector<std::string> others);

  // Each takes all keys of the filter. False: there is no filter. After an effect that is unknown
  // the call may take place late; look at info() before the filter is made anew.
  Task<bool> remove();
  /// The filter goes after so long, from 1 ms on.
  Task<bool> expire(std::chrono::milliseconds ttl);
  /// It does not expire any more.
  Task<bool> persist();
  /// Its name is another from now on, in the same slot; use a SharedBloomFilter of that name.
  /// Throws Error (in_use, effect none) where that name has one, and while this one is rebuilt.
  Task<bool> rename(std::string to);

  /// Begins to fill another filter that will take the place of this one. There need not be one;
  /// throws Error (wrong_type, effect none) where its keys hold something else.
  /// Empty: another rebuild is under way. Keys of the source that nobody adds any more, but whose
  /// `add` returned before, must be read from the source after this returned.
  Task<std::optional<BloomRebuild>> try_rebuild(SharedBloomSize size,
                                                BloomRebuildOptions options = {});
  /// A copy in this process, with all bits that the filter has now. Throws Error: closed where
  /// there is no filter, out_of_space for one above `max_bytes`.
  Task<LocalBloomFilter> local_copy(LocalBloomOptions options = {});

  /// Writes all of it to a file, with a checksum; the file is replaced when it is whole. Throws
  /// Error: what the store throws, and out_of_space, corrupt ... of the disk.
  Task<void> save(std::string path);
  /// Puts what a file has into the place of the filter, in one step. What is added meanwhile goes
  /// with the old one. Throws Error (effect none): corrupt for a file that is not whole,
  /// config_mismatch for one of another codec, in_use during a rebuild. Both read or write the disk
  /// on the thread that they run on.
  Task<void> load(std::string path);

  const std::string& name() const noexcept;

 private:
  std::shared_ptr<bloom::SharedFilter> filter_;
};

}  // namespace sluice
