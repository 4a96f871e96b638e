/// One T for each Store. It lives as long as one of its users.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/process.hpp"
#include "sluice/store.hpp"

namespace sluice::lock {

template <class T>
std::shared_ptr<T> shared_of(Store& store) {
  // It outlives static Mutexes. A child of fork() has one of its own: a thread that it does not have
  // may hold the mutex, and what is there works for the parent.
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

}  // namespace sluice::lock
