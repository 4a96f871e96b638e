/// What clients and connections have of the process in common, and how much there is of it.
/// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::front {

/// How many may be there at the same time, in all workers.
class PlaceLimit {
 public:
  void set_most(std::size_t most) noexcept { most_ = most; }
  /// Takes a place if fewer than `most` are taken, and fewer than set_most() says. Of workers that
  /// ask at the same time only one gets the last place.
  bool enter(std::size_t most = SIZE_MAX) noexcept {
    if (most_.load() < most) most = most_.load();
    auto here = here_.load();
    do {
      if (here >= most) return false;
    } while (!here_.compare_exchange_weak(here, here + 1));
    return true;
  }
  void leave() noexcept { --here_; }
  std::size_t taken() const noexcept { return here_; }

 private:
  std::atomic<std::size_t> here_{0};
  std::atomic<std::size_t> most_{SIZE_MAX};
};

/// Bytes that are kept for clients before they have logged in: together at most so many, so that
/// strangers, however many there are, take no memory from those who have.
class StrangerBudget {
 public:
  static constexpr std::int64_t most = std::int64_t{16} << 20;

  /// False, and nothing is taken: there is no room for `bytes` more.
  bool take(std::int64_t bytes) noexcept {
    if (taken_.fetch_add(bytes) + bytes <= most || bytes <= 0) return true;
    taken_ -= bytes;
    return false;
  }

 private:
  std::atomic<std::int64_t> taken_{0};
};

/// Of the process.
struct ProcessLimits {
  /// Each client has one, and each connection to a server: beyond the limit a client is closed at
  /// once, as nutcracker does, and a request gets an error. So the kernel is not asked for more
  /// than there are.
  PlaceLimit descriptors;
  /// Fewer than descriptors: some are left for connections to servers.
  PlaceLimit clients;
  StrangerBudget strangers;
  /// The ids of clients begin behind it. Those of a predecessor in an upgrade, which may come here,
  /// lie below.
  std::uint64_t first_id = 0;
};

}  // namespace sluice::front
