/// One T for each Store. It lives as long as one of its users.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "sluice/store.hpp"

namespace sluice::lock {

template <class T>
std::shared_ptr<T> shared_of(Store& store) {
  static std::mutex mutex;
  static auto* const all =
      new std::unordered_map<const Store*, std::weak_ptr<T>>;  // outlives static Mutexes

  const std::lock_guard lock{mutex};
  std::weak_ptr<T>& slot = (*all)[&store];
  if (auto shared = slot.lock()) return shared;
  std::erase_if(*all,
                [&](const auto& entry) { return entry.first != &store && entry.second.expired(); });
  auto shared = std::make_shared<T>(store);
  (*all)[&store] = shared;
  return shared;
}

}  // namespace sluice::lock
