#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "engine/log/file.hpp"
#include "sluice/error.hpp"

namespace sluice::engine {
namespace {

constexpr std::string_view lock_name = "sluice.lock";

/// The process that the lock's file names; 0: it has not written itself down yet.
pid_t holder_of(int descriptor) {
  std::array<char, 16> text{};
  const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
  pid_t holder = 0;
  if (size > 0) std::from_chars(text.data(), text.data() + size, holder);
  return holder;
}

std::string refusal(const std::string& folder, pid_t holder) {
  if (holder == ::getpid())
    return fmt::format("the folder {} is open already in this process (pid {}); share that Store",
                       folder, holder);
  return fmt::format("the folder {} is in use by process {}; end it, or open another folder",
                     folder, holder);
}

}  // namespace

// flock() belongs to the open file, not to the process: it also keeps two engines of one process
// apart, and the kernel drops it when the process dies, so a stale file holds nobody up.
FolderLock::FolderLock(const std::string& folder) {
  const auto path = fmt::format("{}/{}", folder, lock_name);
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor_ < 0)
    throw std::system_error{errno, std::generic_category(), "cannot open " + path};
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    const pid_t holder = holder_of(descriptor_);
    ::close(descriptor_);
    if (why == EWOULDBLOCK) throw Error{Errc::in_use, refusal(folder, holder)};
    throw std::system_error{why, std::generic_category(), "cannot lock " + path};
  }
  // The pid is for the reader of an error alone; a full disk must not keep the folder closed.
  const auto pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(descriptor_, 0) == 0) [[maybe_unused]]
    const auto written = ::pwrite(descriptor_, pid.data(), pid.size(), 0);
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace sluice::engine
