/// The list of files that make up a log, in the words of Redis 7:
/// appendonlydir/appendonly.aof.manifest. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"

namespace sluice::engine {

struct Manifest {
  static constexpr std::string_view file_name = "appendonly.aof.manifest";
  static constexpr std::size_t largest_file = 1 << 20;

  struct LogFile {
    std::string name;
    std::uint64_t sequence = 1;
    /// In bytes, of a file that is not appended to any more; Redis and older versions skip it.
    std::optional<std::uint64_t> size = std::nullopt;
  };

  std::optional<LogFile> base;
  std::vector<LogFile> increments;  ///< sequences rise; the last is the one that is appended to
  std::vector<LogFile> history;     ///< does not count, to be removed

  bool lists_nothing() const noexcept { return !base && increments.empty(); }
  /// The name and number for a file that comes after those listed, none of `taken`.
  LogFile next_base(const std::vector<std::string>& taken) const;
  LogFile next_increment(const std::vector<std::string>& taken) const;
  /// What `old` lists and this one does not is history.
  void outdate(const Manifest& old);
};

/// Throws Error{corrupt} with the line and what is wrong with it.
Manifest parse_manifest(std::string_view text);
std::string to_text(const Manifest& manifest);

/// A name as Redis gives it to a file of a log, "appendonly.aof.2.base.aof".
struct LogName {
  std::string_view stem;
  std::uint64_t sequence = 0;
  bool is_base = false;
};
std::optional<LogName> parse_log_name(std::string_view name);
/// Such a name of this engine's log.
bool is_log_file(std::string_view name);

/// Error{corrupt}: `names` lie in a folder, and not the manifest of `stem` that said which of them
/// count.
Error without_manifest(const std::string& folder, std::string_view stem,
                       const std::vector<std::string>& names);

}  // namespace sluice::engine
