#include "cli/command_line/streams.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/command_line/exit_code.hpp"

namespace sluice::cli {
namespace {

struct Ignored {
  int signal;
  ::sighandler_t before = SIG_DFL;
};
Ignored ignored[] = {{SIGPIPE}, {SIGXFSZ}};
bool are_ignored = false;

/// Why stdout could not be written.
int failure = 0;

void note_failure() noexcept {
  if (failure == 0) failure = errno != 0 ? errno : EIO;
}

void occupy(int number) noexcept {
  if (::fcntl(number, F_GETFD) >= 0) return;
  // Opened the wrong way round; where there is no /dev, as a place that takes no data.
  if (::open("/dev/null", number == STDIN_FILENO ? O_WRONLY : O_RDONLY) != number &&
      ::open("/", O_PATH) != number)
    ::_exit(exit_internal);
}

}  // namespace

void prepare_streams() noexcept {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) occupy(number);
  if (are_ignored) return;
  are_ignored = true;
  for (auto& [signal, before] : ignored) before = ::signal(signal, SIG_IGN);
}

void restore_signals() noexcept {
  if (!are_ignored) return;
  for (const auto& [signal, before] : ignored) ::signal(signal, before);
}

void put_text(std::string_view text) noexcept {
  if (failure != 0) return;
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) note_failure();
}

bool flush_output() noexcept {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) note_failure();
  return failure == 0;
}

bool can_write_output() noexcept {
  const int flags = ::fcntl(STDOUT_FILENO, F_GETFL);
  return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
}

int with_output_written(int code) noexcept {
  if (flush_output()) return code;
  complain("the output could not be written: {}", std::strerror(failure));
  return code == exit_ok ? exit_no_space : code;
}

}  // namespace sluice::cli
