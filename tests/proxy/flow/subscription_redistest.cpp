// Channels, patterns and sharded channels over two servers.
#include <atomic>
#include <thread>

#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;
using Listening = TwoServers;

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + " " + text; }

/// What a peer says to these lines, to the byte, and to a last PING.
std::string said(std::uint16_t port, const Texts& lines) {
  PlainClient client{port};
  for (const auto& line : lines) client.send(request(line));
  client.send(request("PING the_end"));
  std::string bytes;
  while (bytes.find("the_end") == std::string::npos) {
    const auto more = client.read_raw();
    if (more.empty()) break;
    bytes += more;
  }
  return bytes;
}

const Texts conversation{
    "GET nothing",
    "SUBSCRIBE a b c a",
    "PSUBSCRIBE x* y*",
    "SSUBSCRIBE s",
    "PING",
    "PING hello",
    "GET a",
    "UNSUBSCRIBE b zz",
    "PUNSUBSCRIBE x*",
    "SUNSUBSCRIBE",
    "SUNSUBSCRIBE",
    "SUBSCRIBE",
    "CLIENT ID nonsense",
    "SET a",
    "UNSUBSCRIBE a c",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE y*",
    "GET nothing",
    "UNSUBSCRIBE",
    "PUNSUBSCRIBE z",
    "SSUBSCRIBE t u",
    "HSET h f v",
    "SUNSUBSCRIBE t u u",
    "SET a 1",
    "SUBSCRIBE k l",
    "RESET",
    "GET a",
};

TEST_F(Listening, IsAnsweredAsByOneRedis) {
  ProxyUnderTest proxy{ports()};
  RedisServer alone;
  EXPECT_EQ(said(proxy.port(), conversation), said(alone.port(), conversation));
}

TEST_F(Listening, IsAnsweredAsByOneRedisInResp3) {
  ProxyUnderTest proxy{ports()};
  RedisServer alone;
  const auto ours = said(proxy.port(), [] {
    auto lines = conversation;
    lines.insert(lines.begin(), "HELLO 3");
    lines.pop_back();
    lines.pop_back();  // RESET would bring RESP2 back
    return lines;
  }());
  const auto theirs = said(alone.port(), [] {
    auto lines = conversation;
    lines.insert(lines.begin(), "HELLO 3");
    lines.pop_back();
    lines.pop_back();
    return lines;
  }());
  const auto behind_hello = [](const std::string& text) {
    return text.substr(text.find("modules\r\n*0\r\n"));
  };
  EXPECT_EQ(behind_hello(ours), behind_hello(theirs));
}

TEST_F(Listening, HearsWhatIsPublishedThroughTheProxy) {
  ProxyUnderTest proxy{ports(), {}, {"workers: 2"}};
  PlainClient listener{proxy.port()}, publisher{proxy.port()};
  const auto a = proxy.key_at(0), b = proxy.key_at(1);
  listener.send(request("SUBSCRIBE " + a + " " + b));
  EXPECT_EQ(text_of(listener.read()), "*3 $9 subscribe " + bulk(a) + " :1");
  EXPECT_EQ(text_of(listener.read()), "*3 $9 subscribe " + bulk(b) + " :2");
  for (int i = 0; i < 50; ++i) {
    const auto& channel = i % 2 == 0 ? a : b;
    EXPECT_EQ(ask(publisher, "PUBLISH " + channel + " m"), ":1");
    EXPECT_EQ(text_of(listener.read()), "*3 $7 message " + bulk(channel) + " $1 m");
  }
  EXPECT_EQ(ask(publisher, "PUBLISH nobody m"), ":0");
}

TEST_F(Listening, HearsPatternsOnceFromEveryServer) {
  ProxyUnderTest proxy{ports()};
  PlainClient listener{proxy.port()}, publisher{proxy.port()};
  EXPECT_EQ(ask(listener, "PSUBSCRIBE key*"), "*3 $10 psubscribe $4 key* :1");
  for (std::size_t home = 0; home < 2; ++home) {
    const auto key = proxy.key_at(home);
    EXPECT_EQ(ask(publisher, "PUBLISH " + key + " hi"), ":1");
    EXPECT_EQ(text_of(listener.read()), "*4 $8 pmessage $4 key* " + bulk(key) + " $2 hi");
  }
  EXPECT_EQ(ask(listener, "PUNSUBSCRIBE"), "*3 $12 punsubscribe $4 key* :0");
  EXPECT_EQ(ask(listener, "GET a"), "_");
}

