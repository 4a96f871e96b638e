/// So many in any stretch of time, across processes.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "sluice/expected.hpp"
#include "sluice/store.hpp"

namespace sluice {

enum class RateKind {
  overall,     ///< All programs that name the limiter share one rate.
  per_client,  ///< Each client has a rate of its own.
};

struct RateLimiterOptions {
  /// How many permits there are in an interval. From 1 to 2^31 - 1. The server keeps some 100 bytes
  /// for each acquire of the last interval.
  std::int64_t rate = 1;
  /// From 1 ms to 366 days.
  std::chrono::milliseconds interval = std::chrono::seconds{1};
  RateKind kind = RateKind::overall;
  /// The name of this client, if `per_client`: 1 to 256 bytes. Empty: a random one for this
  /// process.
  std::string client = {};
  /// What to do when another rate or interval is in force in Redis. True: take it. False: Error
  /// (config_mismatch), so that no deployment with an old number goes unnoticed.
  bool follow = false;
  /// Forget definition and permits when the limiter was not used for so long; not shorter than
  /// `interval`. 0: keep them.
  std::chrono::milliseconds keep_alive{0};
};

struct RateGrant {
  std::int64_t left = 0;  ///< permits that were free after it
};

/// The refusal.
struct RateExceeded {
  /// No permits can be had before that time; what a Retry-After says.
  std::chrono::microseconds retry_after{};
};

/// Lets `rate` permits through in any window of `interval`, for all processes together; Java ones
/// with Redisson (RRateLimiter) included. A sliding window log: exact, at the price of an entry for
/// each acquire of the last interval.
///
/// Guarantee: by the server's clock no half-open window of the length of `interval`, wherever it
///   begins, has more than `rate` permits, to the microsecond; each permit is free again exactly
///   one interval after it was taken, so nothing drifts. The clocks of the programs do not matter.
///   A grant whose reply is lost and that is asked for again takes its permits once. The waiters of
///   one process are served in the order of their calls. Only the first of them asks the server,
///   and it sleeps until its permits are free: it does not poll. The tests that hold it:
///   docs/rate_limiter.md#guarantee.
/// Not guaranteed: an order among processes, nor a fair share for Java ones where all wait: their
///   waiters sleep by ticks of 100 ms, come when the permits are gone, and leave nothing on the
///   server by which ours could let them go first. A Java thread beside two processes got 1 to 6 %
///   of the rate (docs/rate_limiter.md#with-redisson). That a clock of the server which jumps
///   keeps the rate: forward, up to `rate` permits more get through at once, once; back, waiters
///   wait up to one interval longer, once (permits that were taken "in the future" count as taken
///   now). That Java peers keep it: they use their own clocks. That a server which lost its data
///   remembers what was taken: up to `rate` permits more, once. That a wait ends before its time
///   when permits are given back early (Redisson's `release`) or the rate is raised.
/// Threads: any. The Store must outlive the RateLimiter, the RateLimiter its Tasks, but for
///   acquires that were dropped: they end, and what they took all the same is given back; if the
///   connection breaks meanwhile it is free after one interval.
/// In Redis: hash NAME {rate, interval, type, keepAliveTime}; string {NAME}:value, the free
///   permits; sorted set {NAME}:permits, what was taken when; the last two with :CLIENT added if
///   `per_client`, and then with a TTL of two intervals. One round trip for each acquire; it
///   creates the definition where there is none. Keys that hold something else are refused with
///   wrong_type, and left as they are.
///
///     RateLimiter limiter{*store, "mail", {.rate = 100, .interval = 1min}};
///     const auto grant = limiter.try_acquire().get();
///     if (!grant) return too_many_requests(grant.error().retry_after);
class RateLimiter {
 public:
  using Outcome = Expected<RateGrant, RateExceeded>;

  /// Throws Error (bad_argument): a name that is empty, above 1 MiB or refused by
  /// docs/lock.md#names, an option out of range.
  RateLimiter(Store& store, std::string name, RateLimiterOptions options);
  ~RateLimiter();
  RateLimiter(RateLimiter&&) noexcept;
  RateLimiter& operator=(RateLimiter&&) noexcept;

  /// Takes permits, all or none. Waits up to `wait` for them, or until `stop` is requested; returns
  /// at once when they cannot be there in time (as Guava's tryAcquire), and without asking the
  /// server when other callers of this process wait already. O(log n) in the acquires of the last
  /// interval, and O(1) more for each permit that has come back.
  /// Throws Error: bad_argument for less than 1 permit or more than the rate; config_mismatch
  /// (effect none); what the store throws: with effect unknown the permits may be taken, and are
  /// free again after one interval.
  Task<Outcome> try_acquire(std::int64_t permits = 1, std::chrono::milliseconds wait = {},
                            std::stop_token stop = {});
  /// Waits as long as it takes. Throws as `try_acquire`.
  Task<RateGrant> acquire(std::int64_t permits = 1);

  /// How many permits are free now. Defines the limiter if it is not defined yet; then all are
  /// free. Throws config_mismatch, and what the store throws.
  Task<std::int64_t> available();

  /// Creates the definition if there is none. Whether rate, interval and kind of the options are in
  /// force, from before or from now on. For programs that want to know early: an acquire does it
  /// too.
  Task<bool> try_set_rate();
  /// Changes the rate for everybody. What was taken counts on, so that no more than the new rate is
  /// let through in an interval from now. Other programs take it with their next call if they
  /// `follow`, and fail with config_mismatch if not. O(n) in the acquires of the last interval.
  /// Throws Error: bad_argument; config_mismatch for another kind; with effect unknown ask again.
  Task<void> set_rate(std::int64_t rate, std::chrono::milliseconds interval);

  const std::string& name() const noexcept;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice
