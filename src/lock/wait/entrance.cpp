#include "lock/wait/entrance.hpp"

#include <algorithm>
#include <mutex>
#include <ranges>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "base/callback.hpp"
#include "base/process.hpp"
#include "lock/hold/steps.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/exclusive_lock.hpp"
#include "sluice/metrics.hpp"
#include "sluice/store.hpp"
#include "store/waiter.hpp"

namespace sluice {
namespace lock {

using std::chrono::milliseconds;

namespace {

/// The place of one acquire among those of its owner for that lock.
class OwnTurn {
 public:
  OwnTurn(std::shared_ptr<OwnerState> owner, const LockResource& resource, bool may_wait)
      : owner_(std::move(owner)) {
    if (!owner_) return;
    mine_ = std::make_shared<OwnerState::Turn>(&resource.store(), resource.key(), may_wait);
    const std::lock_guard lock{owner_->mutex};
    for (const auto& other : owner_->turns) {
      if (!other->is_of(*mine_)) continue;
      has_begun_ = false;
      waits_ |= other->may_wait;
    }
    owner_->turns.push_back(mine_);
  }
  ~OwnTurn() {
    if (!mine_) return;
    const Trampoline trampoline;  // before the lock: what is completed under it runs after it
    const std::lock_guard lock{owner_->mutex};
    owner_->turns.remove(mine_);
    const auto next =
        std::ranges::find_if(owner_->turns, [&](const auto& turn) { return turn->is_of(*mine_); });
    if (next != owner_->turns.end())
      Trampoline::complete(std::shared_ptr<Completion>{*next, &(*next)->begins});
  }
  OwnTurn(const OwnTurn&) = delete;
  OwnTurn& operator=(const OwnTurn&) = delete;

  bool has_begun() const noexcept { return has_begun_; }
  /// False: the time was up, or `stop` was requested. What does not wait waits for its like alone.
  /// REQUIRES: !has_begun().
  Task<bool> begin(Clock& clock, SteadyTime until, std::stop_token stop) {
    if (!mine_->may_wait && waits_) co_return false;
    if (!mine_->may_wait) until = SteadyTime::max();
    const std::shared_ptr<Completion> begins{mine_, &mine_->begins};
    co_await wait_or_stop(begins, clock, until, std::move(stop));
    const std::lock_guard lock{owner_->mutex};
    const auto first =
        std::ranges::find_if(owner_->turns, [&](const auto& turn) { return turn->is_of(*mine_); });
    co_return *first == mine_;
  }

