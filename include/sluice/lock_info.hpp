/// A lock as operators see it: what `info()` of Mutex, FairMutex and SharedMutex gives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/held.hpp"

namespace sluice {

/// A holder or waiter, for people. Empty for a program that does not use this library.
struct HolderData {
  std::string host;
  std::int64_t pid = 0;
  std::string actor;  ///< the kernel's id of the thread, as t<number>; "-" for an Owner
  std::string label;
  /// The processes that wait until this one ends, "PID:ACTOR" each, nearest first, '<' between
  /// them; see `ancestors_of_child()`.
  std::string ancestors{};

  friend bool operator==(const HolderData&, const HolderData&) = default;
};

/// A lock as operators see it; by the time it is read it may be another.
struct LockInfo {
  struct Holder {
    OwnerId owner;
    std::uint32_t entries = 0;
    std::chrono::milliseconds left{};  ///< of the lease; -1: no end
    std::chrono::milliseconds held{};  ///< for so long, as far as is known
    bool exclusive = true;
    HolderData data;
  };
  struct Waiter {
    OwnerId owner;
    HolderData data;
  };
  std::vector<Holder> holders;
  std::vector<Waiter> waiters;        ///< in the order of the queue, as far as there is one
  std::optional<FencingToken> token;  ///< the last one given
};

}  // namespace sluice
