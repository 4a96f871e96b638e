/// Semaphores on a real server, and processes of their own that use them.
#pragma once

#include <thread>

#include "lock/semaphore/books.hpp"
#include "lock/server_lock.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"
#include "support/java_peer.hpp"
#include "support/paths.hpp"

namespace sluice {

class ServerSemaphore : public ServerLock {
 protected:
  test::Process semaphore_worker(const std::string& verb, const std::string& rounds) {
    return test::Process{{test::built_path("tests/lock/semaphore_worker"), verb, server_.url(),
                          "desks", rounds, record_}};
  }
  /// Waits until so many tickets stand in the queue.
  void await_tickets(int many, const std::string& queue = "sluice_semaphore_line:{desks}") {
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (side_.command({"ZCARD", queue}).as_integer() != many) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "nobody waits in " << queue;
      std::this_thread::yield();
    }
  }

  const std::string record_ = folder_ / "record";
  test::JavaPeer peer_{server_.port()};
};

}  // namespace sluice
