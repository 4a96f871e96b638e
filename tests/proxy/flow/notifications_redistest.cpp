// X12: notifications of keys, which each server publishes for its own.
#include <fmt/format.h>

#include <map>
#include <set>

#include "proxy/flow/two_servers.hpp"
#include "support/collected_log.hpp"

namespace sluice::test {
namespace {

class Notifications : public testing::Test {
 protected:
  static std::vector<std::string> config() { return {"notify-keyspace-events KEA"}; }
  std::vector<std::uint16_t> ports() const { return {one_.port(), two_.port()}; }

  RedisServer one_{config()}, two_{config()};
};

/// Reads messages until `count` have come: how often each last word of them came.
std::map<std::string, int> heard(PlainClient& listener, std::size_t count) {
  std::map<std::string, int> times;
  for (std::size_t i = 0; i < count; ++i) ++times[listener.read().as_items().back().as_text()];
  return times;
}

/// SETs of keys, and what a subscriber to them must have heard: each once.
std::map<std::string, int> set_some(PlainClient& client, const std::string& prefix, int count) {
  std::map<std::string, int> expected;
  for (int i = 0; i < count; ++i) {
    const auto key = fmt::format("{}{}", prefix, i);
    EXPECT_EQ(ask(client, "SET " + key + " x"), "+OK");
    ++expected[key];
  }
  return expected;
}

TEST_F(Notifications, X12_OfAllServersReachASubscriberOnceEach) {
  ProxyUnderTest proxy{ports(), {}, {"workers: 2"}};
  PlainClient events{proxy.port()}, patterns{proxy.port()}, keys{proxy.port()},
      client{proxy.port()};
  EXPECT_EQ(ask(events, "SUBSCRIBE __keyevent@0__:set"),
            "*3 $9 subscribe $18 __keyevent@0__:set :1");
  EXPECT_EQ(ask(patterns, "PSUBSCRIBE __key*@0__:set"), "*3 $10 psubscribe $14 __key*@0__:set :1");
  const auto a = proxy.key_at(0), b = proxy.key_at(1);
  keys.send(request("SUBSCRIBE __keyspace@0__:" + a + " __keyspace@0__:" + b));
  for (int count = 1; count <= 2; ++count) EXPECT_EQ(keys.read().as_items()[2].as_integer(), count);

  const auto expected = set_some(client, "many", 60);
  EXPECT_EQ(heard(events, 60), expected);
  EXPECT_EQ(heard(patterns, 60), expected);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(ask(client, "SET " + a + " x"), "+OK");
    EXPECT_EQ(ask(client, "SET " + b + " x"), "+OK");
  }
  EXPECT_EQ(heard(keys, 20), (std::map<std::string, int>{{"set", 20}}));
  EXPECT_EQ(heard(events, 20), (std::map<std::string, int>{{a, 10}, {b, 10}}));

