/// A proxy whose servers are masters that Sentinels watch.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "proxy/flow/replica_reads.hpp"
#include "proxy/support/asking.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "support/certificates.hpp"
#include "support/collected_log.hpp"
#include "support/comes_true.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"
#include "support/sentinel_rig.hpp"
#include "support/slow_names.hpp"

namespace sluice::test {
namespace {

/// A first master that no Sentinel can make a replica of: it lives on as the master that it was.
SentinelRig::Options stubborn() {
  return {.sentinels = 1,
          .master_config = {"rename-command SLAVEOF \"\"", "rename-command REPLICAOF \"\""}};
}

PoolLines behind(SentinelRig& rig, std::vector<std::string> more = {}) {
  PoolLines pool{{"redis: true", fmt::format("sentinels: [127.0.0.1:{}]", rig.sentinel(0).port()),
                  "timeout: 30000", "connect_timeout: 30s", "servers:"}};
  pool.lines.push_back(fmt::format("- nowhere.example:1:1 {}", SentinelRig::name));
  pool.lines.insert(pool.lines.end(), more.begin(), more.end());
  return pool;
}

/// Whether that is the server of a key that the client asks for.
bool is_at(PlainClient& client, RedisServer& server) {
  const auto info = client.command({"EVAL", "return redis.call('INFO', 'server')", "1", "n"});
  return info.as_text().find(fmt::format("tcp_port:{}\r", server.port())) != std::string::npos;
}

/// How many connections a server has whose last command was an EVAL.
int evals(RedisServer& server) {
  const auto list = PlainClient{server.port()}.command({"CLIENT", "LIST"});
  int all = 0;
  for (auto at = list.as_text().find("cmd=eval"); at != std::string::npos;
       at = list.as_text().find("cmd=eval", at + 1))
    ++all;
  return all;
}

TEST(ProxyBeforeSentinels, T54_ASwitchLeavesTheRingAndTheOldMasterThatLives) {
  SentinelRig rig{stubborn()};
  ProxyUnderTest proxy{behind(rig)};
  PlainClient client{proxy.port()};
  EXPECT_TRUE(is_at(client, rig.server(0)));
  EXPECT_EQ(evals(rig.server(0)), 1);
  const auto before = proxy::make_homes(proxy.proxy().config().pools.front());
  rig.fail_over();
  EXPECT_TRUE(comes_true([&] { return is_at(client, rig.server(1)); }));
  EXPECT_TRUE(comes_true([&] { return evals(rig.server(0)) == 0; })) << "its connection is closed";
  const auto after = proxy::make_homes(proxy.proxy().config().pools.front());
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(before.of(std::to_string(i), 0), after.of(std::to_string(i), 0));
}

TEST(ProxyBeforeSentinels, T53_RepliesKeepTheirOrderThroughAFailover) {
  SentinelRig rig{stubborn()};
  ProxyUnderTest proxy{behind(rig)};
  PlainClient client{proxy.port()};
  EXPECT_TRUE(is_at(client, rig.server(0)));
  rig.fail_over();
  // Each reply bears the word of its request, or is an error in its place.
  int sent = 0;
  EXPECT_TRUE(comes_true([&] {
    std::string bytes;
    for (int i = 0; i < 50; ++i) {
      const auto word = std::to_string(sent + i);
      bytes += fmt::format("*4\r\n$4\r\nEVAL\r\n$14\r\nreturn KEYS[1]\r\n$1\r\n1\r\n${}\r\n{}\r\n",
                           word.size(), word);
    }
    client.send(bytes);
    for (int i = 0; i < 50; ++i) {
      const auto reply = client.read();
      EXPECT_TRUE(reply.is_error() || reply.as_text() == std::to_string(sent + i));
    }
    sent += 50;
    return is_at(client, rig.server(1));
  }));
}

TEST(ProxyBeforeSentinels, AMasterThatIsHandedOverRefusesNothing) {
  SentinelRig rig{{.sentinels = 1}};
  ProxyUnderTest proxy{behind(rig)};
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"INCR", "n"}).as_integer(), 1);
  PlainClient master{rig.server(0).port()};
  EXPECT_TRUE(comes_true([&] {
    return !master.command({"FAILOVER", "TO", "127.0.0.1", std::to_string(rig.server(1).port())})
                .is_error();
  }));
  EXPECT_TRUE(
      comes_true([&] { return master.command({"ROLE"}).as_items().at(0).as_text() == "slave"; }));
  // It says -READONLY, and its Sentinel has not noticed yet. What is under way when it is left may
  // get an error, as when a server is lost.
  EXPECT_TRUE(comes_true([&] {
    const auto reply = client.command({"INCR", "n"});
    EXPECT_FALSE(reply.is_error() && reply.as_text().starts_with("READONLY")) << reply.as_text();
    return !reply.is_error();
  }));
}

