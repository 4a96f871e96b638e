/// SipHash-1-3 (J.-P. Aumasson, D. J. Bernstein, 2012, with one round a word and three at the end,
/// as the tables of Rust and Python have it): a keyed hash. Nobody who does not know the key can
/// find texts that collide, however well he knows the program.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice {

using SipKey = std::array<std::uint64_t, 2>;

/// The hash of bytes that come in pieces, wherever they are cut.
class SipHash {
 public:
  explicit SipHash(const SipKey& key) noexcept
      : a_(key[0] ^ 0x736f6d6570736575ULL),
        b_(key[1] ^ 0x646f72616e646f6dULL),
        c_(key[0] ^ 0x6c7967656e657261ULL),
        d_(key[1] ^ 0x7465646279746573ULL) {}

  void add(std::string_view bytes) noexcept {
    const auto open = size_ % word;
    size_ += bytes.size();
    if (open > 0) {
      const auto taken = bytes.substr(0, word - open);
      open_ |= tail(taken.data(), taken.size()) << (8 * open);
      if (open + taken.size() < word) return;
      take(open_);
      bytes.remove_prefix(taken.size());
    }
    bytes.remove_prefix(take_words(bytes));
    open_ = tail(bytes.data(), bytes.size());
  }
  /// Of all that was added.
  std::uint64_t value() const noexcept { return SipHash{*this}.end(open_); }

  /// The hash of `text` as a whole.
  static std::uint64_t of(const SipKey& key, std::string_view text) noexcept {
    return SipHash{key}.end_with(text);
  }
  /// The same of one that was just made. Nothing may be added or asked any more.
  std::uint64_t end_with(std::string_view text) noexcept {
    size_ = text.size();
    text.remove_prefix(take_words(text));
    return end(tail(text.data(), text.size()));
  }

 private:
  static constexpr std::size_t word = 8;

  // Inlined also where a folder is compiled for size: calls would double the cost of a hash.
  template <class Number>
  static std::uint64_t load(const char* at) noexcept {
    Number number;
    std::memcpy(&number, at, sizeof number);
    if constexpr (std::endian::native == std::endian::big)
      return sizeof number == word ? __builtin_bswap64(number)
                                   : __builtin_bswap32(static_cast<std::uint32_t>(number));
    return number;
  }
  /// Up to eight bytes as a number, the first the lowest; two loads may overlap.
  [[gnu::always_inline]] static std::uint64_t tail(const char* at, std::size_t size) noexcept {
    const auto byte = [at](std::size_t i) {
      return std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
    };
    if (size == word) return load<std::uint64_t>(at);
    if (size >= 4)
      return load<std::uint32_t>(at) | load<std::uint32_t>(at + size - 4) << (8 * (size - 4));
    return size == 0 ? 0 : byte(0) | byte(size / 2) | byte(size - 1);
  }

  [[gnu::always_inline]] std::size_t take_words(std::string_view bytes) noexcept {
    const auto whole = bytes.size() / word * word;
    for (std::size_t i = 0; i < whole; i += word) take(load<std::uint64_t>(bytes.data() + i));
    return whole;
  }
  [[gnu::always_inline]] void take(std::uint64_t bytes) noexcept {
    d_ ^= bytes;
    round();
    a_ ^= bytes;
  }
  [[gnu::always_inline]] std::uint64_t end(std::uint64_t last) noexcept {
    take(last | std::uint64_t{size_} << 56);
    c_ ^= 0xff;
    round();
    round();
    round();
    return a_ ^ b_ ^ c_ ^ d_;
  }
  [[gnu::always_inline]] void round() noexcept {
    a_ += b_;
    c_ += d_;
    b_ = std::rotl(b_, 13) ^ a_;
    d_ = std::rotl(d_, 16) ^ c_;
    a_ = std::rotl(a_, 32);
    c_ += b_;
    a_ += d_;
    b_ = std::rotl(b_, 17) ^ c_;
    d_ = std::rotl(d_, 21) ^ a_;
    c_ = std::rotl(c_, 32);
  }

  std::uint64_t a_, b_, c_, d_;
  std::uint64_t open_ = 0;  // what is left of the last word
  std::size_t size_ = 0;
};

}  // namespace sluice
