/// Files of filters: one that is written beside the old one until it is whole, and one that is
/// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "bloom/hash.hpp"
#include "sluice/error.hpp"

namespace sluice::bloom {

/// Throws what errno says: out_of_space, corrupt (the disk fails), bad_argument.
[[noreturn]] void fail(const char* what, const std::string& path);

Error damaged(const std::string& path, std::string_view why);

inline std::span<const std::byte> bytes_of(const auto& value) {
  return std::as_bytes(std::span{&value, 1});
}

/// A new file, which is put into the place of an older one when it is whole. Adds what is written
/// to a checksum. All throw as fail().
class Draft {
 public:
  explicit Draft(const std::string& path);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft();

  void write(std::span<const std::byte> bytes);
  /// Up to the next line.
  void fill();
  /// The checksum so far, which is not a part of itself.
  void write_sum_at(std::uint64_t offset);
  void skip(std::size_t bytes) { offset_ += bytes; }

  void take_its_place();

 private:
  void put(std::span<const std::byte> bytes);

  std::string path_;
  std::string draft_;
  Descriptor file_;
  std::uint64_t offset_ = 0;
  Checksum sum_;
};

/// A file that is open to be read.
class SavedFile {
 public:
  explicit SavedFile(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  int number() const noexcept { return file_.number(); }

  void read(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace sluice::bloom