TEST_F(Listening, HearsShardedChannels) {
  ProxyUnderTest proxy{ports()};
  PlainClient listener{proxy.port()}, publisher{proxy.port()};
  const auto channel = proxy.key_at(1);
  EXPECT_EQ(ask(listener, "SSUBSCRIBE " + channel), "*3 $10 ssubscribe " + bulk(channel) + " :1");
  EXPECT_EQ(ask(publisher, "SPUBLISH " + channel + " x"), ":1");
  EXPECT_EQ(text_of(listener.read()), "*3 $8 smessage " + bulk(channel) + " $1 x");
}

TEST_F(Listening, ServesOtherCommandsInResp3) {
  ProxyUnderTest proxy{ports()};
  PlainClient listener{proxy.port()}, publisher{proxy.port()};
  ASSERT_EQ(ask(listener, "HELLO 3").front(), '%');
  const auto channel = proxy.key_at(0);
  EXPECT_EQ(ask(listener, "SUBSCRIBE " + channel), ">3 $9 subscribe " + bulk(channel) + " :1");
  EXPECT_EQ(ask(listener, "SET a 1"), "+OK");
  EXPECT_EQ(ask(listener, "PING"), "+PONG");
  EXPECT_EQ(ask(publisher, "PUBLISH " + channel + " x"), ":1");
  EXPECT_EQ(text_of(listener.read()), ">3 $7 message " + bulk(channel) + " $1 x");
  EXPECT_EQ(ask(listener, "GET a"), "$1 1");
}

TEST_F(Listening, ConfirmsBehindWhatWasAskedBefore) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto a = proxy.key_at(0), b = proxy.key_at(1);
  EXPECT_EQ(
      ask_all(client, {"SET " + a + " 1", "GET " + a, "SUBSCRIBE " + b, "UNSUBSCRIBE", "GET " + a}),
      (Texts{"+OK", "$1 1", "*3 $9 subscribe " + bulk(b) + " :1",
             "*3 $11 unsubscribe " + bulk(b) + " :0", "$1 1"}));
}

TEST_F(Listening, InATransactionIsRefused) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "MULTI"), "+OK");
  EXPECT_EQ(ask(client, "SUBSCRIBE a").front(), '-');
  EXPECT_EQ(ask(client, "EXEC").substr(0, 10), "-EXECABORT");
}

TEST_F(Listening, GivesItsConnectionsBack) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(ask(client, "SUBSCRIBE ch").substr(0, 2), "*3");
    EXPECT_EQ(ask(client, "UNSUBSCRIBE ch").substr(0, 2), "*3");
  }
  EXPECT_LE(totals(proxy, 0).server_connections + totals(proxy, 1).server_connections, 1);
  EXPECT_EQ(ask(client, "PUBSUB CHANNELS"), "*0");
}

TEST_F(Listening, LeavesNothingOnServersWhenTheClientLeaves) {
  ProxyUnderTest proxy{ports()};
  PlainClient other{proxy.port()};
  {
    PlainClient client{proxy.port()};
    EXPECT_EQ(ask(client, "SUBSCRIBE one").substr(0, 2), "*3");
    EXPECT_EQ(ask(client, "PSUBSCRIBE two*").substr(0, 2), "*3");
    EXPECT_EQ(ask(other, "PUBLISH one x"), ":1");
  }
  EXPECT_TRUE(comes_true([&] { return ask(other, "PUBSUB CHANNELS") == "*0"; }));
  EXPECT_TRUE(comes_true([&] { return ask(other, "PUBSUB NUMPAT") == ":0"; }));
}

TEST_F(Listening, ThousandsOfChannels) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()}, publisher{proxy.port()};
  std::string names;
  for (int i = 0; i < 5000; ++i) names += " channel" + std::to_string(i);
  client.send(request("SUBSCRIBE" + names));
  for (int i = 0; i < 5000; ++i) {
    const auto confirmation = client.read();
    ASSERT_EQ(confirmation.as_items()[1].as_text(), "channel" + std::to_string(i));
    ASSERT_EQ(confirmation.as_items()[2].as_integer(), i + 1);
  }
  EXPECT_EQ(ask(publisher, "PUBLISH channel4711 x"), ":1");
  EXPECT_EQ(client.read().as_items()[1].as_text(), "channel4711");
  client.send(request("UNSUBSCRIBE"));
  for (int left = 4999; left >= 0; --left)
    ASSERT_EQ(client.read().as_items()[2].as_integer(), left);
  EXPECT_EQ(ask(client, "PING"), "+PONG");
}

