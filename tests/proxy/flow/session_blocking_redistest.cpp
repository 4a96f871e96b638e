// Commands that wait on a server, through the proxy.
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/descriptor.hpp"
#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;
using Blocking = TwoServers;

bool is_blocked(PlainClient& server) { return info_of(server, "blocked_clients") == "1"; }

TEST_F(Blocking, ElementsComeWhenTheyArePushed) {
  ProxyUnderTest proxy{ports(), {"hash_tag: \"{}\""}};
  PlainClient client{proxy.port()}, other{proxy.port()};
  const auto tag = "{" + proxy.key_at(0) + "}";
  auto server = direct(0);
  const std::vector<std::pair<std::string, std::string>> rows{
      {"BLPOP " + tag + "x " + tag + "l 0", "*2 $7 " + tag + "l $1 v"},
      {"BRPOP " + tag + "l 0", "*2 $7 " + tag + "l $1 v"},
      {"BLMOVE " + tag + "l " + tag + "m LEFT RIGHT 0", "$1 v"},
      {"BRPOPLPUSH " + tag + "l " + tag + "m 0", "$1 v"},
      {"BLMPOP 0 1 " + tag + "l LEFT", "*2 $7 " + tag + "l *1 $1 v"}};
  for (const auto& [line, reply] : rows) {
    client.send(request(line));
    ASSERT_TRUE(comes_true([&] { return is_blocked(server); })) << line;
    EXPECT_EQ(ask(other, "RPUSH " + tag + "l v"), ":1");
    EXPECT_EQ(text_of(client.read()), reply);
  }
  for (const auto& line :
       {"BZPOPMIN " + tag + "z 0", "BZPOPMAX " + tag + "z 0", "BZMPOP 0 1 " + tag + "z MIN"}) {
    client.send(request(line));
    ASSERT_TRUE(comes_true([&] { return is_blocked(server); })) << line;
    EXPECT_EQ(ask(other, "ZADD " + tag + "z 1 m"), ":1");
    EXPECT_NE(text_of(client.read()).find("$1 m"), std::string::npos) << line;
  }
}

TEST_F(Blocking, ThePoolsTimeoutDoesNotCount) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {"timeout: 50"}, {}, clock};
  PlainClient client{proxy.port()}, other{proxy.port()};
  const auto list = proxy.key_at(0);
  auto server = direct(0);
  client.send(request("BLPOP " + list + " 0"));
  ASSERT_TRUE(comes_true([&] { return is_blocked(server); }));
  proxy.pass(1s);
  EXPECT_EQ(ask(other, "PING"), "+PONG");  // the loop has been round
  EXPECT_EQ(ask(other, "RPUSH " + list + " v"), ":1");
  EXPECT_EQ(text_of(client.read()), "*2 $4 " + list + " $1 v");
  EXPECT_EQ(ask(client, "SET " + list + " v"), "+OK");
}

TEST_F(Blocking, TheNextRequestsWait) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()}, other{proxy.port()};
  const auto list = proxy.key_at(0), there = proxy.key_at(1);
  auto server = direct(0);
  client.send(request("SET " + there + " 1") + request("BLPOP " + list + " 0") +
              request("INCR " + there) + request("PING"));
  EXPECT_EQ(text_of(client.read()), "+OK");
  ASSERT_TRUE(comes_true([&] { return is_blocked(server); }));
  EXPECT_EQ(ask(other, "GET " + there), "$1 1");
  EXPECT_EQ(ask(other, "RPUSH " + list + " v"), ":1");
  EXPECT_EQ(text_of(client.read()), "*2 $4 " + list + " $1 v");
  EXPECT_EQ(text_of(client.read()), ":2");
  EXPECT_EQ(text_of(client.read()), "+PONG");
}

TEST_F(Blocking, StreamsWaitOnlyWhenTheyAreTold) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()}, other{proxy.port()};
  const auto stream = proxy.key_at(0);
  auto server = direct(0);
  EXPECT_EQ(ask(client, "XREAD STREAMS " + stream + " 0"), "_");
  client.send(request("XREAD BLOCK 0 STREAMS " + stream + " $"));
  ASSERT_TRUE(comes_true([&] { return is_blocked(server); }));
  EXPECT_EQ(ask(other, "XADD " + stream + " 1-1 f v"), "$3 1-1");
  EXPECT_EQ(text_of(client.read()), "*1 *2 $4 " + stream + " *1 *2 $3 1-1 *2 $1 f $1 v");
  EXPECT_EQ(ask(client, "XGROUP CREATE " + stream + " g $"), "+OK");
  client.send(request("XREADGROUP GROUP g c BLOCK 0 STREAMS " + stream + " >"));
  ASSERT_TRUE(comes_true([&] { return is_blocked(server); }));
  EXPECT_EQ(ask(other, "XADD " + stream + " 2-1 f v"), "$3 2-1");
  EXPECT_NE(text_of(client.read()).find("$3 2-1"), std::string::npos);
}

TEST_F(Blocking, KeysWithDifferentHomesAreRefused) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "BLPOP " + proxy.key_at(0) + " " + proxy.key_at(1) + " 0").substr(0, 10),
            "-CROSSSLOT");
  EXPECT_EQ(ask(client, "PING"), "+PONG");
}

TEST_F(Blocking, NothingIsTakenForAClientThatHasGone) {
  ProxyUnderTest proxy{ports()};
  PlainClient other{proxy.port()};
  auto server = direct(0);
  const auto list = proxy.key_at(0);
  {
    PlainClient client{proxy.port()};
    client.send(request("BLPOP " + list + " 0") + request("GET " + list));
    ASSERT_TRUE(comes_true([&] { return is_blocked(server); }));
  }
  ASSERT_TRUE(comes_true([&] { return info_of(server, "blocked_clients") == "0"; }));
  EXPECT_EQ(ask(other, "RPUSH " + list + " v"), ":1");
  EXPECT_EQ(ask(other, "LLEN " + list), ":1");
}

