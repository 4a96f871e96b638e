/// How long the answer to a login waits: long enough that passwords cannot be tried out.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "sluice/clock.hpp"

namespace sluice::front {

/// The failures of late by address. The first few cost nothing; then each doubles the wait of every
/// answer to a login from there, also to a right one: else who tries many at a time would learn
/// from the quick answer. Half of the failures are forgotten every ten seconds. Threads: any.
class LoginThrottle {
 public:
  static constexpr std::size_t most_addresses = 4096;
  static constexpr std::chrono::milliseconds longest{2000};

  static std::chrono::milliseconds wait_for(std::size_t failures) noexcept {
    constexpr std::size_t free = 5, doublings = 5;
    constexpr std::chrono::milliseconds first{100};
    if (failures <= free) return {};
    return std::min(first * (1 << std::min(failures - free - 1, doublings)), longest);
  }

  void note_failure(const std::string& address, SteadyTime now) {
    const std::lock_guard lock{mutex_};
    const auto found = places_.find(address);
    if (found == places_.end()) return add(address, now);
    const auto place = found->second;
    place->count = left_of(*place, now) + 1;
    place->last = now;
    known_.splice(known_.end(), known_, place);
  }
  std::chrono::milliseconds wait_of(const std::string& address, SteadyTime now) const {
    const std::lock_guard lock{mutex_};
    const auto found = places_.find(address);
    return found == places_.end() ? wait_for(0) : wait_for(left_of(*found->second, now));
  }

 private:
  struct Failures {
    std::string address;
    std::size_t count = 0;
    SteadyTime last{};
  };

  static std::size_t left_of(const Failures& failures, SteadyTime now) noexcept {
    constexpr std::chrono::seconds half_life{10};
    const auto halvings = (now - failures.last) / half_life;
    return halvings >= 32 ? 0 : std::min<std::size_t>(failures.count, 64) >> halvings;
  }
  /// If too many are known, the one whose last failure is longest ago makes room.
  void add(const std::string& address, SteadyTime now) {
    if (known_.size() >= most_addresses) {
      places_.erase(known_.front().address);
      known_.pop_front();
    }
    known_.push_back({address, 1, now});
    places_.emplace(known_.back().address, std::prev(known_.end()));
  }

  mutable std::mutex mutex_;
  std::list<Failures> known_;  // in the order of their last failures
  std::map<std::string_view, std::list<Failures>::iterator> places_;  // by the addresses in known_
};

}  // namespace sluice::front
