// SCAN over two servers.
#include <set>

#include "proxy/flow/two_servers.hpp"
#include "resp/writer.hpp"

namespace sluice::test {
namespace {

using Scan = TwoServers;

struct Seen {
  std::multiset<std::string> keys;
  int calls = 0;
};

/// A whole scan; `options` behind the cursor. `between` is called after each step.
Seen scan(PlainClient& client, const std::string& options, auto between) {
  Seen seen;
  std::string cursor = "0";
  do {
    client.send(request("SCAN " + cursor + " " + options));
    const auto reply = client.read();
    if (reply.is_error()) {
      ADD_FAILURE() << text_of(reply);
      return seen;
    }
    const auto& parts = reply.as_items();
    cursor = parts[0].as_text();
    for (const auto& key : parts[1].as_items()) seen.keys.insert(std::string{key.as_text()});
    between();
  } while (cursor != "0" && ++seen.calls < 10'000);
  return seen;
}
Seen scan(PlainClient& client, const std::string& options = {}) {
  return scan(client, options, [] {});
}

void fill(PlainClient& client, const std::string& prefix, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += request("SET " + prefix + std::to_string(i) + " v");
  client.send(bytes);
  for (int i = 0; i < count; ++i) static_cast<void>(client.read());
}

TEST_F(Scan, SeesEveryKeyOfEveryServer) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  fill(client, "key", 1000);
  const auto seen = scan(client);
  EXPECT_EQ(std::set<std::string>(seen.keys.begin(), seen.keys.end()).size(), 1000U);
  EXPECT_GT(seen.calls, 10);
  const auto in_large_steps = scan(client, "COUNT 1000");
  EXPECT_EQ(in_large_steps.keys.size(), 1000U);
  EXPECT_LT(in_large_steps.calls, 6);
}

TEST_F(Scan, PassesItsOptionsOn) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  fill(client, "key", 100);
  fill(client, "other", 100);
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(ask(client, "LPUSH list" + std::to_string(i) + " x"), ":1");
  EXPECT_EQ(scan(client, "MATCH other* COUNT 17").keys.size(), 100U);
  EXPECT_EQ(scan(client, "TYPE list").keys.size(), 20U);
  EXPECT_EQ(scan(client, "MATCH nothing*").keys.size(), 0U);
}

TEST_F(Scan, WhatIsThereAllTheWhileIsSeenWhileOthersComeAndGo) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  PlainClient other{proxy.port()};
  fill(client, "stays", 300);
  int step = 0;
  const auto seen = scan(client, "", [&] {
    fill(other, "comes" + std::to_string(step) + ":", 20);
    static_cast<void>(ask(other, "DEL comes" + std::to_string(step - 1) + ":1"));
    ++step;
    if (step > 500) ADD_FAILURE() << "it never ends";
  });
  for (int i = 0; i < 300; ++i) EXPECT_TRUE(seen.keys.contains("stays" + std::to_string(i))) << i;
}

TEST_F(Scan, RefusesCursorsThatItCannotHaveGiven) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  for (const auto* const cursor : {"x", "-1", "2", "18446744073709551616"})
    EXPECT_EQ(ask(client, std::string{"SCAN "} + cursor).substr(0, 20), "-ERR invalid cursor:")
        << cursor;
  EXPECT_EQ(ask(client, "SCAN 0 COUNT 0"), "-ERR syntax error");
}

TEST_F(Scan, InItsPlaceAmongOthers) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto replies = ask_all(client, {"SET a 1", "SCAN 0 COUNT 1", "GET a", "SCAN x", "PING"});
  EXPECT_EQ(replies[0], "+OK");
  EXPECT_EQ(replies[1].substr(0, 4), "*2 $");
  EXPECT_EQ(replies[2], "$1 1");
  EXPECT_EQ(replies[3].substr(0, 20), "-ERR invalid cursor:");
  EXPECT_EQ(replies[4], "+PONG");
}

TEST(ScanFailure, AServerThatIsOutIsAnErrorWhateverTheSettings) {
  RedisServer one, other;
  ProxyUnderTest proxy{{one.port(), other.port()},
                       {"auto_eject_hosts: true", "server_failure_limit: 1",
                        "server_retry_timeout: 60000", "partial_replies: true"}};
  PlainClient client{proxy.port()};
  fill(client, "key", 50);
  client.send(request("SCAN 0 COUNT 1000"));  // all of the first server
  const auto at_other = "SCAN " + client.read().as_items()[0].as_text();
  ASSERT_NE(at_other, "SCAN 0");
  other.kill();
  for (int i = 0; i < 3; ++i) {  // lost, then out
    const auto reply = ask(client, at_other);
    EXPECT_TRUE(reply == "-ERR unknown" || reply == "-ERR Connection refused" ||
                reply == "-ERR Connection reset by peer")
        << reply;
  }
  EXPECT_EQ(ask(client, at_other), "-ERR Connection refused");
  client.send(request("SCAN 0 COUNT 1000"));
  EXPECT_EQ("SCAN " + client.read().as_items()[0].as_text(), at_other);
}

}  // namespace
}  // namespace sluice::test
