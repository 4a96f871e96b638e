#include "proxy/process/admin.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "proxy/process/admin_client.hpp"
#include "sluice/error.hpp"
#include "support/plain_client.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy::process {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;

class AdminTest : public testing::Test {
 protected:
  AdminTest() {
    registry.set_pools({{"p", {"s"}, 2, [](std::size_t i) { return i == 0 ? "get" : "set"; }}});
    actions.reload = [this] { return "pools: " + std::to_string(++reloads); };
    actions.check_config = []() -> std::string {
      throw Error{Errc::bad_argument, "line 3: unknown setting 'lisen'"};
    };
    actions.log_level = [this] { return level; };
    actions.set_log_level = [this](int to) { level = to; };
    services.push_back(admin_service(path, registry, actions));
    server = std::make_unique<ManagementServer>(std::move(services), clock);
  }
  std::string error_of(std::initializer_list<std::string_view> words) {
    const auto reply = client().command(words);
    return reply.is_error() ? reply.as_text() : "no error";
  }
  PlainClient client() { return PlainClient{path}; }

  test::TempDir directory;
  std::string path = (directory / "admin.sock").string();
  VirtualClock clock;
  watch::Registry registry{1, {}, clock};
  AdminActions actions;
  int reloads = 0, level = 5;
  std::vector<Service> services;
  std::unique_ptr<ManagementServer> server;
};

TEST_F(AdminTest, TellsTheStatistics) {
  registry.pool(0, "p")->counters.requests.add(3);
  registry.pool(0, "p")->latencies.observe(1, 1ms);
  registry.server(0, "p", "s")->latency.observe(1ms);
  auto to = client();
  const auto stats = to.command({"stats"});
  EXPECT_EQ(nlohmann::json::parse(stats.as_text())["pools"][0]["counters"]["requests"], 3);
  const auto all = to.command({"LATENCY"});
  ASSERT_EQ(all.as_items().size(), 2u);
  EXPECT_EQ(all.as_items()[0].as_items()[2].as_text(), "set");
  EXPECT_EQ(all.as_items()[0].as_items()[3].as_integer(), 1);
  EXPECT_NEAR(static_cast<double>(all.as_items()[0].as_items()[5].as_integer()), 1000, 40);
  EXPECT_EQ(to.command({"LATENCY", "s"}).as_items().size(), 1u);
  EXPECT_EQ(to.command({"LATENCY", "nobody"}).as_items().size(), 0u);
}

