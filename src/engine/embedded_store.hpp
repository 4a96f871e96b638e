/// A Store inside the process: the engine behind one lock, in memory or with an append-only file.
///
/// Guarantee: one command or script at a time, in the order of the calls; with Fsync::always a
///   reply, also of a read, is given only when everything that it may have seen is on disk. A crash
///   loses nothing that was replied, and of each execution the file keeps all or nothing.
/// Not guaranteed: with Fsync::everysec, the last second or two before a power cut; with
///   Fsync::never, what the operating system had not written yet. (A crash of the process alone
///   loses nothing replied in any mode.) A message may be delivered before the execution that
///   published it is on disk. After a failed write the file does not have the effects of the calls
///   that failed with effect `unknown`, but reads show them until the folder is opened anew.
/// Threads: any. The caller's thread executes, at the call and not only when the Task is awaited; a
///   blocking command suspends its Task alone. After a fork() the child has neither the data nor
///   the folder: each call throws Error (closed), and the file and its lock stay the parent's.
///   A redis-server that has the folder is refused (in_use) where /proc shows its files; what is
///   started later, in another container or by a user that is hidden, is not noticed.
/// On disk: see append_log.hpp; a redis-server 7 with `appendonly yes` and `dir` = the folder loads
///   it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/embedded/opened_engine.hpp"
#include "sluice/store.hpp"

namespace sluice::engine {

/// REQUIRES at destruction: no call is under way.
class EmbeddedStore : public Store {
 public:
  using Store::run;

  /// What loading the file has found.
  virtual const OpenReport& open_report() const noexcept = 0;
  /// Rewrites the file now and waits for the end; also ends the state after a failed write. Throws
  /// Error when it fails (the old files are as good as before) and where there is no file.
  virtual void rewrite() = 0;
};

/// Throws Error: bad_argument (the path; a log that is not for this engine), in_use (another
/// process has the folder, named with its pid), corrupt (which file, at which byte, and what to
/// do), out_of_space.
std::unique_ptr<EmbeddedStore> open_embedded(EmbeddedOptions options = {});
/// The same on any Folder, for tests. `folder` null: memory.
std::unique_ptr<EmbeddedStore> open_embedded(EmbeddedOptions options,
                                             std::unique_ptr<Folder> folder);

}  // namespace sluice::engine
