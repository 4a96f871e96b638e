#include "sluice/permit_semaphore.hpp"

#include "lock/hold/owner.hpp"
#include "lock/hold/steps.hpp"
#include "lock/semaphore/info.hpp"
#include "lock/semaphore/limits.hpp"
#include "lock/semaphore/members.hpp"
#include "lock/semaphore/pool.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

/// Of a permit that is nobody's hold.
void check_lease(milliseconds lease) {
  if (lease != unlimited_lease) lock::Terms::of(lease, milliseconds{0}, false);
}

}  // namespace

PermitSemaphore::PermitSemaphore(Store& store, std::string name, SemaphoreOptions options)
    : store_(store),
      label_(options.label.empty() ? lock::program_name() : std::move(options.label)),
      pool_(std::make_shared<lock::Pool>(
          store, lock::PoolNames::identified(std::move(name)),
          lock::Terms::of(options.lease, options.margin, options.watchdog))) {}

PermitSemaphore::~PermitSemaphore() = default;

const std::string& PermitSemaphore::name() const noexcept { return pool_->key(); }

// --- how many there are ---

Task<bool> PermitSemaphore::try_set_permits(std::uint32_t permits) {
  lock::check_number("permits", permits, 0, Semaphore::most);
  auto asked = pool_->wire().ask_change("try_set", permits, lock::new_request_id());
  co_return co_await asked == 1;
}

Task<void> PermitSemaphore::set_permits(std::uint32_t permits) {
  lock::check_number("permits", permits, 0, Semaphore::most);
  auto asked = pool_->wire().ask_change("set", permits, lock::new_request_id());
  co_await asked;
}

Task<void> PermitSemaphore::add_permits(std::int64_t delta) {
  lock::check_number("permits to add", delta, -std::int64_t{Semaphore::most}, Semaphore::most);
  auto asked = pool_->wire().ask_change("add", delta, lock::new_request_id());
  co_await asked;
}

Task<std::int64_t> PermitSemaphore::available() { return pool_->wire().ask_free(); }

// --- permits that are held here ---

Task<HeldPermit> PermitSemaphore::acquire() {
  auto entering = enter(1, lock::for_ever, {});
  auto permits = co_await entering;
  co_return std::move(permits.front());
}

Task<std::optional<HeldPermit>> PermitSemaphore::try_acquire(milliseconds wait,
                                                             std::stop_token stop) {
  auto entering = enter(1, wait, std::move(stop));
  auto permits = co_await entering;
  if (permits.empty()) co_return std::nullopt;
  co_return std::move(permits.front());
}

Task<std::vector<HeldPermit>> PermitSemaphore::try_acquire_many(std::uint32_t permits,
                                                                milliseconds wait,
                                                                std::stop_token stop) {
  return enter(permits, wait, std::move(stop));
}

Task<std::vector<HeldPermit>> PermitSemaphore::enter(std::uint32_t permits, milliseconds wait,
                                                     std::stop_token stop) {
  lock::check_number("permits to acquire at once", permits, 1, most_at_once);
  const auto pool = pool_;
  const SteadyTime began = store_.clock().steady();
  const lock::Identity who{
      .owner = {},
      .request = lock::new_permit_request(),
      .holder = lock::pool_holder(permits, pool->terms(), lock::holder_text(false, label_))};
  lock::Pool::Visit visit{.who = who,
                          .lease = pool->terms().lease,
                          .until = Clock::add(store_.clock().steady(), wait),
                          .stop = std::move(stop)};
  std::vector<HeldPermit> held;
  auto entering = pool->enter(std::move(visit), [&](const lock::Grant& grant, bool handed_over) {
    while (held.size() < permits) {
      const auto id = lock::permit_of(who.request, static_cast<std::uint32_t>(held.size() + 1));
      const std::string text = id.text();
      auto hold =
          pool->hold({.owner = text, .request = text, .holder = who.holder}, grant, handed_over);
      if (!hold) break;  // too late
      held.push_back(HeldPermit{lock::Internals::held(std::move(hold)), id});
    }
    return !held.empty();
  });
  if (const bool in = co_await entering; !in) {
    count(metrics().lock_refused);
    co_return std::move(held);
  }
  if (held.size() < permits) {  // too late for the last of them: none
    held.clear();
    lock::take_back(*pool, who);
    throw lock::granted_too_late(*pool, pool->terms());
  }
  metrics().lock_wait.observe(store_.clock().steady() - began);
  co_return std::move(held);
}

// --- permits that are known by their ids ---

Task<std::optional<PermitId>> PermitSemaphore::take(milliseconds lease, milliseconds wait,
                                                    std::stop_token stop) {
  check_lease(lease);
  const auto pool = pool_;
  const lock::Identity who{.owner = {},
                           .request = lock::new_permit_request(),
                           .holder = lock::pool_holder(1, lease, lock::holder_text(false, label_))};
  lock::Pool::Visit visit{.who = who,
                          .lease = lease,
                          .until = Clock::add(store_.clock().steady(), wait),
                          .stop = std::move(stop)};
  auto entering = pool->enter(std::move(visit), [](const lock::Grant&, bool) { return true; });
  if (const bool in = co_await entering; !in) co_return std::nullopt;
  co_return lock::permit_of(who.request, 1);
}

Task<bool> PermitSemaphore::release(PermitId permit) {
  return pool_->wire().ask_end_once(lock::member_of(permit), lock::new_request_id());
}

Task<bool> PermitSemaphore::update_lease(PermitId permit, milliseconds lease) {
  check_lease(lease);
  return pool_->wire().ask_update_lease(lock::member_of(permit), lease);
}

Task<SemaphoreInfo> PermitSemaphore::info() { return lock::info_of(store_, pool_->wire()); }

}  // namespace sluice
