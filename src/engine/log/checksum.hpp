/// Checksums in a file of the log, in lines that Redis 7 takes for comments:
///
///     #SUM-KEY:<32 hex digits>\r\n    a key; the bytes after it are summed
///     *3\r\n$3\r\nSET\r\n...          commands, as many as were written at once
///     #SUM:<16 hex digits>\r\n        of all bytes since the key, but for lines like this one
///
/// A sum begins with the first eight digits of the key, then comes SipHash-1-3 with that key. So a
/// changed byte is found although it still parses, and no value that a user has stored is taken for
/// a sum: he does not know the key.
/// Each process that appends to a file begins with a new key, so commands without a sum may stand
/// before it: of a file that a redis-server or an older version wrote. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/sip_hash.hpp"

namespace sluice::engine {

/// The line of a key, which more always follows in one write.
inline constexpr std::size_t key_line_size = 43;
bool is_key_line(std::string_view bytes) noexcept;

class ChecksumWriter {
 public:
  /// Puts the sum behind `bytes`, which are going to be written next; the key before the first.
  /// Nothing for no bytes.
  /// Throws std::system_error where the kernel has no randomness.
  void seal(std::string& bytes);

 private:
  SipKey key_{};
  std::optional<SipHash> sum_;
};

class ChecksumReader {
 public:
  /// Bytes of the file, in their order: a command, or a comment that take() did not take.
  void add(std::string_view bytes) noexcept {
    if (sum_) sum_->add(bytes);
  }

  /// Whether sums are to be expected.
  bool has_key() const noexcept { return sum_.has_value(); }

  enum class Line {
    other,  ///< no line of ours
    key,    ///< sums begin here
    right,  ///< what came since the key is as it was written
    wrong,
  };
  /// A comment, with its line end.
  Line take(std::string_view comment) noexcept;

  /// Whether `bytes` are the beginning of a line of ours.
  static bool may_become_line(std::string_view bytes) noexcept;

  /// Whether a sum stands in `bytes`, which come next: then all before it was written.
  bool ends_in(std::string_view bytes) const noexcept;

 private:
  SipKey key_{};
  std::optional<SipHash> sum_;
};

}  // namespace sluice::engine
