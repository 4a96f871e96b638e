// The PROXY protocol: its bytes as HAProxy sends them, hostile ones, and a server behind it.
#include "http/proxy_protocol.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "client.hpp"
#include "net/tls.hpp"
#include "proxy_header.hpp"
#include "serving.hpp"
#include "sluice/clock.hpp"
#include "support/certificates.hpp"
#include "support/matchers.hpp"
#include "support/sanitized.hpp"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using Stage = ProxyHeader::Stage;

/// As a socket gives them: no more than is wanted, and `most` at once.
ProxyHeader read_all(std::string_view bytes, std::size_t most = 1 << 20) {
  ProxyHeader header;
  while (header.wants() > 0 && !bytes.empty()) {
    const auto some = bytes.substr(0, std::min(most, header.wants()));
    header.read(some);
    bytes.remove_prefix(some.size());
  }
  return header;
}

TEST(ProxyHeader, NamesTheClient) {
  const auto v4 = read_all(proxy_v4("203.0.113.7"));
  EXPECT_EQ(v4.stage(), Stage::done);
  EXPECT_TRUE(v4.names_client());
  EXPECT_EQ(v4.client(), "203.0.113.7");
  EXPECT_EQ(read_all(proxy_v6("2001:db8::7")).client(), "2001:db8::7");
  const auto local = read_all(proxy_unix());
  EXPECT_EQ(local.stage(), Stage::done);
  EXPECT_TRUE(local.names_client());
  EXPECT_EQ(local.client(), "");
}

TEST(ProxyHeader, OfLocalAndOfAnUnknownFamilyTheClientIsWhoConnects) {
  for (const auto& bytes :
       {proxy_header(0x20, 0x00, ""), proxy_header(0x20, 0x11, std::string(12, 'x')),
        proxy_header(0x20, 0x77, "whatever"), proxy_header(0x21, 0x00, ""),
        proxy_header(0x21, 0x00, "what is not to be looked at")}) {
    const auto header = read_all(bytes);
    EXPECT_EQ(header.stage(), Stage::done) << header.refusal();
    EXPECT_FALSE(header.names_client());
  }
}

TEST(ProxyHeader, ExtensionsAreSkipped) {
  const auto tls = std::string{"\x20\x00\x05\x01\x00\x00\x00\x00", 8};
  const auto name = std::string{"\x02\x00\x04shop", 7};
  EXPECT_EQ(read_all(proxy_v4("203.0.113.7", tls + name)).client(), "203.0.113.7");
  EXPECT_EQ(read_all(proxy_v4("203.0.113.7", name.substr(0, 6))).stage(), Stage::refused);
  EXPECT_EQ(read_all(proxy_v4("203.0.113.7", "\x02")).stage(), Stage::refused);
}

TEST(ProxyHeader, WhatIsNoneIsRefused) {
  const auto fine = proxy_v4("203.0.113.7");
  const auto with = [&](std::size_t at, char byte) {
    auto bytes = fine;
    bytes[at] = byte;
    return bytes;
  };
  const std::pair<std::string, std::string_view> rows[] = {
      {"GET / HTTP/1.1\r\n", "no header"},
      {"PROXY TCP4 203.0.113.7 127.0.0.1 1 2\r\n", "version 1"},
      {"PROXY UNKNOWN\r\n\r\n", "version 1"},
      {"\x16\x03\x01\x02", "no header"},
      {with(11, 'x'), "no header"},
      {with(12, '\x11'), "another version"},
      {with(12, '\x31'), "another version"},
      {with(12, '\x22'), "command"},
      {with(13, '\x12'), "family"},  // UDP
      {with(13, '\x41'), "family"},
      {with(13, '\x01'), "family"},
      {with(13, '\x21'), "without its addresses"},
      {with(14, '\x20'), "too long"},
      {proxy_header(0x21, 0x11, std::string(11, 'x')), "without its addresses"}};
  for (const auto& [bytes, why] : rows) {
    const auto header = read_all(bytes);
    EXPECT_EQ(header.stage(), Stage::refused) << why;
    EXPECT_NE(header.refusal().find(why), std::string_view::npos) << header.refusal();
  }
}

