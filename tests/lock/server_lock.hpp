/// A lock on a real server, and processes of their own that use it.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "sluice/lock.hpp"
#include "sluice/open.hpp"
#include "support/paths.hpp"
#include "support/plain_client.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice {

using namespace std::chrono_literals;
using Kind = ReleaseOutcome::Kind;

/// Whether it takes less than `bound` at least once. A slow machine makes it longer now and then; a
/// defect, always.
template <class Round>
bool comes_within(std::chrono::nanoseconds bound, Round round) {
  for (int left = 6; left > 0; --left)
    if (round() < bound) return true;
  return false;
}

/// For a machine on which a server may stand still for a while.
inline std::unique_ptr<Store> open_patiently(const std::string& url) {
  return open(url, {.command_timeout = 30s, .connect_timeout = 30s});
}

class ServerLock : public testing::Test {
 protected:
  test::Process worker(const std::string& verb, const std::string& number,
                       const std::string& path) {
    return test::Process{
        {test::built_path("tests/lock/lock_worker"), verb, server_.url(), "stock", number, path}};
  }
  /// What a worker that holds waits at.
  std::string gate() {
    const std::string path = folder_ / "gate";
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  /// Waits until a worker is in; its token.
  std::uint64_t entered() {
    return std::stoull(side_.command({"BLPOP", "entered", "50"}).as_items().at(1).as_text());
  }
  /// Waits until the server has that many subscribers of a channel.
  void await_subscribers(const std::string& channel, int many) {
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (side_.command({"PUBSUB", "NUMSUB", channel}).as_items().at(1).as_integer() != many) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "nobody subscribes to " << channel;
      std::this_thread::yield();
    }
  }

  /// Waits until so many processes stand in the queue of the lock.
  void await_waiters(int many) {
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (side_.command({"LLEN", "sluice_lock_queue:{stock}"}).as_integer() != many) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "nobody waits";
      std::this_thread::yield();
    }
  }

  test::RedisServer server_;
  test::TempDir folder_;
  test::PlainClient side_{server_.port()};
  std::unique_ptr<Store> store_ = open_patiently(server_.url());
  const std::string channel_ = "redisson_lock__channel:{stock}";
};

}  // namespace sluice
