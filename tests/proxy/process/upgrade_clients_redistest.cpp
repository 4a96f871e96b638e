/// What becomes of the clients in an upgrade: those that are connected go to the new process, as
/// they are.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "proxy/support/asking.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/load.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/free_port.hpp"
#include "support/paths.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

/// So long that an old process which ends has handed its clients over.
const std::vector<std::string> patient{"drain_timeout: 600000"};

/// Of one that is not our child: what waits for it may do so late.
bool comes_to_end(pid_t process) {
  return comes_true([&] {
    const auto status = text_of(std::filesystem::path{fmt::format("/proc/{}/status", process)});
    return status.empty() || status.find("State:\tZ") != std::string::npos;
  });
}

void upgrade(ProxyProgram& proxy) {
  const auto before = proxy.serving_pid();
  const auto reply = proxy.ask({"UPGRADE"});
  ASSERT_FALSE(reply.is_error()) << reply.as_text() << proxy.log();
  ASSERT_NE(proxy.serving_pid(), before);
  if (before == proxy.process().pid())
    ASSERT_EQ(proxy.process().wait_for(60s), 0) << proxy.log();
  else
    ASSERT_TRUE(comes_to_end(before)) << proxy.log();
}

/// A connection of a pool: it has logged in, chosen a protocol and a database, and named itself.
struct Pooled {
  PlainClient client;
  std::string name, id;
  int number;

  Pooled(std::uint16_t port, int which)
      : client(port), name(fmt::format("pooled{}", which)), number(which) {
    const bool ann = number % 2 == 0;
    if (number % 3 == 0)
      EXPECT_EQ(
          ask(client, fmt::format("HELLO 3 AUTH {0} {0} SETNAME {1}", ann ? "ann" : "bob", name))
              .front(),
          '%');
    else
      EXPECT_EQ(ask_all(client, {fmt::format("AUTH {0} {0}", ann ? "ann" : "bob"),
                                 "CLIENT SETNAME " + name}),
                (std::vector<std::string>{"+OK", "+OK"}));
    EXPECT_EQ(ask(client, fmt::format("SELECT {}", number % 5)), "+OK");
    EXPECT_EQ(ask(client, fmt::format("SET mine{0} {0}", number)), "+OK");
    id = ask(client, "CLIENT ID");
  }

  void expect_as_it_was() {
    EXPECT_EQ(ask(client, fmt::format("GET mine{}", number)),
              "$" + std::to_string(std::to_string(number).size()) + " " + std::to_string(number));
    EXPECT_EQ(ask(client, "CLIENT ID"), id);
    const auto info = client.command({"CLIENT", "INFO"}).as_text();
    for (const auto& part : {fmt::format(" name={} ", name), fmt::format(" db={} ", number % 5),
                             fmt::format(" resp={} ", number % 3 == 0 ? 3 : 2),
                             fmt::format(" user={} ", number % 2 == 0 ? "ann" : "bob")})
      EXPECT_NE(info.find(part), std::string::npos) << part << " is not in " << info;
  }
};

std::vector<std::string> pool_with_users(std::vector<std::uint16_t> ports,
                                         const std::vector<std::string>& names) {
  auto pool = redis_pool(std::move(ports));
  std::vector<std::string> lines{"users:"};
  for (const auto& name : names)
    lines.push_back(fmt::format("  - {{name: {0}, password: {0}}}", name));
  pool.insert(pool.begin(), lines.begin(), lines.end());
  return pool;
}

TEST(UpgradeClientsTest, X22_NoPooledClientIsLostAndEachIsAsItWas) {
  RedisServer one, two;
  ProxyProgram proxy{pool_with_users({one.port(), two.port()}, {"ann", "bob"}),
                     {.process = {patient[0], "workers: 2"}, .arguments = {}}};
  std::vector<Pooled> pooled;
  for (int i = 0; i < 75; ++i) pooled.emplace_back(proxy.port(), i);
  for (int times = 0; times < 5; ++times) {
    upgrade(proxy);
    for (auto& client : pooled) client.expect_as_it_was();
  }
}

