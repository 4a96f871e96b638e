/// Objects by names that come from outside: of so many the one that was used last stays.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace sluice::server {

/// Threads: any.
template <class Key, class Object>
class Kept {
 public:
  explicit Kept(std::size_t most) : most_(most) {}

  /// The object of this key, or what `make()` makes of it; what it throws. One that is pushed out
  /// lives for as long as somebody uses it.
  template <class Make>
  std::shared_ptr<Object> get(const Key& key, Make make) {
    const std::lock_guard lock{mutex_};
    if (const auto found = places_.find(key); found != places_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return found->second->second;
    }
    std::shared_ptr<Object> made = make();
    order_.emplace_front(key, made);
    places_.emplace(key, order_.begin());
    if (order_.size() > most_) {
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    return made;
  }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<Object>>> order_;  // guarded by mutex_; last used first
  std::map<Key, typename std::list<std::pair<Key, std::shared_ptr<Object>>>::iterator> places_;
};

}  // namespace sluice::server
