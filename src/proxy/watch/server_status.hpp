/// How a server is, for logs and statistics: one for each server, shared by all workers.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>

#include "sluice/clock.hpp"

namespace sluice::proxy::watch {

enum class ServerState : std::uint8_t {
  up,
  ejected,
  probing,  ///< ejected, and asked how it is
};

constexpr std::string_view to_string(ServerState state) noexcept {
  return state == ServerState::up ? "up" : state == ServerState::ejected ? "ejected" : "probing";
}

/// `since`, `cause` and `checks` are of the last ejection; a server that never was has none.
struct ServerStanding {
  ServerState state = ServerState::up;
  WallTime since;
  std::string_view cause;  ///< of failures.def
  std::uint64_t checks = 0;
};

/// Threads: any.
class ServerStatus {
 public:
  void eject(WallTime at, std::string_view cause) {
    const std::lock_guard lock{mutex_};
    standing_ = {ServerState::ejected, at, cause, 0};
  }
  /// It is asked how it is, if it is ejected.
  void probe() {
    const std::lock_guard lock{mutex_};
    if (standing_.state == ServerState::up) return;
    standing_.state = ServerState::probing;
    ++standing_.checks;
  }
  /// The check has failed.
  void stay() {
    const std::lock_guard lock{mutex_};
    if (standing_.state == ServerState::probing) standing_.state = ServerState::ejected;
  }
  void come_back() {
    const std::lock_guard lock{mutex_};
    standing_.state = ServerState::up;
  }
  ServerStanding standing() const {
    const std::lock_guard lock{mutex_};
    return standing_;
  }

 private:
  mutable std::mutex mutex_;
  ServerStanding standing_;
};

}  // namespace sluice::proxy::watch
