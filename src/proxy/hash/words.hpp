/// Words of 32 bits as they lie in a key: little endian, at any address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::proxy::hashes {

/// The first bytes, at most four; missing ones are zero.
inline std::uint32_t short_word_of(std::string_view bytes) noexcept {
  std::uint32_t word = 0;
  for (std::size_t i = std::min<std::size_t>(bytes.size(), 4); i-- > 0;)
    word = word << 8 | static_cast<unsigned char>(bytes[i]);
  return word;
}

/// REQUIRES: four bytes. One load where the compiler sees it.
inline std::uint32_t word_of(std::string_view bytes) noexcept {
  const auto at = [bytes](std::size_t i) {
    return std::uint32_t{static_cast<unsigned char>(bytes[i])};
  };
  return at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24;
}

}  // namespace sluice::proxy::hashes
