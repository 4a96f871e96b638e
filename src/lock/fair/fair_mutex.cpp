#include "sluice/fair_mutex.hpp"

#include "lock/fair/queue.hpp"
#include "lock/hold/owner.hpp"
#include "lock/hold/steps.hpp"
#include "lock/hold/thread_holds.hpp"
#include "lock/wait/waiting.hpp"
#include "sluice/metrics.hpp"

namespace sluice {

using std::chrono::milliseconds;

namespace {

lock::FairTerms terms_of(const FairMutexOptions& options) {
  return {.terms = lock::Terms::of(options.lease, options.margin, options.watchdog),
          .durability = options.durability};
}

/// As whom a request stands in the queue, where every name is there once: as its owner, if that
/// does not wait there already.
class PlaceName {
 public:
  PlaceName(std::shared_ptr<lock::OwnerState> owner, const lock::Resource& lock)
      : owner_(std::move(owner)), lock_(lock), own_(owner_ && owner_->begin_wait(lock_)) {}
  ~PlaceName() {
    if (own_) owner_->end_wait(lock_);
  }
  PlaceName(const PlaceName&) = delete;
  PlaceName& operator=(const PlaceName&) = delete;

  std::string text() const { return own_ ? owner_->id.text : lock::new_owner_id(); }

 private:
  const std::shared_ptr<lock::OwnerState> owner_;
  const lock::Resource& lock_;
  const bool own_;
};

}  // namespace

FairMutex::FairMutex(Store& store, std::string name, FairMutexOptions options)
    : store_(store),
      label_(options.label.empty() ? lock::program_name() : std::move(options.label)),
      queue_(std::make_shared<lock::FairQueue>(store, name, terms_of(options))),
      threads_(std::make_unique<lock::ThreadHolds>()) {}

FairMutex::~FairMutex() = default;

const std::string& FairMutex::name() const noexcept { return queue_->key(); }

Task<Held> FairMutex::acquire() {
  auto entering = enter(nullptr, lock::for_ever, {});
  auto held = co_await entering;
  co_return std::move(*held);
}

Task<Held> FairMutex::acquire(const Owner& owner) {
  auto entering = enter(lock::Internals::state(owner), lock::for_ever, {});
  auto held = co_await entering;
  co_return std::move(*held);
}

Task<std::optional<Held>> FairMutex::try_acquire(milliseconds wait, std::stop_token stop) {
  return enter(nullptr, wait, std::move(stop));
}

Task<std::optional<Held>> FairMutex::try_acquire(const Owner& owner, milliseconds wait,
                                                 std::stop_token stop) {
  return enter(lock::Internals::state(owner), wait, std::move(stop));
}

Task<std::optional<Held>> FairMutex::enter(std::shared_ptr<lock::OwnerState> owner,
                                           milliseconds wait, std::stop_token stop) {
  Clock& clock = store_.clock();
  const SteadyTime began = clock.steady();
  const SteadyTime until = Clock::add(clock.steady(), wait);
  auto mine = owner ? owner->find(queue_->watchdog(), *queue_) : nullptr;
  if (mine) {
    auto entering = lock::enter_again(mine);
    if (const bool in = co_await entering; !in) mine = nullptr;
  }
  if (!mine) {
    const PlaceName place{owner, *queue_};
    lock::Identity who{.owner = place.text(),
                       .request = lock::new_request_id(),
                       .holder = lock::holder_text(owner != nullptr, label_)};
    const bool waits = wait > milliseconds{0} && !stop.stop_requested();
    auto entering = waits ? queue_->enter(std::move(who), until, std::move(stop))
                          : queue_->try_enter(std::move(who));
    mine = co_await entering;
    if (mine && owner) owner->add(mine);
  }
  if (!mine) {
    count(metrics().lock_refused);
    co_return std::nullopt;
  }
  metrics().lock_wait.observe(clock.steady() - began);
  co_return lock::Internals::held(std::move(mine));
}

Task<LockInfo> FairMutex::info() { return queue_->wire().ask_info(); }

Task<bool> FairMutex::force_release() { return queue_->force_release(); }

void FairMutex::lock() { threads_->keep(acquire(lock::this_thread_owner()).get()); }

bool FairMutex::try_lock() { return lock_within(milliseconds{0}); }

bool FairMutex::lock_within(milliseconds wait) {
  auto held = try_acquire(lock::this_thread_owner(), wait).get();
  if (!held) return false;
  threads_->keep(std::move(*held));
  return true;
}

void FairMutex::unlock() { (void)threads_->take(name()); }

}  // namespace sluice
