/// A gate that opens when the last of N has reported.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "sluice/store.hpp"

namespace sluice {

struct LatchOptions {
  /// How long a count-down is remembered, so that a copy of it counts nothing. Longer covers longer
  /// outages and later retries of `count_down_once`; each costs some 100 bytes of the server's
  /// memory meanwhile. From 1 s to 7 days.
  std::chrono::milliseconds remember = std::chrono::minutes{10};
  /// How many of them at most; beyond it the oldest is forgotten. From 1 to 1,000,000.
  std::int64_t most_remembered = 10'000;
};

/// A count that many processes bring down to zero, and that any number of others wait for; Java
/// processes with Redisson (RCountDownLatch) included; after java.util.concurrent.CountDownLatch. A
/// latch that was never set, or has reached
/// zero, is open: nobody waits.
///
/// Guarantee: each count-down counts once, also when its reply is lost and it is asked again, as
///   long as it is remembered. A waiter returns when the latch was open at some moment since its
///   call, even if it has been set anew since; nobody is let through otherwise. An opening is heard
///   within the time of a message; one whose message was lost is seen when the connection is back,
///   and after 30 s at the latest.
/// Not guaranteed: that a count-down which the server never saw belongs to the count that stood
///   when it was sent: if the latch is reset meanwhile, it counts for the new one. That an opening
///   by a Java peer is noticed if the latch is set anew before the waiters look (we note openings,
///   a Java peer does not). That a server which lost its data knows the count: the latch is then
///   open.
/// Threads: any. The Store must outlive the Latch, the Latch its Tasks.
/// In Redis: string NAME, the count, no TTL, gone at zero; sorted set sluice_latch_requests:{NAME}
///   (TTL `remember`) and string sluice_latch_opened:{NAME} (TTL 5 min); channel
///   redisson_countdownlatch__channel__{NAME}, payload 0 at zero, 1 when set. Each verb is one
///   round trip; a waiter adds a subscription (one for all waiters of a process), and one look for
///   all that wake together.
///
///     Latch latch{*store, "import:2026-01-02"};
///     latch.try_set_count(3).get();            // the one who hands out the work
///     latch.count_down_once("part 1").get();   // a worker, however often it is restarted
///     latch.wait().get();                      // whoever needs the whole
class Latch {
 public:
  /// Throws Error (bad_argument): an empty name, one above 1 MiB, an option out of range.
  Latch(Store& store, std::string name, LatchOptions options = {});
  ~Latch();
  Latch(Latch&&) noexcept;
  Latch& operator=(Latch&&) noexcept;

  static constexpr std::int64_t largest_count = std::int64_t{1} << 53;

  /// Sets the count if the latch is open. False: it is not, and keeps its count. 1 to
  /// `largest_count`. Throws Error: bad_argument; what the store throws, with effect unknown ask
  /// again.
  Task<bool> try_set_count(std::int64_t count);

  /// Sets the count, whatever it is; 0 opens the latch. Who waits goes on waiting for the new
  /// count, unless the latch was open since its call. 0 to `largest_count`. Throws as
  /// `try_set_count`.
  Task<void> reset(std::int64_t count);

  /// Brings the count down, to zero at most; at zero all waiters go on. The count that is left, 0:
  /// open (also when it was open before). O(log `most_remembered`). Throws Error: bad_argument for
  /// less than 1; wrong_type for a key that is no count; what the store throws. With effect unknown
  /// it may have counted, and a new call would count again: use `count_down_once` where callers
  /// retry.
  Task<std::int64_t> count_down(std::int64_t by = 1);
  /// The same for a part of the work that has a name: whoever reports it, and however often, it
  /// counts once, as long as it is remembered. 1 to 256 bytes.
  Task<std::int64_t> count_down_once(std::string part, std::int64_t by = 1);

  /// 0: open.
  Task<std::int64_t> count();

  /// Waits until the latch was open once. Throws what the store throws.
  Task<void> wait();
  /// The same up to `wait`, or until `stop` is requested. False: it was not open. Without a wait:
  /// one look, one round trip.
  Task<bool> try_wait(std::chrono::milliseconds wait = {}, std::stop_token stop = {});

  const std::string& name() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
