#include "proxy/watch/documents.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::proxy::watch {
namespace {

using namespace std::chrono_literals;

Snapshot snapshot_of_one_pool() {
  Snapshot snapshot;
  snapshot.at = WallTime{1'795'267'050s};
  snapshot.uptime = 1s;
  auto& pool = snapshot.pools.emplace_back();
  pool.name = "alpha";
  pool.totals.client_eof = 1;
  pool.totals.client_accepted = 4;
  pool.totals.client_connections = 2;
  auto& server = pool.servers.emplace_back();
  server.name = "one";
  server.totals.request_bytes = 20;
  server.totals.connects = 3;
  server.totals.server_connections = 1;
  return snapshot;
}

TEST(TwemproxyDocument, IsInTheFormatOfNutcracker) {
  EXPECT_EQ(
      twemproxy_document(snapshot_of_one_pool(), {.source = "host", .version = "0.5.0"}),
      R"({"service":"nutcracker", "source":"host", "version":"0.5.0", "uptime":1, )"
      R"("timestamp":1795267050, "total_connections":8, "curr_connections":4, )"
      R"("alpha": {"client_eof":1, "client_err":0, "client_connections":2, "server_ejects":0, )"
      R"("forward_error":0, "fragments":0, "one": {"server_eof":0, "server_err":0, )"
      R"("server_timedout":0, "server_connections":1, "server_ejected_at":0, "requests":0, )"
      R"("request_bytes":20, "responses":0, "response_bytes":0, "in_queue":0, )"
      R"("in_queue_bytes":0, "out_queue":0, "out_queue_bytes":0}}})"
      "\n");
}

TEST(TwemproxyDocument, NamesCannotBreakIt) {
  auto snapshot = snapshot_of_one_pool();
  snapshot.pools[0].servers[0].name = "a\"b\\, \xff";
  const auto parsed = nlohmann::json::parse(twemproxy_document(snapshot, {}));
  EXPECT_EQ(parsed["alpha"]["a\"b\\, \xef\xbf\xbd"]["request_bytes"], 20);
}

TEST(StatisticsJson, HasAllFieldsAndBucketsThatAddUp) {
  auto snapshot = snapshot_of_one_pool();
  LatencyHistogram histogram;
  histogram.observe(1ms);
  histogram.observe(2ms);
  histogram.add_to(snapshot.pools[0].servers[0].latency);
  const auto parsed = nlohmann::json::parse(statistics_json(snapshot));
  EXPECT_EQ(parsed["current_connections"], 4);
  const auto& pool = parsed["pools"][0];
  EXPECT_EQ(pool["counters"].size(), pool_fields.size());
  const auto& server = pool["servers"][0];
  EXPECT_EQ(server["counters"].size(), server_fields.size());
  EXPECT_EQ(server["latency"]["count"], 2);
  ASSERT_EQ(server["latency"]["buckets"].size(), 2u);
  EXPECT_EQ(server["latency"]["buckets"][0][0], LatencyBuckets::of(1000));
  EXPECT_EQ(server["latency"]["buckets"][0][1], 1);
}

}  // namespace
}  // namespace sluice::proxy::watch
