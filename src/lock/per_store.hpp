/// What users share, and what lives as long as one of its users.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/process.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

/// One T for each Store.
template <class T>
std::shared_ptr<T> shared_of(Store& store) {
  // It outlives static Mutexes. A child of fork() has one of its own: a thread that it does not
  // have may hold the mutex, and what is there works for the parent.
  struct Registry {
    std::mutex mutex;
    std::unordered_map<const Store*, std::weak_ptr<T>> all;
  };
  Registry& registry = of_this_process<Registry>();
  auto* const all = &registry.all;

  const std::lock_guard lock{registry.mutex};
  std::weak_ptr<T>& slot = (*all)[&store];
  if (auto shared = slot.lock()) return shared;
  std::erase_if(*all,
                [&](const auto& entry) { return entry.first != &store && entry.second.expired(); });
  auto shared = std::make_shared<T>(store);
  (*all)[&store] = shared;
  return shared;
}

/// One T for each Key. Of what is not used any more the place is freed now and then: a call looks
/// at so many others as there are, divided by how many calls there were since.
template <class Key, class T>
class InUse {
 public:
  /// `make` makes one where there is none.
  template <class Make>
  std::shared_ptr<T> of(const Key& key, Make make) {
    const std::lock_guard lock{mutex_};
    std::weak_ptr<T>& slot = all_[key];
    if (auto known = slot.lock()) return known;
    std::shared_ptr<T> made = make();
    slot = made;
    if (all_.size() >= full_) {
      std::erase_if(all_, [](const auto& entry) { return entry.second.expired(); });
      full_ = 2 * all_.size() + 16;
    }
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<T>> all_;
  std::size_t full_ = 16;
};

}  // namespace sluice::lock
