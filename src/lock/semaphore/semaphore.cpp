#include "sluice/semaphore.hpp"

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

Semaphore::Semaphore(Store& store, std::string name, SemaphoreOptions options)
    : store_(store),
      label_(options.label.empty() ? lock::program_name() : std::move(options.label)),
      pool_(std::make_shared<lock::Pool>(
          store, lock::PoolNames::counted(std::move(name)),
          lock::Terms::of(options.lease, options.margin, options.watchdog))) {}

Semaphore::~Semaphore() = default;

const std::string& Semaphore::name() const noexcept { return pool_->key(); }

Task<bool> Semaphore::try_set_permits(std::uint32_t permits) {
  lock::check_number("permits", permits, 0, most);
  auto asked = pool_->wire().ask_change("try_set", permits, lock::new_request_id());
  co_return co_await asked == 1;
}

Task<void> Semaphore::add_permits(std::int64_t delta) {
  lock::check_number("permits to add", delta, -std::int64_t{most}, most);
  auto asked = pool_->wire().ask_change("add", delta, lock::new_request_id());
  co_await asked;
}

Task<std::int64_t> Semaphore::available() { return pool_->wire().ask_free(); }

Task<std::int64_t> Semaphore::drain() {
  return pool_->wire().ask_change("drain", 0, lock::new_request_id());
}

Task<void> Semaphore::release_unowned(std::uint32_t permits, std::string request) {
  lock::check_number("permits to release", permits, 1, most);
  lock::check_number("the bytes of a request's name", static_cast<std::int64_t>(request.size()), 0,
                     200);
  if (request.empty()) request = lock::new_request_id();
  auto asked = pool_->wire().ask_change("add", permits, std::move(request));
  co_await asked;
}

Task<Held> Semaphore::acquire(std::uint32_t permits) {
  auto entering = enter(permits, lock::for_ever, {});
  auto held = co_await entering;
  co_return std::move(held).value();
}

Task<std::optional<Held>> Semaphore::try_acquire(std::uint32_t permits, milliseconds wait,
                                                 std::stop_token stop) {
  return enter(permits, wait, std::move(stop));
}

Task<std::optional<Held>> Semaphore::enter(std::uint32_t permits, milliseconds wait,
                                           std::stop_token stop) {
  lock::check_number("permits of a hold", permits, 1, most);
  const auto pool = pool_;
  const SteadyTime began = store_.clock().steady();
  const std::string request = lock::new_request_id();
  const lock::Identity who{
      .owner = request,
      .request = request,
      .holder = lock::pool_holder(permits, pool->terms(), lock::holder_text(false, label_))};
  lock::Pool::Visit visit{.who = who,
                          .lease = pool->terms().lease,
                          .until = Clock::add(store_.clock().steady(), wait),
                          .stop = std::move(stop)};
  std::shared_ptr<lock::Hold> hold;
  auto entering = pool->enter(std::move(visit), [&](const lock::Grant& grant, bool handed_over) {
    hold = pool->hold(who, grant, handed_over);
    return hold != nullptr;
  });
  if (const bool in = co_await entering; !in) {
    count(metrics().lock_refused);
    co_return std::nullopt;
  }
  metrics().lock_wait.observe(store_.clock().steady() - began);
  co_return lock::Internals::held(std::move(hold));
}

Task<SemaphoreInfo> Semaphore::info() { return lock::info_of(store_, pool_->wire()); }

}  // namespace sluice
