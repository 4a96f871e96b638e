/// A visitor of a lock that nobody waits for: it acquires in the background and keeps what it gets.
#pragma once

#include <exception>
#include <optional>

#include "sluice/lock.hpp"

namespace sluice::test {

class Visitor {
 public:
  template <class Lock>
  Visitor(Lock& mutex, std::chrono::milliseconds wait, std::stop_token stop = {}) {
    spawn(visit(mutex, wait, std::move(stop)),
          [this](std::exception_ptr error) { error_ = error; });
  }
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
};

}  // namespace sluice::test
