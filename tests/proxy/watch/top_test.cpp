#include "proxy/watch/top.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proxy/watch/documents.hpp"
#include "sluice/error.hpp"

namespace sluice::proxy::watch {
namespace {

using namespace std::chrono_literals;

class TopTest : public testing::Test {
 protected:
  TopTest() {
    registry.set_pools({{"p", {"s"}, 1, [](std::size_t) { return "get"; }}});
  }
  void ask(int requests, std::chrono::nanoseconds latency) {
    for (int i = 0; i < requests; ++i) {
      pool().counters.requests.add();
      pool().latencies.observe(0, latency);
      server().counters.requests.add();
      server().latency.observe(latency);
    }
  }
  PoolWatch& pool() { return *registry.pool(0, "p"); }
  ServerWatch& server() { return *registry.server(0, "p", "s"); }
  std::string statistics() { return statistics_json(registry.snapshot()); }

  VirtualClock clock;
  Registry registry{1, {}, clock};
};

TEST_F(TopTest, RatesAndLatenciesAreThoseOfTheInterval) {
  ask(1000, 10us);
  const auto before = statistics();
  clock.advance(2s);
  ask(100, 5ms);
  pool().counters.client_connections.set(7);
  pool().counters.forward_error.add(4);
  server().counters.out_queue.set(3);
  server().counters.server_timedout.add(2);
  const auto frame = top_frame(before, statistics());
  ASSERT_EQ(frame.pools.size(), 1u);
  const auto& of_pool = frame.pools[0];
  EXPECT_DOUBLE_EQ(of_pool.requests, 50);
  EXPECT_DOUBLE_EQ(of_pool.errors, 2);
  EXPECT_EQ(of_pool.clients, 7);
  EXPECT_EQ(of_pool.latency.count(), 100u);
  EXPECT_NEAR(static_cast<double>(of_pool.latency.quantile(0.5).count()), 5000, 200);
  EXPECT_EQ(of_pool.servers[0].waiting, 3);
  EXPECT_DOUBLE_EQ(of_pool.servers[0].errors, 1);
  EXPECT_EQ(of_pool.servers[0].latency.count(), 100u);
}

TEST_F(TopTest, WithoutABeforeRatesAreOfTheWholeTime) {
  ask(100, 1ms);
  clock.advance(10s);
  EXPECT_DOUBLE_EQ(top_frame("", statistics()).pools[0].requests, 10);
}

TEST_F(TopTest, AProcessThatBeganAnewHasNoNegativeRates) {
  ask(1000, 1ms);
  const auto before = statistics();
  clock.advance(1s);
  Registry fresh{1, {}, clock};
  fresh.set_pools({{"p", {"s"}, 1, [](std::size_t) { return "get"; }}});
  fresh.pool(0, "p")->counters.requests.add(30);
  const auto frame = top_frame(before, statistics_json(fresh.snapshot()));
  EXPECT_DOUBLE_EQ(frame.pools[0].requests, 30);
  EXPECT_EQ(frame.pools[0].latency.count(), 0u);
}

TEST_F(TopTest, TextAndJsonSayTheSame) {
  const auto before = statistics();
  clock.advance(1s);
  ask(20, 5ms);
  auto frame = top_frame(before, statistics());
  frame.hot_keys.push_back({"user:1", 12.4, 0.25});
  const auto text = top_text(frame);
  EXPECT_NE(text.find("\np  "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  s "), std::string::npos) << text;
  EXPECT_NE(text.find("12/s  25.00 %  user:1\n"), std::string::npos) << text;
  const auto json = nlohmann::json::parse(top_json(frame));
  EXPECT_EQ(json["pools"][0]["servers"][0]["requests_per_second"], 20.0);
  EXPECT_EQ(json["hot_keys"][0]["key"], "user:1");
}

TEST_F(TopTest, WhatIsNoStatisticsIsRefused) {
  EXPECT_THROW(top_frame("", "PONG"), Error);
  EXPECT_THROW(top_frame("", "{}"), Error);
  EXPECT_THROW(top_frame("", R"({"uptime_s": 1, "at_us": 1, "pools": [{"name": 5}]})"), Error);
}

TEST_F(TopTest, U17_AServersStateIsShownWithItsCauseAndForHowLong) {
  const auto shown = [&] { return top_frame("", statistics()); };
  EXPECT_NE(top_text(shown()).find("  state\n"), std::string::npos) << top_text(shown());
  EXPECT_NE(top_text(shown()).find("  up\n"), std::string::npos) << top_text(shown());
  server().status->eject(clock.wall(), "timed out");
  clock.advance(12s);
  EXPECT_NE(top_text(shown()).find("  ejected 12 s: timed out\n"), std::string::npos)
      << top_text(shown());
  server().status->probe();
  EXPECT_NE(top_text(shown()).find("  probing 12 s: timed out\n"), std::string::npos)
      << top_text(shown());
  const auto of_server = [&] {
    return nlohmann::json::parse(top_json(shown()))["pools"][0]["servers"][0];
  };
  EXPECT_EQ(of_server()["state"], "probing");
  EXPECT_EQ(of_server()["ejected_seconds"], 12);
  EXPECT_EQ(of_server()["cause"], "timed out");
  server().status->stay();
  EXPECT_EQ(of_server()["state"], "ejected");
  server().status->come_back();
  EXPECT_EQ(of_server()["state"], "up");
  EXPECT_FALSE(of_server().contains("cause"));
}

TEST_F(TopTest, APoolsLineTellsOfLimitsAndOfItsMirror) {
  const auto before = statistics();
  EXPECT_EQ(top_text(top_frame("", before)).find("/s beyond"), std::string::npos);
  clock.advance(2s);
  pool().counters.limited_requests.add(20);
  pool().counters.delayed_requests.add(4);
  pool().counters.mirror_mismatches.add(6);
  pool().counters.mirror_dropped.add(1);
  pool().counters.mirror_failures.add(3);
  const auto frame = top_frame(before, statistics());
  const auto text = top_text(frame);
  EXPECT_NE(
      text.find("  12/s beyond rate_limit, 3/s differ in the mirror, 2/s lost to the mirror\n"),
      std::string::npos)
      << text;
  const auto json = nlohmann::json::parse(top_json(frame))["pools"][0];
  EXPECT_EQ(json["limited_per_second"], 12.0);
  EXPECT_EQ(json["mirror_mismatches_per_second"], 3.0);
  EXPECT_EQ(json["mirror_lost_per_second"], 2.0);
}

}  // namespace
}  // namespace sluice::proxy::watch
