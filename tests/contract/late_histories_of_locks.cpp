// Histories of locks and of what stands beside them.
#include <fmt/format.h>

#include "contract/late_line.hpp"
#include "lock/mutex/leased_lock.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/latch.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/quorum_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"
#include "support/comes_true.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

/// What other processes see of a lock.
template <class Lock>
void tell_of(LatePlay& play, Lock& lock, std::string_view when) {
  std::string text;
  for (const auto& holder : lock.info().get().holders) text += fmt::format("{} ", holder.entries);
  play.say(when, text);
}

/// A hold that a late copy has made is nobody's, and ends with its lease.
constexpr auto brief_lease = 1s;

/// Taken, entered again, left, renewed, ended from outside, and taken by another process.
template <class Lock>
void take_turns(LatePlay& play) {
  Lock here{play.store(), "lock", {.lease = brief_lease}};
  Lock there{play.other(), "lock"};
  const Owner owner;
  auto held = here.acquire(owner).get();
  {
    auto inner = here.acquire(owner).get();
    play.say("entered twice", held.valid() && inner.valid());
  }
  play.say("left once", held.valid());
  play.say("released", to_string(held.release().get().kind));
  auto other = there.acquire().get();
  play.say("another has it", other.valid());
  auto refused = here.try_acquire().get();
  play.say("refused", !refused);
  tell_of(play, here, "one holds it");
  play.say("it released", to_string(other.release().get().kind));
  held = here.acquire(owner).get();
  play.say("forced", there.force_release().get());
  // A late copy of its acquire may bring the hold back as long as its holder does not know of its
  // end, and renews it: the lock is his then, and no other's, until he leaves.
  held = {};
  other = there.acquire().get();
  play.say("forced", here.force_release().get());
  other = {};
  other = there.acquire().get();
  play.say("another has it again", other.valid());
  tell_of(play, here, "one holds it");
  play.say("released", to_string(other.release().get().kind));
}

template <class Lock>
void renew_a_hold(LatePlay& play) {
  Lock here{play.store(), "lock", {.lease = brief_lease}};
  Lock there{play.other(), "lock"};
  const auto renewed = [&] {
    std::size_t count = 0;
    for (const auto& [name, calls] : play.store().calls())
      if (name.find("/renew") != name.npos) count += calls;
    return count;
  };
  for (int turn = 0; turn < 2; ++turn) {
    auto held = here.acquire().get();
    const auto before = renewed();
    comes_true([&] { return renewed() > before; });
    play.say("renewed");
    (void)held.release().get();
    auto other = there.acquire().get();
    play.say("another has it", other.valid());
    play.say("it released", to_string(other.release().get().kind));
  }
}

void readers_and_writers(LatePlay& play) {
  SharedMutex here{play.store(), "lock", {.lease = brief_lease}}, there{play.other(), "lock"};
  const Owner owner;
  auto one = here.acquire_shared(owner).get();
  auto two = there.acquire_shared().get();
  {
    auto inner = here.acquire_shared(owner).get();
    play.say("read", one.valid() && two.valid() && inner.valid());
  }
  play.say("one left", to_string(one.release().get().kind));
  play.say("no writer", !here.try_acquire().get());
  play.say("other left", to_string(two.release().get().kind));
  auto writing = there.acquire().get();
  play.say("writes", writing.valid());
  play.say("no reader", !here.try_acquire_shared().get());
  play.say("released", to_string(writing.release().get().kind));
}

void permits_are_changed(LatePlay& play) {
  Semaphore here{play.store(), "permits", {.lease = brief_lease}}, there{play.other(), "permits"};
  here.ensure_permits(3).get();
  const auto tell_free = [&](const char* when) {
    play.say(when, fmt::format("{}", there.available().get()));
  };
  tell_free("three");
  play.say("set before", here.try_set_permits(5).get());
  here.add_permits(2).get();
  tell_free("five");
  auto held = here.acquire(2).get();
  play.say("held", held.valid());
  play.say("released", to_string(held.release().get().kind));
  play.say("drained", fmt::format("{}", here.drain().get() > 0));
  auto refused = here.try_acquire().get();
  here.release_unowned(4).get();
  play.say("given");
  auto all = there.acquire(4).get();
  play.say("all", all.valid());
  play.say("none left", !here.try_acquire().get());
  play.say("released", to_string(all.release().get().kind));
}

void permits_with_ids(LatePlay& play) {
  PermitSemaphore here{play.store(), "permits"}, there{play.other(), "permits"};
  here.set_permits(2).get();
  play.say("two", fmt::format("{}", there.available().get()));
  here.set_permits(3).get();
  play.say("three", fmt::format("{}", there.available().get()));
  const auto taken = here.take(1h).get();
  play.say("taken", taken.has_value());
  const auto tell_end = [&](const char* when) {
    const auto far = play.other().time().get().time_since_epoch() / 1ms + 18'000'000;
    const auto count =
        play.other().run({"ZCOUNT", "{permits}:timeout", fmt::format("{}", far), "+inf"}).get();
    play.say(when, fmt::format("{} end in more than five hours", count.as_integer()));
  };
  play.say("shorter", here.update_lease(*taken, 10min).get());
  play.say("longer", here.update_lease(*taken, 10h).get());
  tell_end("ten hours");
  play.say("released", here.release(*taken).get());
  play.say("released", here.release(*taken).get());
  play.say("free", fmt::format("{}", there.available().get()));
}

