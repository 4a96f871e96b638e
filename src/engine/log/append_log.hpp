/// The files of an append-only log, as Redis 7 lays them out:
///
///     FOLDER/sluice.lock                              the process that has it open
///     FOLDER/appendonlydir/appendonly.aof.manifest    which of the following count, in which order
///     FOLDER/appendonlydir/appendonly.aof.3.base.aof  everything up to some moment
///     FOLDER/appendonlydir/appendonly.aof.7.incr.aof  every execution since, one append each
///
/// The manifest alone says which files count, and is replaced by rename: a crash leaves the old
/// list or the new one. It also lists what is outdated and what does not count yet: these alone are
/// removed by the next opening, never a file that is not listed. A rewrite lists a new increment,
/// writes a base that holds exactly what the older files say, and then lists that base and the new
/// increment. What is written has checksums: see checksum.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "engine/log/checksum.hpp"
#include "engine/log/file.hpp"
#include "engine/log/manifest.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

/// FOLDER/appendonlydir, made with the first file in it. A single FOLDER/appendonly.aof of Redis 6
/// or older counts as if it lay there, until take_over() moves it; a snapshot where there is no log
/// does, too, and is linked. Where no engine had the folder
/// before (`is_new`), a warning tells of a snapshot that is newer than the log.
/// Throws Error{bad_argument} that names the file where the folder has no such log, and something
/// else that a redis-server may have left; corrupt where that has lost its manifest.
std::unique_ptr<Folder> open_log_folder(const std::string& folder, bool is_new);

/// How a redis-server makes a log for this engine of the one that `file` belongs to: what to run,
/// step by step, and which folder to open then.
std::string steps_from_log(const std::string& file);

/// Runs one command of the log. Throws Error where it cannot be run; bad_argument: the engine has
/// no such command or database.
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
  /// Up to when it was written, in the seconds of the process that wrote it; 0: it does not say.
  std::int64_t last_second = 0;
};

/// Runs every command of `file`. Gives the size up to which it is whole: smaller than the file's
/// where the tail is torn, which is allowed in the `last` file alone.
/// Throws Error{corrupt} with the offset of the damage; Error{bad_argument} for what is sound and
/// not for this engine: a command that it does not know, a function in a snapshot.
std::uint64_t load_log_file(const File& file, const std::string& name, bool last,
                            const Replay& replay, OpenReport& report);

/// Threads: one at a time; `current()` may be synced by another.
class AppendLog {
 public:
  /// Replays what is there, cuts a torn tail, and gets ready to append. Throws as
  /// load_log_file(), and then the folder is as before; and std::system_error.
  AppendLog(std::unique_ptr<Folder> folder, const Replay& replay);

  const OpenReport& report() const noexcept { return report_; }
  /// Bytes of all files that count, and of the base among them. Any thread.
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t base_size() const noexcept { return base_size_; }

  /// Appends all of `bytes` with their checksum, which is put into `bytes`; durably where `sync`.
  /// When it throws std::system_error the file is cut back to what it was (as far as the disk lets
  /// it), and must not be appended to any more.
  void append(std::string& bytes, bool sync);
  std::shared_ptr<File> current() const noexcept { return current_; }

  /// A file that waits to be listed.
  struct Draft {
    Manifest::LogFile entry;
    std::shared_ptr<File> file;
  };
  Draft draft_increment();
  Draft draft_base();
  void discard(Draft draft) noexcept;

  /// From now on `increment` is appended to. When it throws, nothing has changed, or (`broken` set)
  /// it is not known which files count.
  void use_increment(const Draft& increment, bool& broken);
  /// `base` (written and synced) replaces all files before the current increment, or with
  /// `increment` that one too.
  void use_base(const Draft& base, const Draft* increment, bool& broken);

 private:
  Manifest read_manifest(const std::vector<std::string>& names);
  void refuse_later_files(const Manifest& manifest, const std::vector<std::string>& names) const;
  void check_size(const Manifest::LogFile& entry, const File& file, bool last) const;
  std::shared_ptr<File> load(const Replay& replay);
  std::shared_ptr<File> load_file(const Manifest::LogFile& entry, bool last, const Replay& replay);
  void cut(File& torn);
  Draft draft(Manifest::LogFile entry);
  void begin_appending(std::shared_ptr<File> file, std::uint64_t size);
  void replace_manifest(Manifest manifest, bool& broken);
  void remove_history() noexcept;

  std::unique_ptr<Folder> folder_;
  Manifest manifest_;
  std::shared_ptr<File> current_;
  std::uint64_t current_size_ = 0;
  ChecksumWriter checksums_;  // of current_
  std::atomic<std::uint64_t> size_ = 0;
  std::atomic<std::uint64_t> base_size_ = 0;
  OpenReport report_;
};

}  // namespace sluice::engine
