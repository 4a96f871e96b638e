#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <utility>

#include "support/system_failure.hpp"

namespace sluice::test {
namespace {

void end_with_parent(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it was gone already
}

std::vector<std::string> environment_of(const ProcessOptions& options) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    bool replaced = false;
    for (const auto& [name, value] : options.environment)
      replaced = replaced || text.starts_with(name + "=");
    if (!replaced) all.push_back(text);
  }
  for (const auto& [name, value] : options.environment) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers_of(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Between fork and exec: system calls only. The errno goes through `report`, which exec closes.
[[noreturn]] void become(char** argv, char** environment, const char* directory, const char* output,
                         pid_t parent, int report) {
  end_with_parent(parent);
  bool ready = *directory == '\0' || ::chdir(directory) == 0;
  if (ready && *output != '\0') {
    const int file = ::open(output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ready = file >= 0 && ::dup2(file, 1) >= 0 && ::dup2(file, 2) >= 0;
  }
  if (ready) ::execvpe(argv[0], argv, environment);
  const int reason = errno;
  [[maybe_unused]] const auto written = ::write(report, &reason, sizeof reason);
  ::_exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& argv, const ProcessOptions& options) {
  auto words = argv;
  auto variables = environment_of(options);
  auto word_pointers = pointers_of(words);
  auto variable_pointers = pointers_of(variables);
  const auto directory = options.directory.string();
  const auto output = options.output.string();
  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) fail("pipe2");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0)
    become(word_pointers.data(), variable_pointers.data(), directory.c_str(), output.c_str(),
           parent, report[1]);
  const int fork_error = errno;
  ::close(report[1]);
  int reason = 0;
  const auto got = pid_ < 0 ? 0 : ::read(report[0], &reason, sizeof reason);
  ::close(report[0]);
  if (pid_ < 0) fail("fork", fork_error);
  if (got > 0) {
    wait();
    fail("start " + argv.at(0), reason);
  }
}

Process::Process(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ > 0) return;
  end_with_parent(parent);
  int status = 70;
  try {
    status = body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child process: %s\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(status);
}

Process::~Process() {
  if (pid_ > 0 && !status_) kill();
}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    if (pid_ > 0 && !status_) kill();
    pid_ = std::exchange(other.pid_, -1);
    status_ = other.status_;
  }
  return *this;
}

int Process::wait() {
  while (!status_) {
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_)
      status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    else if (errno != EINTR)
      fail("waitpid");
  }
  return *status_;
}

std::optional<int> Process::wait_for(std::chrono::milliseconds patience) {
  if (status_) return status_;
  const int handle =
      static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));  // glibc 2.36 declares it for C alone
  if (handle < 0) fail("pidfd_open");
  pollfd ended{handle, POLLIN, 0};
  const int ready = ::poll(&ended, 1, static_cast<int>(patience.count()));
  ::close(handle);
  if (ready <= 0) return std::nullopt;
  return wait();
}

void Process::signal(int number) {
  if (!status_ && ::kill(pid_, number) != 0) fail("kill");
}

void Process::terminate() { signal(SIGTERM); }

void Process::kill() {
  signal(SIGKILL);
  wait();
}

/// Returns when it stands still: until then its threads may go on.
void Process::stop() {
  signal(SIGSTOP);
  siginfo_t stopped{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WEXITED | WNOWAIT);
}
void Process::cont() { signal(SIGCONT); }

}  // namespace sluice::test
