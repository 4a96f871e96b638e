#include "bloom/draft.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/random.hpp"
#include "bloom/memory.hpp"

namespace sluice::bloom {
namespace {

/// The system would take the part before a byte 0 for the path.
std::string checked(std::string path) {
  if (path.find('\0') == std::string::npos) return path;
  std::ranges::replace(path, '\0', '?');
  throw Error{Errc::bad_argument,
              fmt::format("a Bloom filter has no file '{}': there is a byte 0 in its path", path)};
}

/// What a path leads to. A link stays, whatever is written to the file behind it.
std::string followed(std::string path) {
  constexpr int most_links = 40;
  std::error_code no_link;
  for (int links = 0; links < most_links; ++links) {
    const auto target = std::filesystem::read_symlink(path, no_link);
    if (no_link) return path;
    path = std::filesystem::path{path}.parent_path() / target;
  }
  return path;  // to be refused by the system
}

}  // namespace

void fail(const char* what, const std::string& path) {
  const int number = errno;
  const auto code = number == ENOSPC || number == EDQUOT ? Errc::out_of_space
                    : number == EIO                      ? Errc::corrupt
                                                         : Errc::bad_argument;
  throw Error{code, fmt::format("cannot {} the Bloom filter {}: {}", what, path,
                                std::generic_category().message(number))};
}

Error damaged(const std::string& path, std::string_view why) {
  return Error{
      Errc::corrupt,
      fmt::format("{} is no whole Bloom filter: {}; save it anew, or restore a copy", path, why)};
}

Draft::Draft(const std::string& path)
    : path_(followed(checked(path))), draft_(fmt::format("{}.{}.draft", path_, random_hex_128())) {
  struct stat old {};
  const bool is_there = ::stat(path.c_str(), &old) == 0;
  if (!is_there && errno == ELOOP) fail("write to", path);
  if (is_there && !S_ISREG(old.st_mode))  // such as /dev/stdout
    throw Error{
        Errc::bad_argument,
        fmt::format("{} is no file: a Bloom filter that is saved would take its place", path)};
  file_ = Descriptor{
      ::open(draft_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666)};
  if (!file_.is_open()) fail("create", draft_);
  if (is_there && ::fchmod(file_.number(), old.st_mode & 0777) != 0) {
    ::unlink(draft_.c_str());
    fail("set the mode of", draft_);
  }
}

Draft::~Draft() {
  if (file_.is_open()) ::unlink(draft_.c_str());
}

void Draft::write(std::span<const std::byte> bytes) {
  sum_.add(bytes);
  put(bytes);
}

void Draft::fill() {
  static constexpr std::array<std::byte, Memory::line> zeroes{};
  write(std::span{zeroes}.first(whole_lines(offset_) - offset_));
}

void Draft::write_sum_at(std::uint64_t offset) {
  const auto sum = sum_.value();
  offset_ = offset;
  put(bytes_of(sum));
}

void Draft::take_its_place() {
  if (::fsync(file_.number()) != 0) fail("sync", draft_);
  if (::rename(draft_.c_str(), path_.c_str()) != 0) fail("replace", path_);
  file_.close();
  const auto slash = path_.rfind('/');
  const auto folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const Descriptor above{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (!above.is_open() || ::fsync(above.number()) != 0) fail("sync the folder of", path_);
}

void Draft::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto done =
        ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset_));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write", draft_);
    offset_ += static_cast<std::uint64_t>(done);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

SavedFile::SavedFile(const std::string& path)
    : path_(checked(path)), file_{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)} {
  if (!file_.is_open()) fail("open", path);
  struct stat status {};
  if (::fstat(file_.number(), &status) != 0) fail("look at", path);
  if (!S_ISREG(status.st_mode))
    throw Error{Errc::bad_argument, fmt::format("{} is no file of a Bloom filter", path)};
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

void SavedFile::read(std::uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const auto done = ::pread(file_.number(), into.data(), into.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("read", path_);
    if (done == 0) throw damaged(path_, "it became shorter while it was read");
    offset += static_cast<std::uint64_t>(done);
    into = into.subspan(static_cast<std::size_t>(done));
  }
}

}  // namespace sluice::bloom
