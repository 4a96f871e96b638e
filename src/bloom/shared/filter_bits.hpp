/// The bits of a shared filter in the memory of this process.
///
/// Threads: any, at once; no locks. Bits are only ever set.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "bloom/shared/definition.hpp"

namespace sluice::bloom {

class FilterBits {
 public:
  explicit FilterBits(const Definition& definition);

  bool contains(const KeyHash& key) const noexcept;
  /// In the newest link.
  void add(const KeyHash& key) noexcept;
  /// Sets what bytes of Redis's string have set; what is beyond the link is passed over.
  /// REQUIRES: `offset` is a multiple of 8.
  void add_bytes(std::size_t link, std::uint64_t offset, std::string_view bytes) noexcept;

  static std::uint64_t bytes_of(const Definition& definition) noexcept;
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  using Word = std::atomic<std::uint64_t>;  // eight bytes of the string, the first one lowest
  struct Part {
    Modulus modulus;
    unsigned hashes;
    std::size_t words;
    std::unique_ptr<Word[]> bits;
  };

  std::vector<Part> parts_;  // the oldest first
  std::uint64_t bytes_;
};

}  // namespace sluice::bloom
