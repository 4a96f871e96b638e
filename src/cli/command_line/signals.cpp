#include "cli/command_line/signals.hpp"

#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace sluice::cli {
namespace {

/// Wakes the watcher at the end.
constexpr int wake_up = SIGUSR2;

/// Without those that this program was told to ignore (nohup).
std::set<int> heeded(std::initializer_list<int> signals) {
  std::set<int> heeded;
  for (const int signal : signals) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_IGN)
      heeded.insert(signal);
  }
  return heeded;
}

sigset_t set_of(const std::set<int>& signals) {
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

StopOnSignal::StopOnSignal(std::initializer_list<int> signals) : wanted_(heeded(signals)) {
  const sigset_t watched = set_of(wanted_);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);  // threads started later inherit it
  watcher_ = std::thread{[this, watched] {
    for (int signal = 0; came_ == 0;) {
      ::sigwait(&watched, &signal);
      if (signal == wake_up && ending_) return;
      if (!wanted_.contains(signal)) continue;
      came_.store(signal);
      source_.request_stop();
    }
  }};
}

StopOnSignal::~StopOnSignal() { finish(); }

int StopOnSignal::finish() {
  if (watcher_.joinable()) {
    ending_.store(true);
    ::pthread_kill(watcher_.native_handle(), wake_up);
    watcher_.join();
  }
  return came_;
}

}  // namespace sluice::cli
