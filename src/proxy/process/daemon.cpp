#include "proxy/process/daemon.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "sluice/error.hpp"

namespace sluice::proxy::process {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error{errno, std::generic_category(), what};
  return result;
}

/// In the process that was started: waits for the child's byte, or its end.
[[noreturn]] void exit_as_told(int ready, pid_t child) {
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(ready, &byte, 1)) < 0 && errno == EINTR) {
  }
  ::waitpid(child, nullptr, WNOHANG);
  ::_exit(got == 1 ? 0 : 1);
}

Error failure(std::string_view doing, const std::string& path) {
  return Error{Errc::bad_argument,
               fmt::format("{} pid file '{}' failed: {}", doing, path, std::strerror(errno))};
}

std::size_t raise_descriptor_limit() noexcept {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto soft = std::exchange(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : soft;
}

}  // namespace

Daemon Daemon::start() {
  Pipe pipe = make_pipe();
  const pid_t child = checked(::fork(), "fork");
  if (child != 0) {
    pipe.write.close();
    exit_as_told(pipe.read.number(), child);
  }
  Daemon daemon{std::move(pipe.write)};
  checked(::setsid(), "setsid");
  std::signal(SIGHUP, SIG_IGN);  // the leader of the session ends now, and the terminal would tell
  if (checked(::fork(), "fork") != 0) ::_exit(0);
  ::umask(022);
  return daemon;
}

void Daemon::ready() {
  const int null = checked(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    checked(::dup2(null, standard), "dup2");
  if (null > STDERR_FILENO) ::close(null);
  static_cast<void>(!::write(ready_.number(), "\0", 1));  // the parent may have been killed
  ready_.close();
}

PidFile::PidFile(std::string path)
    : path_(std::filesystem::absolute(path).string()), pid_(std::to_string(::getpid())) {
  const Descriptor file{::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (!file.is_open()) throw failure("opening", path_);
  if (::write(file.number(), pid_.data(), pid_.size()) != static_cast<ssize_t>(pid_.size()))
    throw failure("write to", path_);
}

PidFile::~PidFile() {
  std::string now;
  std::ifstream{path_} >> now;
  if (now == pid_) ::unlink(path_.c_str());
}

DescriptorPlan plan_descriptors(const Config& config) {
  const auto limit = raise_descriptor_limit();
  const auto workers = config.process.workers;
  // A further worker has a loop of two, and a listening socket that the main thread keeps, too.
  std::size_t rest = 32 + config.pools.size() + (workers - 1) * (2 + 2 * config.pools.size());
  std::size_t servers = 0;
  for (const auto& pool : config.pools)  // of a cluster it is a guess: who knows its nodes
    servers +=
        workers * std::max(pool.servers.size(), pool.cluster.size()) * pool.server_connections;
  if (limit <= rest + servers)
    throw Error{Errc::bad_argument,
                fmt::format("{} open files are too few: {} connections to servers and {} others "
                            "leave none for clients; raise the limit (ulimit -n, LimitNOFILE=)",
                            limit, servers, rest)};
  return {limit, limit - rest, limit - rest - servers};
}

std::string to_string(const DescriptorPlan& plan) {
  return fmt::format("{} open files: at most {} clients, {} for connections to servers", plan.limit,
                     plan.clients, plan.connections - plan.clients);
}

}  // namespace sluice::proxy::process
