#include "sluice/mutex.hpp"

#include "lock/mutex/info.hpp"
#include "lock/mutex/local_queue.hpp"
#include "lock/per_store.hpp"

namespace sluice {
namespace {

lock::MutexTerms terms_of(const MutexOptions& options) {
  const HandOff& hand_off = options.hand_off;
  if (hand_off.within_process < 1 || hand_off.within_process > 100'000)
    throw Error{Errc::bad_argument, "hand-offs within a process lie between 1 and 100000, not at " +
                                        std::to_string(hand_off.within_process)};
  return {.terms = lock::Terms::of(options.lease, options.margin, options.watchdog),
          .durability = options.durability,
          .hand_off = hand_off};
}

}  // namespace

Mutex::Mutex(Store& store, std::string name, MutexOptions options)
    : Mutex(lock::shared_of<lock::LocalQueues>(store)->of(name, terms_of(options)),
            std::move(options.label)) {}

Mutex::Mutex(std::shared_ptr<lock::LocalQueue> queue, std::string label)
    : ExclusiveLock(queue, std::move(label)), queue_(std::move(queue)) {}

Mutex::~Mutex() = default;

Task<LockInfo> Mutex::info() { return lock::info_of(queue_->store(), queue_->names()); }

Task<bool> Mutex::force_release() { return queue_->force_release(); }

}  // namespace sluice
