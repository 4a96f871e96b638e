#include "lock/simulation/primitive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sluice/fair_mutex.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/permit_semaphore.hpp"
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

 private:
  Semaphore semaphore_;
  const std::uint32_t permits_;
};

class SimPermits final : public SimLock {
 public:
  SimPermits(Store& store, const std::string& name, SemaphoreOptions options, std::uint32_t permits)
      : semaphore_(store, name, std::move(options)), permits_(permits) {}

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

 private:
  PermitSemaphore semaphore_;
  const std::uint32_t permits_;
};

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

std::unique_ptr<SimLock> open_multi(Store& store, const std::vector<std::string>& names,
                                    const Profile& profile) {
  return std::make_unique<SimMulti>(store, names,
                                    MultiLockOptions{.lease = profile.lease,
                                                     .watchdog = profile.watched,
                                                     .durability = profile.durability,
                                                     .label = "simulated"});
}

std::unique_ptr<SimLock> open_mutex(Store& store, const std::string& name, const Profile& profile) {
  return std::make_unique<SimExclusive<Mutex>>(store, name,
                                               MutexOptions{.lease = profile.lease,
                                                            .watchdog = profile.watched,
                                                            .durability = profile.durability,
                                                            .hand_off = profile.hand_off,
                                                            .label = "simulated"});
}

std::unique_ptr<SimLock> open_fair(Store& store, const std::string& name, const Profile& profile) {
  return std::make_unique<SimExclusive<FairMutex>>(
      store, name,
      FairMutexOptions{.lease = profile.lease,
                       .watchdog = profile.watched,
                       .durability = profile.durability,
                       .label = "simulated"});
}

std::unique_ptr<SimLock> open_shared(Store& store, const std::string& name,
                                     const Profile& profile) {
  using Preference = SharedMutexOptions::Preference;
  return std::make_unique<SimShared>(
      store, name,
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
std::unique_ptr<SimLock> open_semaphore(Store& store, const std::string& name,
                                        const Profile& profile) {
  return std::make_unique<SomeDoor>(
      store, name,
      SemaphoreOptions{.lease = profile.lease, .watchdog = profile.watched, .label = "simulated"},
      profile.permits);
}

constexpr std::string_view redissons_queue[] = {"redisson_lock_queue:", "redisson_lock_timeout:"};
constexpr std::string_view free_permits_key[] = {"lock"};
constexpr std::string_view semaphore_notes[] = {"sluice_semaphore_done:", "sluice_semaphore_turns:",
                                                "sluice_permit_done:", "sluice_permit_turns:"};

constexpr Primitive primitives[] = {
    {.name = "mutex", .open = open_mutex, .steps_over = 2},
    {.name = "multi", .open = open_mutex, .open_all = open_multi, .owners = false, .steps_over = 2},
    {.name = "fair",
     .open = open_fair,
     .first_come = true,
     .steps_over = 2,
     .stay = redissons_queue},
    {.name = "shared", .open = open_shared, .readers = true, .steps_over = 2},
    {.name = "semaphore",
     .open = open_semaphore<SimSemaphore>,
     .owners = false,
     .permits = true,
     .most = 2,
     .steps_over = 1,
     .stay = free_permits_key,
     .fade = semaphore_notes},
    {.name = "permit",
     .open = open_semaphore<SimPermits>,
     .owners = false,
     .permits = true,
     .steps_over = 1,
     .stay = free_permits_key,
     .fade = semaphore_notes},
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
