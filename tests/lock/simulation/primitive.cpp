#include "lock/simulation/primitive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sluice/fair_mutex.hpp"
#include "sluice/mutex.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"

namespace sluice::simulation {
namespace {

using std::chrono::milliseconds;
using MaybeHeld = Task<std::optional<Held>>;

constexpr std::uint32_t permits_in_all = 3;

template <class Lock>
class SimExclusive final : public SimLock {
 public:
  template <class Options>
  SimExclusive(Store& store, const std::string& name, Options options)
      : lock_(store, name, std::move(options)) {}

  MaybeHeld enter(const Owner* owner, Mode, std::uint32_t, milliseconds wait,
                  std::stop_token stop) override {
    return owner ? lock_.try_acquire(*owner, wait, std::move(stop))
                 : lock_.try_acquire(wait, std::move(stop));
  }

 private:
  Lock lock_;
};

class SimShared final : public SimLock {
 public:
  SimShared(Store& store, const std::string& name, SharedMutexOptions options)
      : lock_(store, name, std::move(options)) {}

  MaybeHeld enter(const Owner* owner, Mode mode, std::uint32_t, milliseconds wait,
                  std::stop_token stop) override {
    if (mode == Mode::exclusive)
      return owner ? lock_.try_acquire(*owner, wait, std::move(stop))
                   : lock_.try_acquire(wait, std::move(stop));
    return owner ? lock_.try_acquire_shared(*owner, wait, std::move(stop))
                 : lock_.try_acquire_shared(wait, std::move(stop));
  }

 private:
  SharedMutex lock_;
};

class SimSemaphore final : public SimLock {
 public:
  SimSemaphore(Store& store, const std::string& name, SemaphoreOptions options)
      : semaphore_(store, name, std::move(options)) {}

  Task<void> prepare() override {
    auto setting = semaphore_.try_set_permits(permits_in_all);
    co_await setting;
  }
  MaybeHeld enter(const Owner*, Mode, std::uint32_t permits, milliseconds wait,
                  std::stop_token stop) override {
    return semaphore_.try_acquire(permits, wait, std::move(stop));
  }
  Task<std::int64_t> free_permits() override { return semaphore_.available(); }

 private:
  Semaphore semaphore_;
};

class SimPermits final : public SimLock {
 public:
  SimPermits(Store& store, const std::string& name, SemaphoreOptions options)
      : semaphore_(store, name, std::move(options)) {}

  Task<void> prepare() override {
    auto setting = semaphore_.try_set_permits(permits_in_all);
    co_await setting;
  }
  MaybeHeld enter(const Owner*, Mode, std::uint32_t, milliseconds wait,
                  std::stop_token stop) override {
    auto acquiring = semaphore_.try_acquire(wait, std::move(stop));
    std::optional<HeldPermit> permit = co_await acquiring;
    if (!permit) co_return std::nullopt;
    co_return std::optional<Held>{std::move(*permit)};
  }
  Task<std::int64_t> free_permits() override { return semaphore_.available(); }

 private:
  PermitSemaphore semaphore_;
};

std::unique_ptr<SimLock> open_mutex(Store& store, const std::string& name, const Profile& profile) {
  return std::make_unique<SimExclusive<Mutex>>(store, name,
                                               MutexOptions{.lease = profile.lease,
                                                            .watchdog = profile.watched,
                                                            .hand_off = profile.hand_off,
                                                            .label = "simulated"});
}

std::unique_ptr<SimLock> open_fair(Store& store, const std::string& name, const Profile& profile) {
  return std::make_unique<SimExclusive<FairMutex>>(
      store, name,
      FairMutexOptions{.lease = profile.lease, .watchdog = profile.watched, .label = "simulated"});
}

std::unique_ptr<SimLock> open_shared(Store& store, const std::string& name,
                                     const Profile& profile) {
  using Preference = SharedMutexOptions::Preference;
  return std::make_unique<SimShared>(
      store, name,
      SharedMutexOptions{
          .lease = profile.lease,
          .watchdog = profile.watched,
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
      SemaphoreOptions{.lease = profile.lease, .watchdog = profile.watched, .label = "simulated"});
}

constexpr std::string_view redissons_queue[] = {"redisson_lock_queue:", "redisson_lock_timeout:"};
constexpr std::string_view free_permits_key[] = {"lock"};
constexpr std::string_view semaphore_notes[] = {"sluice_semaphore_done:", "sluice_semaphore_turns:",
                                                "sluice_permit_done:", "sluice_permit_turns:"};

constexpr Primitive primitives[] = {
    {.name = "mutex", .open = open_mutex, .steps_over = 2},
    {.name = "fair",
     .open = open_fair,
     .first_come = true,
     .steps_over = 2,
     .stay = redissons_queue},
    {.name = "shared", .open = open_shared, .readers = true, .steps_over = 2},
    {.name = "semaphore",
     .open = open_semaphore<SimSemaphore>,
     .owners = false,
     .permits = permits_in_all,
     .most = 2,
     .steps_over = 1,
     .stay = free_permits_key,
     .fade = semaphore_notes},
    {.name = "permit",
     .open = open_semaphore<SimPermits>,
     .owners = false,
     .permits = permits_in_all,
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
