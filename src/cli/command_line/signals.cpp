#include "cli/command_line/signals.hpp"

#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace sluice::cli {
namespace {

/// Wakes the watcher at the end.
constexpr int wake_up = SIGUSR2;

sigset_t set_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  sigaddset(&set, wake_up);
  return set;
}

}  // namespace

bool sleep_for(std::chrono::nanoseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock{mutex};
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

StopOnSignal::StopOnSignal(std::initializer_list<int> signals) : wanted_(signals) {
  const sigset_t watched = set_of(signals);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);  // threads started later inherit it
  watcher_ = std::thread{[this, watched] {
    for (int signal = 0; !ending_ && came_ == 0;) {
      ::sigwait(&watched, &signal);
      if (ending_ || !wanted_.contains(signal)) continue;
      came_.store(signal);
      source_.request_stop();
    }
  }};
}

StopOnSignal::~StopOnSignal() {
  ending_.store(true);
  ::pthread_kill(watcher_.native_handle(), wake_up);
  watcher_.join();
}

}  // namespace sluice::cli
