#include "lock/limiter/ids.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <mutex>

#include "base/fork.hpp"
#include "base/random.hpp"

namespace sluice::lock {
namespace {

using Half = std::array<char, 8>;

/// 64 random bits of the kernel.
std::uint64_t random_half() {
  const std::string hex = random_hex_128();
  std::uint64_t bits = 0;
  std::from_chars(hex.data(), hex.data() + 16, bits, 16);
  return bits;
}

void append(std::string& id, std::uint64_t bits) {
  const auto bytes = std::bit_cast<Half>(bits);
  id.append(bytes.data(), bytes.size());
}

}  // namespace

std::string new_permit_id() {
  // Random for each thread, then counted: asks the kernel once. A child draws anew.
  thread_local std::uint64_t thread = 0;
  thread_local std::uint64_t last = 0;
  thread_local unsigned forks = 0;
  if (last == 0 || forks != fork_count()) {
    thread = random_half();
    forks = fork_count();
  }
  std::string id;
  id.reserve(2 * sizeof(Half));
  append(id, thread);
  append(id, ++last);
  return id;
}

std::string process_client() {
  static std::mutex mutex;
  static std::string id;
  static unsigned forks = 0;
  const std::lock_guard lock{mutex};
  if (id.empty() || forks != fork_count()) {
    id = random_uuid();
    forks = fork_count();
  }
  return id;
}

}  // namespace sluice::lock
