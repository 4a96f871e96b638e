/// The files of an append-only log, as Redis 7 lays them out:
///
///     FOLDER/sluice.lock                              who has it open
///     FOLDER/appendonlydir/appendonly.aof.manifest    which of the following count, in which order
///     FOLDER/appendonlydir/appendonly.aof.3.base.aof  everything up to some moment
///     FOLDER/appendonlydir/appendonly.aof.7.incr.aof  every execution since, one append each
///
/// The manifest alone says what counts, and is replaced by rename; so at each moment a crash leaves
/// either the old list or the new one, and files that neither names are removed at the next
/// opening. A rewrite goes: write out and list a new increment; write a base that holds exactly
/// what the older files say; list that base and the new increment alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/log/file.hpp"
#include "engine/log/loader.hpp"
#include "engine/log/manifest.hpp"

namespace sluice::engine {

/// Opens FOLDER/appendonlydir, and takes over a single FOLDER/appendonly.aof of Redis 6 or older as
/// its base.
std::unique_ptr<Folder> open_log_folder(const std::string& folder);

/// Threads: one at a time; `current()` may be synced by another.
class AppendLog {
 public:
  /// Replays what is there, cuts a torn tail, and gets ready to append. Throws Error{corrupt} and
  /// std::system_error.
  AppendLog(std::unique_ptr<Folder> folder, const Replay& replay);

  const OpenReport& report() const noexcept { return report_; }
  /// Bytes of all files that count, and of the base among them. Any thread.
  std::uint64_t size() const noexcept { return size_; }
  std::uint64_t base_size() const noexcept { return base_size_; }
  std::string path() const;  ///< of the file that is appended to

  /// Appends all of `bytes`, durably where `sync`. When it throws std::system_error the file is cut
  /// back to what it was (as far as the disk lets it), and must not be appended to any more.
  void append(std::string_view bytes, bool sync);
  std::shared_ptr<File> current() const noexcept { return current_; }

  /// A file that waits to be listed.
  struct Draft {
    Manifest::Entry entry;
    std::shared_ptr<File> file;
  };
  Draft draft_increment();
  Draft draft_base();
  void discard(Draft draft) noexcept;

  /// From now on `increment` is appended to. When it throws, nothing has changed, or (`broken` set)
  /// nobody knows.
  void use_increment(const Draft& increment, bool& broken);
  /// `base` (written and synced) replaces all files before the current increment, or with
  /// `increment` that one too.
  void use_base(const Draft& base, const Draft* increment, bool& broken);

 private:
  Manifest read_manifest(const std::vector<std::string>& names);
  void load(const Replay& replay);
  void load_file(const Manifest::Entry& entry, bool last, const Replay& replay);
  void replace_manifest(Manifest manifest, bool& broken);
  void remove_unlisted() noexcept;

  std::unique_ptr<Folder> folder_;
  Manifest manifest_;
  std::shared_ptr<File> current_;
  std::uint64_t current_size_ = 0;
  std::atomic<std::uint64_t> size_ = 0;
  std::atomic<std::uint64_t> base_size_ = 0;
  OpenReport report_;
};

}  // namespace sluice::engine
