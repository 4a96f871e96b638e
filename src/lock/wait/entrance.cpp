#include "lock/wait/entrance.hpp"

#include <algorithm>
#include <ranges>
#include <stdexcept>
#include <type_traits>

#include "lock/hold/steps.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/exclusive_lock.hpp"
#include "sluice/metrics.hpp"
#include "sluice/store.hpp"

namespace sluice {
namespace lock {

using std::chrono::milliseconds;

namespace {

/// The owner's name for one request. Where the queue has each owner once, a second wait of an owner
/// gets a name of its own.
class RequestOwner {
 public:
  RequestOwner(std::shared_ptr<OwnerState> owner, const LockResource& resource)
      : owner_(std::move(owner)),
        resource_(resource),
        waits_(owner_ && resource.queues_by_owner() && owner_->begin_wait(resource)),
        uses_own_id_(owner_ && (waits_ || !resource.queues_by_owner())) {}
  ~RequestOwner() {
    if (waits_) owner_->end_wait(resource_);
  }
  RequestOwner(const RequestOwner&) = delete;
  RequestOwner& operator=(const RequestOwner&) = delete;

  std::string id() const { return uses_own_id_ ? owner_->id.text : new_owner_id(); }

 private:
  const std::shared_ptr<OwnerState> owner_;
  const LockResource& resource_;
  const bool waits_;
  const bool uses_own_id_;
};

const Owner& this_thread_owner() {
  thread_local const Owner owner;
  return owner;
}

template <class Granted>
Granted nothing_granted() {
  if constexpr (std::is_same_v<Granted, Held>) {
    throw std::logic_error{"a wait without an end has ended"};
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
  Clock& clock = resource_->store().clock();
  const SteadyTime began = clock.steady();
  auto hold = owner ? owner->find(resource_->watchdog(), *resource_) : nullptr;
  if (hold) {
    if (!co_await enter_again(hold)) hold = nullptr;
  } else if (owner) {
    resource_->check(*owner);
  }
  if (!hold) {
    const RequestOwner request_owner{owner, *resource_};
    Identity who{.owner = request_owner.id(),
                 .request = new_request_id(),
                 .holder = holder_text(owner != nullptr, label_)};
    const bool waits = wait > milliseconds{0} && !stop.stop_requested();
    auto entering = waits
                        ? resource_->enter(std::move(who), Clock::add(began, wait), std::move(stop))
                        : resource_->try_enter(std::move(who));
    hold = co_await entering;
    if (hold && owner) owner->add(hold);
  }
  if (!hold) {
    count(metrics().lock_refused);
    co_return nothing_granted<Granted>();
  }
  metrics().lock_wait.observe(clock.steady() - began);
  co_return Internals::held(std::move(hold));
}

template Task<Held> Entrance::acquire(std::shared_ptr<OwnerState>, milliseconds, std::stop_token);
template Task<std::optional<Held>> Entrance::acquire(std::shared_ptr<OwnerState>, milliseconds,
                                                     std::stop_token);

void Entrance::keep(Held held) {
  const std::lock_guard lock{mutex_};
  thread_holds_.push_back({std::this_thread::get_id(), std::move(held)});
}

void Entrance::lock() {
  keep(acquire<Held>(Internals::state(this_thread_owner()), for_ever, {}).get());
}

bool Entrance::lock_within(milliseconds wait) {
  auto held = acquire<std::optional<Held>>(Internals::state(this_thread_owner()), wait, {}).get();
  if (held) keep(*std::move(held));
  return held.has_value();
}

void Entrance::unlock() {
  Held released;  // ends without the mutex: its end may resume a waiter, who may come here
  const std::lock_guard lock{mutex_};
  const auto mine = std::ranges::find(thread_holds_ | std::views::reverse,
                                      std::this_thread::get_id(), &ThreadHold::thread);
  if (mine == thread_holds_.rend())
    throw Error{Errc::bad_argument, "unlock of lock " + quoted(resource_->key()) +
                                        ", which this thread has not locked"};
  released = std::move(mine->held);
  thread_holds_.erase(std::next(mine).base());
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
