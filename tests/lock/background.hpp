/// A visitor of a lock that nobody waits for: it acquires in the background and keeps what it gets.
/// It waits no longer than it lives.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <stop_token>

#include "sluice/lock.hpp"

namespace sluice::test {

class Visitor {
 public:
  template <class Lock>
  Visitor(Lock& mutex, std::chrono::milliseconds wait, std::stop_token stop = {}) {
    on_stop_.emplace(std::move(stop), [this] { stop_.request_stop(); });
    spawn(visit(mutex, wait, stop_.get_token()),
          [this](std::exception_ptr error) { error_ = error; });
  }
  ~Visitor() { stop_.request_stop(); }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;

  bool waits() const { return !done_ && !error_; }
  bool failed() const { return error_ != nullptr; }
  bool in() const { return held.has_value(); }

  std::optional<Held> held;

 private:
  template <class Lock>
  Task<void> visit(Lock& mutex, std::chrono::milliseconds wait, std::stop_token stop) {
    auto acquiring = mutex.try_acquire(wait, std::move(stop));
    held = co_await acquiring;
    done_ = true;
  }

  bool done_ = false;
  std::exception_ptr error_;
  std::stop_source stop_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace sluice::test
