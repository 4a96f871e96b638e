#include "cli/signals.hpp"

#include <pthread.h>
#include <signal.h>

namespace sluice::cli {
namespace {

/// Wakes the watcher when nobody sent a signal; blocked like the others, so it has no effect of its own.
constexpr int wake_up = SIGUSR2;

sigset_t watched() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, wake_up}) sigaddset(&signals, signal);
  return signals;
}

}  // namespace

StopOnSignal::StopOnSignal() {
  const sigset_t signals = watched();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // threads started later inherit it
  watcher_ = std::thread{[this, signals] {
    int signal = 0;
    ::sigwait(&signals, &signal);
    if (signal != wake_up) source_.request_stop();
  }};
}

StopOnSignal::~StopOnSignal() {
  ::pthread_kill(watcher_.native_handle(), wake_up);
  watcher_.join();
}

}  // namespace sluice::cli
