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

std::string read(std::string_view what, const std::string& path) {
  const auto refuse = [&](std::string_view why) { refuse_secret_file(what, path, why); };
  // Without O_NONBLOCK a pipe without a writer would never be opened.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file.is_open()) refuse(fmt::format("it cannot be read: {}", std::strerror(errno)));
  struct stat found {};
  if (::fstat(file.number(), &found) != 0) refuse(std::strerror(errno));
  if (!S_ISREG(found.st_mode)) refuse("it is no file");
  if ((found.st_mode & S_IRWXO) != 0)
    refuse(fmt::format("everybody may read or write it; chmod 640 {}", path));
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
