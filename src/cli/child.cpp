#include "cli/child.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <system_error>

#include "sluice/clock.hpp"

namespace sluice::cli {
namespace {

constexpr std::initializer_list<int> passed_on = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

sigset_t child_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  for (const int signal : passed_on) sigaddset(&signals, signal);
  return signals;
}

class Descriptor {
 public:
  Descriptor(int number, const char* what) : number_(number) {
    if (number < 0) throw std::system_error{errno, std::generic_category(), what};
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const noexcept { return number_; }

 private:
  int number_;
};

pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, words[0], nullptr, &attributes, words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw std::system_error{failed, std::generic_category(), command[0]};
  return pid;
}

/// Empty while the child runs.
bool has_ended(pid_t pid, ChildResult& result) {
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return false;
  result.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

}  // namespace

void block_child_signals() {
  const sigset_t signals = child_signals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

ChildResult run_child(const std::vector<std::string>& command, std::stop_token end,
                      std::chrono::milliseconds grace) {
  const sigset_t watched = child_signals();
  const Descriptor signals{::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"};
  const Descriptor asked{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"};
  const pid_t pid = start(command);
  const std::stop_callback on_end{end, [&] {
                                    const std::uint64_t one = 1;
                                    [[maybe_unused]] const auto written =
                                        ::write(asked.number(), &one, sizeof one);
                                  }};
  ChildResult result;
  SteadyTime kill_at = SteadyTime::max();
  while (!has_ended(pid, result)) {
    pollfd waiting[] = {{signals.number(), POLLIN, 0}, {asked.number(), POLLIN, 0}};
    int patience = -1;
    if (kill_at != SteadyTime::max()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(kill_at - system_clock().steady());
      patience = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    }
    if (::poll(waiting, result.ended_by_us ? 1 : 2, patience) == 0) {
      ::kill(pid, SIGKILL);
      kill_at = SteadyTime::max();
    }
    signalfd_siginfo signal{};
    while (::read(signals.number(), &signal, sizeof signal) == sizeof signal) {
      // What the terminal sends goes to the whole foreground group, so the child has it already.
      if (signal.ssi_signo != SIGCHLD && signal.ssi_code != SI_KERNEL)
        ::kill(pid, static_cast<int>(signal.ssi_signo));
    }
    if (!result.ended_by_us && end.stop_requested()) {
      result.ended_by_us = true;
      ::kill(pid, SIGTERM);
      kill_at = system_clock().steady() + grace;
    }
  }
  return result;
}

}  // namespace sluice::cli