TEST(UpgradeClientsTest, PX06_TheSuccessorKnowsTheScriptsThatClientsHaveLoaded) {
  RedisServer one, two;
  ProxyProgram proxy{redis_pool({one.port(), two.port()}),
                     {.process = {patient[0], "workers: 2"}, .arguments = {}}};
  PlainClient client{proxy.port()};
  const std::string large = "return '" + std::string(200'000, 'x') + "'";
  const auto sha = client.command({"SCRIPT", "LOAD", "return redis.call('INCR', KEYS[1])"});
  const auto large_sha = client.command({"SCRIPT", "LOAD", large});
  ASSERT_TRUE(sha.is_text() && large_sha.is_text());
  for (int times = 1; times <= 3; ++times) {
    upgrade(proxy);
    for (auto* server : {&one, &two})
      EXPECT_EQ(PlainClient{server->port()}.command({"SCRIPT", "FLUSH"}).as_text(), "OK");
    EXPECT_EQ(ask_all(client, {"MULTI", "EVALSHA " + sha.as_text() + " 1 k", "EXEC"}).back(),
              "*1 :" + std::to_string(times));
    EXPECT_EQ(client.command({"EVALSHA", large_sha.as_text(), "1", "k"}).as_text().size(),
              200'000U);
  }
}

TEST(UpgradeClientsTest, X22_UnderLoadNobodyLosesItsConnection) {
  RedisServer one, two;
  ProxyProgram proxy{redis_pool({one.port(), two.port()}),
                     {.process = {patient[0], "workers: 2"}, .arguments = {}}};
  std::vector<PlainClient> idle;
  for (int i = 0; i < 20; ++i) {
    idle.emplace_back(proxy.port());
    ASSERT_EQ(ask(idle.back(), "SET idle 1"), "+OK");
  }
  Load shallow{proxy.port(), {.clients = 3, .depth = 1, .reconnects = false}};
  Load deep{proxy.port(), {.clients = 3, .depth = 32, .reconnects = false}};
  for (int times = 0; times < 5; ++times) {
    ASSERT_TRUE(shallow.goes_on(100) && deep.goes_on(1000));
    upgrade(proxy);
  }
  EXPECT_TRUE(shallow.goes_on(100) && deep.goes_on(1000));
  for (auto* load : {&shallow, &deep}) {
    const auto count = load->stop();
    EXPECT_EQ(count.wrong + count.errors + count.lost + count.refused, 0U) << count.first_trouble;
  }
  for (auto& client : idle) EXPECT_EQ(ask(client, "GET idle"), "$1 1");
}

/// A client that never waits for its replies: requests are always under way.
TEST(UpgradeClientsTest, X22_AClientThatIsNeverAtRestGoesToo) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}), {.process = patient, .arguments = {}}};
  PlainClient client{proxy.port()};
  constexpr int ahead = 1000;
  int asked = 0, answered = 0;
  const auto send = [&] { client.send(fmt::format("ECHO {0}\r\nINCR n\r\n", asked++)); };
  const auto read = [&] {
    ASSERT_EQ(client.read().as_text(), std::to_string(answered));
    ASSERT_EQ(client.read().as_integer(), ++answered);
  };
  for (int i = 0; i < ahead; ++i) send();
  const auto before = proxy.serving_pid();
  PlainClient admin{proxy.admin()};
  admin.send("*1\r\n$7\r\nUPGRADE\r\n");
  while (proxy.serving_pid() == before || proxy.process().running()) {
    send();
    ASSERT_NO_FATAL_FAILURE(read());
  }
  EXPECT_EQ(proxy.process().wait(), 0);
  while (answered < asked) ASSERT_NO_FATAL_FAILURE(read());
}

TEST(UpgradeClientsTest, X22_WhatIsUnderWayIsFinishedFirst) {
  RedisServer one, two;
  ProxyProgram proxy{redis_pool({one.port(), two.port()}), {.process = patient, .arguments = {}}};
  PlainClient half{proxy.port()}, transaction{proxy.port()}, watching{proxy.port()},
      blocked{proxy.port()}, silent{proxy.port()}, other{proxy.port()};
  half.send("*2\r\n$3\r\nGET\r\n$4\r\nha");
  EXPECT_EQ(ask_all(transaction, {"MULTI", "SET t 1"}),
            (std::vector<std::string>{"+OK", "+QUEUED"}));
  EXPECT_EQ(ask(watching, "WATCH w"), "+OK");
  blocked.send("BLPOP list 0\r\n");
  silent.send("CLIENT REPLY OFF\r\n");
  EXPECT_EQ(ask(other, "SET half 2"), "+OK");
  const auto reply = proxy.ask({"UPGRADE"});
  ASSERT_FALSE(reply.is_error()) << reply.as_text() << proxy.log();

  half.send("lf\r\n");
  EXPECT_EQ(half.read().as_text(), "2");
  EXPECT_EQ(ask(transaction, "EXEC"), "*1 +OK");
  EXPECT_EQ(ask(other, "SET w changed"), "+OK");
  EXPECT_EQ(ask_all(watching, {"MULTI", "SET w mine", "EXEC"}).back(), "_");
  EXPECT_EQ(ask(other, "LPUSH list x"), ":1");
  EXPECT_EQ(blocked.read().as_items()[1].as_text(), "x");
  silent.send("PING\r\nCLIENT REPLY ON\r\n");
  EXPECT_EQ(silent.read().as_text(), "OK") << "the PING before has no reply";
  EXPECT_EQ(proxy.process().wait_for(60s), 0) << proxy.log();
  for (auto* client : {&half, &transaction, &watching, &blocked, &silent, &other})
    EXPECT_EQ(ask(*client, "GET t"), "$1 1");
}

