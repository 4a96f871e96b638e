// Other servers are asked within limits, whatever they do, and no way leads into private networks.
#include "server/http_client.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <map>

#include "http/serving.hpp"
#include "server/public_address.hpp"
#include "server/raw_server.hpp"
#include "sluice/error.hpp"
#include "support/certificates.hpp"
#include "support/comes_true.hpp"
#include "support/silent_port.hpp"

namespace sluice::server {
namespace {

using namespace std::chrono_literals;
using test::RawServer;

HttpClientOptions on_this_machine() { return {.allows_private = true}; }

std::string url_of(std::uint16_t port, std::string_view path) {
  return fmt::format("http://127.0.0.1:{}{}", port, path);
}

/// What it failed with.
Error failure_of(HttpClient& client, const std::string& url) {
  try {
    client.post(url, {}, "x");
  } catch (const Error& failure) {
    return failure;
  }
  ADD_FAILURE() << url << " was asked";
  return {Errc::closed, ""};
}

sockaddr_storage address_of(const std::string& text) {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  if (::inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1)
    v4.sin_family = AF_INET;
  else if (::inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1)
    v6.sin6_family = AF_INET6;
  else
    ADD_FAILURE() << text;
  return storage;
}

bool is_public_text(const std::string& text) {
  const auto address = address_of(text);
  return is_public(reinterpret_cast<const sockaddr*>(&address));
}

TEST(PublicAddress, V49_WhatIsNotOfTheInternetIsNotPublic) {
  for (const char* const text :
       {"0.0.0.0", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.168.1.1", "198.19.0.1",
        "203.0.113.7", "224.0.0.1", "239.1.2.3", "240.0.0.1", "255.255.255.255"})
    EXPECT_FALSE(is_public_text(text)) << text;
  for (const char* const text :
       {"::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b:1::1", "2002:7f00:1::1", "2002:0a00:1::", "2001::1", "2001:db8::1", "3fff::1",
        "fc00::1", "fd12:3456::1", "fe80::1", "fec0::1", "ff02::1", "100::1", "4000::1"})
    EXPECT_FALSE(is_public_text(text)) << text;
  for (const char* const text :
       {"1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "126.0.0.1", "128.0.0.1",
        "172.15.0.1", "172.32.0.1", "192.167.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255",
        "2606:4700::1111", "2a00:1450:4001::1", "2003::1"})
    EXPECT_TRUE(is_public_text(text)) << text;
  const sockaddr unix{.sa_family = AF_UNIX, .sa_data = {}};
  EXPECT_FALSE(is_public(&unix));
}

TEST(HttpClient, AsksAndGetsAnAnswerOnAConnectionThatItKeeps) {
  http::Serving serving;
  HttpClient client{on_this_machine()};
  for (int i = 0; i < 3; ++i) {
    const auto posted = client.post(url_of(serving.port(), "/echo"), {{"X-One", "1"}}, "body");
    EXPECT_EQ(posted.status, 200);
    EXPECT_EQ(posted.body, "body");
    EXPECT_FALSE(posted.is_cut);
  }
  EXPECT_EQ(client.get(url_of(serving.port(), "/hello")).body, "hello");
  EXPECT_EQ(client.get(url_of(serving.port(), "/nothing")).status, 404);
  EXPECT_EQ(serving.metric("sluice_http_connections"), "1") << serving.server.metrics();
}

TEST(HttpClient, SendsFieldsAndBodyAsTheyAre) {
  std::string got;
  RawServer server{[&](const std::string& request) {
    got = request;
    return RawServer::Script{"HTTP/1.1 204 No Content\r\n\r\n"};
  }};
  HttpClient client{on_this_machine()};
  const std::string body = "a\0b", large(300'000, 'x');
  EXPECT_EQ(
      client.post(server.url("/in?q=1"), {{"webhook-id", "m.1"}}, std::string{"a\0b", 3}).status,
      204);
  EXPECT_TRUE(got.starts_with("POST /in?q=1 HTTP/1.1\r\n")) << got;
  EXPECT_NE(got.find("\r\nwebhook-id: m.1\r\n"), got.npos) << got;
  EXPECT_TRUE(got.ends_with(std::string{"\r\n\r\na\0b", 7})) << got;
  EXPECT_EQ(got.find("Expect"), got.npos);
  EXPECT_EQ(client.post(server.url(), {}, large).status, 204);
  EXPECT_TRUE(got.ends_with(large));
}

TEST(HttpClient, ReadsHowLongToWait) {
  std::string field;
  RawServer server{[&](const std::string&) {
    return RawServer::Script{"HTTP/1.1 503 Busy\r\n" + field + "Content-Length: 0\r\n\r\n"};
  }};
  HttpClient client{on_this_machine()};
  const auto wait = [&](std::string line) {
    field = std::move(line);
    return client.get(server.url()).retry_after;
  };
  EXPECT_EQ(wait(""), 0s);
  EXPECT_EQ(wait("Retry-After: 120\r\n"), 120s);
  EXPECT_GT(wait("retry-after: Fri, 31 Dec 2100 23:59:59 GMT\r\n"), 24h);
  EXPECT_EQ(wait("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n"), 0s);
  EXPECT_EQ(wait("Retry-After: soon\r\n"), 0s);
  EXPECT_EQ(wait("Retry-After: -5\r\n"), 0s);
  EXPECT_GE(wait("Retry-After: 99999999999999999999999\r\n"), 0s);
}

TEST(HttpClient, V49_PrivateAddressesAreRefusedHoweverTheyAreWritten) {
  RawServer server{[](const std::string&) { return RawServer::Script{"HTTP/1.1 200 OK\r\n\r\n"}; }};
  HttpClient client;
  for (const char* const host :
       {"127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0",
        "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]",
        "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "127.0.0.1."}) {
    const auto failure = failure_of(client, fmt::format("http://{}:{}/", host, server.port()));
    EXPECT_EQ(failure.errc(), Errc::connection) << host;
    EXPECT_EQ(failure.effect(), Effect::none) << host;
  }
  EXPECT_NE(failure_of(client, server.url()).message().find("127.0.0.1 is no public address"),
            std::string::npos);
  EXPECT_EQ(server.asked(), 0);
}

// Whoever checks the name first asks its resolver, and the connection asks it once more.
TEST(HttpClient, V49_ANameThatTurnsPrivateIsRefused) {
  RawServer server{[](const std::string&) { return RawServer::Script{"HTTP/1.1 200 OK\r\n\r\n"}; }};
  for (const char* const address : {"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "10.1.2.3"}) {
    HttpClient client{{.resolve = {fmt::format("shop.example:{}:{}", server.port(), address)}}};
    const auto url = fmt::format("http://shop.example:{}/", server.port());
    EXPECT_FALSE(is_private_by_its_text(url));
    EXPECT_NE(failure_of(client, url).message().find("is no public address"), std::string::npos);
  }
  EXPECT_EQ(server.asked(), 0);
}

TEST(HttpClient, V49_ARedirectIsNotFollowed) {
  RawServer inside{[](const std::string&) { return RawServer::Script{"HTTP/1.1 200 OK\r\n\r\n"}; }};
  RawServer server{[&](const std::string&) {
    return RawServer::Script{fmt::format(
        "HTTP/1.1 307 Over There\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", inside.url())};
  }};
  HttpClient client{on_this_machine()};
  EXPECT_EQ(client.post(server.url(), {}, "x").status, 307);
  EXPECT_EQ(inside.asked(), 0);
}

TEST(HttpClient, AProxyOfTheEnvironmentIsNotAsked) {
  RawServer proxy{[](const std::string&) { return RawServer::Script{"HTTP/1.1 200 OK\r\n\r\n"}; }};
  ::setenv("http_proxy", proxy.url().c_str(), 1);
  http::Serving serving;
  HttpClient client{on_this_machine()};
  EXPECT_EQ(client.get(url_of(serving.port(), "/hello")).body, "hello");
  ::unsetenv("http_proxy");
  EXPECT_EQ(proxy.asked(), 0);
}

TEST(HttpClient, AnAnswerWithoutEndIsCut) {
  RawServer server{[](const std::string&) {
    return RawServer::Script{
        .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n" + std::string(1 << 20, 'x'),
        .repeats = true};
  }};
  HttpClient client{on_this_machine()};
  const auto answer = client.post(server.url(), {}, "x");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.is_cut);
  EXPECT_EQ(answer.body.size(), 64U << 10);
  EXPECT_EQ(client.post(server.url(), {}, "x").status, 200) << "and once more";
}

TEST(HttpClient, FieldsWithoutEndAreRefused) {
  for (const char* const endless : {"X: 1234567890\r\n", "HTTP/1.1 100 Continue\r\n\r\n"}) {
    RawServer server{[&](const std::string&) {
      return RawServer::Script{.bytes = std::string{"HTTP/1.1 200 OK\r\n"}.substr(
                                            0, *endless == 'X' ? std::string::npos : 0) +
                                        endless,
                               .repeats = true};
    }};
    HttpClient client{on_this_machine()};
    const auto failure = failure_of(client, server.url());
    EXPECT_EQ(failure.errc(), Errc::connection) << failure.message();
    EXPECT_EQ(failure.effect(), Effect::unknown);
  }
}

TEST(HttpClient, WhoIsSlowIsLeft) {
  auto options = on_this_machine();
  options.whole = 300ms;
  HttpClient client{options};
  for (const char* const begun : {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nX: ",
                                  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"}) {
    RawServer server{
        [&](const std::string&) { return RawServer::Script{.bytes = begun, .closes = false}; }};
    const auto failure = failure_of(client, server.url());
    EXPECT_EQ(failure.errc(), Errc::timeout) << failure.message();
  }
  options.connect = 300ms;
  options.whole = 15s;
  HttpClient other{options};
  const test::SilentPort silent;
  const auto failure = failure_of(other, url_of(silent.port(), "/"));
  EXPECT_EQ(failure.errc(), Errc::timeout) << failure.message();
  EXPECT_EQ(failure.effect(), Effect::none);
}

TEST(HttpClient, GarbageIsNoAnswer) {
  for (const auto& bytes :
       {std::string{"nothing of the kind\r\n\r\n"}, std::string(5000, '\0'), std::string{},
        std::string{"HTTP/1.1 OK\r\n\r\n"}, std::string{"HTTP/7.7 200 OK\r\n\r\n"},
        std::string{"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\n"},
        std::string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
        std::string{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"}}) {
    RawServer server{[&](const std::string&) { return RawServer::Script{bytes}; }};
    HttpClient client{on_this_machine()};
    EXPECT_EQ(failure_of(client, server.url()).errc(), Errc::connection) << bytes.substr(0, 40);
  }
}

TEST(HttpClient, ACertificateIsVerified) {
  const test::Certificates certificates;
  http::Serving serving{
      {.tls = net::TlsContext::for_server(
           {.certificate = certificates["server.pem"], .key = certificates["server.key"]})}};
  const auto url = fmt::format("https://localhost:{}/hello", serving.port());
  HttpClient stranger{on_this_machine()};
  const auto failure = failure_of(stranger, url);
  EXPECT_EQ(failure.errc(), Errc::authentication) << failure.message();
  auto options = on_this_machine();
  options.authority = certificates["ca.pem"];
  options.resolve = {fmt::format("shop.example:{}:127.0.0.1", serving.port())};
  HttpClient knows{options};
  EXPECT_EQ(knows.get(url).body, "hello");
  EXPECT_EQ(failure_of(knows, fmt::format("https://shop.example:{}/hello", serving.port())).errc(),
            Errc::authentication);
}

TEST(HttpClient, StopEndsWhatIsUnderWay) {
  RawServer server{
      [](const std::string&) { return RawServer::Script{.bytes = "HTTP/1.1", .closes = false}; }};
  auto options = on_this_machine();
  options.whole = 600s;
  options.after_stop = 1ms;
  HttpClient client{options};
  std::jthread stopper{[&] {
    EXPECT_TRUE(test::comes_true([&] { return server.asked() == 1; }));
    client.stop();
  }};
  const auto failure = failure_of(client, server.url());
  EXPECT_EQ(failure.errc(), Errc::closed) << failure.message();
  EXPECT_EQ(failure_of(client, server.url()).errc(), Errc::closed) << "and nothing more is asked";
  EXPECT_EQ(server.asked(), 1);
}

TEST(HttpClient, WhatIsNoUrlIsRefusedWithAWord) {
  for (const char* const url :
       {"", "shop", "ftp://shop.example/", "file:///etc/passwd", "http://", "http://user@shop/",
        "http://user:pass@shop/", "http://shop/#part", "http://shop/a b", "http://shop/\r\nX: 1",
        "http://shop:99999/", "gopher://x/", "//shop/x", "http://[::1/"})
    EXPECT_THROW(check_http_url(url), Error) << url;
  EXPECT_THROW(check_http_url("http://shop/" + std::string(2000, 'x')), Error);
  for (const char* const url : {"http://shop.example", "https://shop.example:8443/in?token=1",
                                "http://[::1]:80/", "http://127.0.0.1:8080/x"})
    EXPECT_NO_THROW(check_http_url(url)) << url;
}

TEST(HttpClient, WhatIsShownOfAUrlHasNoSecrets) {
  EXPECT_EQ(origin_of("https://shop.example:8443/in/TOKEN?key=SECRET"),
            "https://shop.example:8443");
  HttpClient client;
  EXPECT_EQ(failure_of(client, "http://127.0.0.1:9/TOKEN?key=SECRET").message().find("SECRET"),
            std::string::npos);
  for (const char* const url : {"http://localhost/", "http://x.localhost/", "http://10.0.0.1/",
                                "http://[::1]/", "http://[fd00::1]/"})
    EXPECT_TRUE(is_private_by_its_text(url)) << url;
  for (const char* const url :
       {"http://shop.example/", "http://8.8.8.8/", "http://[2606:4700::1]/"})
    EXPECT_FALSE(is_private_by_its_text(url)) << url;
}

}  // namespace
}  // namespace sluice::server
