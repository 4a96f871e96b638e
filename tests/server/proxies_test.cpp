/// What operators see of proxies.
#include "server/proxies.hpp"

#include <algorithm>
#include <mutex>

#include "server/operate_fixture.hpp"

namespace sluice::server {
namespace {

constexpr std::string_view metrics = R"(# HELP sluice_proxy_server_state 1 for the state
sluice_proxy_server_state{pool="a\"b",server="10.0.0.1:6379",state="up"} 1
sluice_proxy_server_state{pool="a\"b",server="10.0.0.1:6379",state="ejected"} 0
sluice_proxy_server_state{pool="a\"b",server="10.0.0.2:6379",state="up"} 0
sluice_proxy_server_state{pool="a\"b",server="10.0.0.2:6379",state="ejected"} 1
sluice_proxy_server_requests_total{pool="a\"b",server="10.0.0.1:6379"} 30
sluice_proxy_server_requests_total{pool="a\"b",server="10.0.0.2:6379"} 10
sluice_proxy_server_requests_total{pool="c",server="x"} 0
sluice_proxy_server_weight{pool="a\"b",server="10.0.0.1:6379"} 3
sluice_proxy_uptime_seconds 5
)";

TEST(ProxyMetrics, TellOfPoolsAndServers) {
  const auto pools = pools_in(metrics);
  ASSERT_EQ(pools.size(), 2u);
  EXPECT_EQ(pools[0].name, "a\"b");
  ASSERT_EQ(pools[0].servers.size(), 2u);
  EXPECT_TRUE(pools[0].servers[0].is_alive);
  EXPECT_FALSE(pools[0].servers[1].is_alive);
  EXPECT_EQ(pools[0].servers[0].requests, 30);
  EXPECT_EQ(pools[0].servers[0].weight, 3);
  EXPECT_FALSE(pools[0].servers[1].weight) << "a proxy from before does not tell";
}

TEST(ProxyMetrics, WhatIsNoneSaysNothing) {
  for (const std::string_view text :
       {"", "\n\n", "{", "}", "x{", "x{a", "x{a=\"", "x{a=\"\\", "x{a=\"b\"", "x{a=\"b\"}",
        "x{a=\"b\",", "sluice_proxy_server_state{pool=\"p\"} nan",
        "sluice_proxy_server_state{pool=\"p\"} 1e999", "sluice_proxy_server_state 1", "\xff{\"}"})
    EXPECT_TRUE(pools_in(text).empty()) << text;
}

TEST(ProxyMetrics, ManyServersAreCut) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += fmt::format("sluice_proxy_server_requests_total{{pool=\"p\",server=\"{}\"}} 1\n", i);
  EXPECT_EQ(pools_in(text).at(0).servers.size(), 1000u);
}

class ProxiesTest : public OperateTest {
 protected:
  /// Answers /metrics as a proxy does, from its own server.
  std::unique_ptr<http::Server> proxy(std::string text) const {
    http::Routes routes;
    routes.add({.method = "GET",
                .path = "/metrics",
                .operation = "metrics",
                .handler = [text](http::Request&&, http::Responder&& respond) {
                  respond.send({.status = 200, .media = "text/plain", .body = text, .fields = {}});
                }});
    return std::make_unique<http::Server>(system_clock(), std::move(routes),
                                          http::ServerOptions{.loops = 1});
  }
};

TEST_F(ProxiesTest, AreShownAsFarAsTheyAreReachable) {
  const auto good = proxy(std::string{metrics});
  const auto large = proxy(std::string(5 << 20, 'x'));
  auto gone = proxy({});
  const auto url = [](const http::Server& server) {
    return fmt::format("http://127.0.0.1:{}", server.port());
  };
  auto options = with_keys();
  options.proxies = {url(*good), url(*large), url(*gone) + "/", url(*good) + "/elsewhere"};
  gone.reset();
  begin({tea(10)}, options);
  const auto answer = get("/v1/operate/proxies");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto json = answer.json();
  const auto& proxies = *json.find("proxies")->as_array();
  ASSERT_EQ(proxies.size(), 4u);
  EXPECT_TRUE(*proxies[0].find("reachable")->as_bool()) << answer.body;
  const auto& pool = proxies[0].find("pools")->as_array()->front();
  const auto& servers = *pool.find("servers")->as_array();
  EXPECT_EQ(*servers[0].find("share")->as_double(), 0.75);
  EXPECT_TRUE(*servers[0].find("alive")->as_bool());
  for (std::size_t i = 1; i < proxies.size(); ++i) {
    EXPECT_FALSE(*proxies[i].find("reachable")->as_bool()) << i;
    EXPECT_FALSE(proxies[i].find("why")->as_text()->empty()) << i;
  }
}

/// Each answers only when all are asked: one that is slow holds up no other.
TEST_F(ProxiesTest, AreAskedAllAtOnce) {
  constexpr std::size_t count = 8;
  std::mutex mutex;
  std::vector<http::Responder> asked;
  http::Routes routes;
  routes.add({.method = "GET",
              .path = "/metrics",
              .operation = "metrics",
              .handler = [&](http::Request&&, http::Responder&& respond) {
                const std::lock_guard lock{mutex};
                asked.push_back(std::move(respond));
                if (asked.size() < count) return;
                for (auto& one : asked) one.send({.status = 200, .body = {}, .fields = {}});
                asked.clear();
              }});
  http::Server server{system_clock(), std::move(routes), http::ServerOptions{.loops = 1}};
  auto options = with_keys();
  options.proxies.assign(count, fmt::format("http://127.0.0.1:{}", server.port()));
  begin({tea(10)}, options);
  EXPECT_TRUE(test::comes_true([&] {
    const auto json = get("/v1/operate/proxies").json();
    return std::ranges::all_of(*json.find("proxies")->as_array(), [](const JsonValue& proxy) {
      return *proxy.find("reachable")->as_bool();
    });
  }));
}

TEST_F(ProxiesTest, WhatIsNoAddressOfOneIsRefused) {
  for (const auto* url : {"127.0.0.1:1", "https://a:1", "http://a", "http://", "http://u@a:1", ""})
    EXPECT_THROW(Proxies{{url}}, Error) << url;
  EXPECT_THROW(Proxies{std::vector<std::string>(17, "http://a:1")}, Error);
}

}  // namespace
}  // namespace sluice::server