void a_latch_opens(LatePlay& play) {
  Latch here{play.store(), "latch"}, there{play.other(), "latch"};
  const auto tell_count = [&](const char* when) {
    play.say(when, fmt::format("{}", there.count().get()));
  };
  play.say("set", here.try_set_count(3).get());
  play.say("set before", here.try_set_count(5).get());
  (void)here.count_down_once("part").get();
  tell_count("two");
  (void)here.count_down().get();
  tell_count("one");
  (void)here.count_down().get();
  tell_count("open");
  here.reset(4).get();
  tell_count("four");
  (void)here.count_down_once("part").get();
  tell_count("three");
  here.reset(2).get();
  tell_count("two");
  here.reset(0).get();
  tell_count("open");
}

void a_rate_is_changed(LatePlay& play) {
  RateLimiter here{play.store(), "limiter", {.rate = 5, .interval = 1h}};
  const auto take = [&] { play.say("left", here.try_acquire().get().has_value()); };
  play.say("defined", here.try_set_rate().get());
  take();
  take();
  here.set_rate(7, 1h).get();
  play.say("seven", fmt::format("{}", here.available().get()));
  here.set_rate(9, 1h).get();
  play.say("nine", fmt::format("{}", here.available().get()));
  take();
  play.say("available", fmt::format("{}", here.available().get()));
}

void several_at_once(LatePlay& play) {
  const std::vector<std::string> names{"{m}1", "{m}2"};
  MultiLock here{play.store(), names, {.lease = brief_lease}}, there{play.other(), names};
  auto held = here.acquire().get();
  play.say("held", held.valid());
  play.say("released", to_string(held.release().get().kind));
  auto other = there.acquire().get();
  play.say("another has them", other.valid());
  play.say("refused", !here.try_acquire().get());
  play.say("it released", to_string(other.release().get().kind));
  held = here.acquire().get();
  play.say("held", held.valid());
}

void a_quorum_of_one(LatePlay& play) {
  QuorumLock here{{&play.store()}, "quorum", {.lease = 4s, .node_timeout = 1300ms}};
  QuorumLock there{{&play.other()}, "quorum", {.lease = 4s, .node_timeout = 1300ms}};
  auto held = here.acquire().get();
  play.say("held", held.valid());
  play.say("released", to_string(held.release().get().kind));
  auto other = there.acquire().get();
  play.say("another has it", other.valid());
  play.say("refused", !here.try_acquire().get());
  play.say("it released", to_string(other.release().get().kind));
}

void holds_of_wishes(LatePlay& play) {
  lock::LeasedLock here{play.store(), "leased"}, there{play.other(), "leased"};
  const auto one = lock::owner_of_wish("one"), two = lock::owner_of_wish("two");
  const auto tell_lease = [&](const char* when) {
    const auto left = play.other().run({"PTTL", "leased"}).get().as_integer();
    play.say(when, left < 0 ? "none" : left > 30 * 60'000 ? "long" : left > 500 ? "some" : "brief");
  };
  auto hold = here.try_acquire({one, 10min, "test"}).get();
  play.say("held", hold.has_value());
  play.say("renewed", here.renew(one, 20min).get().has_value());
  tell_lease("some minutes");
  play.say("renewed", here.renew(one, 2h).get().has_value());
  tell_lease("two hours");
  play.say("refused", !there.try_acquire({two, 1s, "test"}).get());
  play.say("released", here.release(one).get());
  hold = here.try_acquire({one, 2h, "test"}).get();
  play.say("held again", hold && hold->is_new);
  tell_lease("two hours");
  play.say("withdrawn", here.withdraw(one, hold->token).get());
  hold = there.try_acquire({one, 2h, "test"}).get();
  play.say("held by another process", hold && hold->is_new);
  tell_lease("two hours");
}

}  // namespace

std::vector<LateHistory> late_histories_of_locks() {
  return {{"mutex", take_turns<Mutex>},
          {"mutex: renewed", renew_a_hold<Mutex>},
          {"fair mutex", take_turns<FairMutex>},
          {"shared mutex", take_turns<SharedMutex>},
          {"shared mutex: renewed", renew_a_hold<SharedMutex>},
          {"shared mutex: readers", readers_and_writers},
          {"semaphore", permits_are_changed},
          {"semaphore: ids", permits_with_ids},
          {"latch", a_latch_opens},
          {"limiter", a_rate_is_changed},
          {"multi lock", several_at_once},
          {"quorum lock", a_quorum_of_one},
          {"leased lock", holds_of_wishes}};
}

}  // namespace sluice::test
