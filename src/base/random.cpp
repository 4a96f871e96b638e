#include "base/random.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <bit>
#include <cerrno>
#include <random>
#include <system_error>

namespace sluice {
namespace {

std::array<std::uint8_t, 16> random_16() {
  std::array<std::uint8_t, 16> bytes{};
  std::size_t have = 0;
  while (have < bytes.size()) {
    const auto got = ::getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error{errno, std::generic_category(), "getrandom"};
    have += static_cast<std::size_t>(got);
  }
  return bytes;
}

std::string to_hex(const std::array<std::uint8_t, 16>& bytes) {
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

}  // namespace

std::array<std::uint64_t, 2> random_128() {
  return std::bit_cast<std::array<std::uint64_t, 2>>(random_16());
}

std::string random_hex_128() { return to_hex(random_16()); }

std::string random_uuid() {
  auto bytes = random_16();
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3f) | 0x80);
  auto text = to_hex(bytes);
  for (const std::size_t dash : {8U, 13U, 18U, 23U}) text.insert(dash, 1, '-');
  return text;
}

std::uint64_t random_below(std::uint64_t bound) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_int_distribution<std::uint64_t>{0, bound - 1}(generator);
}

}  // namespace sluice
