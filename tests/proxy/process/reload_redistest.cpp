/// Other settings while clients pipeline: nobody is refused, no reply is lost, none comes to
/// another request.
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "proxy/support/load.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/free_port.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

bool says(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

class ReloadTest : public testing::Test {
 protected:
  Lines pool(const Lines& settings, const std::vector<std::string>& servers) const {
    Lines lines{"redis: true"};
    lines.insert(lines.end(), settings.begin(), settings.end());
    lines.emplace_back("servers:");
    for (const auto& server : servers) lines.push_back(" - 127.0.0.1:" + server);
    return lines;
  }
  static std::string at(const RedisServer& server, std::string_view rest = ":1") {
    return std::to_string(server.port()) + std::string{rest};
  }
  static void expect_all_well(const Load::Count& count) {
    EXPECT_GT(count.replies, 0U);
    EXPECT_EQ(count.wrong + count.errors + count.lost + count.refused, 0U) << count.first_trouble;
  }

  RedisServer one_, two_, three_;
};

TEST_F(ReloadTest, UnderLoadNobodyIsRefusedAndNoReplyIsLostOrReordered) {
  ProxyProgram proxy{pool({}, {at(one_), at(two_)}), {.process = {"workers: 2"}, .arguments = {}}};
  Load steady{proxy.port(), {.clients = 3, .depth = 20, .reconnects = false}};
  Load restless{proxy.port(), {.clients = 2, .depth = 4, .reconnects = true}};
  const auto beta = [&](std::uint16_t port) {
    return "beta:\n  listen: 127.0.0.1:" + std::to_string(port) +
           "\n  redis: true\n  servers:\n   - 127.0.0.1:" + at(one_) + "\n";
  };
  const struct {
    const char* what;
    Lines pool;
    std::string more;
  } changes[] = {
      {"a server more", pool({}, {at(one_), at(two_), at(three_)}), {}},
      {"other weights", pool({}, {at(one_, ":5"), at(two_, ":1"), at(three_, ":2")}), {}},
      {"another hash", pool({"hash: murmur"}, {at(one_, ":5"), at(two_), at(three_)}), {}},
      {"another distribution",
       pool({"hash: murmur", "distribution: modula"}, {at(one_), at(two_)}),
       {}},
      {"other connections", pool({"server_connections: 2"}, {at(one_), at(two_)}), {}},
      {"another database", pool({"redis_db: 3"}, {at(one_), at(two_)}), {}},
      {"another backlog", pool({"backlog: 1000", "timeout: 5000"}, {at(one_), at(two_)}), {}},
      {"a pool more", pool({}, {at(one_), at(two_)}), beta(free_port())},
      {"that pool elsewhere", pool({}, {at(one_), at(two_)}), beta(free_port())},
      {"that pool gone, and a server", pool({}, {at(two_)}), {}},
      {"all as it was", pool({}, {at(one_), at(two_)}), {}},
  };
  for (const auto& change : changes) {
    ASSERT_TRUE(steady.goes_on(1000) && restless.goes_on(100)) << "before " << change.what;
    proxy.write(change.pool, change.more);
    const auto reply = proxy.ask({"RELOAD"});
    ASSERT_FALSE(reply.is_error()) << change.what << ": " << reply.as_text();
  }
  ASSERT_TRUE(steady.goes_on() && restless.goes_on(100));
  expect_all_well(steady.stop());
  expect_all_well(restless.stop());
}

TEST_F(ReloadTest, ABadFileIsRefusedAsAWholeWithTheLineThatIsWrong) {
  ProxyProgram proxy{pool({}, {at(one_)})};
  Load load{proxy.port(), {.clients = 2, .depth = 8, .reconnects = false}};
  ASSERT_TRUE(load.goes_on());
  proxy.write_text("alpha:\n  listen: 127.0.0.1:" + std::to_string(proxy.port()) +
                   "\n  redis: true\n  hash: nonsense\n  servers:\n   - 127.0.0.1:" + at(two_) +
                   "\n");
  const auto reply = proxy.ask({"RELOAD"});
  ASSERT_TRUE(reply.is_error());
  EXPECT_TRUE(says(reply.as_text(), "nutcracker.yml:4: ")) << reply.as_text();
  ASSERT_TRUE(load.goes_on());
  expect_all_well(load.stop());
  EXPECT_EQ(PlainClient{two_.port()}.command({"DBSIZE"}).as_integer(), 0) << "nothing has changed";
}

TEST_F(ReloadTest, WhatItCannotChangeItNames) {
  ProxyProgram proxy{pool({}, {at(one_)})};
  const auto address = "127.0.0.1:" + std::to_string(free_port());
  proxy.set_process({"metrics: " + address});
  proxy.write(pool({"reuseport: true"}, {at(one_)}));
  for (int i = 0; i < 2; ++i) {
    const auto reply = proxy.ask({"RELOAD"});
    ASSERT_FALSE(reply.is_error()) << reply.as_text();
    EXPECT_TRUE(says(reply.as_text(), "'metrics' stays '' until a restart or an upgrade"))
        << reply.as_text();
    EXPECT_EQ(says(reply.as_text(), "'reuseport' not before"), i == 0) << reply.as_text();
  }
}

TEST_F(ReloadTest, AnAddressThatIsTakenRefusesItAll) {
  ProxyProgram proxy{pool({}, {at(one_)})};
  proxy.write(pool({}, {at(two_)}), "beta:\n  listen: 127.0.0.1:" + std::to_string(three_.port()) +
                                        "\n  redis: true\n  servers:\n   - 127.0.0.1:" + at(one_) +
                                        "\n");
  const auto reply = proxy.ask({"RELOAD"});
  ASSERT_TRUE(reply.is_error());
  EXPECT_TRUE(says(reply.as_text(), "cannot listen")) << reply.as_text();
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"SET", "a", "b"}).as_text(), "OK");
  EXPECT_EQ(PlainClient{one_.port()}.command({"GET", "a"}).as_text(), "b") << "the old pool serves";
}

