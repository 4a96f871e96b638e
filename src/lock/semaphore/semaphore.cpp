#include "sluice/semaphore.hpp"

#include <fmt/format.h>

#include "lock/hold/owner.hpp"
#include "lock/semaphore/permit_queue.hpp"
#include "lock/text.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;

// --- how many there are ---

SemaphoreBase::SemaphoreBase(Store& store, lock::PermitNames&& names, SemaphoreOptions&& options)
    : store_(store),
      label_(lock::label_or_program(std::move(options.label))),
      queue_(std::make_shared<lock::PermitQueue>(
          store, std::move(names),
          lock::Terms::of(options.lease, options.margin, options.watchdog))) {}

SemaphoreBase::~SemaphoreBase() = default;

const std::string& SemaphoreBase::name() const noexcept { return queue_->key(); }

Task<bool> SemaphoreBase::try_set_permits(std::uint32_t permits) {
  lock::check_range("the number of permits", permits, 0, most);
  co_return co_await queue_->ask_change("try_set", permits, lock::new_request_id()) == 1;
}

Task<void> SemaphoreBase::ensure_permits(std::uint32_t permits) {
  lock::check_range("the number of permits", permits, 0, most);
  const std::int64_t in_force = co_await queue_->ask_change("ensure", permits);
  if (in_force != permits)
    throw Error{
        Errc::config_mismatch,
        fmt::format("semaphore {} has {} permits in {}, and here {}: use the same number, or "
                    "change it with add_permits",
                    lock::quoted(name()), in_force, store_.describe(), permits)};
}

Task<void> SemaphoreBase::add_permits(std::int64_t delta) {
  lock::check_range("the number of permits to add", delta, -std::int64_t{most}, most);
  co_await queue_->ask_change("add", delta, lock::new_request_id());
}

Task<std::int64_t> SemaphoreBase::available() { return queue_->ask_change("look", 0); }

Task<SemaphoreInfo> SemaphoreBase::info() { return queue_->ask_info(); }

// --- permits without ids ---

Semaphore::Semaphore(Store& store, std::string name, SemaphoreOptions options)
    : SemaphoreBase(store, lock::PermitNames::counted(std::move(name)), std::move(options)) {}

Task<std::int64_t> Semaphore::drain() {
  return queue_->ask_change("drain", 0, lock::new_request_id());
}

Task<void> Semaphore::release_unowned(std::uint32_t permits, std::string request) {
  lock::check_range("the number of permits to release", permits, 1, most);
  lock::check_range("the length of a request's name in bytes",
                    static_cast<std::int64_t>(request.size()), 0, 200);
  if (request.empty()) request = lock::new_request_id();
  co_await queue_->ask_change("add", permits, std::move(request));
}

Task<Held> Semaphore::acquire(std::uint32_t permits) {
  lock::StopOrDrop stopping{{}};
  std::stop_token stop = co_await stopping;
  auto held = co_await try_acquire(permits, lock::for_ever, std::move(stop));
  co_return std::move(held).value();
}

Task<std::optional<Held>> Semaphore::try_acquire(std::uint32_t permits, milliseconds wait,
                                                 std::stop_token stop) {
  lock::check_range("the permits of a hold", permits, 1, most);
  const auto queue = queue_;  // this Semaphore may be gone before a Task that was dropped
  const SteadyTime began = store_.clock().steady();
  lock::StopOrDrop stopping{stop};
  stop = co_await stopping;
  const std::string request = lock::new_request_id();
  lock::Identity who{
      request, request,
      lock::permit_holder(permits, queue->terms(), lock::holder_text(false, label_))};
  lock::PermitRequest asked{
      .who = std::move(who), .terms = queue->terms(), .wait = wait, .stop = std::move(stop)};
  std::shared_ptr<lock::Hold> hold;
  const auto accept = [&](const lock::Identity& granted, const lock::Grant& grant,
                          bool handed_over) {
    hold = queue->hold(granted, grant, handed_over);
    return hold != nullptr;
  };
  auto entering = queue->enter(std::move(asked), accept);
  if (const bool in = co_await entering; !in) {
    count(metrics().lock_refused);
    co_return std::nullopt;
  }
  metrics().lock_wait.observe(queue->store().clock().steady() - began);
  co_return lock::Internals::held(std::move(hold));
}

}  // namespace sluice
