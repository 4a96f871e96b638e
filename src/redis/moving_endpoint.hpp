/// Where the server of a Client is, when it is not known beforehand and changes: the master that
/// Sentinels name. Who finds it tells it here, and wakes the reactor; every Link follows.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "net/endpoint.hpp"

namespace sluice::redis {

/// Threads: any.
class MovingEndpoint {
 public:
  struct Place {
    std::uint64_t turn = 0;                 ///< how often it has changed before
    std::optional<net::Endpoint> endpoint;  ///< nothing: it is not known
  };

  /// `server`: what messages call it, without the database.
  explicit MovingEndpoint(std::string server) : server_(std::move(server)) {}

  const std::string& server() const noexcept { return server_; }
  Place place() const {
    const std::lock_guard lock{mutex_};
    return place_;
  }
  std::uint64_t turn() const noexcept { return turn_.load(std::memory_order_acquire); }
  /// Why the place is not known.
  std::string why_not() const {
    const std::lock_guard lock{mutex_};
    return why_not_;
  }

  void change(std::optional<net::Endpoint> endpoint) {
    const std::lock_guard lock{mutex_};
    place_ = {place_.turn + 1, std::move(endpoint)};
    turn_.store(place_.turn, std::memory_order_release);
  }
  void explain(std::string why_not) {
    const std::lock_guard lock{mutex_};
    why_not_ = std::move(why_not);
  }

  /// The server has said or done what a master does not.
  void doubt() noexcept { is_doubted_.store(true, std::memory_order_release); }
  bool take_doubt() noexcept {
    return is_doubted_.load(std::memory_order_relaxed) &&
           is_doubted_.exchange(false, std::memory_order_acq_rel);
  }

 private:
  const std::string server_;
  mutable std::mutex mutex_;
  Place place_;
  std::string why_not_;
  std::atomic<std::uint64_t> turn_{0};
  std::atomic<bool> is_doubted_{false};
};

}  // namespace sluice::redis
