/// The operations on files that the append-only log needs, so that a test can make each of them
/// fail.
///
/// Errors are thrown as std::system_error with the errno and a text that names the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/descriptor.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {

class File {
 public:
  virtual ~File() = default;

  /// Writes at the end, all of it. When it throws, a part may have been written.
  virtual void append(std::string_view bytes) = 0;
  /// fdatasync. After a failure it is not known what is on disk, and a second call may succeed
  /// falsely (PostgreSQL's "fsyncgate").
  virtual void sync() = 0;
  virtual void truncate(std::uint64_t size) = 0;
  virtual std::uint64_t size() const = 0;
  /// How many bytes it read; less than asked only at the end of the file.
  virtual std::size_t read(std::uint64_t offset, std::span<char> into) const = 0;
};

/// One directory. Names are bare. A file that is a symbolic link, no plain file, or another user's
/// is an Error{bad_argument}.
class Folder {
 public:
  virtual ~Folder() = default;

  /// A new, empty file (mode 0600); an old one of that name is emptied.
  virtual std::unique_ptr<File> create(const std::string& name) = 0;
  /// An existing file, to read and to append.
  virtual std::unique_ptr<File> open(const std::string& name) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& name) = 0;
  /// fsync of the directory: what was created, renamed and removed survives a power cut.
  virtual void sync() = 0;
  virtual std::vector<std::string> list() const = 0;
  virtual const std::string& path() const noexcept = 0;
  virtual std::string path_of(const std::string& name) const { return path() + "/" + name; }
  /// Moves a file that open() finds elsewhere into the folder itself.
  virtual void take_over(const std::string& /*name*/) {}
};

/// Whether the last part of a path may be a symbolic link.
enum class Links { followed, refused };

/// Opens a directory, and makes it (mode 0700, durably) where only its parent exists.
/// Throws Error{bad_argument} where the parent is missing too, `path` is no directory or a link
/// that is refused, or others could exchange what is in it: it belongs to another user (but root),
/// or every user can write to it. The same holds of each file.
std::unique_ptr<Folder> open_folder(const std::string& path, Links links = Links::followed);
/// The same, but null where there is none.
std::unique_ptr<Folder> find_folder(const std::string& path, Links links = Links::followed);

/// The names in a folder. Throws std::system_error that names it.
std::vector<std::string> names_in(const std::string& folder);

/// What fails while a folder is opened, as an Error that says what to do: out_of_space, or corrupt
/// where the disk itself fails, or bad_argument where the path is not one that this user can use.
Error error_of_disk(const std::system_error& error);

/// The process of a redis-server that has a file of that folder open, or works in it; 0: none that
/// /proc shows to this process. It locks nothing.
int server_in(const std::string& folder);

/// Reads a small file whole. Throws Error{corrupt} when it is larger than `most` bytes.
std::string read_all(const File& file, const std::string& name, std::size_t most);

/// Holds a folder against every other engine, in this process and in others, until it is destroyed.
/// A child of fork() has no part in it.
class FolderLock {
 public:
  /// Throws Error{in_use}, naming the folder and the process that has it; bad_argument for a lock
  /// that is a symbolic link, no plain file, or another user's.
  explicit FolderLock(const std::string& folder);
  /// Removes the file again where it was new and keep() was not called.
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  void keep() noexcept { is_kept_ = true; }
  /// Whether no engine has held the folder before, or its file was removed since.
  bool is_new() const noexcept { return !is_kept_; }

 private:
  const std::string path_;
  bool is_kept_ = true;
  Descriptor folder_;  // also locked: nobody removes it by hand, as the file that names the holder
  Descriptor descriptor_;
};

}  // namespace sluice::engine
