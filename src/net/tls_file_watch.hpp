/// Whether the files of certificates and keys are still those that were read.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "net/tls.hpp"

namespace sluice::net {

/// Threads: one at a time.
class TlsFileWatch {
 public:
  /// Make it before the files are read, so that no change is missed.
  explicit TlsFileWatch(const TlsFiles& files) : files_(files), seen_(look()) {}

  /// Whether one of them has changed since the last call, or the constructor. Three system calls.
  bool have_changed();

 private:
  /// What tells one content of a file from the next.
  struct Stamp {
    std::uint64_t device = 0, file = 0, size = 0;
    std::int64_t changed = 0;  // ns
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::array<Stamp, 3>;
  static Stamp stamp_of(const std::string& path);
  Stamps look() const;

  TlsFiles files_;
  Stamps seen_;
};

}  // namespace sluice::net
