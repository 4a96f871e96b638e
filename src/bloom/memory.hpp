/// The words of a filter: zeroed memory of its own, or a file that is mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "sluice/bloom_filter.hpp"

namespace sluice::bloom {

using Word = std::uint64_t;

/// Words that threads read and change at once. No order among them is promised: a bit is set or
/// not.
inline Word load(const Word& word) noexcept {
  return std::atomic_ref{const_cast<Word&>(word)}.load(std::memory_order_relaxed);
}
/// Sets bits. Those that were missing when it looked: two threads may both be told of one.
inline Word set(Word& word, Word bits, BloomAdders adders) noexcept {
  std::atomic_ref shared{word};
  const Word old = shared.load(std::memory_order_relaxed);
  const Word missing = bits & ~old;
  if (missing == 0) return missing;
  if (adders == BloomAdders::one)
    shared.store(old | bits, std::memory_order_relaxed);
  else  // its result is not asked for, so that it is one instruction and no loop
    static_cast<void>(shared.fetch_or(bits, std::memory_order_relaxed));
  return missing;
}
/// Replaces the word by what `change` makes of it. Returns what it was.
template <class Change>
Word exchange(Word& word, BloomAdders adders, const Change& change) noexcept {
  std::atomic_ref shared{word};
  Word old = shared.load(std::memory_order_relaxed);
  if (adders == BloomAdders::one)
    shared.store(change(old), std::memory_order_relaxed);
  else
    while (!shared.compare_exchange_weak(old, change(old), std::memory_order_relaxed)) {
    }
  return old;
}

/// Begins at a cache line, and its size is a multiple of one.
class Memory {
 public:
  static constexpr std::size_t line = 64;

  /// Zeroes; in huge pages where they help. Throws Error{out_of_space}.
  explicit Memory(std::uint64_t bytes);
  /// A part of something that `holder` keeps. REQUIRES: it begins at a cache line.
  Memory(std::shared_ptr<void> holder, std::span<Word> words)
      : holder_(std::move(holder)), words_(words) {}
  /// A copy of words that may be changed meanwhile.
  static Memory copy_of(std::span<const Word> words);

  std::span<Word> words() noexcept { return words_; }
  std::span<const Word> words() const noexcept { return words_; }

 private:
  std::shared_ptr<void> holder_;
  std::span<Word> words_;
};

constexpr std::uint64_t whole_lines(std::uint64_t bytes) noexcept {
  return (bytes + Memory::line - 1) / Memory::line * Memory::line;
}

}  // namespace sluice::bloom
