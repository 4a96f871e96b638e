#include "bloom/hash.hpp"

#include <fmt/format.h>
#include <murmurhash.h>

#include <array>
#include <limits>

#include "bloom/xxhash.hpp"
#include "sluice/error.hpp"

namespace sluice::bloom {

Hash murmur_hash(std::string_view key) {
  if (key.size() > std::numeric_limits<unsigned>::max())
    throw Error{Errc::bad_argument,
                fmt::format("a key of {} bytes: MurmurHash takes less than 4 GiB; hash it first",
                            key.size())};
  std::array<std::uint64_t, 2> hash{};
  lmmh_x64_128(key.data(), static_cast<unsigned>(key.size()), 0, hash.data());
  return {hash[0], hash[1]};
}

struct Checksum::State {
  XXH64_state_t state;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH64_reset(&state_->state, 0); }
Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  XXH64_update(&state_->state, bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const { return XXH64_digest(&state_->state); }

}  // namespace sluice::bloom
