#include "proxy/process/pid_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sluice/error.hpp"

namespace sluice::proxy {
namespace {

Error failure(std::string_view doing, const std::string& path) {
  return Error{Errc::bad_argument,
               fmt::format("{} pid file '{}' failed: {}", doing, path, std::strerror(errno))};
}

}  // namespace

PidFile::PidFile(std::string path)
    : path_(std::filesystem::absolute(path).string()), pid_(std::to_string(::getpid())) {
  const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) throw failure("opening", path_);
  const bool written = ::write(file, pid_.data(), pid_.size()) == static_cast<ssize_t>(pid_.size());
  const Error problem = failure("write to", path_);
  ::close(file);
  if (!written) throw problem;
}

PidFile::~PidFile() {
  std::string now;
  std::ifstream{path_} >> now;
  if (now == pid_) ::unlink(path_.c_str());
}

}  // namespace sluice::proxy
