#include "bloom/lanes.hpp"

#ifdef __x86_64__
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

bool ScalarLane::add(Word* block, std::uint32_t hash) noexcept {
  Word added = 0;
  for (std::size_t pair = 0; pair < words_a_block; ++pair) {
    const Word bits = bits_of(pair, hash);
    if ((load(block[pair]) & bits) != bits) added |= set(block[pair], bits);
  }
  return added != 0;
}

bool ScalarLane::contains(const Word* block, std::uint32_t hash) noexcept {
  Word missing = 0;
  for (std::size_t pair = 0; pair < words_a_block; ++pair)
    missing |= bits_of(pair, hash) & ~load(block[pair]);
  return missing == 0;
}

#ifdef __x86_64__

namespace {

[[gnu::target("avx2"), gnu::always_inline]] inline __m256i mask_of(std::uint32_t hash) noexcept {
  const auto factors = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(salts.data()));
  const auto products = _mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(hash)), factors);
  return _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(products, 27));
}

/// A block that other threads may add to, in one load. C++ has no atomic access of that size. The
/// processor has it for each aligned half of the block where it has AVX (Intel's manual, volume 3,
/// 9.1.1; AMD's, volume 2, 7.3.2), and more is not needed: bits are only ever set.
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i load_block(const Word* block) noexcept {
  __m256i words;
  asm volatile("vmovdqa %1, %0" : "=x"(words) : "m"(*reinterpret_cast<const __m256i*>(block)));
  return words;
}

}  // namespace

bool has_avx2() noexcept { return __builtin_cpu_supports("avx2") != 0; }

[[gnu::target("avx2")]] bool Avx2Lane::add(Word* block, std::uint32_t hash) noexcept {
  const auto mask = mask_of(hash);
  if (_mm256_testc_si256(load_block(block), mask) != 0) return false;
  alignas(__m256i) std::array<Word, words_a_block> bits;
  _mm256_store_si256(reinterpret_cast<__m256i*>(bits.data()), mask);
  Word added = 0;
  for (std::size_t pair = 0; pair < words_a_block; ++pair) added |= set(block[pair], bits[pair]);
  return added != 0;
}

[[gnu::target("avx2")]] bool Avx2Lane::contains(const Word* block, std::uint32_t hash) noexcept {
  return _mm256_testc_si256(load_block(block), mask_of(hash)) != 0;
}

#else

bool has_avx2() noexcept { return false; }
bool Avx2Lane::add(Word* block, std::uint32_t hash) noexcept {
  return ScalarLane::add(block, hash);
}
bool Avx2Lane::contains(const Word* block, std::uint32_t hash) noexcept {
  return ScalarLane::contains(block, hash);
}

#endif

}  // namespace sluice::bloom