TEST(ProxyBeforeSentinels, T55_ReadsOfReplicasShowOnesOwnWrites) {
  SentinelRig rig{{.sentinels = 1}};
  auto pool = behind(rig);
  pool.lines.insert(pool.lines.begin(), {"read_from: replica", "read_your_writes: true"});
  ProxyUnderTest proxy{pool};
  PlainClient client{proxy.port()};
  auto& replica = rig.server(1);
  for (int i = 3; i < 5; ++i) {
    const auto value = std::to_string(i);
    client.command({"SET", "k", value});
    EXPECT_EQ(client.command({"GET", "k"}).as_text(), value);
    EXPECT_TRUE(reads_at(replica, client, "k", value));
  }
  // Refused by a replica, and by the master in the same words.
  EXPECT_TRUE(client.command({"LLEN", "k"}).as_text().starts_with("WRONGTYPE"));
  // A transaction is the master's.
  const auto before = gets(replica);
  client.command({"MULTI"});
  client.command({"GET", "k"});
  EXPECT_EQ(client.command({"EXEC"}).as_items().at(0).as_text(), "4");
  EXPECT_EQ(gets(replica), before);
  EXPECT_TRUE(reads_at(replica, client, "k", "4"));
  // It stands still: what it was asked the master answers.
  replica.stop();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.command({"GET", "k"}).as_text(), "4");
  client.command({"SET", "k", "5"});
  EXPECT_EQ(client.command({"GET", "k"}).as_text(), "5");
  replica.cont();
  EXPECT_TRUE(reads_at(replica, client, "k", "5"));
}

TEST(ProxyBeforeSentinels, RepliesOfReplicasAndMastersKeepTheirOrder) {
  SentinelRig rig{{.sentinels = 1}};
  auto pool = behind(rig);
  pool.lines.insert(pool.lines.begin(), {"read_from: replica", "read_your_writes: false"});
  ProxyUnderTest proxy{pool};
  PlainClient client{proxy.port()};
  for (int i = 0; i < 10; ++i) client.command({"SET", fmt::format("k{}", i), std::to_string(i)});
  ASSERT_TRUE(reads_at(rig.server(1), client, "k1", "1"));
  const auto before = gets(rig.server(1));
  std::int64_t count = 0;
  EXPECT_TRUE(comes_true([&] {
    std::string bytes;
    for (int i = 0; i < 10; ++i) bytes += request("INCR n") + request(fmt::format("GET k{}", i));
    client.send(bytes);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(client.read().as_integer(), ++count);
      EXPECT_EQ(client.read().as_text(), std::to_string(i));
    }
    return gets(rig.server(1)) > before;
  }));
}

TEST(ProxyBeforeSentinels, WhoWaitsAtAMasterThatIsLeftIsTold) {
  SentinelRig rig{stubborn()};
  ProxyUnderTest proxy{behind(rig)};
  PlainClient waits{proxy.port()};
  waits.send("*3\r\n$5\r\nBLPOP\r\n$5\r\nqueue\r\n$1\r\n0\r\n");
  EXPECT_TRUE(comes_true([&] {
    return PlainClient{rig.server(0).port()}
               .command({"INFO", "clients"})
               .as_text()
               .find("blocked_clients:1") != std::string::npos;
  }));
  rig.fail_over();
  EXPECT_TRUE(waits.read().is_error());
  EXPECT_FALSE(waits.command({"INCR", "n"}).is_error());
}

class ProxyByNames : public testing::Test {
 protected:
  void SetUp() override {
    if (!SlowNames::are_there) GTEST_SKIP();
  }

  SlowNames names;
};

/// Each Sentinel of it but one has a name that is not answered: none may hold up what the last
/// says.
TEST_F(ProxyByNames, D05_ASentinelWithASlowNameHoldsUpNoSwitch) {
  SentinelRig rig{stubborn()};
  auto pool = behind(rig);
  std::string sentinels = "sentinels: [";
  for (int i = 0; i < 5; ++i) {
    const auto host = fmt::format("slow-{}.test", i);
    names.hold(host);
    sentinels += fmt::format("{}:26379, ", host);
  }
  pool.lines[1] = fmt::format("{}127.0.0.1:{}]", sentinels, rig.sentinel(0).port());
  ProxyUnderTest proxy{pool};
  PlainClient client{proxy.port()};
  EXPECT_TRUE(is_at(client, rig.server(0)));
  EXPECT_TRUE(comes_true([&] { return names.asked("slow-4.test") > 0; }));
  rig.fail_over();
  EXPECT_TRUE(comes_true([&] { return is_at(client, rig.server(1)); }));
  EXPECT_TRUE(comes_true([&] { return evals(rig.server(0)) == 0; }));
}

