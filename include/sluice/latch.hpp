/// A gate that opens when the last of N has reported.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>

#include "sluice/store.hpp"

namespace sluice {

struct LatchOptions {
  /// How long a count-down is remembered, so that a copy of it counts nothing; and how long, from
  /// five minutes on, that the latch was open. Longer covers longer outages, later retries of
  /// `count_down_once` and later callers of `state`; each count-down costs some 100 bytes of the
  /// server's memory meanwhile. From 1 s to 7 days.
  std::chrono::milliseconds remember = std::chrono::minutes{10};
  /// How many count-downs at most; beyond it the oldest is forgotten. From 1 to 1,000,000.
  std::int64_t most_remembered = 10'000;
};

enum class LatchState {
  closed,   ///< Some count-downs are still to come.
  open,     ///< The count has reached zero.
  not_set,  ///< There is no count, and no opening is remembered: nobody has set it yet, or it
            ///< opened longer than `remember` ago, or a Java program opened it.
};

std::string_view to_string(LatchState state) noexcept;

/// A count that many processes bring down to zero, and that any number of others wait for; Java
/// processes with Redisson (RCountDownLatch) included; after java.util.concurrent.CountDownLatch. A
/// latch that was never set stops no waiter, as in Java; `state` tells it from an open one.
///
/// Guarantee: each count-down counts once, also when its reply is lost and it is asked again, as
///   long as it is remembered. A waiter returns when the latch was open at some moment since its
///   call, even if it has been set anew since, and not before. An opening is heard within the time
///   of a message; if the message is lost, the waiter sees the opening when the connection is back,
///   and after 30 s at the latest. The tests that hold it: docs/latch.md#guarantee.
/// Not guaranteed: that a count-down which the server never saw belongs to the count that stood
///   when it was sent: if the latch is reset meanwhile, it counts for the new one. That an opening
///   by a Java peer is noticed if the latch is set anew before the waiters look (we note openings,
///   a Java peer does not). That a server which lost its data knows the count: the latch is then
///   open.
/// Threads: any. The Store must outlive the Latch, the Latch its Tasks, but for waits that were
///   dropped: they end.
/// In Redis: string NAME, the count, no TTL, gone at zero; sorted set sluice_latch_requests:{NAME}
///   and sluice_latch_parts:{NAME} (TTL `remember`), and string sluice_latch_opened:{NAME} (TTL
///   `remember`, at least 5 min); channel redisson_countdownlatch__channel__{NAME}, payload 0 at
///   zero, 1 when set. Each verb is one round trip; a waiter adds a subscription (one for all
///   waiters of a process), and one look for all waiters that wake together. A key that holds no
///   count is refused with wrong_type, and left as it is.
///
///     Latch latch{*store, "import:2026-01-02"};
///     latch.try_set_count(3).get();            // the process that hands out the work
///     latch.count_down_once("part 1").get();   // a worker, however often it is restarted
///     latch.wait().get();                      // a process that needs the whole
class Latch {
 public:
  /// Throws Error (bad_argument): a name that is empty, above 1 MiB or refused by
  /// docs/lock.md#names, an option out of range.
  Latch(Store& store, std::string name, LatchOptions options = {});
  ~Latch();
  const std::string& name() const noexcept;

  Latch(Latch&&) noexcept;
  Latch& operator=(Latch&&) noexcept;

  static constexpr std::int64_t largest_count = std::int64_t{1} << 53;

  /// Sets the count if the latch is open. False: it is not, and keeps its count. 1 to
  /// `largest_count`. Throws Error: bad_argument; what the store throws, with effect unknown ask
  /// again.
  Task<bool> try_set_count(std::int64_t count);

  /// Sets the count, whatever it is; 0 opens the latch. Waiters go on waiting for the new
  /// count, unless the latch was open since their call. 0 to `largest_count`. Throws as
  /// `try_set_count`.
  Task<void> reset(std::int64_t count);

  /// Brings the count down, to zero at most; at zero all waiters go on. The count that is left, 0:
  /// open (also when it was open before). O(log `most_remembered`). Throws Error: bad_argument for
  /// less than 1; wrong_type for a key that is no count; what the store throws. With effect unknown
  /// it may have counted, and a new call would count again: use `count_down_once` where callers
  /// retry.
  Task<std::int64_t> count_down(std::int64_t by = 1);
  /// The same for a part of the work that has a name: it counts once, from whichever process and
  /// however often it is reported, for each count that is set, as long as it is remembered. 1 to
  /// 256 bytes.
  Task<std::int64_t> count_down_once(std::string part, std::int64_t by = 1);

  /// 0: open, or never set.
  Task<std::int64_t> count();
  /// Waits up to `wait` for the latch to be open, or until `stop` is requested, and says what it is
  /// then. Returns `not_set` at once if it is not set at the call. Without a wait: one round trip.
  Task<LatchState> state(std::chrono::milliseconds wait = {}, std::stop_token stop = {});

  /// Waits until the latch was open once, or is not set. Throws what the store throws.
  Task<void> wait();
  /// The same up to `wait`, or until `stop` is requested. False: it was not open. Without a wait:
  /// one round trip.
  Task<bool> try_wait(std::chrono::milliseconds wait = {}, std::stop_token stop = {});

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice
