#include "proxy/watch/registry.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "sluice/error.hpp"

namespace sluice::proxy::watch {
namespace {

using namespace std::chrono_literals;

WatchedPool pool(std::string name, std::vector<std::string> servers, std::size_t commands = 4) {
  return {std::move(name), std::move(servers), commands,
          [](std::size_t command) { return "c" + std::to_string(command); }};
}

class RegistryTest : public testing::Test {
 protected:
  VirtualClock clock;
  Registry registry{2, {}, clock};
};

TEST_F(RegistryTest, WorkersAddUpAndTheLatestTimeCounts) {
  registry.set_pools({pool("p", {"s"})});
  for (std::size_t worker = 0; worker < 2; ++worker) {
    registry.pool(worker, "p")->counters.client_connections.set(3);
    registry.pool(worker, "p")->latencies.observe(2, 1ms);
    const auto server = registry.server(worker, "p", "s");
    server->counters.requests.add(5);
    server->counters.server_ejected_at.set(worker == 0 ? 70 : 60);
    server->latency.observe(1ms);
  }
  clock.advance(90s);
  const auto snapshot = registry.snapshot();
  EXPECT_EQ(snapshot.uptime, 90s);
  ASSERT_EQ(snapshot.pools.size(), 1u);
  const auto& sum = snapshot.pools[0];
  EXPECT_EQ(sum.totals.client_connections, 6);
  ASSERT_EQ(sum.commands.size(), 1u);
  EXPECT_EQ(sum.commands[0].name, "c2");
  EXPECT_EQ(sum.commands[0].latency.count(), 2u);
  ASSERT_EQ(sum.servers.size(), 1u);
  EXPECT_EQ(sum.servers[0].totals.requests, 10);
  EXPECT_EQ(sum.servers[0].totals.server_ejected_at, 70);
  EXPECT_EQ(sum.servers[0].latency.count(), 2u);
}

TEST_F(RegistryTest, AReloadKeepsWhatHasTheSameName) {
  registry.set_pools({pool("p", {"s", "t"})});
  registry.pool(0, "p")->counters.requests.add(7);
  registry.server(0, "p", "s")->counters.requests.add(8);
  registry.set_pools({pool("p", {"s", "u"})});
  const auto snapshot = registry.snapshot();
  EXPECT_EQ(snapshot.pools[0].totals.requests, 7);
  ASSERT_EQ(snapshot.pools[0].servers.size(), 2u);
  EXPECT_EQ(snapshot.pools[0].servers[0].totals.requests, 8);
  EXPECT_EQ(snapshot.pools[0].servers[1].name, "u");
}

TEST_F(RegistryTest, WhatWasTakenAwayStaysUntilTheLastWorkerLetsGo) {
  registry.set_pools({pool("p", {"s"}), pool("q", {"s"})});
  auto of_pool = registry.pool(1, "q");
  auto of_server = registry.server(1, "q", "s");
  registry.set_pools({pool("p", {"s"})});
  of_server->counters.responses.add(1);  // a drained connection still counts
  EXPECT_EQ(registry.snapshot().pools.size(), 2u);
  of_pool.reset();
  EXPECT_EQ(registry.snapshot().pools.size(), 2u);
  of_server.reset();
  ASSERT_EQ(registry.snapshot().pools.size(), 1u);
  EXPECT_EQ(registry.snapshot().pools[0].name, "p");
}

TEST_F(RegistryTest, AChangedProtocolBeginsItsCommandsAnew) {
  registry.set_pools({pool("p", {"s"}, 4)});
  registry.pool(0, "p")->latencies.observe(3, 1ms);
  registry.set_pools({pool("p", {"s"}, 2)});
  EXPECT_EQ(registry.pool(0, "p")->latencies.size(), 2u);
  EXPECT_TRUE(registry.snapshot().pools[0].commands.empty());
}

TEST_F(RegistryTest, UnknownNamesAreRefused) {
  registry.set_pools({pool("p", {"s"})});
  EXPECT_THROW(registry.pool(0, "x"), Error);
  EXPECT_THROW(registry.server(0, "p", "x"), Error);
}

TEST_F(RegistryTest, PoolsAndServersStandAsTwemproxySortsThem) {
  registry.set_pools({pool("beta", {"bb", "z", "aa"}), pool("z", {"a"})});
  const auto snapshot = registry.snapshot();
  EXPECT_EQ(snapshot.pools[0].name, "z");
  EXPECT_EQ(snapshot.pools[1].servers[0].name, "z");
  EXPECT_EQ(snapshot.pools[1].servers[1].name, "aa");
}

TEST_F(RegistryTest, ListsAreMergedOverWorkers) {
  const SlowRequest slow{
      .took = 1s, .pool = "p", .command = "get", .key = "k", .client = "", .server = ""};
  registry.worker(0).slow_log.note(slow, clock.wall());
  registry.worker(1).slow_log.note(slow, clock.wall());
  registry.worker(0).slow_log.note(slow, clock.wall());
  const auto slowest = registry.slow_log(2);
  ASSERT_EQ(slowest.size(), 2u);
  EXPECT_EQ(slowest[0].id, slowest[1].id + 1);
  registry.reset_slow_log();
  EXPECT_TRUE(registry.slow_log(9).empty());

  registry.worker(0).big_values.note(10, "p", "get", "a", clock.wall());
  registry.worker(1).big_values.note(20, "p", "get", "b", clock.wall());
  EXPECT_EQ(registry.big_values(1)[0].key, "b");
}

TEST_F(RegistryTest, ReadersAndWritersMeetWithoutARace) {
  registry.set_pools({pool("p", {"s"})});
  std::thread worker{[&] {
    const auto of_pool = registry.pool(0, "p");
    const auto of_server = registry.server(0, "p", "s");
    auto& own = registry.worker(0);
    for (int i = 0; i < 20'000; ++i) {
      of_pool->counters.requests.add();
      of_pool->latencies.observe(static_cast<std::size_t>(i % 4), 1us * i);
      of_server->counters.requests.add();
      own.hot_keys.note("k", clock.steady());
      if (i % 100 == 0) own.big_values.note(5, "p", "get", "k", clock.wall());
    }
  }};
  for (int i = 0; i < 50; ++i) {
    EXPECT_LE(registry.snapshot().pools[0].totals.requests, 20'000);
    EXPECT_LE(registry.hot_keys(5).size(), 1u);
    EXPECT_LE(registry.big_values(5).size(), 1u);
  }
  worker.join();
  EXPECT_EQ(registry.snapshot().pools[0].totals.requests, 20'000);
}

}  // namespace
}  // namespace sluice::proxy::watch