TEST_F(AdminTest, TellsSlowRequestsHotKeysAndBigValues) {
  auto& worker = registry.worker(0);
  worker.slow_log.note(
      {.took = 20ms, .pool = "p", .command = "get", .key = "k", .client = "c", .server = "s"},
      clock.wall());
  worker.big_values.note(5000, "p", "set", "big", clock.wall());
  for (int i = 0; i < 1000; ++i) worker.hot_keys.note("hot", clock.steady());
  auto to = client();
  const auto slow = to.command({"SLOWLOG", "GET", "5"});
  ASSERT_EQ(slow.as_items().size(), 1u);
  const auto& entry = slow.as_items()[0].as_items();
  EXPECT_EQ(entry[2].as_integer(), 20'000);
  EXPECT_EQ(entry[3].as_items()[1].as_text(), "k");
  EXPECT_EQ(to.command({"slowlog", "reset"}).as_text(), "OK");
  EXPECT_EQ(to.command({"SLOWLOG", "GET"}).as_items().size(), 0u);
  EXPECT_EQ(to.command({"HOTKEYS"}).as_items().at(0).as_items()[0].as_text(), "hot");
  EXPECT_EQ(to.command({"BIGVALUES", "1"}).as_items().at(0).as_items()[1].as_integer(), 5000);
}

TEST_F(AdminTest, ActionsAreDoneAndTheirRefusalsTold) {
  EXPECT_EQ(client().command({"RELOAD"}).as_text(), "pools: 1");
  EXPECT_EQ(reloads, 1);
  EXPECT_EQ(error_of({"CONFIG", "CHECK"}), "ERR line 3: unknown setting 'lisen'");
  EXPECT_EQ(error_of({"UPGRADE"}), "ERR this process does not offer that");
  EXPECT_EQ(client().command({"LOGLEVEL", "11"}).as_text(), "OK");
  EXPECT_EQ(client().command({"LOGLEVEL"}).as_integer(), 11);
}

TEST_F(AdminTest, WhatIsNotUnderstoodIsRefusedAndTheConnectionStays) {
  auto to = client();
  EXPECT_EQ(to.command({"FLUSHALL"}).as_text(), "ERR unknown command 'FLUSHALL', try HELP");
  EXPECT_EQ(to.command({"CONFIG"}).as_text(), "ERR unknown command 'CONFIG', try HELP");
  EXPECT_EQ(to.command({"RELOAD", "now"}).as_text(), "ERR RELOAD takes at most 0 arguments");
  EXPECT_EQ(to.command({"LOGLEVEL", "12"}).as_text(), "ERR a log level is a number from 0 to 11");
  EXPECT_EQ(to.command({"HOTKEYS", "-1"}).as_text(), "ERR '-1' is no number");
  EXPECT_EQ(to.command({"PING"}).as_text(), "PONG");
  EXPECT_EQ(reloads, 0);
}

TEST_F(AdminTest, WhatIsTooLargeIsRefusedAndTheConnectionEnds) {
  auto to = client();
  to.send("*1000000\r\n");
  EXPECT_TRUE(to.read().is_error());
  EXPECT_EQ(to.read_raw(), "");
  auto other = client();
  other.send("*1\r\n$100000\r\n");
  EXPECT_TRUE(other.read().is_error());
  EXPECT_EQ(other.read_raw(), "");
}

TEST_F(AdminTest, ALongPipelineIsAnsweredWhole) {
  auto to = client();
  const int count = 2000;  // HELP is about 1 KiB: more than it answers at once
  std::string all;
  for (int i = 0; i < 200; ++i) all += "HELP\r\n";
  for (int i = 0; i < count / 200; ++i) to.send(all);
  for (int i = 0; i < count; ++i) ASSERT_EQ(to.read().as_items().size(), 15u) << i;
  EXPECT_EQ(to.command({"QUIT"}).as_text(), "OK");
  EXPECT_EQ(to.read_raw(), "");
}

TEST_F(AdminTest, IsNotServedToOtherMachines) {
  EXPECT_THROW(admin_service("0.0.0.0:22", registry, actions), Error);
}

Errc errc_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.errc();
  }
  return Errc{};
}

TEST(AdminClient, AsksOneAfterTheOther) {
  VirtualClock clock;
  watch::Registry registry{1, {}, clock};
  const AdminActions actions;
  const auto open_any = [](std::string_view, net::Endpoint endpoint) {
    endpoint.port = 0;
    return ListeningSocket::open(endpoint);
  };
  auto service = admin_service("127.0.0.1:22", registry, actions, open_any);
  const auto address = "127.0.0.1:" + std::to_string(service.listening.port());
  std::vector<Service> services;
  services.push_back(std::move(service));
  const ManagementServer server{std::move(services), clock};

  AdminClient client{address};
  const std::string_view ping[] = {"PING"}, stats[] = {"STATS"}, wrong[] = {"NOPE"};
  EXPECT_EQ(client.ask(ping).as_text(), "PONG");
  EXPECT_TRUE(client.ask(wrong).is_error());
  EXPECT_TRUE(client.ask(stats).as_text().starts_with("{"));
}

TEST(AdminClient, SaysThatNobodyIsThereOrAnswers) {
  std::string address;
  const std::string_view ping[] = {"PING"};
  {
    const auto silent = ListeningSocket::open(
        {.host = "127.0.0.1", .port = 0});  // the kernel connects; nobody accepts
    address = "127.0.0.1:" + std::to_string(silent.port());
    EXPECT_EQ(errc_of([&] { AdminClient{address, 10ms}.ask(ping); }), Errc::timeout);
  }
  EXPECT_EQ(errc_of([&] { AdminClient{address, 1s}; }), Errc::connection);
  EXPECT_EQ(errc_of([&] { AdminClient{"nowhere", 1s}; }), Errc::bad_argument);
}

TEST_F(AdminTest, X05_ALineOfHttpEndsTheConversation) {
  for (const std::string line : {"POST / HTTP/1.1\r\n", "Host: 127.0.0.1\r\n"}) {
    auto browser = client();
    browser.send(line + "\r\nRELOAD\r\n");
    EXPECT_EQ(browser.read_raw(), "");
  }
  EXPECT_EQ(reloads, 0);
}

}  // namespace
}  // namespace sluice::proxy::process
