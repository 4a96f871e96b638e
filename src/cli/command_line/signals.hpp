/// INT and TERM as a stop token: a program that is told to end finishes what it has begun.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <initializer_list>
#include <set>
#include <stop_token>
#include <thread>

namespace sluice::cli {

/// False: stopped before the time was over.
bool sleep_for(std::chrono::nanoseconds time, const std::stop_token& stop);

/// Make it before any other thread. One at a time.
class StopOnSignal {
 public:
  explicit StopOnSignal(std::initializer_list<int> signals = {SIGINT, SIGTERM});
  ~StopOnSignal();

  std::stop_token token() const noexcept { return source_.get_token(); }
  /// False: a signal has come.
  bool sleep_for(std::chrono::nanoseconds time) const { return cli::sleep_for(time, token()); }
  /// The one that came; 0: none yet.
  int signal() const noexcept { return came_.load(); }
  /// The same, and listens no more: one that comes later waits for the next who listens.
  int finish();

 private:
  const std::set<int> wanted_;
  std::stop_source source_;
  std::atomic<int> came_{0};
  std::atomic<bool> ending_{false};
  std::thread watcher_;
};

}  // namespace sluice::cli
