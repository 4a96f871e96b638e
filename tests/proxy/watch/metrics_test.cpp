#include <gtest/gtest.h>

#include <set>

#include "proxy/watch/documents.hpp"

namespace sluice::proxy::watch {
namespace {

using namespace std::chrono_literals;
using testing::AssertionResult;

AssertionResult has(const std::string& text, const std::string& line) {
  if (("\n" + text).find("\n" + line + "\n") != std::string::npos)
    return testing::AssertionSuccess();
  return testing::AssertionFailure() << "no line " << line << " in\n" << text;
}

TEST(Metrics, NamesAreUniqueAndSayWhatTheyAre) {
  std::set<std::string> names;
  for (const auto& field : pool_fields)
    EXPECT_TRUE(names.insert(metric_name(field, "pool")).second) << field.name;
  for (const auto& field : server_fields)
    EXPECT_TRUE(names.insert(metric_name(field, "server")).second) << field.name;
  EXPECT_TRUE(names.contains("client_eof_total"));
  EXPECT_TRUE(names.contains("client_connections"));
  EXPECT_TRUE(names.contains("pool_requests_total"));
  EXPECT_TRUE(names.contains("server_requests_total"));
  EXPECT_TRUE(names.contains("server_ejected_at_seconds"));
}

TEST(Metrics, TextHasEveryRowWithItsLabels) {
  Snapshot snapshot;
  snapshot.uptime = 5s;
  auto& pool = snapshot.pools.emplace_back();
  pool.name = "p\"q";
  pool.totals.requests = 3;
  auto& server = pool.servers.emplace_back();
  server.name = "s";
  server.weight = 3;
  server.totals.server_ejected_at = 1'500'000;
  pool.servers.push_back({.name = "came by itself"});
  const auto text = metrics_text(snapshot, "1.2.3");
  EXPECT_TRUE(has(text, R"(sluice_proxy_build_info{version="1.2.3"} 1)"));
  EXPECT_TRUE(has(text, "sluice_proxy_uptime_seconds 5"));
  EXPECT_TRUE(has(text, R"(sluice_proxy_pool_requests_total{pool="p\"q"} 3)"));
  EXPECT_TRUE(has(text, R"(sluice_proxy_server_state{pool="p\"q",server="s",state="up"} 1)"));
  EXPECT_TRUE(has(text, R"(sluice_proxy_server_state{pool="p\"q",server="s",state="ejected"} 0)"));
  EXPECT_TRUE(has(text, R"(sluice_proxy_server_weight{pool="p\"q",server="s"} 3)"));
  EXPECT_EQ(text.find(R"(server_weight{pool="p\"q",server="came)"), text.npos);
  EXPECT_TRUE(has(text, R"(sluice_proxy_server_ejected_at_seconds{pool="p\"q",server="s"} 1.5)"));
  EXPECT_TRUE(has(text, "# HELP sluice_proxy_client_eof_total eof on client connections"));
  EXPECT_TRUE(has(text, "# TYPE sluice_proxy_client_connections gauge"));
}

TEST(Metrics, HistogramsAreCumulative) {
  Snapshot snapshot;
  auto& pool = snapshot.pools.emplace_back();
  pool.name = "p";
  LatencyHistogram histogram;
  for (const auto time : {10us, 100us, 100us}) histogram.observe(time);
  histogram.observe(130s);
  pool.commands.push_back({"get", {}});
  histogram.add_to(pool.commands[0].latency);
  const auto text = metrics_text(snapshot, "1");
  const std::string name = R"(sluice_proxy_command_seconds_bucket{pool="p",command="get",le=)";
  EXPECT_TRUE(has(text, name + R"("6.4e-05"} 1)"));
  EXPECT_TRUE(has(text, name + R"("0.000128"} 3)"));
  EXPECT_TRUE(has(text, name + R"("67.108864"} 3)"));
  EXPECT_TRUE(has(text, name + R"("+Inf"} 4)"));
  EXPECT_TRUE(has(text, R"(sluice_proxy_command_seconds_count{pool="p",command="get"} 4)"));
}

}  // namespace
}  // namespace sluice::proxy::watch
