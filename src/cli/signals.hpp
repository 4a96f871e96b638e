/// INT and TERM as a stop token: a program that is told to end finishes what it has begun.
#pragma once

#include <stop_token>
#include <thread>

namespace sluice::cli {

/// Make it before any other thread. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::thread watcher_;
};

}  // namespace sluice::cli
