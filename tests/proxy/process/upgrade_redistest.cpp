/// A new binary takes the place of the one that runs: nobody is refused, no reply is lost.
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include "proxy/support/load.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

void expect_all_well(const Load::Count& count) {
  EXPECT_GT(count.replies, 0U);
  EXPECT_EQ(count.wrong + count.errors + count.lost + count.refused, 0U) << count.first_trouble;
}

TEST(UpgradeTest, UnderLoadNobodyIsRefusedAndNoReplyIsLost) {
  RedisServer one, two;
  ProxyProgram proxy{redis_pool({one.port(), two.port()}),
                     {.process = {"drain_timeout: 20000"}, .arguments = {}}};
  const auto before = proxy.serving_pid();
  std::optional<Load> steady;
  steady.emplace(proxy.port(), Load::Options{.clients = 2, .depth = 16, .reconnects = false});
  Load restless{proxy.port(), {.clients = 3, .depth = 4, .reconnects = true}};
  ASSERT_TRUE(steady->goes_on() && restless.goes_on(200));
  const auto reply = proxy.ask({"UPGRADE"});
  ASSERT_FALSE(reply.is_error()) << reply.as_text() << proxy.log();
  EXPECT_NE(proxy.serving_pid(), before);
  EXPECT_TRUE(steady->goes_on()) << "those who stay are served on";
  EXPECT_TRUE(restless.goes_on(200));
  expect_all_well(steady->stop());
  EXPECT_EQ(proxy.process().wait_for(20s), 0) << "the old one leaves when they are quiet";
  EXPECT_TRUE(restless.goes_on(200)) << "by the new one alone";
  expect_all_well(restless.stop());
  EXPECT_EQ(PlainClient{proxy.admin()}.command({"PING"}).as_text(), "PONG");
  EXPECT_NE(proxy.statistics().find("\"alpha\""), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(proxy.pid_file()));
}

TEST(UpgradeTest, OneUpgradeAfterAnother) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}), {.process = {"workers: 2"}, .arguments = {}}};
  for (int times = 0; times < 3; ++times) {
    const auto before = proxy.serving_pid();
    const auto reply = proxy.ask({"UPGRADE"});
    ASSERT_FALSE(reply.is_error()) << reply.as_text() << proxy.log();
    ASSERT_NE(proxy.serving_pid(), before);
    EXPECT_EQ(PlainClient{proxy.port()}.command({"SET", "a", "1"}).as_text(), "OK");
  }
}

TEST(UpgradeTest, ASuccessorThatDoesNotStartLeavesAllAsItWas) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()})};
  const auto before = proxy.serving_pid();
  Load load{proxy.port(), {.clients = 2, .depth = 4, .reconnects = true}};
  ASSERT_TRUE(load.goes_on(200));
  proxy.write_text("alpha: nonsense\n");
  const auto reply = proxy.ask({"UPGRADE"});
  ASSERT_TRUE(reply.is_error());
  EXPECT_NE(reply.as_text().find("this process goes on"), std::string::npos) << reply.as_text();
  EXPECT_EQ(proxy.serving_pid(), before);
  EXPECT_TRUE(load.goes_on(200));
  expect_all_well(load.stop());
}

}  // namespace
}  // namespace sluice::test
