#include "sluice/permit_semaphore.hpp"

#include "lock/hold/owner.hpp"
#include "lock/hold/steps.hpp"
#include "lock/semaphore/permit_queue.hpp"
#include "lock/text.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

/// Of a permit that no Held stands for.
void check_lease(milliseconds lease) {
  if (lease != unlimited_lease) lock::Terms::of(lease, milliseconds{0}, false);
}

}  // namespace

PermitSemaphore::PermitSemaphore(Store& store, std::string name, SemaphoreOptions options)
    : SemaphoreBase(store, lock::PermitNames::identified(std::move(name)), std::move(options)) {}

Task<void> PermitSemaphore::set_permits(std::uint32_t permits) {
  lock::check_range("the number of permits", permits, 0, most);
  co_await queue_->ask_change("set", permits, lock::new_request_id());
}

// --- permits that are held here ---

Task<HeldPermit> PermitSemaphore::acquire() {
  lock::StopOrDrop stopping{{}};
  std::stop_token stop = co_await stopping;
  auto permits = co_await try_acquire_many(1, lock::for_ever, std::move(stop));
  co_return std::move(permits.at(0));  // throws in a Task that was dropped
}

Task<std::optional<HeldPermit>> PermitSemaphore::try_acquire(milliseconds wait,
                                                             std::stop_token stop) {
  lock::StopOrDrop stopping{stop};
  stop = co_await stopping;
  auto permits = co_await try_acquire_many(1, wait, std::move(stop));
  if (permits.empty()) co_return std::nullopt;
  co_return std::move(permits.front());
}

Task<std::vector<HeldPermit>> PermitSemaphore::try_acquire_many(std::uint32_t permits,
                                                                milliseconds wait,
                                                                std::stop_token stop) {
  lock::check_range("the number of permits to acquire at once", permits, 1, most_at_once);
  const auto queue = queue_;  // this PermitSemaphore may be gone before a Task that was dropped
  const SteadyTime began = store_.clock().steady();
  lock::StopOrDrop stopping{stop};
  stop = co_await stopping;
  lock::Identity who{
      {},
      lock::new_permit_request(),
      lock::permit_holder(permits, queue->terms(), lock::holder_text(false, label_))};
  lock::PermitRequest asked{
      .who = who, .terms = queue->terms(), .wait = wait, .stop = std::move(stop)};
  std::vector<HeldPermit> held;
  const auto accept = [&](const lock::Identity& granted, const lock::Grant& grant,
                          bool handed_over) {
    who = granted;
    while (held.size() < permits) {
      const auto id = lock::permit_of(who.request(), static_cast<std::uint32_t>(held.size() + 1));
      const std::string text = id.text();
      auto hold = queue->hold({text, text, who.holder()}, grant, handed_over);
      if (!hold) break;  // too late
      held.push_back(HeldPermit{lock::Internals::held(std::move(hold)), id});
    }
    return !held.empty();
  };
  auto entering = queue->enter(std::move(asked), accept);
  if (const bool in = co_await entering; !in) {
    count(metrics().lock_refused);
    co_return std::move(held);
  }
  if (held.size() < permits) {  // too late for the last of them: none
    held.clear();
    lock::take_back(*queue, who);
    throw lock::granted_too_late(*queue, queue->terms());
  }
  metrics().lock_wait.observe(queue->store().clock().steady() - began);
  co_return std::move(held);
}

// --- permits that are known by their ids ---

Task<std::optional<PermitId>> PermitSemaphore::take(milliseconds lease, milliseconds wait,
                                                    std::stop_token stop) {
  check_lease(lease);
  const auto queue = queue_;
  lock::StopOrDrop stopping{stop};
  stop = co_await stopping;
  const lock::Terms terms{.lease = lease, .margin = {}, .watched = false};
  lock::Identity who{{},
                     lock::new_permit_request(),
                     lock::permit_holder(1, terms, lock::holder_text(false, label_))};
  lock::PermitRequest asked{.who = who, .terms = terms, .wait = wait, .stop = std::move(stop)};
  const auto accept = [&who](const lock::Identity& granted, const lock::Grant&, bool) {
    who = granted;
    return true;
  };
  auto entering = queue->enter(std::move(asked), accept);
  if (const bool in = co_await entering; !in) co_return std::nullopt;
  if (stopping.is_dropped()) lock::take_back(*queue, who);
  co_return lock::permit_of(who.request(), 1);
}

Task<bool> PermitSemaphore::release(PermitId permit) {
  return queue_->ask_end_once(lock::member_of(permit), lock::new_request_id());
}

Task<bool> PermitSemaphore::update_lease(PermitId permit, milliseconds lease) {
  check_lease(lease);
  return queue_->ask_update_lease(lock::member_of(permit), lease);
}

}  // namespace sluice
