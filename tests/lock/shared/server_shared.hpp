/// A read-write lock on a real server.
#pragma once

#include <thread>

#include "lock/server_lock.hpp"
#include "support/java_peer.hpp"

namespace sluice {

class ServerShared : public ServerLock {
 protected:
  /// Waits until so many stand in the queues.
  void await_queue(int many) {
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (side_.command({"ZCARD", "sluice_rw_write_line:{stock}"}).as_integer() +
               side_.command({"ZCARD", "sluice_rw_read_line:{stock}"}).as_integer() !=
           many) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "nobody waits";
      std::this_thread::yield();
    }
  }

  const std::string rw_channel_ = "redisson_rwlock:{stock}";
  SharedMutex mutex_{*store_, "stock"};
};

}  // namespace sluice
