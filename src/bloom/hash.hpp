/// The hashes of keys, and the checksum of files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace sluice::bloom {

struct Hash {
  std::uint64_t low;
  std::uint64_t high;
};

/// MurmurHash3 x64 128, seed 0, as Guava. Throws Error{bad_argument} for 4 GiB and more.
Hash murmur_hash(std::string_view key);
/// XXH64 of bytes that come piece by piece.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::bloom
