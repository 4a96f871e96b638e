/// Reads the files of a log and hands out their commands; a MULTI only when its EXEC is there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/log/file.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

/// Runs one command of the log. Throws Error where it cannot be run.
using Replay = std::function<void(Words)>;

/// What opening a folder found.
struct OpenReport {
  std::uint64_t commands = 0;
  std::uint64_t bytes = 0;
  /// The file whose torn tail was cut; empty: none was. A tail is torn by a crash in mid-write, and
  /// was never acknowledged under Fsync::always.
  std::string cut_file;
  std::uint64_t cut_at = 0;
  std::uint64_t cut_bytes = 0;
};

/// Runs every command of `file`. Gives the size up to which it is whole: smaller than the file's
/// where the tail is torn, which is allowed in the `last` file alone.
/// Throws Error{corrupt} with the offset of the damage, Error{bad_argument} for a snapshot in
/// Redis's RDB form.
std::uint64_t load_log_file(const File& file, const std::string& name, bool last,
                            const Replay& replay, OpenReport& report);

}  // namespace sluice::engine