TEST_F(Blocking, ForAClientThatLeftWithItsRequestNothingIsAsked) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()}, other{proxy.port()};
  const auto list = proxy.key_at(0), there = proxy.key_at(1);
  servers_[0]->stop();  // so that the first request is still under way when the client has left
  client.send(request("RPUSH " + list + " v") + request("BLPOP " + list + " 0") + request("PING"));
  client.finish_sending();
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(ask(other, "GET " + there), "_");  // the loop has been round
  servers_[0]->cont();
  EXPECT_EQ(read_bytes(client, 100), ":1\r\n");
  auto server = direct(0);
  EXPECT_EQ(ask(server, "LLEN " + list), ":1");
}

TEST_F(Blocking, ADrainLetsThemGo) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()}, open{proxy.port()};
  auto server = direct(0);
  const auto key = proxy.key_at(0);
  ASSERT_EQ(ask_all(open, {"MULTI", "SET " + key + "s v"}), (Texts{"+OK", "+QUEUED"}));
  client.send(request("BLPOP " + key + " 0"));
  ASSERT_TRUE(comes_true([&] { return is_blocked(server); }));
  proxy.proxy().drain();
  EXPECT_EQ(read_bytes(client, 1000),
            "-UNBLOCKED the proxy ends: ask again on another connection\r\n");
  EXPECT_EQ(ask(open, "EXEC"), "*1 +OK") << "what has begun is brought to its end";
  EXPECT_TRUE(open.read_raw().empty());
  EXPECT_TRUE(comes_true([&] { return proxy.proxy().is_drained(); }));
}

TEST_F(Blocking, AReloadLeavesThemWhereTheyAreUnlessTheirKeyHasAnotherHome) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  auto server = direct(0);
  const auto key = proxy.key_at(0);
  client.send(request("BLPOP " + key + " 0"));
  ASSERT_TRUE(comes_true([&] { return is_blocked(server); }));
  proxy.reload(ports(), {"timeout: 20000"});
  EXPECT_EQ(ask(server, "RPUSH " + key + " v"), ":1");
  EXPECT_EQ(text_of(client.read()), "*2 $4 " + key + " $1 v");
  client.send(request("BLPOP " + key + " 0"));
  ASSERT_TRUE(comes_true([&] { return is_blocked(server); }));
  proxy.reload({servers_[1]->port()}, {"timeout: 30000"});
  EXPECT_EQ(text_of(client.read()), "-UNBLOCKED a key has another home now: ask again");
  EXPECT_EQ(ask(client, "GET " + key), "_") << "of the other server";
  EXPECT_TRUE(comes_true([&] { return info_of(server, "connected_clients") == "1"; }))
      << "nobody needs it any more";
}

TEST(BlockingWithoutServers, ALostServerIsToldAtOnce) {
  RedisServer server;
  ProxyUnderTest proxy{{server.port()}};
  PlainClient client{proxy.port()}, side{server.port()};
  client.send(request("BLPOP l 0") + request("PING"));
  ASSERT_TRUE(comes_true([&] { return is_blocked(side); }));
  server.kill();
  EXPECT_EQ(text_of(client.read()).substr(0, 4), "-ERR");
  EXPECT_EQ(text_of(client.read()), "+PONG");
  EXPECT_EQ(ask(client, "BLPOP l 0"), "-ERR Connection refused");
}

TEST(BlockingWithoutServers, ASilentServerMayTakeAsLongAsItLikes) {
  RedisServer server;
  VirtualClock clock;
  ProxyUnderTest proxy{{server.port()}, {"connect_timeout: 20ms", "timeout: 20"}, {}, clock};
  server.stop();  // the kernel takes the connection all the same
  PlainClient client{proxy.port()}, other{proxy.port()};
  client.send(request("BLPOP l 0"));
  ASSERT_TRUE(comes_true([&] { return totals(proxy, 0).out_queue == 1; }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask(other, "PING"), "+PONG");  // the loop has been round
    proxy.pass(200ms);
  }
  server.cont();
  PlainClient side{server.port()};
  EXPECT_EQ(ask(side, "RPUSH l v"), ":1");
  EXPECT_EQ(text_of(client.read()), "*2 $1 l $1 v");
}

/// A port that neither accepts nor refuses a connection: the kernel's queue for it is full.
class FullPort {
 public:
  FullPort() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    sockets_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
    EXPECT_EQ(::bind(sockets_[0].number(), generic, size), 0);
    EXPECT_EQ(::listen(sockets_[0].number(), 0), 0);
    EXPECT_EQ(::getsockname(sockets_[0].number(), generic, &size), 0);
    port = ntohs(address.sin_port);
    for (int i = 0; i < 4; ++i) {
      sockets_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                            "socket");
      static_cast<void>(::connect(sockets_.back().number(), generic, size));
    }
  }
  std::uint16_t port = 0;

 private:
  std::vector<Descriptor> sockets_;
};

TEST(BlockingWithoutServers, ConnectingIsTimed) {
  FullPort nobody;
  ProxyUnderTest proxy{{nobody.port}, {"connect_timeout: 50ms"}};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "BLPOP l 0"), "-ERR Connection timed out");
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k v"})[1], "-ERR Connection timed out");
  EXPECT_EQ(ask(client, "EXEC").substr(0, 10), "-EXECABORT");
}

}  // namespace
}  // namespace sluice::test
