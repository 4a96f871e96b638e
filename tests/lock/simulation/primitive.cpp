#include "lock/simulation/primitive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "lock/simulation/errands.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/quorum_lock.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"

namespace sluice::simulation {
namespace {

using std::chrono::milliseconds;
using MaybeHeld = Task<std::optional<Held>>;
using MaybeHold = Task<SimHoldPtr>;

class OneHold final : public SimHold {
 public:
  explicit OneHold(Held held) : held_(std::move(held)) {}
  bool valid() const override { return held_.valid(); }
  std::chrono::nanoseconds valid_for() const override { return held_.valid_for(); }
  FencingToken token(const std::string&) const override { return held_.token(); }
  void on_lost(std::function<void(LostCause)> callback) override {
    held_.on_lost(std::move(callback));
  }
  Task<ReleaseOutcome> release() override { return held_.release(); }

 private:
  Held held_;
};

class ManyHold final : public SimHold {
 public:
  explicit ManyHold(MultiHeld held) : held_(std::move(held)) {}
  bool valid() const override { return held_.valid(); }
  std::chrono::nanoseconds valid_for() const override { return held_.valid_for(); }
  FencingToken token(const std::string& name) const override { return held_.token(name); }
  void on_lost(std::function<void(LostCause)> callback) override {
    held_.on_lost(std::move(callback));
  }
  Task<ReleaseOutcome> release() override { return held_.release(); }

 private:
  MultiHeld held_;
};

MaybeHold hold_of(MaybeHeld acquiring) {
  std::optional<Held> held = co_await acquiring;
  co_return held ? std::make_unique<OneHold>(*std::move(held)) : nullptr;
}

template <class Lock>
class SimExclusive final : public SimLock {
 public:
  template <class Options>
  SimExclusive(Store& store, const std::string& name, Options options)
      : lock_(store, name, std::move(options)) {}

  MaybeHold enter(const Owner* owner, Mode, std::uint32_t, milliseconds wait,
                  std::stop_token stop) override {
    return hold_of(owner ? lock_.try_acquire(*owner, wait, std::move(stop))
                         : lock_.try_acquire(wait, std::move(stop)));
  }

  Task<void> look() override {
    auto asked = lock_.info();
    co_await asked;
  }
  Task<bool> force() override { return lock_.force_release(); }

 private:
  Lock lock_;
};

class SimShared final : public SimLock {
 public:
  SimShared(Store& store, const std::string& name, SharedMutexOptions options)
      : lock_(store, name, std::move(options)) {}

  MaybeHold enter(const Owner* owner, Mode mode, std::uint32_t, milliseconds wait,
                  std::stop_token stop) override {
    if (mode == Mode::exclusive)
      return hold_of(owner ? lock_.try_acquire(*owner, wait, std::move(stop))
                           : lock_.try_acquire(wait, std::move(stop)));
    return hold_of(owner ? lock_.try_acquire_shared(*owner, wait, std::move(stop))
                         : lock_.try_acquire_shared(wait, std::move(stop)));
  }

  Task<void> look() override {
    auto asked = lock_.info();
    co_await asked;
  }
  Task<bool> force() override { return lock_.force_release(); }

 private:
  SharedMutex lock_;
};

class SimSemaphore final : public SimLock {
 public:
  SimSemaphore(Store& store, const std::string& name, SemaphoreOptions options,
               std::uint32_t permits)
      : semaphore_(store, name, std::move(options)), permits_(permits) {}

  Task<void> prepare() override {
    auto setting = semaphore_.try_set_permits(permits_);
    co_await setting;
  }
  MaybeHold enter(const Owner*, Mode, std::uint32_t permits, milliseconds wait,
                  std::stop_token stop) override {
    return hold_of(semaphore_.try_acquire(permits, wait, std::move(stop)));
  }
  Task<std::int64_t> free_permits() override { return semaphore_.available(); }
  Task<void> look() override {
    auto asked = semaphore_.info();
    co_await asked;
  }
  Task<void> change() override {
    auto preparing = prepare();
    co_await preparing;
    auto more = semaphore_.add_permits(2);
    co_await more;
    auto fewer = semaphore_.add_permits(-2);
    co_await fewer;
    auto ensuring = semaphore_.ensure_permits(permits_);
    co_await ensuring;
    auto draining = semaphore_.drain();
    const auto drained = static_cast<std::uint32_t>(co_await draining);
    if (drained == 0) co_return;
    auto releasing = semaphore_.release_unowned(drained);
    co_await releasing;
  }

