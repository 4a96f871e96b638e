/// Rate limiters on virtual time, and customers that nobody waits for.
#pragma once

#include "lock/virtual_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "support/forwarding_store.hpp"

namespace sluice {

class Customer {
 public:
  Customer(RateLimiter& limiter, std::int64_t permits, std::chrono::milliseconds wait,
           std::stop_token stop = {}) {
    spawn(visit(limiter, permits, wait, std::move(stop)),
          [this](std::exception_ptr error) { error_ = error; });
  }
  Customer(const Customer&) = delete;
  Customer& operator=(const Customer&) = delete;

  bool waits() const { return !outcome_ && !error_; }
  bool served() const { return outcome_ && outcome_->has_value(); }
  bool refused() const { return outcome_ && !outcome_->has_value(); }
  bool failed() const { return error_ != nullptr; }
  std::chrono::microseconds retry_after() const { return outcome_->error().retry_after; }

 private:
  Task<void> visit(RateLimiter& limiter, std::int64_t permits, std::chrono::milliseconds wait,
                   std::stop_token stop) {
    auto acquiring = limiter.try_acquire(permits, wait, std::move(stop));
    outcome_ = co_await acquiring;
  }

  std::optional<RateLimiter::Outcome> outcome_;
  std::exception_ptr error_;
};

/// A clock whose wall time is wrong.
class SkewedClock final : public Clock {
 public:
  SkewedClock(Clock& right, std::chrono::microseconds wrong_by)
      : right_(right), wrong_by_(wrong_by) {}
  SteadyTime steady() const noexcept override { return right_.steady(); }
  WallTime wall() const noexcept override { return right_.wall() + wrong_by_; }
  TimerId at(SteadyTime when, std::function<void()> callback) override {
    return right_.at(when, std::move(callback));
  }
  bool cancel(TimerId timer) override { return right_.cancel(timer); }

 private:
  Clock& right_;
  const std::chrono::microseconds wrong_by_;
};

/// The same server, seen by a program whose clock is wrong.
class SkewedStore final : public test::ForwardingStore {
 public:
  SkewedStore(Store& store, std::chrono::microseconds wrong_by)
      : ForwardingStore(store), clock_(store.clock(), wrong_by) {}
  Clock& clock() noexcept override { return clock_; }

 private:
  SkewedClock clock_;
};

class VirtualLimiter : public VirtualLock {
 protected:
  static constexpr auto acquire = "lock/limiter/acquire";
};

}  // namespace sluice
