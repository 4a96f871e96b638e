#include "engine/log/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <utility>

#include "base/integer.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

[[noreturn]] void fail(std::string_view what, const std::string& path) {
  throw std::system_error{errno, std::generic_category(), fmt::format("cannot {} {}", what, path)};
}

/// A log must not lie where a program writes that has closed its standard streams.
Descriptor beyond_standard(int number) {
  if (number < 0 || number > STDERR_FILENO) return Descriptor{number};
  const Descriptor standard{number};
  return Descriptor{::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
}

[[noreturn]] void refuse_link(const std::string& path) {
  throw Error{Errc::bad_argument,
              fmt::format("{} is a symbolic link, which is not followed; put what it names in its "
                          "place, or open the folder that it leads to",
                          path)};
}

/// What another user can exchange is not trusted with data.
void check_owner(const Descriptor& opened, const std::string& path) {
  struct stat status {};
  if (::fstat(opened.number(), &status) != 0) fail("stat", path);
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    throw Error{Errc::bad_argument,
                fmt::format("{} belongs to the user with the id {}, and this process runs as {}: "
                            "run it as that user, or give it a folder of its own",
                            path, status.st_uid, ::geteuid())};
  if ((status.st_mode & S_IWOTH) != 0)
    throw Error{Errc::bad_argument,
                fmt::format("every user of this machine can write to {}: chmod o-w {}, or give the "
                            "process a folder of its own",
                            path, path)};
}

/// Opens a file, and no other thing, that no link leads to.
Descriptor open_plain(int folder, const std::string& name, int flags, std::string_view verb,
                      const std::string& path) {
  Descriptor opened = beyond_standard(::openat(
      folder, name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!opened.is_open() && errno == ELOOP) refuse_link(path);
  const bool is_folder = !opened.is_open() && errno == EISDIR;
  if (!opened.is_open() && !is_folder) fail(verb, path);
  struct stat status {};
  if (!is_folder && ::fstat(opened.number(), &status) != 0) fail("stat", path);
  if (is_folder || !S_ISREG(status.st_mode))
    throw Error{Errc::bad_argument, fmt::format("{} is no file; move it out of the way", path)};
  check_owner(opened, path);
  return opened;
}

class RealFile final : public File {
 public:
  RealFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  void append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_.number(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("write to", path_);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

  void sync() override {
    if (::fdatasync(descriptor_.number()) != 0) fail("sync", path_);
  }

  void truncate(std::uint64_t size) override {
    if (::ftruncate(descriptor_.number(), static_cast<off_t>(size)) != 0) fail("truncate", path_);
  }

  std::uint64_t size() const override {
    struct stat status {};
    if (::fstat(descriptor_.number(), &status) != 0) fail("stat", path_);
    return static_cast<std::uint64_t>(status.st_size);
  }

  std::size_t read(std::uint64_t offset, std::span<char> into) const override {
    std::size_t total = 0;
    while (total < into.size()) {
      const ssize_t got = ::pread(descriptor_.number(), into.data() + total, into.size() - total,
                                  static_cast<off_t>(offset + total));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read", path_);
      if (got == 0) break;
      total += static_cast<std::size_t>(got);
    }
    return total;
  }

 private:
  Descriptor descriptor_;
  std::string path_;
};

class RealFolder final : public Folder {
 public:
  RealFolder(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  std::unique_ptr<File> create(const std::string& name) override {
    auto file = open_with(name, O_RDWR | O_APPEND | O_CREAT, "create");
    if (file->size() != 0) file->truncate(0);
    return file;
  }
  std::unique_ptr<File> open(const std::string& name) override {
    return open_with(name, O_RDWR | O_APPEND, "open");
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::renameat(descriptor_.number(), from.c_str(), descriptor_.number(), to.c_str()) != 0)
      fail("rename", full(from));
  }
  void remove(const std::string& name) override {
    if (::unlinkat(descriptor_.number(), name.c_str(), 0) != 0) fail("remove", full(name));
  }
  void sync() override {
    if (::fsync(descriptor_.number()) != 0) fail("sync folder", path_);
  }

  std::vector<std::string> list() const override { return names_in(path_); }
  const std::string& path() const noexcept override { return path_; }

 private:
  std::string full(const std::string& name) const { return path_ + "/" + name; }

  std::unique_ptr<File> open_with(const std::string& name, int flags, std::string_view verb) {
    return std::make_unique<RealFile>(
        open_plain(descriptor_.number(), name, flags, verb, full(name)), full(name));
  }

  Descriptor descriptor_;
  std::string path_;
};

Descriptor open_directory(const std::string& path, int flags = 0) {
  return beyond_standard(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void make_directory(const std::string& path) {
  const std::string parent = std::filesystem::absolute(path).lexically_normal().parent_path();
  const Descriptor above = open_directory(parent);
  if (!above.is_open() && errno != ENOENT && errno != ENOTDIR) fail("open folder", parent);
  if (!above.is_open())
    throw Error{Errc::bad_argument, fmt::format("cannot make the folder {}: its parent {} does not "
                                                "exist or is no folder; make it first",
                                                path, parent)};
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) fail("make folder", path);
  if (::fsync(above.number()) != 0) fail("sync folder", parent);
}

constexpr std::string_view lock_name = "sluice.lock";

/// The process that the lock's file names; 0: it has not written itself down yet.
pid_t holder_of(int descriptor) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  return leading_number<pid_t>({text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))});
}

struct OpenLocks {
  std::mutex mutex;
  std::set<Descriptor*> all;
};
OpenLocks& open_locks() {
  static auto& locks = *new OpenLocks;
  return locks;
}

// A child of fork() has a copy of each open lock, which would keep the folder in use when its
// parent has closed it or has ended.
[[maybe_unused]] const int closed_in_children =
    ::pthread_atfork([] { open_locks().mutex.lock(); }, [] { open_locks().mutex.unlock(); },
                     [] {
                       for (auto* const lock : std::exchange(open_locks().all, {})) lock->close();
                       open_locks().mutex.unlock();
                     });

std::string refusal(const std::string& folder, pid_t holder) {
  if (holder == ::getpid())
    return fmt::format("the folder {} is open already in this process (pid {}); share that Store",
                       folder, holder);
  if (holder == 0)
    return fmt::format(
        "the folder {} is in use by a process that {} does not name; find it with "
        "'fuser -v {}' and end it, or open another folder",
        folder, lock_name, folder);
  return fmt::format("the folder {} is in use by process {}; end it, or open another folder",
                     folder, holder);
}

/// False: another process has it. A child that is being spawned has a copy until its program runs;
/// that is waited for. Where a file system locks no folders, as NFS, the file's lock alone holds.
bool lock_directory(const Descriptor& directory) {
  for (int patience_ms = 500; patience_ms > 0; --patience_ms) {
    if (::flock(directory.number(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
    ::poll(nullptr, 0, 1);
  }
  return false;
}

}  // namespace

std::unique_ptr<Folder> find_folder(const std::string& given, Links links) {
  const std::string path = without_slashes(given);
  Descriptor folder = open_directory(path, links == Links::refused ? O_NOFOLLOW : 0);
  if (!folder.is_open() && errno == ENOENT) return nullptr;
  if (!folder.is_open() && (errno == ENOTDIR || errno == ELOOP)) {
    std::error_code ignored;
    if (links == Links::refused && std::filesystem::is_symlink(path, ignored)) refuse_link(path);
    throw Error{Errc::bad_argument, fmt::format("{} is not a folder; name another", path)};
  }
  if (!folder.is_open()) fail("open folder", path);
  check_owner(folder, path);
  return std::make_unique<RealFolder>(std::move(folder), path);
}

std::unique_ptr<Folder> open_folder(const std::string& path, Links links) {
  auto folder = find_folder(path, links);
  if (folder) return folder;
  make_directory(without_slashes(path));
  folder = find_folder(path, links);
  if (!folder) fail("open folder", path);
  return folder;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at{folder, error}, end; !error && at != end;
       at.increment(error))
    names.push_back(at->path().filename());
  if (error) throw std::system_error{error, "cannot list the folder " + folder};
  return names;
}

int server_in(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code gone;  // a process that has ended, or is not to be seen
  const auto inside = fs::canonical(folder, gone).string() + '/';
  const auto leads_there = [&](const fs::path& link) {
    std::error_code closed;
    return (fs::read_symlink(link, closed).string() + '/').starts_with(inside);
  };
  for (fs::directory_iterator process{"/proc", gone}, end; !gone && process != end;
       process.increment(gone)) {
    const auto pid = parse_integer<int>(process->path().filename().string());
    std::string name;
    if (!pid || !std::getline(std::ifstream{process->path() / "comm"}, name)) continue;
    if (name != "redis-server" && name != "valkey-server" && name != "keydb-server") continue;
    if (leads_there(process->path() / "cwd")) return *pid;  // its `dir`, where snapshots go
    std::error_code hidden;
    for (fs::directory_iterator file{process->path() / "fd", hidden}; !hidden && file != end;
         file.increment(hidden))
      if (leads_there(file->path())) return *pid;
  }
  return 0;
}

Error error_of_disk(const std::system_error& error) {
  struct Advice {
    int number;
    Errc errc;
    std::string_view text;
  };
  constexpr std::string_view room = "make room there";
  constexpr std::string_view permit =
      "let the user of this process read and write it, or name another folder";
  constexpr std::string_view descriptors = "raise the limit of open files (ulimit -n)";
  static constexpr Advice advices[]{
      {ENOSPC, Errc::out_of_space, room},
      {EDQUOT, Errc::out_of_space, room},
      {EFBIG, Errc::out_of_space, "raise the limit of a file's size (ulimit -f)"},
      {EMFILE, Errc::out_of_space, descriptors},
      {ENFILE, Errc::out_of_space, descriptors},
      {ENOMEM, Errc::out_of_space, "give the process more memory"},
      {EACCES, Errc::bad_argument, permit},
      {EPERM, Errc::bad_argument, permit},
      {EROFS, Errc::bad_argument, "mount it for writing, or name another folder"},
      {ENAMETOOLONG, Errc::bad_argument, "name a shorter path"},
  };
  for (const auto& [number, errc, text] : advices)
    if (error.code().value() == number) return {errc, fmt::format("{}; {}", error.what(), text)};
  return {Errc::corrupt,
          fmt::format("{}; look for the disk's errors in the kernel's log (dmesg)", error.what())};
}

std::string read_all(const File& file, const std::string& name, std::size_t most) {
  const auto size = file.size();
  if (size > most)
    throw Error{Errc::corrupt,
                fmt::format("{} has {} bytes where at most {} make sense; it is not ours", name,
                            size, most)};
  std::string text(size, '\0');
  text.resize(file.read(0, text));
  return text;
}

// flock() belongs to the open file, not to the process: it also keeps two engines of one process
// apart, and the kernel drops it when the process dies, so a stale file locks nothing.
FolderLock::FolderLock(const std::string& folder) : path_(fmt::format("{}/{}", folder, lock_name)) {
  const std::lock_guard no_fork{open_locks().mutex};
  struct stat status {};
  do {  // until the file is not one that a refused opening has just removed
    is_kept_ = ::access(path_.c_str(), F_OK) == 0;
    descriptor_ = open_plain(AT_FDCWD, path_, O_RDWR | O_CREAT, "open", path_);
    const int file = descriptor_.number();
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) throw Error{Errc::in_use, refusal(folder, holder_of(file))};
      fail("lock", path_);
    }
    if (::fstat(file, &status) != 0) fail("stat", path_);
  } while (status.st_nlink == 0);
  folder_ = open_directory(folder);
  if (!folder_.is_open()) fail("open folder", folder);
  if (!lock_directory(folder_)) {
    if (!is_kept_) ::unlink(path_.c_str());
    throw Error{Errc::in_use, refusal(folder, 0)};
  }
  // The pid is for the reader of an error alone; a full disk must not keep the folder closed.
  const auto pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(descriptor_.number(), 0) == 0) [[maybe_unused]]
    const auto written = ::pwrite(descriptor_.number(), pid.data(), pid.size(), 0);
  open_locks().all.insert({&descriptor_, &folder_});
}

FolderLock::~FolderLock() {
  const std::lock_guard no_fork{open_locks().mutex};
  if (descriptor_.is_open() && !is_kept_) ::unlink(path_.c_str());
  for (auto* const lock : {&descriptor_, &folder_}) {
    open_locks().all.erase(lock);
    if (lock->is_open()) ::flock(lock->number(), LOCK_UN);  // a child may be too new
    lock->close();
  }
}

}  // namespace sluice::engine
