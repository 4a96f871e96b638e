/// Whoever asks for permits in the background, and keeps what it gets.
#pragma once

#include <exception>
#include <optional>

#include "sluice/semaphore.hpp"

namespace sluice::test {

/// Must not go before it has been answered.
class Guest {
 public:
  explicit Guest(Task<std::optional<Held>> asking) {
    spawn(keep(std::move(asking)), [this](std::exception_ptr error) { error_ = error; });
  }
  Guest(Semaphore& semaphore, std::uint32_t permits, std::chrono::milliseconds wait,
        std::stop_token stop = {})
      : Guest(semaphore.try_acquire(permits, wait, std::move(stop))) {}
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  bool waits() const { return !done_ && !error_; }
  bool failed() const { return error_ != nullptr; }
  bool in() const { return held.has_value(); }

  std::optional<Held> held;

 private:
  Task<void> keep(Task<std::optional<Held>> asking) {
    held = co_await asking;
    done_ = true;
  }

  bool done_ = false;
  std::exception_ptr error_;
};

}  // namespace sluice::test
