#include "sluice/shared_mutex.hpp"

#include "lock/hold/owner.hpp"
#include "lock/hold/steps.hpp"
#include "lock/hold/thread_holds.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/per_store.hpp"
#include "lock/shared/info.hpp"
#include "lock/shared/shared_access.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

void check(std::string_view what, std::uint32_t number, std::uint32_t least) {
  constexpr std::uint32_t most = 1'000'000;
  if (number < least || number > most)
    throw Error{Errc::bad_argument, std::string{what} + " of a shared lock lies between " +
                                        std::to_string(least) + " and " + std::to_string(most) +
                                        ", not at " + std::to_string(number)};
}

lock::SharedTerms terms_of(const SharedMutexOptions& options) {
  check("overtaking", options.overtaking, 0);
  check("hand_overs", options.hand_overs, 1);
  return {.terms = lock::Terms::of(options.lease, options.margin, options.watchdog),
          .durability = options.durability,
          .preference = options.preference,
          .overtaking = options.overtaking,
          .hand_overs = options.hand_overs};
}

Task<Held> the_held(Task<std::optional<Held>> entering) {
  auto held = co_await entering;
  co_return std::move(held).value();
}

}  // namespace

SharedMutex::SharedMutex(Store& store, std::string name, SharedMutexOptions options)
    : store_(store),
      label_(options.label.empty() ? lock::program_name() : std::move(options.label)),
      wire_(std::make_shared<lock::SharedWire>(store, std::move(name), terms_of(options))),
      watchdog_(lock::shared_of<lock::Watchdog>(store)),
      readers_(std::make_shared<lock::SharedAccess>(store, lock::Mode::read, wire_, watchdog_,
                                                    lock::shared_of<lock::Inbox>(store))),
      writers_(std::make_shared<lock::SharedAccess>(store, lock::Mode::write, wire_, watchdog_,
                                                    lock::shared_of<lock::Inbox>(store))),
      reading_threads_(std::make_unique<lock::ThreadHolds>()),
      writing_threads_(std::make_unique<lock::ThreadHolds>()) {}

SharedMutex::~SharedMutex() = default;

const std::string& SharedMutex::name() const noexcept { return wire_->names().key; }

Task<Held> SharedMutex::acquire() { return the_held(enter(writers_, nullptr, lock::for_ever, {})); }
Task<Held> SharedMutex::acquire(const Owner& owner) {
  return the_held(enter_to_write(lock::Internals::state(owner), lock::for_ever, {}));
}
Task<std::optional<Held>> SharedMutex::try_acquire(milliseconds wait, std::stop_token stop) {
  return enter(writers_, nullptr, wait, std::move(stop));
}
Task<std::optional<Held>> SharedMutex::try_acquire(const Owner& owner, milliseconds wait,
                                                   std::stop_token stop) {
  return enter_to_write(lock::Internals::state(owner), wait, std::move(stop));
}

Task<Held> SharedMutex::acquire_shared() {
  return the_held(enter(readers_, nullptr, lock::for_ever, {}));
}
Task<Held> SharedMutex::acquire_shared(const Owner& owner) {
  return the_held(enter(readers_, lock::Internals::state(owner), lock::for_ever, {}));
}
Task<std::optional<Held>> SharedMutex::try_acquire_shared(milliseconds wait, std::stop_token stop) {
  return enter(readers_, nullptr, wait, std::move(stop));
}
Task<std::optional<Held>> SharedMutex::try_acquire_shared(const Owner& owner, milliseconds wait,
                                                          std::stop_token stop) {
  return enter(readers_, lock::Internals::state(owner), wait, std::move(stop));
}

/// Refuses an owner that reads, where the server need not be asked.
Task<std::optional<Held>> SharedMutex::enter_to_write(OwnerState owner, milliseconds wait,
                                                      std::stop_token stop) {
  if (!owner->find(*watchdog_, *writers_) && owner->find(*watchdog_, *readers_))
    throw lock::upgrade_refused(name());
  auto entering = enter(writers_, std::move(owner), wait, std::move(stop));
  co_return co_await entering;
}

/// A hold that the owner is in already and enters again, if there is one; else a new one.
Task<std::optional<Held>> SharedMutex::enter(std::shared_ptr<lock::SharedAccess> access,
                                             OwnerState owner, milliseconds wait,
                                             std::stop_token stop) {
  const SteadyTime began = store_.clock().steady();
  auto mine = owner ? owner->find(*watchdog_, *access) : nullptr;
  if (mine) {
    auto entering = lock::enter_again(mine);
    if (const bool in = co_await entering; !in) mine = nullptr;
  }
  if (!mine) {
    lock::Identity who{.owner = owner ? owner->id.text : lock::new_owner_id(),
                       .request = lock::new_request_id(),
                       .holder = lock::holder_text(owner != nullptr, label_)};
    const bool waits = wait > milliseconds{0} && !stop.stop_requested();
    auto entering = waits ? access->enter(std::move(who), Clock::add(began, wait), std::move(stop))
                          : access->try_enter(std::move(who));
    mine = co_await entering;
    if (mine && owner) owner->add(mine);
  }
  if (!mine) {
    count(metrics().lock_refused);
    co_return std::nullopt;
  }
  metrics().lock_wait.observe(store_.clock().steady() - began);
  co_return lock::Internals::held(std::move(mine));
}

Task<LockInfo> SharedMutex::info() { return lock::shared_info(store_, wire_->names()); }

Task<bool> SharedMutex::force_release() {
  auto asked = wire_->ask_force_release();
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

}  // namespace sluice
