#include "proxy/hash/md5.hpp"

#include <bit>
#include <cstddef>

#include "proxy/hash/functions.hpp"
#include "proxy/hash/words.hpp"

namespace sluice::proxy {
namespace {

using Words = std::array<std::uint32_t, 4>;

// floor(2^32 * |sin(i + 1)|), RFC 1321, 3.4.
constexpr std::array<std::uint32_t, 64> sines{
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

/// One of the four rounds: which function, which order of the block's words, which rotations.
template <std::size_t first, std::size_t step, int r0, int r1, int r2, int r3, class Function>
void round(Words& state, const std::uint32_t (&block)[16], std::size_t number, Function mix) {
  constexpr int rotations[] = {r0, r1, r2, r3};
  auto [a, b, c, d] = state;
  for (std::size_t i = 0; i < 16; ++i) {
    const auto sum = a + mix(b, c, d) + block[(first + step * i) % 16] + sines[number * 16 + i];
    a = d, d = c, c = b;
    b += std::rotl(sum, rotations[i % 4]);
  }
  state = {a, b, c, d};
}

void add_block(Words& state, std::string_view bytes) noexcept {
  std::uint32_t block[16];
  for (std::size_t i = 0; i < 16; ++i) block[i] = hashes::word_of(bytes.substr(i * 4, 4));
  using U = std::uint32_t;
  Words work = state;
  round<0, 1, 7, 12, 17, 22>(work, block, 0, [](U x, U y, U z) { return (x & y) | (~x & z); });
  round<1, 5, 5, 9, 14, 20>(work, block, 1, [](U x, U y, U z) { return (x & z) | (y & ~z); });
  round<5, 3, 4, 11, 16, 23>(work, block, 2, [](U x, U y, U z) { return x ^ y ^ z; });
  round<0, 7, 6, 10, 15, 21>(work, block, 3, [](U x, U y, U z) { return y ^ (x | ~z); });
  for (std::size_t i = 0; i < 4; ++i) state[i] += work[i];
}

}  // namespace

std::array<std::uint32_t, 4> md5_words(std::string_view bytes) noexcept {
  constexpr std::size_t block_size = 64;
  constexpr std::size_t length_size = 8;
  Words state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= block_size; bytes.remove_prefix(block_size))
    add_block(state, bytes.substr(0, block_size));

  // What is left, a one bit, zeros, and the length in the last eight bytes of a block.
  std::array<char, 2 * block_size> tail{};
  bytes.copy(tail.data(), bytes.size());
  tail[bytes.size()] = '\x80';
  const auto size = bytes.size() + 1 + length_size <= block_size ? block_size : 2 * block_size;
  for (std::size_t i = 0; i < length_size; ++i)
    tail[size - length_size + i] = static_cast<char>(bits >> (8 * i));
  for (std::size_t at = 0; at < size; at += block_size)
    add_block(state, {tail.data() + at, block_size});
  return state;
}

std::uint32_t hashes::md5(std::string_view key) noexcept { return md5_words(key)[0]; }

}  // namespace sluice::proxy
