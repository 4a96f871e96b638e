/// The fields that a snapshot consists of: lengths, texts, numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/rdb/snapshot_reader.hpp"

namespace sluice::engine {

/// Throws Error{corrupt}.
class SnapshotFields {
 public:
  explicit SnapshotFields(SnapshotSource& source) : source_(source) {}

  std::string_view take(std::uint64_t size);
  unsigned byte() { return static_cast<unsigned char>(take(1).front()); }
  std::uint64_t length();
  /// Plain, packed as a number, or compressed.
  std::string text();
  /// As sorted sets had it once: a byte of length, and digits.
  double number_as_text();
  /// Of all that was taken.
  std::uint64_t checksum() const noexcept { return checksum_; }

 private:
  struct Length {
    std::uint64_t value = 0;
    bool is_special = false;  ///< the value says how a text is packed
  };
  Length any_length();

  SnapshotSource& source_;
  std::uint64_t checksum_ = 0;
};

}  // namespace sluice::engine
