/// An engine with what it stands on: its folder, the log in it, what commits and rewrites that. The
/// Store of a process and a server each have one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/embedded/locked_engine.hpp"
#include "engine/embedded/rewriter.hpp"
#include "engine/log/append_log.hpp"
#include "engine/log/committer.hpp"
#include "engine/lua/script_run.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

struct EmbeddedOptions {
  /// Folder of the append-only file; made (mode 0700) where its parent exists. Empty: memory alone.
  std::string path;
  /// What a reply promises. `always` is safe and costs one fdatasync for each round of concurrent
  /// callers; `everysec` loses in a power cut the last second, and the first two of each sync that
  /// was under way then or is yet to come: writes wait while one takes longer.
  Fsync fsync = Fsync::always;
  /// Gives TIME and decides expiry; null: system_clock(). When the wall is set, see EngineTime.
  Clock* clock = nullptr;
  /// The file is rewritten in the background when it is larger than this ...
  std::uint64_t rewrite_above_bytes = std::uint64_t{64} << 20;
  /// ... and has grown by this much since the last time. Less: a smaller file and a faster start
  /// for more writing. 0: only on BGREWRITEAOF.
  unsigned rewrite_growth_percent = 100;
  /// Where callbacks run. Empty: on a thread of the Store's own, with another clock at once.
  Executor executor = {};
  /// What a script may spend; its clock, where none is named, is the one above.
  ScriptLimits scripts = {};
};

/// In a folder: the unix socket of the server that has it, for programs that share it.
inline constexpr std::string_view own_socket = "engine.sock";

class OpenedEngine {
 public:
  /// Loads what `folder` has; null: memory alone.
  OpenedEngine(const EmbeddedOptions& options, std::unique_ptr<FolderLock> lock,
               std::unique_ptr<Folder> folder);
  ~OpenedEngine() { close(); }
  /// With the folder of the options. Throws Error as open_embedded().
  static std::unique_ptr<OpenedEngine> open(const EmbeddedOptions& options);

  LockedEngine& engine() noexcept { return engine_; }
  const EmbeddedOptions& options() const noexcept { return options_; }
  const OpenReport& report() const noexcept { return report_; }
  /// Null: memory alone.
  LogCommitter* committer() noexcept { return persistence_ ? &persistence_->committer : nullptr; }
  LogRewriter* rewriter() noexcept { return persistence_ ? &persistence_->rewriter : nullptr; }
  /// After an execution: has the log rewritten when it is due, or mended when it has failed. O(1).
  void look_after_log(bool wrote);
  /// Commits what is left; nothing is executed any more.
  void close();

 private:
  struct Persistence {
    Persistence(LockedEngine& engine, const EmbeddedOptions& options,
                std::unique_ptr<Folder> folder);

    AppendLog log;
    LogCommitter committer;
    LogRewriter rewriter;
  };

  const EmbeddedOptions options_;
  const std::unique_ptr<FolderLock> lock_;
  LockedEngine engine_;
  OpenReport report_;
  std::unique_ptr<Persistence> persistence_;
};

}  // namespace sluice::engine
