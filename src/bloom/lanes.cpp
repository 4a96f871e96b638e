#include "bloom/lanes.hpp"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#include "bloom/blocked_filter.hpp"

namespace sluice::bloom {
namespace {

/// The two bits of a key in a pair of words.
Word bits_of(std::size_t pair, std::uint32_t hash) noexcept {
  const Word low = Word{1} << (hash * salts[2 * pair] >> 27);
  const Word high = Word{1} << (hash * salts[2 * pair + 1] >> 27);
  return low | high << 32;
}

}  // namespace

bool ScalarLane::add(const Blocks& blocks, std::uint64_t hash, BloomAdders adders) noexcept {
  auto* const block = blocks.of(hash);
  Word missing = 0;
  for (std::size_t pair = 0; pair < words_a_block; ++pair)
    missing |= set(block[pair], bits_of(pair, static_cast<std::uint32_t>(hash)), adders);
  return missing != 0;
}

bool ScalarLane::contains(const Blocks& blocks, std::uint64_t hash) noexcept {
  const auto* const block = blocks.of(hash);
  Word missing = 0;
  for (std::size_t pair = 0; pair < words_a_block; ++pair)
    missing |= bits_of(pair, static_cast<std::uint32_t>(hash)) & ~load(block[pair]);
  return missing == 0;
}

std::uint64_t ScalarLane::add_all(const Blocks& blocks, Hashes hashes,
                                  BloomAdders adders) noexcept {
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < hashes.size(); ++i)
    answers |= std::uint64_t{add(blocks, hashes[i], adders)} << i;
  return answers;
}

std::uint64_t ScalarLane::contains_all(const Blocks& blocks, Hashes hashes) noexcept {
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < hashes.size(); ++i)
    answers |= std::uint64_t{contains(blocks, hashes[i])} << i;
  return answers;
}

#ifdef __x86_64__

namespace {

// A block is read and written 32 bytes at a time, which C++ knows no atomic access for. None is
// needed: in whatever pieces the processor does it, each bit is read as it was or as it is now,
// and bits are only ever set.

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i mask_of(std::uint64_t hash) noexcept {
  const auto factors = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(salts.data()));
  const auto products = _mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(hash)), factors);
  return _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(products, 27));
}

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i load_block(const Word* block) noexcept {
  __m256i words;
  asm volatile("vmovdqa %1, %0" : "=x"(words) : "m"(*reinterpret_cast<const __m256i*>(block)));
  return words;
}

/// REQUIRES: no other thread adds meanwhile.
[[gnu::target("avx2"), gnu::always_inline]] inline void store_block(Word* block,
                                                                    __m256i words) noexcept {
  asm volatile("vmovdqa %1, %0" : "=m"(*reinterpret_cast<__m256i*>(block)) : "x"(words));
}

struct Half {
  Word low;
  Word high;
};

[[gnu::target("avx2"), gnu::always_inline]] inline Half half_of(__m128i words) noexcept {
  return {static_cast<Word>(_mm_cvtsi128_si64(words)),
          static_cast<Word>(_mm_extract_epi64(words, 1))};
}

/// Unless another thread has changed the half meanwhile, one locked instruction.
[[gnu::target("avx2"), gnu::always_inline]] inline void set_in_half(Word* half, __m128i words,
                                                                    __m128i bits) noexcept {
  auto old = half_of(words);
  const auto now = half_of(_mm_or_si128(words, bits));
  bool is_done = false;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(is_done), "+m"(*reinterpret_cast<Half*>(half)), "+a"(old.low),
                 "+d"(old.high)
               : "b"(now.low), "c"(now.high));
  if (is_done) return;
  const auto missing = half_of(bits);
  set(half[0], missing.low, BloomAdders::many);
  set(half[1], missing.high, BloomAdders::many);
}

[[gnu::target("avx2"), gnu::always_inline]] inline bool add_to(Word* block, std::uint64_t hash,
                                                               BloomAdders adders) noexcept {
  const auto bits = mask_of(hash);
  const auto words = load_block(block);
  if (_mm256_testc_si256(words, bits) != 0) return false;
  if (adders == BloomAdders::one) {
    store_block(block, _mm256_or_si256(words, bits));
  } else {  // locked instructions are what it costs: two, where a word at a time it would be four
    set_in_half(block, _mm256_castsi256_si128(words), _mm256_castsi256_si128(bits));
    set_in_half(block + 2, _mm256_extracti128_si256(words, 1), _mm256_extracti128_si256(bits, 1));
  }
  return true;
}

[[gnu::target("avx2"), gnu::always_inline]] inline bool is_in(const Word* block,
                                                              std::uint64_t hash) noexcept {
  return _mm256_testc_si256(load_block(block), mask_of(hash)) != 0;
}

bool has_cmpxchg16b() noexcept {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_CMPXCHG16B) != 0;
}

}  // namespace

bool has_avx2() noexcept { return __builtin_cpu_supports("avx2") != 0 && has_cmpxchg16b(); }

[[gnu::target("avx2")]] bool Avx2Lane::add(const Blocks& blocks, std::uint64_t hash,
                                           BloomAdders adders) noexcept {
  return add_to(blocks.of(hash), hash, adders);
}

[[gnu::target("avx2")]] bool Avx2Lane::contains(const Blocks& blocks, std::uint64_t hash) noexcept {
  return is_in(blocks.of(hash), hash);
}

[[gnu::target("avx2")]] std::uint64_t Avx2Lane::add_all(const Blocks& blocks, Hashes hashes,
                                                        BloomAdders adders) noexcept {
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < hashes.size(); ++i)
    answers |= std::uint64_t{add_to(blocks.of(hashes[i]), hashes[i], adders)} << i;
  return answers;
}

[[gnu::target("avx2")]] std::uint64_t Avx2Lane::contains_all(const Blocks& blocks,
                                                             Hashes hashes) noexcept {
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < hashes.size(); ++i)
    answers |= std::uint64_t{is_in(blocks.of(hashes[i]), hashes[i])} << i;
  return answers;
}

#else

bool has_avx2() noexcept { return false; }
bool Avx2Lane::add(const Blocks& blocks, std::uint64_t hash, BloomAdders adders) noexcept {
  return ScalarLane::add(blocks, hash, adders);
}
bool Avx2Lane::contains(const Blocks& blocks, std::uint64_t hash) noexcept {
  return ScalarLane::contains(blocks, hash);
}
std::uint64_t Avx2Lane::add_all(const Blocks& blocks, Hashes hashes, BloomAdders adders) noexcept {
  return ScalarLane::add_all(blocks, hashes, adders);
}
std::uint64_t Avx2Lane::contains_all(const Blocks& blocks, Hashes hashes) noexcept {
  return ScalarLane::contains_all(blocks, hashes);
}

#endif

}  // namespace sluice::bloom