TEST(ProxyHeader, WhereverItIsCutItIsTheSame) {
  for (const std::size_t most : {1, 2, 3, 7, 15, 16, 17, 27})
    EXPECT_EQ(read_all(proxy_v4("203.0.113.7"), most).client(), "203.0.113.7") << most;
  const auto whole = proxy_v6("2001:db8::7");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(read_all(whole.substr(0, size)).stage(), Stage::coming) << size;
}

// Whatever comes, it never wants more than a header can have, and ends.
TEST(ProxyHeader, HostileBytesAreRefusedOrAHeader) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random{seed};
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>{0, bound - 1}(random);
  };
  for (int round = 0; round < test::rounds(20'000); ++round) {
    auto bytes = below(2) ? proxy_v4("203.0.113.7", std::string(below(40), '\0'))
                          : proxy_v6("2001:db8::7", std::string(below(5000), '\xff'));
    for (auto changes = below(4); changes > 0; --changes)
      bytes[below(std::min<std::size_t>(bytes.size(), 64))] = static_cast<char>(below(256));
    bytes.resize(below(bytes.size() + 1));
    ProxyHeader header;
    std::size_t at = 0;
    while (at < bytes.size() && header.wants() > 0) {
      ASSERT_LE(header.wants(), 16U + 4096U);
      const auto size = std::min({header.wants(), bytes.size() - at, 1 + below(64)});
      header.read(std::string_view{bytes}.substr(at, size));
      at += size;
    }
    EXPECT_EQ(header.stage() == Stage::coming, header.wants() > 0);
    EXPECT_EQ(header.stage() == Stage::refused, !header.refusal().empty());
  }
}

ServerOptions behind_balancer() { return {.loops = 1, .proxy_protocol = {"127.0.0.0/8"}}; }

TEST(ProxyProtocol, TheClientIsWhomTheBalancerNames) {
  Serving serving{behind_balancer()};
  RawClient client{serving.port()};
  EXPECT_EQ(body_of(client.ask(proxy_v4("203.0.113.7") + get("/client"))), "203.0.113.7");
  EXPECT_EQ(body_of(client.ask(get("/client"))), "203.0.113.7") << "of all its requests";
  EXPECT_EQ(body_of(RawClient{serving.port()}.ask(proxy_header(0x20, 0, "") + get("/client"))), "")
      << "LOCAL counts for nobody";
}

TEST(ProxyProtocol, ByteByByteAndBehindIt) {
  Serving serving{behind_balancer()};
  RawClient client{serving.port()};
  for (const char byte : proxy_v6("2001:db8::7") + get("/client"))
    ASSERT_TRUE(client.send({&byte, 1}));
  EXPECT_EQ(body_of(client.answer()), "2001:db8::7");
}

