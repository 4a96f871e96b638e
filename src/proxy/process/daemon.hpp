/// Going into the background, -d. The process that was started stays until the one in the
/// background has said how its start went, and exits with that: twemproxy's parent always exits
/// with 0, and start scripts learn nothing.
#pragma once

#include <utility>

namespace sluice::proxy {

class Daemon {
 public:
  /// Forks twice; returns in the process of the background, in a session of its own, whose stderr
  /// still is that of its parent. Call it before there are threads, locks or sockets. Throws
  /// std::system_error.
  static Daemon start();
  Daemon(Daemon&& other) noexcept : ready_(std::exchange(other.ready_, -1)) {}
  Daemon& operator=(Daemon&&) = delete;
  /// Not ready by now: the parent exits with 1.
  ~Daemon();

  /// All is open and served: stdin, stdout and stderr become /dev/null, and the parent exits with
  /// 0.
  void ready();

 private:
  explicit Daemon(int ready) noexcept : ready_(ready) {}
  int ready_;
};

}  // namespace sluice::proxy
