// The file of keys: a key a line. All that may be wrong with it is told by its name and line,
// without the secret.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/base64.hpp"
#include "base/descriptor.hpp"
#include "sluice/error.hpp"
#include "sluice/token.hpp"

namespace sluice {
namespace {

constexpr std::size_t largest_file = 64 << 10;
constexpr std::string_view blanks = " \t\r";

[[noreturn]] void refuse(const std::string& path, std::string_view why) {
  throw Error{Errc::bad_argument, fmt::format("the file of keys {}: {}", path, why)};
}

std::string read(const std::string& path) {
  // Without O_NONBLOCK a pipe without a writer would never be opened.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!file.is_open()) refuse(path, fmt::format("it cannot be read: {}", std::strerror(errno)));
  struct stat found {};
  if (::fstat(file.number(), &found) != 0) refuse(path, std::strerror(errno));
  if (!S_ISREG(found.st_mode)) refuse(path, "it is no file");
  if ((found.st_mode & S_IRWXO) != 0)
    refuse(path, fmt::format("everybody may read or write it; chmod 640 {}", path));
  std::string text(largest_file + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const auto got = ::read(file.number(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(path, fmt::format("it cannot be read: {}", std::strerror(errno)));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > largest_file) refuse(path, fmt::format("it has more than {} bytes", largest_file));
  text.resize(size);
  return text;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Of a line with something in it. Throws Error (bad_argument) that says what is wrong.
TokenKey key_of(std::string_view line) {
  const auto end = line.find_first_of(blanks);
  const auto secret = end == line.npos ? std::string_view{} : trimmed(line.substr(end));
  auto bytes = from_base64(secret);
  if (!bytes || secret.empty())
    throw Error{Errc::bad_argument, "a key is its id and its secret in base64, as in 'k1 c2Vj...'"};
  return {std::string{line.substr(0, end)}, std::move(*bytes)};
}

}  // namespace

TokenKeys TokenKeys::load(const std::string& path) {
  const auto text = read(path);
  std::vector<TokenKey> keys;
  std::string_view rest{text};
  for (int number = 1; !rest.empty(); ++number) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const auto line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.starts_with('#')) continue;
    try {
      keys.push_back(key_of(line));
      TokenKeys{keys};  // the line that is wrong is the one that was read last
    } catch (const Error& wrong) {
      refuse(path, fmt::format("line {}: {}", number, wrong.message()));
    }
  }
  if (keys.empty()) refuse(path, "it has no key; `openssl rand -base64 32` makes a secret");
  return TokenKeys{std::move(keys)};
}

}  // namespace sluice
