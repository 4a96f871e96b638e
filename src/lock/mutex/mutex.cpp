#include "sluice/mutex.hpp"

#include "lock/mutex/local_queue.hpp"
#include "store/durable.hpp"

namespace sluice {
namespace {

lock::MutexTerms terms_of(const MutexOptions& options) {
  const HandOff& hand_off = options.hand_off;
  if (hand_off.within_process < 1 || hand_off.within_process > 100'000)
    throw Error{Errc::bad_argument, "hand-offs within a process lie between 1 and 100000, not at " +
                                        std::to_string(hand_off.within_process)};
  return {.terms = lock::Terms::of(options.lease, options.margin, options.watchdog),
          .durability = checked(options.durability),
          .hand_off = hand_off};
}

}  // namespace

Mutex::Mutex(Store& store, std::string name, MutexOptions options)
    : ExclusiveLock(lock::LocalQueues::of(store, terms_of(options))->queue_of(name),
                    std::move(options.label)) {}

}  // namespace sluice
