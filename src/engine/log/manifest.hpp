/// The list of files that make up a log, in the words of Redis 7:
/// appendonlydir/appendonly.aof.manifest. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::engine {

struct Manifest {
  static constexpr std::string_view file_name = "appendonly.aof.manifest";
  static constexpr std::size_t largest_file = 1 << 20;

  struct LogFile {
    std::string name;
    std::uint64_t sequence = 1;
  };

  std::optional<LogFile> base;
  std::vector<LogFile> increments;  ///< sequences rise; the last is the one that is appended to
  std::vector<LogFile> history;     ///< superseded, to be removed

  /// The name and number for a file that comes after those listed.
  LogFile next_base() const;
  LogFile next_increment() const;
  bool lists(std::string_view name) const;
};

/// Throws Error{corrupt} with the line and what is wrong with it.
Manifest parse_manifest(std::string_view text);
std::string to_text(const Manifest& manifest);

/// A name that a rewrite may have left; other files in the folder are never removed.
bool is_log_file(std::string_view name);

}  // namespace sluice::engine
