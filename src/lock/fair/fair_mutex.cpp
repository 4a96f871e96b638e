#include "sluice/fair_mutex.hpp"

#include "lock/fair/fair_queue.hpp"

namespace sluice {
namespace {

std::shared_ptr<lock::FairQueue> queue_of(Store& store, const std::string& name,
                                          const FairMutexOptions& options) {
  return std::make_shared<lock::FairQueue>(
      store, name, lock::Terms::of(options.lease, options.margin, options.watchdog),
      options.durability);
}

}  // namespace

FairMutex::FairMutex(Store& store, std::string name, FairMutexOptions options)
    : FairMutex(queue_of(store, name, options), std::move(options.label)) {}

FairMutex::FairMutex(std::shared_ptr<lock::FairQueue> queue, std::string label)
    : ExclusiveLock(queue, std::move(label)), queue_(std::move(queue)) {}

FairMutex::~FairMutex() = default;

Task<LockInfo> FairMutex::info() { return queue_->info(); }

Task<bool> FairMutex::force_release() { return queue_->force_release(); }

}  // namespace sluice