TEST_F(Listening, MoreNamesThanTheLimitAreRefused) {
  ProxyUnderTest proxy{ports(), {"client_output_limit: 8kb"}};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "SUBSCRIBE " + std::string(9000, 'x')).substr(0, 23),
            "-ERR more subscriptions");
  EXPECT_EQ(ask(client, "SUBSCRIBE y"), "*3 $9 subscribe $1 y :1");
}

TEST_F(Listening, IsNotIdle) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {"client_idle_timeout: 100ms"}, {}, clock};
  PlainClient listener{proxy.port()}, silent{proxy.port()};
  EXPECT_EQ(ask(listener, "SUBSCRIBE ch"), "*3 $9 subscribe $2 ch :1");
  EXPECT_TRUE(is_closed_as_time_passes(silent, proxy));
  PlainClient publisher{proxy.port()};
  EXPECT_EQ(ask(publisher, "PUBLISH ch x"), ":1");
  EXPECT_EQ(text_of(listener.read()), "*3 $7 message $2 ch $1 x");
}

TEST_F(Listening, WhoDoesNotListenIsClosed) {
  ProxyUnderTest proxy{ports(), {"client_output_limit: 64kb"}};
  PlainClient deaf{proxy.port()}, publisher{proxy.port()};
  EXPECT_EQ(ask(deaf, "SUBSCRIBE ch"), "*3 $9 subscribe $2 ch :1");
  const std::string message = "PUBLISH ch " + std::string(10'000, 'm');
  // Beyond what the kernel holds for it.
  EXPECT_TRUE(comes_true(
      [&] { return ask(publisher, message) == ":0" && totals(proxy).slow_subscribers == 1; }));
  EXPECT_EQ(ask(publisher, "PING"), "+PONG");
}

TEST_F(Listening, WithRandomDistributionHearsEachMessageOnce) {
  ProxyUnderTest proxy{ports(), {"distribution: random"}};
  PlainClient listener{proxy.port()}, publisher{proxy.port()};
  EXPECT_EQ(ask(listener, "SUBSCRIBE ch"), "*3 $9 subscribe $2 ch :1");
  for (int i = 10; i < 60; ++i) {
    EXPECT_EQ(ask(publisher, "PUBLISH ch " + std::to_string(i)), ":1");
    EXPECT_EQ(text_of(listener.read()), "*3 $7 message $2 ch $2 " + std::to_string(i));
  }
}

/// Sixteen clients subscribe and unsubscribe all the while. A subscriber misses no message between
/// its two confirmations.
TEST_F(Listening, MissesNothingBetweenItsConfirmations) {
  ProxyUnderTest proxy{ports(), {}, {"workers: 2"}};
  constexpr int channels = 4;
  std::atomic<bool> over{false};
  std::thread publisher{[&] {
    PlainClient client{proxy.port()};
    for (int number = 0; !over; ++number)
      for (int channel = 0; channel < channels; ++channel)
        EXPECT_EQ(ask(client, "PUBLISH ch" + std::to_string(channel) + " " + std::to_string(number))
                      .front(),
                  ':');
  }};
  std::vector<std::thread> listeners;
  for (int i = 0; i < 16; ++i)
    listeners.emplace_back([&, i] {
      PlainClient client{proxy.port()};
      const auto name = "ch" + std::to_string(i % channels);
      for (int round = 0; round < 10; ++round) {
        ASSERT_EQ(ask(client, "SUBSCRIBE " + name), "*3 $9 subscribe $3 " + name + " :1");
        client.send(request("PING") + request("UNSUBSCRIBE"));
        std::int64_t last = -1;
        for (bool pinged = false;;) {
          const auto heard = client.read();
          const auto& items = heard.as_items();
          if (items[0].as_text() == "pong") {
            pinged = true;
          } else if (items[0].as_text() == "unsubscribe") {
            EXPECT_TRUE(pinged);
            break;
          } else {
            ASSERT_EQ(items[1].as_text(), name);
            const auto number = items[2].as_integer();
            EXPECT_TRUE(last == -1 || number == last + 1) << number << " behind " << last;
            last = number;
          }
        }
        ASSERT_EQ(ask(client, "GET nothing"), "_");
      }
    });
  for (auto& listener : listeners) listener.join();
  over = true;
  publisher.join();
}

TEST(LostListening, EndsWithItsServer) {
  RedisServer one, other;
  ProxyUnderTest proxy{{one.port(), other.port()}};
  PlainClient of_one{proxy.port()}, of_other{proxy.port()}, of_both{proxy.port()};
  const auto a = proxy.key_at(0), b = proxy.key_at(1);
  EXPECT_EQ(ask(of_one, "SUBSCRIBE " + a).substr(0, 2), "*3");
  EXPECT_EQ(ask(of_other, "SUBSCRIBE " + b).substr(0, 2), "*3");
  EXPECT_EQ(ask(of_both, "PSUBSCRIBE *").substr(0, 2), "*3");
  one.kill();
  EXPECT_EQ(of_one.read_raw(), "");
  EXPECT_EQ(of_both.read_raw(), "");
  EXPECT_EQ(totals(proxy).lost_subscribers, 2);
  PlainClient publisher{proxy.port()};
  EXPECT_EQ(ask(publisher, "PUBLISH " + b + " x"), ":1");
  EXPECT_EQ(text_of(of_other.read()), "*3 $7 message " + bulk(b) + " $1 x");

  PlainClient late{proxy.port()};
  EXPECT_EQ(ask(late, "SUBSCRIBE " + a), "-ERR Connection refused");
  one.start();
  PlainClient again{proxy.port()};
  EXPECT_EQ(ask(again, "SUBSCRIBE " + a), "*3 $9 subscribe " + bulk(a) + " :1");
  EXPECT_EQ(ask(publisher, "PUBLISH " + a + " x"), ":1");
}

TEST(LostListening, ASilentServerIsWaitedForAsLongAsForAReply) {
  RedisServer one, other;
  ProxyUnderTest proxy{{one.port(), other.port()}, {"timeout: 200"}};
  PlainClient client{proxy.port()};
  one.stop();
  EXPECT_EQ(ask(client, "SUBSCRIBE " + proxy.key_at(0)), "-ERR Connection timed out");
  EXPECT_EQ(client.read_raw(), "");
  one.cont();
}

TEST_F(Listening, EndsWhenAChannelHasAnotherHome) {
  ProxyUnderTest proxy{ports()};
  PlainClient stays{proxy.port()}, moves{proxy.port()}, everywhere{proxy.port()};
  const auto a = proxy.key_at(0), b = proxy.key_at(1);
  EXPECT_EQ(ask(stays, "SUBSCRIBE " + a).substr(0, 2), "*3");
  EXPECT_EQ(ask(moves, "SUBSCRIBE " + b).substr(0, 2), "*3");
  EXPECT_EQ(ask(everywhere, "PSUBSCRIBE *").substr(0, 2), "*3");
  proxy.reload({servers_[0]->port()});
  EXPECT_EQ(moves.read_raw(), "");
  EXPECT_EQ(everywhere.read_raw(), "");
  PlainClient publisher{proxy.port()};
  EXPECT_EQ(ask(publisher, "PUBLISH " + a + " x"), ":1");
  EXPECT_EQ(text_of(stays.read()), "*3 $7 message " + bulk(a) + " $1 x");
  PlainClient again{proxy.port()};
  EXPECT_EQ(ask(again, "PSUBSCRIBE *"), "*3 $10 psubscribe $1 * :1");
}

TEST(LostListening, EndsWhenItsServerIsEjectedAndKeysMove) {
  VirtualClock clock;
  RedisServer one, other;
  ProxyUnderTest proxy{{one.port(), other.port()},
                       {"auto_eject_hosts: true", "server_failure_limit: 1", "timeout: 200",
                        "server_retry_timeout: 200"},
                       {},
                       clock};
  PlainClient listener{proxy.port()}, client{proxy.port()};
  const auto a = proxy.key_at(0);
  EXPECT_EQ(ask(listener, "SUBSCRIBE " + a).substr(0, 2), "*3");
  one.stop();  // its connections stay
  EXPECT_EQ(ask_as_time_passes(client, "GET " + a, proxy), "-ERR Connection timed out");
  EXPECT_EQ(listener.read_raw(), "");
  PlainClient again{proxy.port()};
  EXPECT_EQ(ask(again, "SUBSCRIBE " + a), "*3 $9 subscribe " + bulk(a) + " :1");
  EXPECT_EQ(ask(client, "PUBLISH " + a + " x"), ":1");
  EXPECT_EQ(text_of(again.read()), "*3 $7 message " + bulk(a) + " $1 x");
  one.cont();  // and its keys come back
  EXPECT_TRUE(is_closed_as_time_passes(again, proxy));
}

}  // namespace
}  // namespace sluice::test
