#include "engine/types/chained_table.hpp"

#include <cstring>

namespace sluice::engine {
namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t folded(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class Number>
std::uint64_t load(const char* at) noexcept {
  Number number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

}  // namespace

/// Eight bytes at a time through a multiplication whose halves are folded together, as wyhash and
/// MUM do it.
std::uint64_t hash_of(std::string_view text) noexcept {
  constexpr std::uint64_t odd1 = 0xa0761d6478bd642fULL;
  constexpr std::uint64_t odd2 = 0xe7037ed1a0b428dbULL;
  const char* at = text.data();
  auto left = text.size();
  std::uint64_t hash = left * odd2 ^ odd1;
  for (; left > 16; at += 16, left -= 16)
    hash = folded(load<std::uint64_t>(at) ^ odd1, load<std::uint64_t>(at + 8) ^ hash);
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  if (left >= 8) {  // the last 16 bytes in two loads that may overlap
    a = load<std::uint64_t>(at);
    b = load<std::uint64_t>(at + left - 8);
  } else if (left >= 4) {
    a = load<std::uint32_t>(at);
    b = load<std::uint32_t>(at + left - 4);
  } else if (left > 0) {
    a = static_cast<std::uint64_t>(static_cast<unsigned char>(at[0])) << 16 |
        static_cast<std::uint64_t>(static_cast<unsigned char>(at[left / 2])) << 8 |
        static_cast<unsigned char>(at[left - 1]);
  }
  return folded(folded(a ^ odd1, b ^ hash) ^ odd2, hash ^ odd1);
}

}  // namespace sluice::engine
