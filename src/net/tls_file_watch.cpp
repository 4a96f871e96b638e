#include "net/tls_file_watch.hpp"

#include <sys/stat.h>

namespace sluice::net {

TlsFileWatch::Stamp TlsFileWatch::stamp_of(const std::string& path) {
  struct stat now {};
  if (path.empty() || ::stat(path.c_str(), &now) != 0) return {};
  return {.device = now.st_dev,
          .file = now.st_ino,
          .size = static_cast<std::uint64_t>(now.st_size),
          .changed = now.st_mtim.tv_sec * 1'000'000'000 + now.st_mtim.tv_nsec};
}

TlsFileWatch::Stamps TlsFileWatch::look() const {
  return {stamp_of(files_.certificate), stamp_of(files_.key), stamp_of(files_.ca)};
}

bool TlsFileWatch::have_changed() {
  const auto now = look();
  if (now == seen_) return false;
  seen_ = now;
  return true;
}

}  // namespace sluice::net
