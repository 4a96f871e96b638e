/// Five real servers, some of which die.
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "sluice/lock.hpp"
#include "sluice/metrics.hpp"
#include "sluice/open.hpp"
#include "support/history.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Kind = ReleaseOutcome::Kind;

class QuorumServers : public testing::Test {
 protected:
  QuorumServers() {
    for (auto* const stores : {&stores_, &others_})
      for (auto& server : servers_)
        stores->push_back(open(server.url(), {.command_timeout = 30s, .connect_timeout = 30s}));
  }
  static std::vector<Store*> nodes(const std::vector<std::unique_ptr<Store>>& stores) {
    std::vector<Store*> nodes;
    for (const auto& store : stores) nodes.push_back(store.get());
    return nodes;
  }
  bool has(std::size_t node, const Held& held) {
    try {
      const Value value = others_[node]->run({"HGET", "stock", held.owner().text}).get();
      return !value.is_null();
    } catch (const Error&) {
      return false;
    }
  }
  /// Waits until `node` has the hold.
  void await(std::size_t node, const Held& held) {
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (!has(node, held)) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "node " << node << " was not healed";
      std::this_thread::yield();
    }
  }

  std::deque<test::RedisServer> servers_{5};
  std::vector<std::unique_ptr<Store>> stores_;
  std::vector<std::unique_ptr<Store>> others_;  // of another client
};

TEST_F(QuorumServers, Q04_TwoDownOfFiveIsFineAndThreeFailFast) {
  // Those that are well have all the time they need; that of the others is not waited for.
  QuorumLock lock{nodes(stores_), "stock", {.lease = 30s, .node_timeout = 20s}};
  QuorumLock other{nodes(others_), "stock", {.lease = 30s, .node_timeout = 20s}};
  QuorumLock hasty{nodes(stores_), "stock", {.lease = 6s, .node_timeout = 300ms}};
  servers_[0].kill();
  servers_[3].stop();
  auto held = lock.try_acquire(30s).get();
  ASSERT_TRUE(held);
  EXPECT_FALSE(other.try_acquire().get());
  EXPECT_EQ(held->release().get().kind, Kind::released);
  servers_[1].kill();
  const auto began = std::chrono::steady_clock::now();
  try {
    (void)hasty.try_acquire(1h).get();
    FAIL() << "acquired by two of five";
  } catch (const Error& failure) {
    EXPECT_NE(failure.message().find("of 5 nodes "), std::string::npos) << failure.message();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
  servers_[3].cont();
}

TEST_F(QuorumServers, Q04_NodeRestartedEmptyIsHealedAndCounts) {
  QuorumLock lock{nodes(stores_), "stock", {.lease = 4s, .node_timeout = 2s}};
  QuorumLock other{nodes(others_), "stock", {.lease = 4s, .node_timeout = 2s}};
  auto held = lock.acquire().get();
  for (std::size_t i = 0; i < 5; ++i) await(i, held);
  servers_[2].restart(false);
  await(2, held);
  servers_[0].kill();
  servers_[1].kill();
  const auto renewed = metrics().lock_renewals.load();
  const auto patience = std::chrono::steady_clock::now() + 20s;
  while (metrics().lock_renewals.load() < renewed + 2) {
    std::this_thread::sleep_for(10ms);
    ASSERT_LT(std::chrono::steady_clock::now(), patience) << "not renewed";
  }
  EXPECT_FALSE(other.try_acquire().get()) << "the healed node is one of the three";
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

TEST_F(QuorumServers, ThreadsNeverOverlap) {
  const test::TempDir folder;
  const auto record = folder / "record";
  {
    std::vector<std::jthread> crew;
    for (std::size_t who = 0; who < 4; ++who) {
      crew.emplace_back([&, who] {
        QuorumLock lock{nodes(who % 2 ? stores_ : others_), "stock"};
        test::Recorder mine{record, "thread " + std::to_string(who)};
        for (int round = 0; round < 10; ++round) {
          auto held = lock.acquire().get();
          mine.enter(held.token().value);
          mine.leave();
          held.release().get();
        }
      });
    }
  }
  const auto verdict = test::check(test::read_history(record));
  EXPECT_EQ(verdict.entries, 40U);
  EXPECT_TRUE(verdict.ok()) << verdict.text();
}

}  // namespace
}  // namespace sluice
