#include "cli/command_line/signals.hpp"

#include <pthread.h>

namespace sluice::cli {
namespace {

/// Wakes the watcher when nobody sent a signal; blocked like the others, so it has no effect of its
/// own.
constexpr int wake_up = SIGUSR2;

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  sigaddset(&set, wake_up);
  return set;
}

}  // namespace

StopOnSignal::StopOnSignal(std::initializer_list<int> signals) {
  const sigset_t watched = set_of(signals);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);  // threads started later inherit it
  watcher_ = std::thread{[this, watched] {
    int signal = 0;
    ::sigwait(&watched, &signal);
    if (signal == wake_up) return;
    came_.store(signal);
    source_.request_stop();
  }};
}

StopOnSignal::~StopOnSignal() {
  ::pthread_kill(watcher_.native_handle(), wake_up);
  watcher_.join();
}

}  // namespace sluice::cli
