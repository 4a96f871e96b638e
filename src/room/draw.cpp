#include "room/draw.hpp"

#include <algorithm>
#include <string>

#include "base/sha256.hpp"

namespace sluice::room {
namespace {

constexpr int rounds = 90;

/// The lowest `bytes` of a number, the lowest first.
void append(std::string& text, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i) & 0xff);
}

std::uint64_t number_in(std::string_view bytes) noexcept {
  std::uint64_t number = 0;
  for (std::size_t i = 8; i-- > 0;) number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

}  // namespace

std::int64_t drawn_position(std::string_view seed, std::int64_t places, std::int64_t place) {
  const auto count = static_cast<std::uint64_t>(places);
  auto index = static_cast<std::uint64_t>(place - 1);
  for (int round = 0; round < rounds; ++round) {
    std::string text{seed};
    append(text, static_cast<std::uint64_t>(round), 1);
    const auto pivot = number_in(sha256(text)) % count;
    const auto mirror = (pivot + count - index) % count;
    const auto coin = std::max(index, mirror);
    append(text, coin / 256, 4);
    const auto tosses = sha256(text);
    const auto byte = static_cast<unsigned char>(tosses[coin % 256 / 8]);
    if ((byte >> (coin % 8) & 1) != 0) index = mirror;
  }
  return static_cast<std::int64_t>(index) + 1;
}

}  // namespace sluice::room
