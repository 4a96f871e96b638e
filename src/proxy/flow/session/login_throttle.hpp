/// How long the answer to a login waits: long enough that passwords cannot be tried out.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "sluice/clock.hpp"

namespace sluice::proxy::flow {

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
    if (addresses_.size() >= most_addresses && !addresses_.contains(address)) make_room();
    auto& known = addresses_[address];
    known = {left_of(known, now) + 1, now};
  }
  std::chrono::milliseconds wait_of(const std::string& address, SteadyTime now) const {
    const std::lock_guard lock{mutex_};
    const auto found = addresses_.find(address);
    return found == addresses_.end() ? wait_for(0) : wait_for(left_of(found->second, now));
  }

 private:
  struct Failures {
    std::size_t count = 0;
    SteadyTime last{};
  };

  static std::size_t left_of(const Failures& failures, SteadyTime now) noexcept {
    constexpr std::chrono::seconds half_life{10};
    const auto halvings = (now - failures.last) / half_life;
    return halvings >= 32 ? 0 : std::min<std::size_t>(failures.count, 64) >> halvings;
  }
  /// The one whose last failure is longest ago goes.
  void make_room() {
    addresses_.erase(std::ranges::min_element(addresses_, {},
                                              [](const auto& known) { return known.second.last; }));
  }

  mutable std::mutex mutex_;
  std::map<std::string, Failures> addresses_;
};

}  // namespace sluice::proxy::flow
