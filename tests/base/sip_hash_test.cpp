#include "base/sip_hash.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/keyed_hash.hpp"

namespace sluice {
namespace {

std::string counting_bytes(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(i);
  return bytes;
}

// What Python 3.11 (`sys.hash_info.algorithm`: siphash13) says with PYTHONHASHSEED=0, a key of
// zeros.
TEST(SipHash, IsThatOfOthers) {
  struct Row {
    std::string text;
    std::uint64_t hash;
  };
  const Row rows[] = {{"a", 0x407448d2b89b1813},
                      {"abc", 0xc03bc3a0042630f2},
                      {"abcdefg", 0x6db12aae9070f506},
                      {"abcdefgh", 0x3f7b849c0b8e35ea},
                      {"abcdefghijklmno", 0x1fd27a29b0e9dc7a},
                      {"bench:key:0", 0x13139d3df7a479e2},
                      {counting_bytes(64), 0x75e05fd5bbc870c6}};
  for (const auto& [text, hash] : rows) EXPECT_EQ(SipHash::of({0, 0}, text), hash) << text;
}

TEST(SipHash, IsTheSameHoweverTheBytesAreCut) {
  const SipKey key{1, 2};
  const auto text = counting_bytes(40);
  for (std::size_t first = 0; first <= text.size(); ++first)
    for (std::size_t second = first; second <= text.size(); ++second) {
      SipHash hash{key};
      hash.add(std::string_view{text}.substr(0, first));
      hash.add(std::string_view{text}.substr(first, second - first));
      hash.add(std::string_view{text}.substr(second));
      ASSERT_EQ(hash.value(), SipHash::of(key, text)) << first << " " << second;
    }
}

TEST(SipHash, HangsOnEveryBitOfKeyAndText) {
  const SipKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  for (std::size_t size = 1; size < 20; ++size) {
    const auto text = counting_bytes(size);
    const auto hash = SipHash::of(key, text);
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      auto changed = text;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
      EXPECT_NE(SipHash::of(key, changed), hash) << size << " " << bit;
    }
    for (std::size_t bit = 0; bit < 128; ++bit) {
      auto other = key;
      other[bit / 64] ^= std::uint64_t{1} << bit % 64;
      EXPECT_NE(SipHash::of(other, text), hash) << size << " " << bit;
    }
  }
}

/// MurmurHash64A takes eight bytes at a time through these two, and its key in libstdc++ is known.
constexpr std::uint64_t murmur = 0xc6a4a7935bd1e995ULL;
std::uint64_t mixed(std::uint64_t word) {
  word *= murmur;
  return (word ^ word >> 47) * murmur;
}
std::uint64_t unmixed(std::uint64_t word) {
  std::uint64_t inverse = murmur;
  for (int i = 0; i < 6; ++i) inverse *= 2 - murmur * inverse;
  word *= inverse;
  return (word ^ word >> 47) * inverse;
}

/// Two blocks of 16 bytes: what the first eight change, the other eight take back.
std::array<std::string, 2> twins() {
  std::array<std::string, 2> both{std::string(16, 'a'), std::string(16, 'a')};
  std::uint64_t word = 0;
  std::memcpy(&word, both[0].data(), sizeof word);
  word = unmixed(mixed(word) ^ std::uint64_t{1} << 63);
  std::memcpy(both[1].data(), &word, sizeof word);
  std::memcpy(both[1].data() + sizeof word, &word, sizeof word);
  return both;
}

TEST(KeyedHash, TextsMadeToCollideInTheStandardHashDoNot) {
  const auto blocks = twins();
  std::set<std::size_t> standard;
  std::set<std::size_t> ours;
  constexpr unsigned many = 4096;
  for (unsigned i = 0; i < many; ++i) {
    std::string text;
    for (unsigned bit = 1; bit < many; bit <<= 1) text += blocks[(i & bit) != 0];
    standard.insert(std::hash<std::string>{}(text));
    ours.insert(KeyedHash{}(text));
  }
#ifdef __GLIBCXX__
  EXPECT_EQ(standard.size(), 1U) << "so cheap it is to choose them";
#endif
  EXPECT_EQ(ours.size(), many);
}

}  // namespace
}  // namespace sluice
