/// How a cached value lies in the store, and where.
///
///     SLC1v 1767225600000000 1523\n...      a value that is fresh until that time (µs of the
///     store's SLC1a 1767225600000000 1523\n         clock, 0: always), and took so many µs to
///     load; or: there
///                                           is none
///
/// The head ends with the line. A value of another version begins with SLC and another digit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::cache {

struct Entry {
  bool is_absent = false;
  std::int64_t fresh_until_us = 0;
  std::int64_t load_us = 0;
  std::string_view head;  ///< with its line's end: names this very entry
  std::string_view payload;
};

/// Empty: of a version that this program does not know. Throws Error (wrong_type) for what no
/// program of ours has written; `key` is for its message.
std::optional<Entry> parse_entry(std::string_view text, std::string_view key);

/// Keys of one guard, all by the name of the guard and the key of a value. Braces, colons and % in
/// the key are percent-encoded, so that no key from outside chooses the slot of a cluster, nor is
/// "user" with "admin:1" the same as "user:admin" with "1".
class Names {
 public:
  explicit Names(std::string name);

  const std::string& name() const noexcept { return name_; }
  /// What all values' keys begin with.
  const std::string& prefix() const noexcept { return prefix_; }
  std::string value_of(std::string_view key) const {
    std::string made;
    value_into(made, key);
    return made;
  }
  void value_into(std::string& made, std::string_view key) const;
  /// What value_of() has made, as it stands in a key of the store or, `of_lease`, in lease_of() it.
  /// Empty: another guard's, or another program's.
  std::optional<std::string> value_in(std::string_view key, bool of_lease) const;
  /// All keys of which value_in() may know one, for SCAN.
  std::string pattern(bool of_lease) const;
  /// In the slot of the value. `value_key`: value_of(key).
  static std::string lease_of(std::string_view value_key);

  std::string channel() const;
  std::string absent_budget() const;
  std::string second_invalidations() const;

 private:
  std::string name_;
  std::string prefix_;
};

/// A key for messages: printable, at most 200 bytes.
std::string shown(std::string_view key);

}  // namespace sluice::cache
