// What a hostile client sends, and a victim whose requests go over the same connection to the same
// server: his replies stay his own. Each X is a case that went wrong once.
#include <gtest/gtest.h>

#include "proxy/flow/two_servers.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/memcached.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "resp/writer.hpp"

namespace sluice::test {
namespace {

using namespace std::string_literals;

struct Hostile {
  std::string name, bytes, reply;
  bool closes = false;
};

std::string flags(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += " "s + static_cast<char>('A' + i);
  return text;
}

constexpr std::string_view control = "CLIENT_ERROR the line has a control character\r\n";
constexpr std::string_view other_place =
    "CLIENT_ERROR noreply stands in the place of another word\r\n";
constexpr std::string_view too_long = "CLIENT_ERROR the line is too long\r\n";

const Hostile lines[] = {
    {"X01", "incr n noreply\r\n", std::string{other_place}},
    {"X01", "decr n noreply\r\n", std::string{other_place}},
    {"X01", "touch n noreply\r\n", std::string{other_place}},
    {"X02", "touch n 10 noreply\0\r\n"s, std::string{control}},
    {"X02", "set n 0 0 1 noreply\0\r\n5\r\n"s, std::string{control}, true},
    {"X02", "incr n 1\0 noreply\r\n"s, ""},
    {"X02", "get n\0\r\n"s, std::string{control}},
    {"X02", "get n\rx\r\n", std::string{control}},
    {"X03", "ms n 9" + flags(17) + "\r\nflush_all\r\n", "CLIENT_ERROR options flags too long\r\n",
     true},
    {"X03", "ms " + std::string(251, 'k') + " 9\r\nflush_all\r\n",
     "CLIENT_ERROR a key is longer than 250 bytes\r\n", true},
    {"X03", "set n x 0 9\r\nflush_all\r\n", "CLIENT_ERROR bad command line format\r\n", true},
    {"X03", "set n 0 0 1 1 noreply\r\nflush_all\r\n", "ERROR\r\n", true},
    {"X18", "gat 0" + std::string(40'000, ' ') + "n\r\n", std::string{too_long}, true},
    {"X18", "delete " + std::string(40'000, 'n') + "\r\n", std::string{too_long}, true},
    {"X23", "stats sizes_enable\r\n",
     "CLIENT_ERROR its reply has no end: ask the server itself\r\n"},
    {"X23", "stats detail on\r\nset a:b 0 0 1 noreply\r\nx\r\nstats detail dump\r\n",
     "OK\r\nPREFIX a get 0 hit 0 set 1 del 0\r\nEND\r\n"},
    {"X24", "verbosity noreply\r\n", std::string{other_place}},
    {"X24", "verbosity 1 noreply\r\n", ""},
    {"X24", "verbosity 1\r\n", "OK\r\n"},
    {"X24", "flush_all 1000 noreply\r\n", ""},
};

void expect_in_step(std::uint16_t port, const std::string& name) {
  for (const auto* const value : {"one", "two"}) {
    const auto said = talk(port, "set victim 0 0 3\r\n"s + value + "\r\nget victim\r\nget end\r\n",
                           "VALUE end 0 0\r\n\r\nEND\r\n");
    EXPECT_EQ(said.bytes,
              "STORED\r\nVALUE victim 0 3\r\n"s + value + "\r\nEND\r\nVALUE end 0 0\r\n\r\nEND\r\n")
        << name;
  }
}

TEST(HostileMemcached, X01_X02_X03_X18_X23_X24_TheVictimsRepliesAreHisOwn) {
  const Memcached server;
  auto settings = memcached_pool({server.port()});
  settings.insert(settings.begin(), "allow: [stats, flush_all, verbosity]");
  const ProxyUnderTest proxy{PoolLines{settings}};
  talk(proxy.port(), "set end 0 0 0\r\n\r\nset n 0 0 1\r\n5\r\n", "STORED\r\nSTORED\r\n");
  for (const auto& line : lines) {
    const auto said = talk(proxy.port(), line.bytes + "mn\r\n", line.closes ? "" : "MN\r\n");
    EXPECT_EQ(said.bytes, line.reply + (line.closes ? "" : "MN\r\n")) << line.name;
    EXPECT_EQ(said.closed, line.closes) << line.name;
    expect_in_step(proxy.port(), line.name + line.bytes.substr(0, 40));
  }
  const auto multiget = "get" + std::string(40'000, ' ') + "n\r\n";
  EXPECT_EQ(talk(proxy.port(), multiget, "END\r\n").bytes, "VALUE n 0 1\r\n5\r\nEND\r\n");
}

TEST(HostileMemcached, X01_X02_X03_X18_X23_X24_StrictCloses) {
  const Memcached server;
  auto settings = memcached_pool({server.port()});
  settings.insert(settings.begin(), "compat: strict");
  const ProxyUnderTest proxy{PoolLines{settings}};
  talk(proxy.port(), "set end 0 0 0\r\n\r\nset n 0 0 1\r\n5\r\n", "STORED\r\nSTORED\r\n");
  for (const auto& line : lines) {
    const auto said = talk(proxy.port(), line.bytes, "");
    EXPECT_TRUE(said.closed) << line.name;
    EXPECT_EQ(said.bytes, "") << line.name;
    expect_in_step(proxy.port(), line.name);
  }
}

using HostileRedis = TwoServers;

TEST_F(HostileRedis, X04_TypedLinesReachServersAsArrays) {
  const ProxyUnderTest proxy{{ports()[0]}};
  PlainClient victim{proxy.port()};
  const std::string marker = "$6\r\nmarker\r\n";
  const auto typed = [&](const std::string& line) {
    return talk(proxy.port(), line + request("ECHO marker"), marker);
  };
  EXPECT_EQ(typed("SET x \"a b\"\r\n").bytes, "+OK\r\n" + marker);
  EXPECT_EQ(typed(" get   'x' \n").bytes, "$3\r\na b\r\n" + marker);
  for (const auto& line :
       {"GET x\0\r\n"s, "KEYS x\0\r\n"s, "GET x\0"s + std::string(100, 'x') + "\n"}) {
    const auto said = talk(proxy.port(), line, "");
    EXPECT_TRUE(said.closed);
    EXPECT_EQ(said.bytes, "-ERR Protocol error: a NUL in inline request\r\n");
    EXPECT_EQ(ask(victim, "GET x"), "$3 a b");
  }
}

TEST_F(HostileRedis, X07_AGroupNamedStreamsHidesNoBlock) {
  const ProxyUnderTest proxy{{ports()[0]}};
  PlainClient victim{proxy.port()};
  for (const auto* const names : {"streams c", "block streams", "g streams"}) {
    const auto group = std::string{names}.substr(0, std::string_view{names}.find(' '));
    EXPECT_EQ(ask(victim, "XGROUP CREATE s " + group + " $ MKSTREAM"), "+OK");
    PlainClient waiting{proxy.port()};
    waiting.send(request("XREADGROUP GROUP "s + names + " BLOCK 0 STREAMS s >"));
    auto direct_client = direct(0);
    ASSERT_TRUE(comes_true([&] { return info_of(direct_client, "blocked_clients") == "1"; }));
    EXPECT_EQ(ask(victim, "SET k v"), "+OK");
    EXPECT_EQ(ask(victim, "DEL s"), ":1");
    EXPECT_TRUE(text_of(waiting.read()).starts_with("-")) << "the stream is gone";
  }
}

TEST_F(HostileRedis, X19_CommandsThatTheSettingTeachesReachTheServer) {
  ProxyUnderTest proxy{ports(), {"commands: {my.*: key 1, my.any: none}"}};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "MY.ADD k"),
            "-ERR unknown command 'MY.ADD', with args beginning with: 'k' ");
  EXPECT_EQ(ask(client, "HGETEX k FIELDS 1 f"),
            "-ERR unknown command 'HGETEX', with args beginning with: 'k' 'FIELDS' '1' 'f' ");
  EXPECT_TRUE(ask(client, "YOUR.ADD k").contains("in the setting `commands` of pool 'under_test'"));
  proxy.reload(ports(), {"commands: {your.add: key 1}"});
  ASSERT_TRUE(comes_true([&] { return !ask(client, "YOUR.ADD k").contains("setting"); }));
  EXPECT_TRUE(ask(client, "MY.ADD k").contains("setting"));
}

TEST_F(HostileRedis, AConnectionWhoseLastReplyIsMutedEnds) {
  const ProxyUnderTest proxy{{ports()[0]}};
  for (const auto* const rest : {"", "*"}) {
    PlainClient client{proxy.port()};
    client.patience = std::chrono::seconds{20};
    client.send("CLIENT REPLY OFF\n" + request("GET k") + rest);
    client.finish_sending();
    EXPECT_EQ(client.read_raw(), "");
  }
}

}  // namespace
}  // namespace sluice::test
