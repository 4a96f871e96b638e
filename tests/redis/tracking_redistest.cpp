// Changed keys of a real server: what they cost it, and connections that are lost.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/event.hpp"
#include "redis/at_server.hpp"
#include "support/plain_client.hpp"
#include "support/told.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::at;
using test::Told;

class Tracking : public testing::Test {
 protected:
  /// A line of INFO.
  std::string info(const std::string& name) {
    const auto text = admin().command({"INFO", "everything"}).as_text();
    const auto begin = text.find("\n" + name + ":") + name.size() + 2;
    return text.substr(begin, text.find('\r', begin) - begin);
  }
  bool becomes(const std::string& name, const std::string& value) {
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (info(name) != value)
      if (std::chrono::steady_clock::now() > patience) return false;
    return true;
  }
  test::PlainClient admin() const { return test::PlainClient{server.port()}; }
  void set(const std::string& key) { admin().command({"SET", key, "v"}); }

  test::RedisServer server;
  std::unique_ptr<Store> store = redis::open_redis(at(server));
};

TEST_F(Tracking, ManyTrackersCostOneSubscription) {
  std::vector<Told> told(50);
  std::vector<Listener> listeners;
  for (const auto& one : told) listeners.push_back(store->track("shop:", one.handler()));
  for (const auto& one : told) ASSERT_TRUE(one.wait_for(Message::Kind::gap));
  EXPECT_EQ(info("tracking_clients"), "1");
  EXPECT_EQ(info("tracking_total_prefixes"), "1");
  set("shop:1");
  for (const auto& one : told) EXPECT_TRUE(one.hears("shop:1"));
  listeners.clear();
  EXPECT_TRUE(becomes("tracking_clients", "0")) << "nobody tracks, and it costs nothing";
}

TEST_F(Tracking, OverlappingPrefixesAreOne) {
  Told narrow;
  Told wide;
  const auto first = store->track("shop:a:", narrow.handler());
  ASSERT_TRUE(narrow.wait_for(Message::Kind::gap));
  const auto second = store->track("shop:", wide.handler());
  ASSERT_TRUE(wide.wait_for(Message::Kind::gap));
  EXPECT_EQ(info("tracking_total_prefixes"), "1");
  set("shop:a:1");
  EXPECT_TRUE(narrow.hears("shop:a:1"));
  EXPECT_TRUE(wide.hears("shop:a:1"));
}

TEST_F(Tracking, AfterARestartTrackersHearOfTheLossThenOfTheGapThenOfKeys) {
  Told told;
  const auto listener = store->track("shop:", told.handler());
  ASSERT_TRUE(told.wait_for(Message::Kind::gap));
  for (int i = 0; i < 3; ++i) {
    told.forget();
    server.restart();
    ASSERT_TRUE(told.wait_for(Message::Kind::gap));
    EXPECT_EQ(told.all().front().kind, Message::Kind::lost);
    EXPECT_FALSE(told.all().front().payload.empty());
    set("shop:" + std::to_string(i));
    EXPECT_TRUE(told.hears("shop:" + std::to_string(i)));
  }
}

TEST_F(Tracking, AListeningConnectionThatIsKilledIsMadeAgain) {
  Told told;
  const auto listener = store->track("shop:", told.handler());
  ASSERT_TRUE(told.wait_for(Message::Kind::gap));
  told.forget();
  EXPECT_EQ(admin().command({"CLIENT", "KILL", "TYPE", "pubsub"}).as_integer(), 1);
  ASSERT_TRUE(told.wait_for(Message::Kind::gap));
  EXPECT_EQ(told.all().front().kind, Message::Kind::lost);
  set("shop:1");
  EXPECT_TRUE(told.hears("shop:1"));
}

TEST_F(Tracking, AServerThatFallsSilentIsLost) {
  auto options = at(server);
  options.idle = 20ms;
  options.command_timeout = 250ms;
  const auto watching = redis::open_redis(options);
  Told told;
  const auto listener = watching->track("shop:", told.handler());
  ASSERT_TRUE(told.wait_for(Message::Kind::gap));
  server.stop();
  EXPECT_TRUE(told.wait_for(Message::Kind::lost));
  told.forget();
  server.cont();
  EXPECT_TRUE(told.wait_for(Message::Kind::gap));
}

TEST_F(Tracking, AUserWhoMayNotTrackIsTold) {
  admin().command(
      {"ACL", "SETUSER", "blind", "on", ">word", "~*", "&*", "+@all", "-client|tracking"});
  auto options = at(server);
  options.user = "blind";
  options.password = "word";
  const auto blind = redis::open_redis(options);
  Told told;
  const auto listener = blind->track("shop:", told.handler());
  const auto why = told.wait_for(Message::Kind::lost);
  ASSERT_TRUE(why);
  EXPECT_TRUE(why->payload.starts_with("NOPERM")) << why->payload;
  EXPECT_EQ(blind->run({"PING"}).get().as_text(), "PONG");
}

// A process that is stopped, say: the server would keep its messages for ever.
TEST_F(Tracking, AHandlerThatBlocksIsCutOffByTheServer) {
  admin().command({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 0 0"});
  Event go_on;
  Told told;
  const auto listener = store->track("shop:", [&](const Message& message) {
    told.handler()(message);
    if (message.kind == Message::Kind::published) go_on.wait();
  });
  ASSERT_TRUE(told.wait_for(Message::Kind::gap));
  std::vector<std::string> words{"MSET"};
  for (int i = 0; i < 1000; ++i) {
    words.push_back("shop:" + std::string(200, 'k') + std::to_string(i));
    words.emplace_back("v");
  }
  auto writer = admin();
  const auto patience = std::chrono::steady_clock::now() + 20s;
  while (info("tracking_clients") == "1" && std::chrono::steady_clock::now() < patience)
    writer.command(words);
  EXPECT_EQ(info("tracking_clients"), "0");
  told.forget();
  go_on.set();
  EXPECT_TRUE(told.wait_for(Message::Kind::lost));
  EXPECT_TRUE(told.wait_for(Message::Kind::gap));
}

// A script that fails has written what it has written, and so it is told of.
TEST_F(Tracking, AScriptThatFailsIsToldOfUpToThere) {
  Told told;
  const auto listener = store->track("shop:", told.handler());
  ASSERT_TRUE(told.wait_for(Message::Kind::gap));
  admin().command({"EVAL", "redis.call('SET', KEYS[1], 1) error('no')", "1", "shop:1"});
  EXPECT_TRUE(told.hears("shop:1"));
}

TEST_F(Tracking, ListensToChannelsBesides) {
  Told keys;
  Told channel;
  const auto tracking = store->track("shop:", keys.handler());
  const auto listening = store->listen("invalidate", channel.handler()).get();
  ASSERT_TRUE(keys.wait_for(Message::Kind::gap));
  admin().command({"PUBLISH", "invalidate", "shop:1"});
  EXPECT_TRUE(channel.hears("shop:1"));
  set("shop:2");
  EXPECT_TRUE(keys.hears("shop:2"));
  EXPECT_EQ(keys.all().size(), 2U);
  EXPECT_EQ(channel.all().size(), 1U);
}

}  // namespace
}  // namespace sluice