 private:
  const std::shared_ptr<OwnerState> owner_;
  std::shared_ptr<OwnerState::Turn> mine_;
  bool has_begun_ = true;
  bool waits_ = false;  // one before this
};

/// No coroutine, so that what it needs is in no frame while a caller waits.
Task<std::shared_ptr<Hold>> enter_anew(LockResource& resource, Identity who, bool waits,
                                       SteadyTime until, std::stop_token stop) {
  return waits && !stop.stop_requested() ? resource.enter(std::move(who), until, std::move(stop))
                                         : resource.try_enter(std::move(who));
}

template <class Granted>
Granted nothing_granted() {
  if constexpr (std::is_same_v<Granted, Held>) {
    throw std::logic_error{"a wait without an end has ended"};  // of a Task that was dropped
  } else {
    return std::nullopt;
  }
}

}  // namespace

Entrance::Entrance(std::shared_ptr<LockResource> resource, std::string label)
    : resource_(std::move(resource)), label_(label_or_program(std::move(label))) {}

template <class Granted>
Task<Granted> Entrance::acquire(std::shared_ptr<OwnerState> owner, milliseconds wait,
                                std::stop_token stop) {
  // A Task that was dropped may go on when this Entrance is gone.
  const auto resource = resource_;
  resource->check_process();
  Identity who = new_identity(owner.get(), label_);
  Clock& clock = resource->store().clock();
  const SteadyTime began = clock.steady();
  const SteadyTime until = Clock::add(began, wait);
  const bool waits = wait > milliseconds{0} && !stop.stop_requested();
  StopOrDrop stopping{stop};
  if (waits) stop = co_await stopping;
  const auto own_hold = [&] {
    return owner ? owner->find(resource->watchdog(), *resource) : nullptr;
  };
  auto hold = own_hold();
  if (hold && !co_await enter_again(hold)) hold = nullptr;
  if (!hold) {
    OwnTurn turn{owner, *resource, waits};
    bool has_turn = turn.has_begun();
    if (!has_turn) {
      has_turn = co_await turn.begin(clock, until, stop);
      hold = own_hold();  // of the turns before
      if (hold && !co_await enter_again(hold)) hold = nullptr;
    }
    if (!hold && has_turn) {
      if (owner) resource->check(*owner);
      auto entering = enter_anew(*resource, std::move(who), waits, until, std::move(stop));
      hold = co_await entering;
      if (hold && owner) owner->add(hold);
    }
  }
  if (!hold) {
    count(metrics().lock_refused);
    co_return nothing_granted<Granted>();
  }
  // A hold that is entered again began before.
  metrics().lock_wait.observe((hold->began < began ? clock.steady() : hold->began) - began);
  co_return Internals::held(std::move(hold));
}

template Task<Held> Entrance::acquire(std::shared_ptr<OwnerState>, milliseconds, std::stop_token);
template Task<std::optional<Held>> Entrance::acquire(std::shared_ptr<OwnerState>, milliseconds,
                                                     std::stop_token);

/// The holds that threads got by lock().
struct Entrance::ThreadHolds {
  struct ThreadHold {
    std::uint64_t thread;
    Held held;
  };
  std::mutex mutex;
  std::vector<ThreadHold> all;  // latest last
};

Entrance::~Entrance() {
  const std::unique_ptr<ThreadHolds> holds{thread_holds_.load()};
  if (!holds || !resource_->is_of_this_process()) return;
  for (const auto& one : holds->all)
    if (one.thread == this_thread_number()) --Waiter::locks_of_this_thread();
}

Entrance::ThreadHolds& Entrance::thread_holds() {
  ThreadHolds* known = thread_holds_.load(std::memory_order_acquire);
  if (known) return *known;
  auto made = std::make_unique<ThreadHolds>();
  return thread_holds_.compare_exchange_strong(known, made.get()) ? *made.release() : *known;
}

void Entrance::keep(Held held) {
  ThreadHolds& holds = thread_holds();
  const std::lock_guard lock{holds.mutex};
  holds.all.push_back({this_thread_number(), std::move(held)});
  ++Waiter::locks_of_this_thread();
}

void Entrance::lock() { keep(acquire<Held>(this_thread_owner(), for_ever, {}).get()); }

bool Entrance::lock_within(milliseconds wait) {
  auto held = acquire<std::optional<Held>>(this_thread_owner(), wait, {}).get();
  if (held) keep(*std::move(held));
  return held.has_value();
}

void Entrance::unlock() {
  if (!resource_->is_of_this_process())
    return;       // the hold is the parent's, as in std::scoped_lock at fork()
  Held released;  // ends without the mutex: its end may resume a waiter, who may come here
  ThreadHolds& holds = thread_holds();
  const std::lock_guard lock{holds.mutex};
  const auto mine = std::ranges::find(holds.all | std::views::reverse, this_thread_number(),
                                      &ThreadHolds::ThreadHold::thread);
  if (mine == holds.all.rend())
    throw Error{Errc::bad_argument, "unlock of lock " + quoted(resource_->key()) +
                                        ", which this thread has not locked"};
  released = std::move(mine->held);
  holds.all.erase(std::next(mine).base());
  --Waiter::locks_of_this_thread();
}

}  // namespace lock

using std::chrono::milliseconds;
using MaybeHeld = std::optional<Held>;

ExclusiveLock::ExclusiveLock(std::shared_ptr<lock::LockResource> resource, std::string label)
    : clock_(resource->store().clock()),
      entrance_(std::make_unique<lock::Entrance>(std::move(resource), std::move(label))) {}

ExclusiveLock::~ExclusiveLock() = default;

Task<Held> ExclusiveLock::acquire() {
  return entrance_->acquire<Held>(nullptr, lock::for_ever, {});
}
Task<Held> ExclusiveLock::acquire(const Owner& owner) {
  return entrance_->acquire<Held>(lock::Internals::state(owner), lock::for_ever, {});
}
Task<MaybeHeld> ExclusiveLock::try_acquire(milliseconds wait, std::stop_token stop) {
  return entrance_->acquire<MaybeHeld>(nullptr, wait, std::move(stop));
}
Task<MaybeHeld> ExclusiveLock::try_acquire(const Owner& owner, milliseconds wait,
                                           std::stop_token stop) {
  return entrance_->acquire<MaybeHeld>(lock::Internals::state(owner), wait, std::move(stop));
}

const std::string& ExclusiveLock::name() const noexcept { return entrance_->resource().key(); }

Task<LockInfo> ExclusiveLock::info() { return entrance_->resource().info(); }
Task<bool> ExclusiveLock::force_release() { return entrance_->resource().force_release(); }

void ExclusiveLock::lock() { entrance_->lock(); }
bool ExclusiveLock::try_lock() { return entrance_->lock_within(milliseconds{0}); }
bool ExclusiveLock::lock_within(milliseconds wait) { return entrance_->lock_within(wait); }
void ExclusiveLock::unlock() { entrance_->unlock(); }

}  // namespace sluice