  EXPECT_EQ(ask(events, "UNSUBSCRIBE __keyevent@0__:set"),
            "*3 $11 unsubscribe $18 __keyevent@0__:set :0");
  EXPECT_EQ(ask(client, "SET " + a + " x"), "+OK");
  EXPECT_EQ(ask(client, "SET " + b + " x"), "+OK");
  EXPECT_EQ(ask(events, "GET " + a), "$1 x") << "nothing more has come";
}

TEST_F(Notifications, X12_AMessageThatAClientPublishesThereComesOnceToo) {
  ProxyUnderTest proxy{ports()};
  PlainClient listener{proxy.port()}, client{proxy.port()};
  EXPECT_EQ(ask(listener, "SUBSCRIBE __keyevent@0__:mine").substr(0, 2), "*3");
  EXPECT_EQ(ask(client, "PUBLISH __keyevent@0__:mine x"), ":1");
  EXPECT_EQ(ask(client, "PUBLISH __keyevent@0__:mine y"), ":1");
  EXPECT_EQ(listener.read().as_items()[2].as_text(), "x");
  EXPECT_EQ(listener.read().as_items()[2].as_text(), "y");
}

TEST_F(Notifications, X12_AServerThatWasLostIsHeardAgain) {
  CollectedLog log;
  ProxyUnderTest proxy{ports()};
  PlainClient events{proxy.port()}, patterns{proxy.port()}, client{proxy.port()};
  EXPECT_EQ(ask(events, "SUBSCRIBE __keyevent@0__:set").substr(0, 2), "*3");
  EXPECT_EQ(ask(patterns, "PSUBSCRIBE __keyevent@*").substr(0, 2), "*3");
  const auto a = proxy.key_at(0), b = proxy.key_at(1);
  two_.kill();
  EXPECT_TRUE(comes_true([&] { return log.count("server 'b' is lost: subscribers miss") != 0; }));
  EXPECT_EQ(ask(client, "SET " + a + " x"), "+OK");
  EXPECT_EQ(heard(events, 1), (std::map<std::string, int>{{a, 1}})) << "the other goes on";
  PlainClient late{proxy.port()};
  EXPECT_EQ(ask(late, "SUBSCRIBE __keyevent@0__:set").substr(0, 2), "*3") << "of the other";
  two_.start();
  EXPECT_TRUE(comes_true([&] { return log.count("server 'b' is subscribed to again") != 0; }));
  const auto is_subscribed = [&](std::string_view what, std::string_view answer) {
    PlainClient direct{two_.port()};
    return text_of(direct.command({"PUBSUB", what, "__keyevent@0__:set"})).ends_with(answer);
  };
  EXPECT_TRUE(comes_true([&] { return is_subscribed("NUMSUB", ":2"); }));
  EXPECT_TRUE(comes_true([&] {
    PlainClient direct{two_.port()};
    return text_of(direct.command({"PUBSUB", "NUMPAT"})) == ":1";
  }));
  EXPECT_TRUE(comes_true([&] { return ask(client, "SET " + b + " x") == "+OK"; }));
  EXPECT_EQ(heard(events, 1), (std::map<std::string, int>{{b, 1}}));
  EXPECT_EQ(heard(late, 1), (std::map<std::string, int>{{b, 1}}));
  EXPECT_EQ(ask(events, "UNSUBSCRIBE"), "*3 $11 unsubscribe $18 __keyevent@0__:set :0");
  EXPECT_EQ(ask(events, "PING"), "+PONG");
  EXPECT_EQ(totals(proxy).lost_subscribers, 0);
}

TEST_F(Notifications, X12_AReloadAddsAndRemovesServers) {
  ProxyUnderTest proxy{{one_.port()}};
  PlainClient events{proxy.port()}, client{proxy.port()};
  EXPECT_EQ(ask(events, "SUBSCRIBE __keyevent@0__:set").substr(0, 2), "*3");
  const auto subscribers = [](const RedisServer& server) {
    PlainClient direct{server.port()};
    return text_of(direct.command({"PUBSUB", "NUMSUB", "__keyevent@0__:set"})).back() - '0';
  };
  proxy.reload(ports());
  EXPECT_TRUE(comes_true([&] { return subscribers(two_) == 1; }));
  const auto expected = set_some(client, "k", 30);
  EXPECT_EQ(heard(events, 30), expected);
  proxy.reload({one_.port()});
  EXPECT_TRUE(comes_true([&] { return subscribers(two_) == 0; }));
  EXPECT_EQ(subscribers(one_), 1);
  const auto more = set_some(client, "l", 30);
  EXPECT_EQ(heard(events, 30), more);
}

TEST_F(Notifications, X12_BesideAnotherChannelALostServerEndsTheClient) {
  ProxyUnderTest proxy{ports()};
  PlainClient mixed{proxy.port()};
  EXPECT_EQ(ask(mixed, "SUBSCRIBE __keyevent@0__:set").substr(0, 2), "*3");
  EXPECT_EQ(ask(mixed, "SUBSCRIBE " + proxy.key_at(1)).substr(0, 2), "*3");
  two_.kill();
  EXPECT_EQ(mixed.read_raw(), "");
  EXPECT_EQ(totals(proxy).lost_subscribers, 1);
}

TEST_F(Notifications, X12_StrictEndsTheConnectionAsTwemproxyDoes) {
  ProxyUnderTest proxy{ports(), {"compat: strict"}};
  PlainClient client{proxy.port()};
  client.send(request("SUBSCRIBE __keyevent@0__:set"));
  EXPECT_EQ(client.read_raw(), "");
}

}  // namespace
}  // namespace sluice::test