 private:
  Semaphore semaphore_;
  const std::uint32_t permits_;
};

class SimPermits final : public SimLock {
 public:
  SimPermits(Store& store, const std::string& name, SemaphoreOptions options, std::uint32_t permits)
      : semaphore_(store, name, std::move(options)), permits_(permits), clock_(store.clock()) {}

  Task<void> prepare() override {
    auto setting = semaphore_.try_set_permits(permits_);
    co_await setting;
  }
  MaybeHold enter(const Owner*, Mode, std::uint32_t, milliseconds wait,
                  std::stop_token stop) override {
    auto acquiring = semaphore_.try_acquire(wait, std::move(stop));
    std::optional<HeldPermit> permit = co_await acquiring;
    if (!permit) co_return nullptr;
    co_return std::make_unique<OneHold>(std::move(*permit));
  }
  Task<std::int64_t> free_permits() override { return semaphore_.available(); }
  Task<void> look() override {
    auto asked = semaphore_.info();
    co_await asked;
  }
  Task<void> change() override {
    auto preparing = prepare();
    co_await preparing;
    auto setting = semaphore_.set_permits(permits_ + 2);
    co_await setting;
    auto back = semaphore_.set_permits(permits_);
    co_await back;
    auto taking = semaphore_.take(milliseconds{500}, milliseconds{100});
    const std::optional<PermitId> permit = co_await taking;
    if (!permit) co_return;
    if (++changes_ % 2 == 0) {  // until it is over: the next call finds that
      auto resting = sleep_until(clock_, clock_.steady() + milliseconds{600});
      co_await resting;
    }
    auto prolonging = semaphore_.update_lease(*permit, milliseconds{200});
    co_await prolonging;
    auto releasing = semaphore_.release(*permit);
    co_await releasing;
  }

 private:
  PermitSemaphore semaphore_;
  const std::uint32_t permits_;
  Clock& clock_;
  int changes_ = 0;
};

class SimQuorum final : public SimLock {
 public:
  SimQuorum(Stores stores, const std::string& name, QuorumLockOptions options)
      : lock_({stores.begin(), stores.end()}, name, std::move(options)) {}

  MaybeHold enter(const Owner*, Mode, std::uint32_t, milliseconds wait,
                  std::stop_token stop) override {
    return hold_of(lock_.try_acquire(wait, std::move(stop)));
  }

 private:
  QuorumLock lock_;
};

std::unique_ptr<SimLock> open_quorum(Stores stores, const std::string& name,
                                     const Profile& profile) {
  return std::make_unique<SimQuorum>(
      stores, name,
      QuorumLockOptions{.lease = profile.lease, .watchdog = profile.watched, .label = "simulated"});
}

class SimMulti final : public SimLock {
 public:
  SimMulti(Store& store, const std::vector<std::string>& names, MultiLockOptions options)
      : lock_(store, names, std::move(options)) {}

  MaybeHold enter(const Owner*, Mode, std::uint32_t, milliseconds wait,
                  std::stop_token stop) override {
    auto acquiring = lock_.try_acquire(wait, std::move(stop));
    std::optional<MultiHeld> held = co_await acquiring;
    co_return held ? std::make_unique<ManyHold>(*std::move(held)) : nullptr;
  }

