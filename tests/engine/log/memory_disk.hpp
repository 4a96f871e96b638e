/// A disk in memory that fails where it is told to, and forgets in a power cut whatever was not
/// synced.
#pragma once

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/log/file.hpp"

namespace sluice::engine::test {

class MemoryDisk {
 public:
  static constexpr std::size_t never = std::numeric_limits<std::size_t>::max();

  std::unique_ptr<Folder> folder();

  /// Operations that change something, so far.
  std::size_t operations() const;
  /// Operation number `at` fails (the first is 0), and with `for_good` all that follow. A failing
  /// append writes half.
  void fail(std::size_t at, int error, bool for_good);
  /// Appends fail once all files together have so many bytes.
  void set_capacity(std::uint64_t bytes);
  void heal();
  /// What was not synced is gone: the ends of files, names, renames and removals.
  void cut_power();

  bool has(const std::string& name) const;
  std::string content(const std::string& name) const;
  void put(const std::string& name, std::string content);
  std::size_t syncs() const;  ///< of files
  /// From now on a thread that syncs a file waits until release_syncs().
  void hold_syncs();
  void release_syncs();
  bool is_syncing() const;

 private:
  friend class MemoryFile;
  friend class MemoryFolder;

  struct Inode {
    std::string data;
    std::string synced;
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  /// Counts an operation; true when it has to fail, with errno set.
  bool fails();
  void check(const std::string& what);
  std::uint64_t used() const;

  mutable std::mutex mutex_;
  Names names_;
  Names synced_names_;
  std::size_t operations_ = 0;
  std::size_t syncs_ = 0;
  std::size_t fail_at_ = never;
  std::condition_variable released_;
  bool held_ = false;
  int syncing_ = 0;
  int error_ = 0;
  bool for_good_ = false;
  std::uint64_t capacity_ = std::numeric_limits<std::uint64_t>::max();
};

}  // namespace sluice::engine::test