/// The Sentinel tells of two masters, of one of them by its name.
TEST_F(ProxyByNames, D05_AMasterWithASlowNameHoldsUpNoOther) {
  RedisServer by_number;
  RedisServer by_name;
  const auto port = free_port();
  const SentinelRig::Sentinel sentinel{
      port,
      {fmt::format("port {}", port), "bind 127.0.0.1", "sentinel resolve-hostnames yes",
       "sentinel announce-hostnames yes",
       fmt::format("sentinel monitor one 127.0.0.1 {} 1", by_number.port()),
       fmt::format("sentinel monitor two localhost {} 1", by_name.port())}};
  names.hold("localhost");
  ProxyUnderTest proxy{PoolLines{{"redis: true", fmt::format("sentinels: [127.0.0.1:{}]", port),
                                  "timeout: 30000", "connect_timeout: 30s", "servers:",
                                  "- nowhere.example:1:1 one", "- nowhere.example:1:1 two"}}};
  PlainClient waits{proxy.port()};
  waits.send(
      fmt::format("*2\r\n$4\r\nINCR\r\n${0}\r\n{1}\r\n", proxy.key_at(1).size(), proxy.key_at(1)));
  EXPECT_TRUE(comes_true([&] { return names.asked("localhost") > 0; }));
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"INCR", proxy.key_at(0)}).as_integer(), 1);
  names.answer("localhost");
  EXPECT_EQ(waits.read().as_integer(), 1);
  EXPECT_EQ(PlainClient{by_name.port()}.command({"EXISTS", proxy.key_at(1)}).as_integer(), 1);
}

/// A server without a password takes a proxy that has one, and one with another does not, which is
/// told.
TEST(ProxyBeforeSentinels, D09_ServersWithoutAPasswordAreServed) {
  SentinelRig rig{{.sentinels = 1}};
  ProxyUnderTest proxy{behind(rig, {"redis_auth: sesame", "sentinel_password: open"})};
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"AUTH", "sesame"}).as_text(), "OK");
  EXPECT_EQ(client.command({"INCR", "n"}).as_integer(), 1);
}

/// Who speaks TLS: the server, the Sentinel.
class ProxyBeforeTls : public testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(ProxyBeforeTls, D19_ServersAndSentinelsMayDiffer) {
  const auto [server_tls, sentinel_tls] = GetParam();
  const Certificates files;
  const auto port = free_port();
  const RedisServer server{files.redis(port, "no")};  // it has a plain port, too
  const auto watching = free_port();
  auto config = files.redis(sentinel_tls ? watching : 0, "no");
  config.insert(
      config.end(),
      {fmt::format("port {}", sentinel_tls ? 0 : watching), "bind 127.0.0.1",
       fmt::format("tls-replication {}", server_tls ? "yes" : "no"),
       fmt::format("sentinel monitor a/b 127.0.0.1 {} 1", server_tls ? port : server.port())});
  const SentinelRig::Sentinel sentinel{watching, config};
  const auto tls = fmt::format("{{ca: {}}}", files["ca.pem"]);
  PoolLines pool{{"redis: true", fmt::format("sentinels: [127.0.0.1:{}]", watching),
                  "timeout: 30000", "connect_timeout: 30s"}};
  if (server_tls) pool.lines.push_back("server_tls: " + tls);
  if (server_tls != sentinel_tls)
    pool.lines.push_back("sentinel_tls: " + (sentinel_tls ? tls : "false"));
  pool.lines.insert(pool.lines.end(), {"servers:", "- nowhere.example:1:1 a/b"});
  ProxyUnderTest proxy{pool};
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"INCR", "n"}), Value::integer(1));
  EXPECT_EQ(PlainClient{server.port()}.command({"GET", "n"}).as_text(), "1");
}

INSTANTIATE_TEST_SUITE_P(Deployments, ProxyBeforeTls,
                         testing::Values(std::pair(false, false), std::pair(false, true),
                                         std::pair(true, false), std::pair(true, true)));

TEST(ProxyBeforeSentinels, D09_ARefusedPasswordIsTold) {
  SentinelRig rig{{.replicas = 0, .sentinels = 1, .master_config = {"requirepass other"}}};
  CollectedLog log;
  ProxyUnderTest proxy{behind(rig, {"redis_auth: sesame"})};
  EXPECT_TRUE(comes_true([&] {
    return log.count(fmt::format("127.0.0.1:{} cannot be asked: it refuses AUTH: WRONGPASS",
                                 rig.server(0).port())) > 0;
  })) << log.text();
  EXPECT_EQ(log.count("sesame"), 0U);
}

}  // namespace
}  // namespace sluice::test
