/// A latch on virtual time, and waiters that nobody waits for.
#pragma once

#include "lock/virtual_lock.hpp"
#include "sluice/latch.hpp"

namespace sluice {

class LatchWaiter {
 public:
  LatchWaiter(Latch& latch, std::chrono::milliseconds wait, std::stop_token stop = {}) {
    spawn(visit(latch, wait, std::move(stop)),
          [this](std::exception_ptr error) { error_ = error; });
  }
  LatchWaiter(const LatchWaiter&) = delete;
  LatchWaiter& operator=(const LatchWaiter&) = delete;

  bool waits() const { return !through_ && !error_; }
  bool through() const { return through_.value_or(false); }
  bool gave_up() const { return through_ && !*through_; }
  bool failed() const { return error_ != nullptr; }

 private:
  Task<void> visit(Latch& latch, std::chrono::milliseconds wait, std::stop_token stop) {
    auto waiting = latch.try_wait(wait, std::move(stop));
    const bool open = co_await waiting;
    through_ = open;
  }

  std::optional<bool> through_;
  std::exception_ptr error_;
};

class VirtualLatch : public VirtualLock {
 protected:
  Latch latch_{line_, "stock"};
  const std::string channel_ = "redisson_countdownlatch__channel__{stock}";
};

}  // namespace sluice
