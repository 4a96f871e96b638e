#include "sluice/mutex.hpp"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "lock/hold/owner.hpp"
#include "lock/hold/steps.hpp"
#include "lock/hold/thread_holds.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/mutex/info.hpp"
#include "lock/mutex/local_queue.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds for_ever = milliseconds::max();

lock::MutexTerms terms_of(const MutexOptions& options) {
  const HandOff& hand_off = options.hand_off;
  if (hand_off.within_process < 1 || hand_off.within_process > 100'000)
    throw Error{Errc::bad_argument, "hand-offs within a process lie between 1 and 100000, not at " +
                                        std::to_string(hand_off.within_process)};
  return {.terms = lock::Terms::of(options.lease, options.margin, options.watchdog),
          .durability = options.durability,
          .hand_off = hand_off};
}

template <class Granted>
Granted nobody() {
  if constexpr (std::is_same_v<Granted, Held>) {
    throw std::logic_error{"a wait without an end has ended"};
  } else {
    return std::nullopt;
  }
}

}  // namespace

Mutex::Mutex(Store& store, std::string name, MutexOptions options)
    : store_(store),
      label_(options.label.empty() ? lock::program_name() : std::move(options.label)),
      queue_(lock::shared_of<lock::LocalQueues>(store)->of(std::move(name), terms_of(options))),
      threads_(std::make_unique<lock::ThreadHolds>()) {}

Mutex::~Mutex() = default;

const std::string& Mutex::name() const noexcept { return queue_->key(); }

Task<Held> Mutex::acquire() { return enter<Held>(nullptr, for_ever, {}); }

Task<Held> Mutex::acquire(const Owner& owner) {
  return enter<Held>(lock::Internals::state(owner), for_ever, {});
}

Task<std::optional<Held>> Mutex::try_acquire(milliseconds wait, std::stop_token stop) {
  return enter<std::optional<Held>>(nullptr, wait, std::move(stop));
}

Task<std::optional<Held>> Mutex::try_acquire(const Owner& owner, milliseconds wait,
                                             std::stop_token stop) {
  return enter<std::optional<Held>>(lock::Internals::state(owner), wait, std::move(stop));
}

/// A hold that the owner is in already and enters again, if there is one; else a new one.
/// `Granted`: a Held, or an optional one where the wait may end without.
template <class Granted>
Task<Granted> Mutex::enter(std::shared_ptr<lock::OwnerState> owner, milliseconds wait,
                           std::stop_token stop) {
  const SteadyTime began = store_.clock().steady();
  auto mine = owner ? owner->find(queue_->watchdog(), *queue_) : nullptr;
  if (mine) {
    auto entering = lock::enter_again(mine);
    if (const bool in = co_await entering; !in) mine = nullptr;
  }
  if (!mine) {
    lock::Identity who{.owner = owner ? owner->id.text : lock::new_owner_id(),
                       .request = lock::new_request_id(),
                       .holder = lock::holder_text(owner != nullptr, label_)};
    const bool waits = wait > milliseconds{0} && !stop.stop_requested();
    auto entering = waits ? queue_->enter(std::move(who), Clock::add(began, wait), std::move(stop))
                          : queue_->try_enter(std::move(who));
    mine = co_await entering;
    if (mine && owner) owner->add(mine);
  }
  if (!mine) {
    count(metrics().lock_refused);
    co_return nobody<Granted>();
  }
  metrics().lock_wait.observe(store_.clock().steady() - began);
  co_return lock::Internals::held(std::move(mine));
}

Task<LockInfo> Mutex::info() { return lock::info_of(store_, queue_->wire().names()); }

Task<bool> Mutex::force_release() { return queue_->force_release(); }

}  // namespace sluice