 private:
  MultiLock lock_;
};

std::unique_ptr<SimLock> open_multi(Stores stores, const std::vector<std::string>& names,
                                    const Profile& profile) {
  return std::make_unique<SimMulti>(*stores.front(), names,
                                    MultiLockOptions{.lease = profile.lease,
                                                     .watchdog = profile.watched,
                                                     .durability = profile.durability,
                                                     .label = "simulated"});
}

std::unique_ptr<SimLock> open_mutex(Stores stores, const std::string& name,
                                    const Profile& profile) {
  return std::make_unique<SimExclusive<Mutex>>(*stores.front(), name,
                                               MutexOptions{.lease = profile.lease,
                                                            .watchdog = profile.watched,
                                                            .durability = profile.durability,
                                                            .hand_off = profile.hand_off,
                                                            .label = "simulated"});
}

std::unique_ptr<SimLock> open_fair(Stores stores, const std::string& name, const Profile& profile) {
  return std::make_unique<SimExclusive<FairMutex>>(
      *stores.front(), name,
      FairMutexOptions{.lease = profile.lease,
                       .watchdog = profile.watched,
                       .durability = profile.durability,
                       .label = "simulated"});
}

std::unique_ptr<SimLock> open_shared(Stores stores, const std::string& name,
                                     const Profile& profile) {
  using Preference = SharedMutexOptions::Preference;
  return std::make_unique<SimShared>(
      *stores.front(), name,
      SharedMutexOptions{
          .lease = profile.lease,
          .watchdog = profile.watched,
          .durability = profile.durability,
          .preference = profile.prefers_readers ? Preference::readers : Preference::writers,
          .overtaking = profile.hand_off.within_process,
          .hand_overs = 1 + profile.hand_off.across_processes,
          .label = "simulated"});
}

template <class SomeDoor>
std::unique_ptr<SimLock> open_semaphore(Stores stores, const std::string& name,
                                        const Profile& profile) {
  return std::make_unique<SomeDoor>(
      *stores.front(), name,
      SemaphoreOptions{.lease = profile.lease, .watchdog = profile.watched, .label = "simulated"},
      profile.permits);
}

constexpr std::string_view free_permits_key[] = {"lock"};
constexpr std::string_view semaphore_notes[] = {"sluice_semaphore_done:", "sluice_semaphore_turns:",
                                                "sluice_permit_done:", "sluice_permit_turns:"};

constexpr std::string_view latch_keys[] = {"lock", "{lock", "sluice_latch"};
constexpr std::string_view limiter_keys[] = {"lock", "{lock"};
constexpr std::string_view fence_keys[] = {"sluice_fence:", "written"};

constexpr Primitive primitives[] = {
    {.name = "mutex", .open = open_mutex, .steps_over = 2},
    {.name = "multi", .open = open_mutex, .open_all = open_multi, .owners = false, .steps_over = 2},
    {.name = "fair", .open = open_fair, .first_come = true, .in_order = true, .steps_over = 2},
    {.name = "shared", .open = open_shared, .readers = true, .in_order = true, .steps_over = 2},
    {.name = "semaphore",
     .open = open_semaphore<SimSemaphore>,
     .owners = false,
     .permits = true,
     .most = 2,
     .in_order = true,
     .steps_over = 1,
     .stay = free_permits_key,
     .fade = semaphore_notes},
    {.name = "permit",
     .open = open_semaphore<SimPermits>,
     .owners = false,
     .permits = true,
     .in_order = true,
     .steps_over = 1,
     .stay = free_permits_key,
     .fade = semaphore_notes},
    {.name = "quorum", .open = open_quorum, .owners = false, .servers = 3},
    {.name = "latch",
     .open = open_latch,
     .owners = false,
     .readers = true,
     .is_held = false,
     .stay = latch_keys},
    {.name = "limiter",
     .open = open_limiter,
     .owners = false,
     .readers = true,
     .is_held = false,
     .stay = limiter_keys},
    {.name = "fence",
     .open = open_fence,
     .owners = false,
     .readers = true,
     .is_held = false,
     .stay = fence_keys},
};

}  // namespace

std::span<const Primitive> all_primitives() { return primitives; }

const Primitive& primitive_named(std::string_view name) {
  const auto* const found = std::ranges::find(primitives, name, &Primitive::name);
  if (found == std::end(primitives))
    throw std::invalid_argument{fmt::format("nobody plays '{}'", name)};
  return *found;
}

}  // namespace sluice::simulation
