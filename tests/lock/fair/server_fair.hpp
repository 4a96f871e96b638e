/// A fair lock on a real server, and processes of their own that wait for it.
#pragma once

#include <charconv>
#include <future>
#include <thread>

#include "lock/server_lock.hpp"
#include "support/paths.hpp"

namespace sluice {

class ServerFair : public ServerLock {
 protected:
  test::Process fair_worker(int lease_ms = 30'000) const {
    return test::Process{{test::built_path("tests/lock/fair_worker"), server_.url(), "stock",
                          std::to_string(lease_ms)}};
  }
  void await_queue(int many) {
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (side_.command({"LLEN", queue_}).as_integer() != many) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "not " << many << " wait";
      std::this_thread::yield();
    }
  }
  /// How many scripts the server has run.
  int scripts_run() {
    const std::string stats = side_.command({"INFO", "commandstats"}).as_text();
    const std::string_view calls = "cmdstat_evalsha:calls=";
    const auto at = stats.find(calls);
    int many = 0;
    if (at != std::string::npos)
      std::from_chars(stats.data() + at + calls.size(), stats.data() + stats.size(), many);
    return many;
  }
  /// Gets in, in a thread of its own; when that was.
  std::future<std::chrono::steady_clock::time_point> enter_and_leave(FairMutex& mutex) {
    return std::async(std::launch::async, [&mutex] {
      const auto held = mutex.acquire().get();
      return std::chrono::steady_clock::now();
    });
  }

  const std::string queue_ = "redisson_lock_queue:{stock}";
};

}  // namespace sluice