TEST(ProxyProtocol, ItComesBeforeTls) {
  const test::Certificates certificates;
  auto options = behind_balancer();
  options.tls = net::TlsContext::for_server(
      {.certificate = certificates["server.pem"], .key = certificates["server.key"]});
  Serving serving{options};
  RawClient client{serving.port()};
  client.send(proxy_v4("203.0.113.7"));
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free};
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls{SSL_new(context.get()), &SSL_free};
  SSL_set_fd(tls.get(), client.descriptor());
  ASSERT_EQ(SSL_connect(tls.get()), 1);
  const auto request = get("/client");
  SSL_write(tls.get(), request.data(), static_cast<int>(request.size()));
  std::string answer;
  std::array<char, 1024> bytes;
  while (!answer.ends_with("203.0.113.7")) {
    const int got = SSL_read(tls.get(), bytes.data(), static_cast<int>(bytes.size()));
    ASSERT_GT(got, 0) << answer;
    answer.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

TEST(ProxyProtocol, FromABalancerNothingElseIsTaken) {
  Serving serving{behind_balancer()};
  for (const auto& bytes :
       {get("/hello"), std::string{"PROXY TCP4 203.0.113.7 127.0.0.1 1 2\r\n"} + get("/hello")}) {
    RawClient client{serving.port()};
    client.send(bytes);
    EXPECT_TRUE(client.is_closed());
  }
  EXPECT_TRUE(test::comes_true(
      [&] { return serving.metric("sluice_http_refused_total{cause=\"proxy_header\"}") == "2"; }));
  EXPECT_EQ(serving.metric("sluice_http_connections"), "0");
}

// Many look every few seconds, and would fill the log.
TEST(ProxyProtocol, ABalancerThatOnlyLooksWhetherWeListenIsNotTurnedAway) {
  Serving serving{behind_balancer()};
  for (int i = 0; i < 3; ++i) RawClient{serving.port()};
  RawClient{serving.port()}.send("\r\n\r");
  RawClient client{serving.port()};  // behind all of them: its loop is one
  EXPECT_EQ(body_of(client.ask(proxy_v4("203.0.113.7") + get("/client"))), "203.0.113.7");
  EXPECT_TRUE(test::comes_true(
      [&] { return serving.metric("sluice_http_refused_total{cause=\"proxy_header\"}") == "1"; }));
}

// Or anybody could say who he is.
TEST(ProxyProtocol, FromOthersItIsNoHttp) {
  Serving serving{{.loops = 1, .proxy_protocol = {"10.0.0.0/8"}}};
  EXPECT_EQ(status_of(RawClient{serving.port()}.ask(proxy_v4("203.0.113.7") + get("/client"))),
            400);
  EXPECT_EQ(body_of(RawClient{serving.port()}.ask(get("/client"))), "127.0.0.1");
}

TEST(ProxyProtocol, V39_AHeaderThatDoesNotComeIsNotWaitedForForEver) {
  VirtualClock clock;
  Serving serving{behind_balancer(), clock};
  RawClient silent{serving.port()};
  RawClient slow{serving.port()};
  slow.send(proxy_v4("203.0.113.7").substr(0, 20));
  EXPECT_TRUE(test::comes_true([&] {
    clock.advance(1s);
    return serving.metric("sluice_http_refused_total{cause=\"proxy_header\"}") == "2";
  }));
  EXPECT_TRUE(silent.is_closed());
  EXPECT_TRUE(slow.is_closed());
}

TEST(ProxyProtocol, LimitsOfConnectionsCountWhomItNames) {
  auto options = behind_balancer();
  options.limits.connections_of_a_client = 1;
  Serving serving{options};
  RawClient first{serving.port()};
  EXPECT_EQ(status_of(first.ask(proxy_v4("203.0.113.7") + get("/hello"))), 200);
  RawClient second{serving.port()};
  second.send(proxy_v4("203.0.113.7") + get("/hello"));
  EXPECT_TRUE(second.is_closed());
  RawClient other{serving.port()};
  EXPECT_EQ(status_of(other.ask(proxy_v4("203.0.113.8") + get("/hello"))), 200);
  // The balancer itself may connect as often as it likes.
  std::vector<RawClient> health;
  for (int i = 0; i < 3; ++i) {
    health.emplace_back(serving.port());
    EXPECT_EQ(status_of(health.back().ask(proxy_header(0x20, 0, "") + get("/livez"))), 200);
  }
}

TEST(ProxyProtocol, ConnectionsWithoutAHeaderHaveAPlaceEach) {
  auto options = behind_balancer();
  options.limits.connections = 2;
  Serving serving{options};
  RawClient first{serving.port()};
  EXPECT_EQ(status_of(first.ask(proxy_v4("203.0.113.7") + get("/hello"))), 200);
  RawClient silent{serving.port()};
  ASSERT_TRUE(test::comes_true([&] {
    RawClient third{serving.port()};
    third.send(proxy_v4("203.0.113.8") + get("/hello"));
    return third.is_closed();
  }));
  EXPECT_NE(serving.metric("sluice_http_refused_total{cause=\"connections\"}"), "0");
}

TEST(ProxyProtocol, AServerThatStopsClosesThem) {
  Serving serving{behind_balancer()};
  RawClient silent{serving.port()};
  serving.server.stop(200ms, 0s);
  EXPECT_TRUE(silent.is_closed());
}

}  // namespace
}  // namespace sluice::http
