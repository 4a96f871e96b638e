/// Whether files, as those of certificates and keys, are still those that were read.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::net {

/// Threads: one at a time.
class FileWatch {
 public:
  /// Make it before the files are read, so that no change is missed. Empty paths are none.
  explicit FileWatch(std::vector<std::string> paths) : paths_(std::move(paths)), seen_(look()) {}

  /// Whether one of them has changed since the last call, or the constructor. A system call for
  /// each.
  bool have_changed();

 private:
  /// What tells one content of a file from the next.
  struct Stamp {
    std::uint64_t device = 0, file = 0, size = 0;
    std::int64_t changed = 0;  // ns; its modes, too
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::vector<Stamp>;
  static Stamp stamp_of(const std::string& path);
  Stamps look() const;

  std::vector<std::string> paths_;
  Stamps seen_;
};

}  // namespace sluice::net
