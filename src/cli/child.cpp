#include "cli/child.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <system_error>

#include "base/descriptor.hpp"
#include "cli/command_line/streams.hpp"
#include "sluice/clock.hpp"

namespace sluice::cli {
namespace {

constexpr std::initializer_list<int> passed_on = {SIGINT,  SIGTERM, SIGHUP,
                                                  SIGQUIT, SIGUSR1, SIGUSR2};

sigset_t child_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int signal : passed_on) sigaddset(&signals, signal);
  return signals;
}

/// In the child: becomes `words`. Returns the reason why it cannot.
int become(char* const* words, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  restore_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(128 + SIGKILL);  // it died before the kernel was told
  ::execvp(words[0], words);
  return errno;
}

/// fork(), since posix_spawn() cannot ask for the signal at the parent's death. The child tells by
/// a pipe why it cannot execute; the pipe is closed without a word when it can.
pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  Pipe told = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error{errno, std::generic_category(), "fork"};
  if (pid == 0) {
    const int why = become(words.data(), parent);
    [[maybe_unused]] const auto written = ::write(told.write.number(), &why, sizeof why);
    ::_exit(127);
  }
  told.write.close();
  int why = 0;
  while (::read(told.read.number(), &why, sizeof why) < 0 && errno == EINTR) {
  }
  if (why == 0) return pid;
  ::waitpid(pid, nullptr, 0);
  throw std::system_error{why, std::generic_category(), command[0]};
}

/// Runs until it has ended: it is killed where that is not awaited, since nothing may be given back
/// while it runs.
class Running {
 public:
  explicit Running(const std::vector<std::string>& command) : pid_(start(command)) {}
  ~Running() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void send(int signal) const noexcept { ::kill(pid_, signal); }
  /// False while it runs.
  bool has_ended(ChildResult& result) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended < 0 && errno != EINTR)
      throw std::system_error{errno, std::generic_category(), "waitpid"};
    if (ended != pid_) return false;
    pid_ = -1;
    result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }

 private:
  pid_t pid_;
};

}  // namespace

void prepare_signals() {
  // Who started us may ignore it, and so have us ignore it: then the end of a child is told to
  // nobody.
  ::signal(SIGCHLD, SIG_DFL);
  const sigset_t signals = child_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  prepare_streams();
}

ChildResult run_child(const std::vector<std::string>& command, std::stop_token end,
                      std::chrono::milliseconds grace) {
  const sigset_t watched = child_signals();
  const Descriptor signals{::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"};
  const Descriptor asked{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"};
  Running child{command};
  const std::stop_callback on_end{end, [&] {
                                    const std::uint64_t one = 1;
                                    [[maybe_unused]] const auto written =
                                        ::write(asked.number(), &one, sizeof one);
                                  }};
  ChildResult result;
  SteadyTime kill_at = SteadyTime::max();
  while (!child.has_ended(result)) {
    pollfd waiting[] = {{signals.number(), POLLIN, 0}, {asked.number(), POLLIN, 0}};
    int patience = -1;
    if (kill_at != SteadyTime::max()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(kill_at - system_clock().steady());
      patience = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 3'600'000));
    }
    if (::poll(waiting, result.ended_by_us ? 1 : 2, patience) == 0 &&
        system_clock().steady() >= kill_at) {
      child.send(SIGKILL);
      kill_at = SteadyTime::max();
    }
    signalfd_siginfo signal{};
    while (::read(signals.number(), &signal, sizeof signal) == sizeof signal) {
      // What the terminal sends goes to the whole foreground group, so the child has it already.
      if (signal.ssi_signo != SIGCHLD && signal.ssi_code != SI_KERNEL)
        child.send(static_cast<int>(signal.ssi_signo));
    }
    if (!result.ended_by_us && end.stop_requested()) {
      result.ended_by_us = true;
      child.send(SIGTERM);
      kill_at = system_clock().steady() + grace;
    }
  }
  return result;
}

}  // namespace sluice::cli
