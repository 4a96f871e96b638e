/// The words of a filter: zeroed memory of its own, or a file that is mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace sluice::bloom {

using Word = std::uint64_t;

/// Words that threads read and change at once. No order among them is promised: a bit is set or
/// not.
inline Word load(const Word& word) noexcept {
  return std::atomic_ref{const_cast<Word&>(word)}.load(std::memory_order_relaxed);
}
/// The bits among these that were not set.
inline Word set(Word& word, Word bits) noexcept {
  return bits & ~std::atomic_ref{word}.fetch_or(bits, std::memory_order_relaxed);
}
/// Replaces the word by what `change` makes of it. Returns what it was.
template <class Change>
Word exchange(Word& word, const Change& change) noexcept {
  std::atomic_ref shared{word};
  Word old = shared.load(std::memory_order_relaxed);
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
