// X22: a proxy that leaves, and a successor that a test plays: at every moment one of them, and no
// more, reads from a client's connection.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <map>

#include "base/descriptor.hpp"
#include "net/socket.hpp"
#include "proxy/flow/handover.hpp"
#include "proxy/flow/two_servers.hpp"
#include "proxy/support/memcached.hpp"
#include "resp/writer.hpp"

namespace sluice::test {
namespace {

using Handover = TwoServers;
using proxy::flow::HandoverMessage;

/// The other end of the channel of a proxy that drains.
class Successor {
 public:
  struct Offer {
    HandoverMessage message;
    Descriptor connection;
  };

  /// The proxy, of one worker, begins to drain.
  explicit Successor(ProxyUnderTest& proxy) {
    int ends[2]{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    channel_ = Descriptor{ends[0]};
    std::vector<Descriptor> its;
    its.emplace_back(ends[1]);
    proxy.proxy().drain(std::move(its));
  }

  bool has_offer() const {
    pollfd wait{channel_.number(), POLLIN, 0};
    return ::poll(&wait, 1, 0) == 1;
  }
  /// The next client that is offered.
  Offer next() {
    std::array<char, 65536> bytes{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec piece{bytes.data(), bytes.size()};
    ssize_t got = -1;
    int connection = -1;
    EXPECT_TRUE(comes_true([&] {
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      got = ::recvmsg(channel_.number(), &message, MSG_CMSG_CLOEXEC);
      if (got > 0) std::memcpy(&connection, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof connection);
      return got > 0;
    }));
    auto message = proxy::flow::read_message({bytes.data(), static_cast<std::size_t>(got)});
    EXPECT_TRUE(message);
    return {std::move(*message), Descriptor{connection}};
  }
  void answer(std::string_view verb, const Offer& offer) {
    const auto bytes = resp::command_bytes({verb, std::to_string(offer.message.ticket)});
    EXPECT_EQ(::send(channel_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void die() { channel_.close(); }

 private:
  Descriptor channel_;
};

/// What has come on a connection, at once.
std::string pending(const Descriptor& connection) {
  std::array<char, 1024> bytes{};
  const auto got = ::recv(connection.number(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  return {bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

TEST_F(Handover, X22_TheSuccessorDiesInTheMiddle) {
  VirtualClock clock;  // it stands: the proxy finds no client idle
  ProxyUnderTest proxy{ports(), {}, {}, clock};
  std::vector<PlainClient> clients;
  for (int i = 0; i < 30; ++i) {
    clients.emplace_back(proxy.port());
    ASSERT_EQ(ask(clients.back(), fmt::format("CLIENT SETNAME {}", i)), "+OK");
  }
  Successor successor{proxy};
  std::map<int, Descriptor> taken;
  for (int i = 0; i < 30; ++i) {
    auto offer = successor.next();
    const auto& told = offer.message.client.told;
    const int number = std::stoi(told.substr(told.find("name=") + 5));
    if (i % 3 == 0) {
      successor.answer("taken", offer);
      taken[number] = std::move(offer.connection);
    } else if (i % 3 == 1) {
      successor.answer("refused", offer);
    }  // else it dies before it has decided
  }
  ASSERT_EQ(taken.size(), 10U);
  successor.die();
  for (int i = 0; i < 30; ++i) {
    auto& client = clients[static_cast<std::size_t>(i)];
    if (!taken.contains(i)) {
      EXPECT_EQ(ask(client, "CLIENT GETNAME"), fmt::format("${} {}", i < 10 ? 1 : 2, i));
      continue;
    }
    client.send("PING\r\n");
    EXPECT_TRUE(comes_true([&] { return pending(taken.at(i)) == "PING\r\n"; }))
        << "the proxy reads no more";
  }
  clock.advance(std::chrono::seconds{1});
  for (int i = 0; i < 30; ++i)
    if (!taken.contains(i)) {
      EXPECT_EQ(ask(clients[static_cast<std::size_t>(i)], "PING"), "+PONG")
          << "it was quiet, and nobody else serves it";
    }
}

TEST_F(Handover, X22_ARequestThatHasBegunGoesWithItsClient) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {"redis_db: 2"}, {}, clock};
  PlainClient client{proxy.port()};
  ASSERT_EQ(ask(client, "SELECT 7"), "+OK");
  client.send("PING\r\n*2\r\n$4\r\nECHO\r\n$5\r\nhel");
  ASSERT_EQ(client.read().as_text(), "PONG");
  Successor successor{proxy};
  const auto offer = successor.next();
  EXPECT_EQ(offer.message.client.unread, "*2\r\n$4\r\nECHO\r\n$5\r\nhel");
  EXPECT_EQ(offer.message.client.db, 7);
  EXPECT_EQ(offer.message.client.pool, "under_test");
  EXPECT_EQ(offer.message.client.listen, fmt::format("127.0.0.1:{}", proxy.port()));
  successor.answer("refused", offer);
  client.send("lo\r\n");
  EXPECT_EQ(client.read().as_text(), "hello") << "and comes back with it";
  EXPECT_EQ(ask(client, "GET nothing"), "_");
}

/// A request without a reply may still be on its way to the server when the client is at rest.
TEST(HandoverMemcached, X22_WhatHasNoReplyIsNotOvertaken) {
  VirtualClock clock;
  Memcached server;
  ProxyUnderTest proxy{
      PoolLines{{"servers:", fmt::format(" - 127.0.0.1:{}:1 a", server.port())}}, {}, clock};
  PlainClient client{proxy.port()};
  client.send("get k\r\n");
  ASSERT_EQ(client.read_raw(), "END\r\n");
  client.send("set k 0 0 1 noreply\r\nx\r\n");
  ASSERT_TRUE(comes_true([&] { return totals(proxy).requests == 2; }));
  Successor successor{proxy};
  EXPECT_EQ(proxy.proxy().handed_over(), 0U);
  EXPECT_FALSE(successor.has_offer());
  clock.advance(std::chrono::milliseconds{60});
  EXPECT_EQ(proxy.proxy().handed_over(), 0U);  // which wakes it
  EXPECT_EQ(successor.next().message.client.pool, "under_test");
}

TEST_F(Handover, X22_SoManyAtATime) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {}, {}, clock};
  std::vector<PlainClient> clients;
  constexpr std::size_t most = proxy::flow::ClientHandover::most_in_transit;
  for (std::size_t i = 0; i < most + 10; ++i) {
    clients.emplace_back(proxy.port());
    ASSERT_EQ(ask(clients.back(), "PING"), "+PONG");
  }
  Successor successor{proxy};
  std::vector<Successor::Offer> offers;
  for (std::size_t i = 0; i < most; ++i) offers.push_back(successor.next());
  for (auto& offer : offers) successor.answer("taken", offer);
  EXPECT_FALSE(proxy.proxy().is_drained());
  EXPECT_TRUE(comes_true([&] { return proxy.proxy().handed_over() == most; }));
  clock.advance(std::chrono::milliseconds{20});
  EXPECT_EQ(proxy.proxy().handed_over(), most);  // which wakes it
  for (int i = 0; i < 10; ++i) {
    const auto offer = successor.next();
    successor.answer("taken", offer);
  }
  EXPECT_TRUE(comes_true([&] { return proxy.proxy().is_drained(); }));
  EXPECT_EQ(proxy.proxy().handed_over(), most + 10);
}

}  // namespace
}  // namespace sluice::test
