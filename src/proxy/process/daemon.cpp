#include "proxy/process/daemon.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace sluice::proxy {
namespace {

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error{errno, std::generic_category(), what};
  return result;
}

/// In the process that was started: waits for one byte, or the end.
[[noreturn]] void exit_as_told(int ready, pid_t child) {
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(ready, &byte, 1)) < 0 && errno == EINTR) {
  }
  ::waitpid(child, nullptr, WNOHANG);
  ::_exit(got == 1 ? 0 : 1);
}

}  // namespace

Daemon Daemon::start() {
  std::array<int, 2> pipe{};
  checked(::pipe2(pipe.data(), O_CLOEXEC), "pipe2");
  const pid_t child = checked(::fork(), "fork");
  if (child != 0) {
    ::close(pipe[1]);
    exit_as_told(pipe[0], child);
  }
  ::close(pipe[0]);
  Daemon daemon{pipe[1]};
  checked(::setsid(), "setsid");
  std::signal(SIGHUP, SIG_IGN);  // the leader of the session ends now, and the terminal would tell
  if (checked(::fork(), "fork") != 0) ::_exit(0);
  ::umask(022);
  return daemon;
}

Daemon::~Daemon() {
  if (ready_ >= 0) ::close(ready_);
}

void Daemon::ready() {
  const int null = checked(::open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null");
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    checked(::dup2(null, standard), "dup2");
  if (null > STDERR_FILENO) ::close(null);
  static_cast<void>(!::write(ready_, "\0", 1));  // the parent may have been killed
  ::close(std::exchange(ready_, -1));
}

}  // namespace sluice::proxy
