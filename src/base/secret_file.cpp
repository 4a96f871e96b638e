#include "base/secret_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "sluice/error.hpp"

namespace sluice {
namespace {

constexpr std::size_t largest_file = 64 << 10;

/// As PostgreSQL has it of its keys: one that is root's may be read by the group of a service that
/// is not root, which cannot change it then.
void need_private(std::string_view what, const std::string& path, const struct stat& found) {
  const bool is_of_root = found.st_uid == 0 && ::geteuid() != 0;
  const ::mode_t others = is_of_root ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;
  if ((found.st_mode & others) != 0)
    refuse_secret_file(what, path,
                       fmt::format("others than its owner may read or write it; chmod {} {}",
                                   is_of_root ? 640 : 600, path));
}

std::string read(std::string_view what, const std::string& path) {
  const auto refuse = [&](std::string_view why) { refuse_secret_file(what, path, why); };
  // Without O_NONBLOCK a pipe without a writer would never be opened.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file.is_open()) refuse(fmt::format("it cannot be read: {}", std::strerror(errno)));
  struct stat found {};
  if (::fstat(file.number(), &found) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(found.st_mode)) refuse("it is no file");
  need_private(what, path, found);
  std::string text(largest_file + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.number(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(fmt::format("it cannot be read: {}", std::strerror(errno)));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > largest_file) refuse(fmt::format("it has more than {} bytes", largest_file));
  text.resize(size);
  return text;
}

}  // namespace

void need_private_file(std::string_view what, const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    refuse_secret_file(what, path, fmt::format("it cannot be read: {}", std::strerror(errno)));
  need_private(what, path, found);
}

void refuse_secret_file(std::string_view what, const std::string& path, std::string_view why) {
  throw Error{Errc::bad_argument, fmt::format("{} {}: {}", what, path, why)};
}

std::vector<SecretLine> read_secret_file(std::string_view what, const std::string& path) {
  const auto text = read(what, path);
  std::vector<SecretLine> lines;
  std::string_view rest{text};
  for (int number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const auto line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!line.empty() && !line.starts_with('#')) lines.push_back({number, std::string{line}});
  }
  return lines;
}

}  // namespace sluice
