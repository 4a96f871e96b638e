#include "net/file_watch.hpp"

#include <sys/stat.h>

namespace sluice::net {

FileWatch::Stamp FileWatch::stamp_of(const std::string& path) {
  struct stat now {};
  if (path.empty() || ::stat(path.c_str(), &now) != 0) return {};
  return {.device = now.st_dev,
          .file = now.st_ino,
          .size = static_cast<std::uint64_t>(now.st_size),
          .changed = now.st_ctim.tv_sec * 1'000'000'000 + now.st_ctim.tv_nsec};
}

FileWatch::Stamps FileWatch::look() const {
  Stamps stamps;
  for (const auto& path : paths_) stamps.push_back(stamp_of(path));
  return stamps;
}

bool FileWatch::have_changed() {
  const auto now = look();
  if (now == seen_) return false;
  seen_ = now;
  return true;
}

}  // namespace sluice::net
