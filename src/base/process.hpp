/// What a process asks about itself.
#pragma once

#include <atomic>
#include <string>

namespace sluice {

/// How many fork()s lie between the start of the first program and this process. Sockets and
/// threads do not survive a fork(); their owners compare this. O(1), no system call.
unsigned fork_count() noexcept;

/// The T of this process, which is never destroyed. A child of fork() gets a new one. Any thread.
template <class T>
T& of_this_process() {
  struct Mine {
    T value;
    const unsigned forks = fork_count();
  };
  static std::atomic<Mine*> latest{nullptr};
  Mine* seen = latest.load(std::memory_order_acquire);
  if (seen && seen->forks == fork_count()) return seen->value;
  auto* const mine = new Mine;
  if (latest.compare_exchange_strong(seen, mine, std::memory_order_acq_rel)) return mine->value;
  delete mine;
  return seen->value;
}

/// The name of this machine; "unknown" where it has none.
std::string host_name();

}  // namespace sluice