/// The third process has the clients while the first still has one for the second.
TEST(UpgradeClientsTest, X22_AnUpgradeBehindAnother) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}), {.process = patient, .arguments = {}}};
  PlainClient transaction{proxy.port()}, idle{proxy.port()};
  EXPECT_EQ(ask_all(transaction, {"MULTI", "SET t 1"}),
            (std::vector<std::string>{"+OK", "+QUEUED"}));
  EXPECT_EQ(ask(idle, "CLIENT SETNAME x"), "+OK");
  ASSERT_FALSE(proxy.ask({"UPGRADE"}).is_error()) << proxy.log();
  const auto second = proxy.serving_pid();
  EXPECT_EQ(ask(idle, "CLIENT GETNAME"), "$1 x");
  ASSERT_FALSE(proxy.ask({"UPGRADE"}).is_error()) << proxy.log();
  EXPECT_EQ(ask(idle, "CLIENT GETNAME"), "$1 x");
  EXPECT_TRUE(proxy.process().running());
  EXPECT_EQ(ask(transaction, "EXEC"), "*1 +OK");
  EXPECT_EQ(proxy.process().wait_for(60s), 0) << proxy.log();
  EXPECT_TRUE(comes_to_end(second)) << proxy.log();
  EXPECT_EQ(ask(transaction, "GET t"), "$1 1");
  EXPECT_EQ(ask(idle, "CLIENT GETNAME"), "$1 x");
}

TEST(UpgradeClientsTest, X22_AUserThatTheNewFileDoesNotKnowLeaves) {
  RedisServer server;
  ProxyProgram proxy{pool_with_users({server.port()}, {"ann", "bob"}),
                     {.process = patient, .arguments = {}}};
  Pooled ann{proxy.port(), 0}, bob{proxy.port(), 1};
  proxy.write(pool_with_users({server.port()}, {"ann"}));
  upgrade(proxy);
  ann.expect_as_it_was();
  EXPECT_EQ(bob.client.read_raw(), "");
}

TEST(UpgradeClientsTest, X22_APoolThatTheNewFileDoesNotHaveKeepsItsClientsUntilTheyLeave) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}), {.process = patient, .arguments = {}}};
  PlainClient client{proxy.port()};
  ASSERT_EQ(ask(client, "SET a 1"), "+OK");
  auto text = text_of(std::filesystem::path{proxy.config()});
  const auto port = std::to_string(proxy.port());
  const auto other_port = std::to_string(free_port());
  text.replace(text.find("alpha:"), 6, "gamma:").replace(text.find(port), port.size(), other_port);
  proxy.write_text(text);
  ASSERT_FALSE(proxy.ask({"UPGRADE"}).is_error()) << proxy.log();
  EXPECT_EQ(client.read_raw(), "") << "it was idle";
  EXPECT_EQ(proxy.process().wait_for(60s), 0) << proxy.log();
}

/// A program from before clients were handed over knows nothing of the channels.
TEST(UpgradeClientsTest, X22_AnOlderSuccessorGetsTheSocketsAlone) {
  RedisServer server;
  ProxyProgram proxy{redis_pool({server.port()}),
                     {.process = patient, .arguments = {}, .as_nutcracker = true}};
  PlainClient idle{proxy.port()}, transaction{proxy.port()};
  EXPECT_EQ(ask(idle, "PING"), "+PONG");
  EXPECT_EQ(ask(transaction, "MULTI"), "+OK");
  const auto link = proxy.directory() / "nutcracker";
  std::filesystem::remove(link);
  std::ofstream{link} << "#!/bin/sh\n"
                         "SLUICE_PROXY_HERITAGE=$(echo \"$SLUICE_PROXY_HERITAGE\" |"
                         " sed 's/\"clients\":[^]]*],//')\n"
                         "export SLUICE_PROXY_HERITAGE\nexec "
                      << built_path("sluice-proxy") << " \"$@\"\n";
  std::filesystem::permissions(link, std::filesystem::perms::owner_all);
  const auto reply = proxy.ask({"UPGRADE"});
  ASSERT_FALSE(reply.is_error()) << reply.as_text() << proxy.log();
  EXPECT_EQ(idle.read_raw(), "") << "as before, it is closed";
  EXPECT_EQ(ask(transaction, "SET a 1"), "+QUEUED");
  EXPECT_EQ(ask(transaction, "EXEC"), "*1 +OK");
  PlainClient other{proxy.port()};
  EXPECT_EQ(ask(other, "GET a"), "$1 1");
  EXPECT_EQ(transaction.read_raw(), "");
  EXPECT_EQ(proxy.process().wait_for(60s), 0) << proxy.log();
}

}  // namespace
}  // namespace sluice::test