TEST_F(ReloadTest, Usr1DoesItToo) {
  ProxyProgram proxy{pool({}, {at(one_)})};
  PlainClient client{proxy.port()};
  ASSERT_EQ(client.command({"SET", "a", "in one"}).as_text(), "OK");
  proxy.write(pool({}, {at(two_)}));
  proxy.process().signal(SIGUSR1);
  for (int tries = 0; tries < 4000 && !says(proxy.log(), "reloaded '"); ++tries)
    std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(client.command({"GET", "a"}).is_null()) << "the same client, another server";
}

TEST_F(ReloadTest, PoolsMayExchangeTheirAddresses) {
  const auto other = free_port();
  ProxyProgram proxy{pool({}, {at(one_)})};
  const auto pools = [&](std::uint16_t alpha, std::uint16_t beta) {
    const auto text = [](std::string_view name, std::uint16_t port, const std::string& server) {
      return std::string{name} + ":\n  listen: 127.0.0.1:" + std::to_string(port) +
             "\n  redis: true\n  servers:\n   - 127.0.0.1:" + server + "\n";
    };
    return "sluice:\n  admin: " + proxy.admin() + "\n" + text("alpha", alpha, at(one_)) +
           text("beta", beta, at(two_));
  };
  proxy.write_text(pools(proxy.port(), other));
  ASSERT_FALSE(proxy.ask({"RELOAD"}).is_error());
  proxy.write_text(pools(other, proxy.port()));
  const auto reply = proxy.ask({"RELOAD"});
  ASSERT_FALSE(reply.is_error()) << reply.as_text();
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"SET", "a", "b"}).as_text(), "OK");
  EXPECT_EQ(PlainClient{two_.port()}.command({"GET", "a"}).as_text(), "b");
}

TEST_F(ReloadTest, WhatAServerThatRetiresWasAskedIsAnsweredOrTimedOut) {
  ProxyProgram proxy{pool({}, {at(one_)})};
  PlainClient client{proxy.port()};
  ASSERT_EQ(client.command({"SET", "a", "1"}).as_text(), "OK");
  proxy.write(pool({"timeout: 300"}, {at(one_)}));
  ASSERT_FALSE(proxy.ask({"RELOAD"}).is_error());
  one_.stop();
  client.send("*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
  ASSERT_FALSE(client.read_for(50ms));
  proxy.write(pool({"timeout: 300"}, {at(two_)}));
  ASSERT_FALSE(proxy.ask({"RELOAD"}).is_error());
  EXPECT_TRUE(says(client.read().as_text(), "timed out"));
  proxy.write(pool({}, {at(two_)}));  // a slow machine may need longer
  ASSERT_FALSE(proxy.ask({"RELOAD"}).is_error());
  EXPECT_TRUE(client.command({"GET", "a"}).is_null()) << "by the server that is in force";
  one_.cont();
}

TEST_F(ReloadTest, U31_WhatChangesIsNamedAndTakesEffect) {
  ProxyProgram proxy{pool({}, {at(one_)})};
  EXPECT_TRUE(proxy.ask({"SLOWLOG", "GET"}).as_items().empty());
  proxy.set_process({"slow_log_threshold: 0", "slow_log_entries: 3", "hot_keys: true",
                     "drain_timeout: 5s", "memory_limit: 32mb"});
  proxy.write(pool({}, {at(one_)}));
  const auto reply = proxy.ask({"RELOAD"});
  ASSERT_FALSE(reply.is_error()) << reply.as_text();
  for (const auto* const change :
       {"slow_log_threshold: 10ms -> 0ms", "slow_log_entries: 128 -> 3", "hot_keys: false -> true",
        "drain_timeout: 30s -> 5s", "memory_limit: 0 -> 32mb"})
    EXPECT_TRUE(says(reply.as_text(), change)) << change << " in " << reply.as_text();
  PlainClient client{proxy.port()};
  for (int i = 0; i < 5000; ++i) client.command({"GET", "hot"});
  EXPECT_EQ(proxy.ask({"SLOWLOG", "GET"}).as_items().size(), 3U);
  EXPECT_EQ(proxy.ask({"HOTKEYS"}).as_items().size(), 1U);
  EXPECT_EQ(proxy.ask({"RELOAD"}).as_text(), "nothing has changed");
}

}  // namespace
}  // namespace sluice::test
