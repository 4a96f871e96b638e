#include "sluice/shared_mutex.hpp"

#include "lock/shared/shared_access.hpp"
#include "lock/wait/entrance.hpp"
#include "lock/wait/waiting.hpp"

namespace sluice {

using lock::Mode;
using lock::SharedAccess;
using std::chrono::milliseconds;
using MaybeHeld = std::optional<Held>;

SharedMutex::SharedMutex(Store& store, std::string name, SharedMutexOptions options)
    : ExclusiveLock(std::make_shared<SharedAccess>(store, name, Mode::write, options),
                    options.label),
      readers_(std::make_unique<lock::Entrance>(
          std::make_shared<SharedAccess>(store, name, Mode::read, options), options.label)) {}

SharedMutex::~SharedMutex() = default;

Task<Held> SharedMutex::acquire_shared() {
  return readers_->acquire<Held>(nullptr, lock::for_ever, {});
}
Task<Held> SharedMutex::acquire_shared(const Owner& owner) {
  return readers_->acquire<Held>(lock::Internals::state(owner), lock::for_ever, {});
}
Task<MaybeHeld> SharedMutex::try_acquire_shared(milliseconds wait, std::stop_token stop) {
  return readers_->acquire<MaybeHeld>(nullptr, wait, std::move(stop));
}
Task<MaybeHeld> SharedMutex::try_acquire_shared(const Owner& owner, milliseconds wait,
                                                std::stop_token stop) {
  return readers_->acquire<MaybeHeld>(lock::Internals::state(owner), wait, std::move(stop));
}

void SharedMutex::lock_shared() { readers_->lock(); }
bool SharedMutex::try_lock_shared() { return readers_->lock_within(milliseconds{0}); }
bool SharedMutex::lock_shared_within(milliseconds wait) { return readers_->lock_within(wait); }
void SharedMutex::unlock_shared() { readers_->unlock(); }

}  // namespace sluice
