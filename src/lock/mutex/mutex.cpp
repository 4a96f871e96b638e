#include <algorithm>

#include "lock/hold/access.hpp"
#include "lock/hold/watchdog.hpp"
#include "lock/mutex/attempt.hpp"
#include "lock/mutex/wire.hpp"
#include "lock/per_store.hpp"
#include "lock/wait/waiting_room.hpp"
#include "sluice/lock.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds for_ever = milliseconds::max();
constexpr milliseconds shortest_lease{10};
constexpr milliseconds longest_lease = std::chrono::hours{24};
/// A waiter looks again after this time even if it hears nothing.
constexpr milliseconds longest_rest = std::chrono::seconds{30};

lock::Terms terms_of(const MutexOptions& options) {
  if (options.lease < shortest_lease || options.lease > longest_lease)
    throw Error{Errc::bad_argument, "the lease of a lock lies between 10 ms and 24 h, not at " +
                                        std::to_string(options.lease.count()) + " ms"};
  const auto margin = options.margin.value_or(options.lease / 100 + milliseconds{2});
  if (margin < milliseconds{0} || margin >= options.lease)
    throw Error{Errc::bad_argument, "the margin of a lock lies between 0 and its lease, not at " +
                                        std::to_string(margin.count()) + " ms"};
  return {.lease = options.lease, .margin = margin, .watched = options.watchdog};
}

/// `wait` from now, as far as the clock can count; not looked at for those that do not wait.
SteadyTime deadline(Clock& clock, milliseconds wait) {
  if (wait <= milliseconds{0} || wait == for_ever) return SteadyTime::max();
  const auto now = clock.steady();
  return wait >= std::chrono::floor<milliseconds>(SteadyTime::max() - now) ? SteadyTime::max()
                                                                           : now + wait;
}

/// When to look again at a lock whose holder has `left` of its lease.
SteadyTime next_look(Clock& clock, milliseconds left) {
  const auto rest = left < milliseconds{0} ? longest_rest : std::min(left, longest_rest);
  return clock.steady() + rest + milliseconds{1};  // the server counts in whole milliseconds
}

}  // namespace

Mutex::Mutex(Store& store, std::string name, MutexOptions options)
    : store_(store),
      terms_(std::make_unique<lock::Terms>(terms_of(options))),
      names_(std::make_shared<const lock::Names>(std::move(name))),
      watchdog_(lock::shared_of<lock::Watchdog>(store)),
      rooms_(lock::shared_of<lock::WaitingRooms>(store)) {}

Mutex::~Mutex() = default;

const std::string& Mutex::name() const noexcept { return names_->key; }

Task<Held> Mutex::acquire() {
  auto entering = enter({.owner = nullptr, .owner_id = lock::new_owner_id()}, for_ever, {});
  auto held = co_await entering;
  co_return std::move(*held);
}

Task<Held> Mutex::acquire(const Owner& owner) {
  auto entering =
      enter({.owner = lock::Access::state(owner), .owner_id = owner.id().text}, for_ever, {});
  auto held = co_await entering;
  co_return std::move(*held);
}

Task<std::optional<Held>> Mutex::try_acquire(milliseconds wait, std::stop_token stop) {
  return enter({.owner = nullptr, .owner_id = lock::new_owner_id()}, wait, std::move(stop));
}

Task<std::optional<Held>> Mutex::try_acquire(const Owner& owner, milliseconds wait,
                                             std::stop_token stop) {
  return enter({.owner = lock::Access::state(owner), .owner_id = owner.id().text}, wait,
               std::move(stop));
}

/// A hold that the owner is in already, else a new one.
Task<lock::Attempt> Mutex::look(lock::Entrant& who) {
  auto hold = who.owner ? who.owner->find(*watchdog_, *names_) : nullptr;
  return hold ? look_again(who, std::move(hold)) : lock::attempt(who, watchdog_, names_, *terms_);
}

Task<lock::Attempt> Mutex::look_again(lock::Entrant& who, std::shared_ptr<lock::Hold> hold) {
  auto entering = lock::enter_again(hold);
  if (const bool in = co_await entering; in)
    co_return lock::Attempt{.hold = std::move(hold), .left = {}};
  auto asking = lock::attempt(who, watchdog_, names_, *terms_);
  co_return co_await asking;
}

Task<std::optional<Held>> Mutex::enter(lock::Entrant who, milliseconds wait, std::stop_token stop) {
  const SteadyTime until = deadline(store_.clock(), wait);
  auto looking = look(who);
  lock::Attempt found = co_await looking;
  if (!found.hold && wait > milliseconds{0} && !stop.stop_requested()) {
    auto waiting = wait_in_room(who, until, std::move(stop));
    found.hold = co_await waiting;
  }
  if (found.hold) co_return lock::Access::held(std::move(found.hold));
  count(metrics().lock_refused);
  co_return std::nullopt;
}

Task<std::shared_ptr<lock::Hold>> Mutex::wait_in_room(lock::Entrant& who, SteadyTime until,
                                                      std::stop_token stop) {
  Clock& clock = store_.clock();
  auto entering =
      rooms_->enter(names_->channel);  // before the second look, so that no release is missed
  lock::WaitingRoom::Seat seat{co_await entering};
  for (;;) {
    seat.rise();
    auto looking = look(who);
    const lock::Attempt found = co_await looking;
    seat.answered();
    if (found.hold) co_return found.hold;

    auto sitting = seat.sit(std::min(until, next_look(clock, found.left)), stop);
    co_await sitting;
    if (clock.steady() >= until || stop.stop_requested()) co_return nullptr;
  }
}

Task<std::optional<Mutex::Holder>> Mutex::holder() {
  Batch batch;
  batch.add({"HGETALL", names_->key}).add({"PTTL", names_->key});
  auto asked = store_.run(std::move(batch));
  const std::vector<Value> replies = co_await asked;
  for (const Value& reply : replies) {
    if (reply.is_error()) throw error_of_reply(reply.as_text());
  }
  const auto& fields = replies.at(0).as_items();
  for (std::size_t i = 0; i + 1 < fields.size(); i += 2) {
    if (fields[i].as_text().starts_with("sluice:")) continue;
    co_return Holder{.owner = {fields[i].as_text()},
                     .entries = static_cast<std::uint32_t>(fields[i + 1].as_integer()),
                     .left = milliseconds{replies.at(1).as_integer()}};
  }
  co_return std::nullopt;
}

Task<bool> Mutex::force_release() {
  auto asked = lock::ask_force_release(store_, *names_);
  const Value reply = co_await asked;
  co_return reply.as_integer() == 1;
}

}  // namespace sluice
