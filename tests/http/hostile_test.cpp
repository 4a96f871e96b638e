// What must not be understood, byte for byte (V41), what is too much (V43), and what is too slow
// (V39).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client.hpp"
#include "serving.hpp"
#include "sluice/clock.hpp"
#include "support/matchers.hpp"

namespace sluice::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct Hostile {
  const char* name;
  std::string bytes;
  int status;
};

/// Behind each of them stands a request that a server would answer which took the first one to end
/// elsewhere.
const std::string smuggled = get("/client");

std::vector<Hostile> hostile_requests() {
  const std::string host = "Host: test\r\n";
  const auto echo = [&](const std::string& fields, const std::string& body = {}) {
    return "POST /echo HTTP/1.1\r\n" + host + fields + "\r\n" + body;
  };
  return {
      {"CL and TE", echo("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
      {"TE and CL", echo("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"), 400},
      {"two CL", echo("Content-Length: 3\r\nContent-Length: 4\r\n", "abcd"), 400},
      {"two CL alike", echo("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), 400},
      {"list of CL", echo("Content-Length: 3, 3\r\n", "abc"), 400},
      {"CL with a sign", echo("Content-Length: +3\r\n", "abc"), 400},
      {"CL below zero", echo("Content-Length: -3\r\n", "abc"), 400},
      {"CL in hexadecimal", echo("Content-Length: 0x3\r\n", "abc"), 400},
      {"CL empty", echo("Content-Length:\r\n"), 400},
      {"CL beyond 64 bits", echo("Content-Length: 18446744073709551619\r\n", "abc"), 400},
      {"space before colon", echo("Content-Length : 3\r\n", "abc"), 400},
      {"tab before colon", echo("Content-Length\t: 3\r\n", "abc"), 400},
      {"space before name", "GET /hello HTTP/1.1\r\n Host: test\r\n\r\n", 400},
      {"bare LF in the head", "GET /hello HTTP/1.1\nHost: test\n\n", 400},
      {"bare LF at the end", "GET /hello HTTP/1.1\r\nHost: test\r\n\n", 400},
      {"bare CR", "GET /hello HTTP/1.1\r\nHost: test\rX: y\r\n\r\n", 400},
      {"obs-fold", "GET /hello HTTP/1.1\r\nHost: test\r\nX: a\r\n b\r\n\r\n", 400},
      {"obs-fold of CL", echo("Content-Length:\r\n 3\r\n", "abc"), 400},
      {"no Host", "GET /hello HTTP/1.1\r\n\r\n", 400},
      {"two Hosts", "GET /hello HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"two Hosts alike", "GET /hello HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400},
      {"Host with a path", "GET /hello HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
      {"Host with a blank", "GET /hello HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
      {"TE xchunked", echo("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), 501},
      {"TE gzip, chunked", echo("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501},
      {"TE chunked, identity", echo("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"), 501},
      {"two TE", echo("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
       400},
      {"TE with a vertical tab", echo("Transfer-Encoding: \vchunked\r\n", "0\r\n\r\n"), 400},
      {"TE in HTTP/1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"chunk size is no number", echo("Transfer-Encoding: chunked\r\n", "x\r\nabc\r\n0\r\n\r\n"),
       400},
      {"chunk size with 0x", echo("Transfer-Encoding: chunked\r\n", "0x3\r\nabc\r\n0\r\n\r\n"),
       400},
      {"chunk size overflows",
       echo("Transfer-Encoding: chunked\r\n", "10000000000000003\r\nabc\r\n0\r\n\r\n"), 400},
      {"chunk longer than it says",
       echo("Transfer-Encoding: chunked\r\n", "3\r\nabcd\r\n0\r\n\r\n"), 400},
      {"chunk ends with LF", echo("Transfer-Encoding: chunked\r\n", "3\nabc\r\n0\r\n\r\n"), 400},
      {"NUL in a value",
       "GET /hello HTTP/1.1\r\nHost: test\r\nX: a" + std::string(1, '\0') + "b\r\n\r\n", 400},
      {"NUL in the path", "GET /hel" + std::string(1, '\0') + "lo HTTP/1.1\r\nHost: test\r\n\r\n",
       400},
      {"field without a name", "GET /hello HTTP/1.1\r\nHost: test\r\n: x\r\n\r\n", 400},
      {"field without a colon", "GET /hello HTTP/1.1\r\nHost: test\r\nx\r\n\r\n", 400},
      {"a line that is too short", "GET / 1\r\n\r\n", 400},
      {"no version", "GET /hello\r\nHost: test\r\n\r\n", 400},
      {"HTTP/2.0", "GET /hello HTTP/2.0\r\nHost: test\r\n\r\n", 505},
      {"HTTP/1.2", "GET /hello HTTP/1.2\r\nHost: test\r\n\r\n", 505},
      {"lower case http", "GET /hello http/1.1\r\nHost: test\r\n\r\n", 505},
      {"two blanks", "GET  /hello HTTP/1.1\r\nHost: test\r\n\r\n", 400},
      {"asterisk", "OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n", 400},
      {"authority", "CONNECT test:443 HTTP/1.1\r\nHost: test\r\n\r\n", 400},
      {"user in the target", "GET http://me@test/hello HTTP/1.1\r\nHost: test\r\n\r\n", 400},
      {"fragment", "GET /hello#x HTTP/1.1\r\nHost: test\r\n\r\n", 400},
      {"another expectation", echo("Expect: wonders\r\nContent-Length: 3\r\n", "abc"), 417},
      {"TLS on a plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\n\n", 400},
      {"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
  };
}

TEST(HttpHostile, V41_IsRefusedAndTheConnectionEnds) {
  Serving serving{{.loops = 1}};
  for (const auto& [name, bytes, status] : hostile_requests()) {
    SCOPED_TRACE(name);
    RawClient client{serving.port()};
    const auto answer = client.ask(bytes + smuggled);
    EXPECT_EQ(status_of(answer), status) << answer;
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(answer, HasSubstr("Content-Type: application/problem+json\r\n"));
    EXPECT_TRUE(client.is_closed());
  }
  EXPECT_EQ(serving.metric("sluice_http_requests_total{route=\"client\",code=\"200\"}"), "");
}

TEST(HttpHostile, V41_WhatComesInPiecesIsTheSame) {
  Serving serving{{.loops = 1}};
  for (const auto& [name, bytes, status] : hostile_requests()) {
    SCOPED_TRACE(name);
    RawClient client{serving.port()};
    for (const char c : bytes) client.send({&c, 1});
    EXPECT_EQ(status_of(client.ask(smuggled)), status);
    EXPECT_TRUE(client.is_closed());
  }
}

TEST(HttpHostile, AGoodRequestBeforeIsAnswered) {
  Serving serving;
  RawClient client{serving.port()};
  client.send(get("/hello") + "GET /hello HTTP/1.1\r\n\r\n" + smuggled);
  EXPECT_EQ(body_of(client.answer()), "hello");
  EXPECT_EQ(status_of(client.answer()), 400);
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpHostile, V43_TooLargeIsRefusedWhileItComes) {
  Serving serving;
  const auto refused = [&](const std::string& bytes) {
    RawClient client{serving.port()};
    client.send(bytes);
    const auto answer = client.answer();
    EXPECT_TRUE(client.is_closed());
    return status_of(answer);
  };
  const std::string huge(std::size_t{16} << 20, 'x');
  EXPECT_EQ(refused(post("/echo", huge)), 413);
  EXPECT_EQ(
      refused("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n1000000\r\n" +
              huge),
      413);
  std::string chunks;
  for (int i = 0; i < 20; ++i) chunks += "3e8\r\n" + std::string(1000, 'x') + "\r\n";
  EXPECT_EQ(
      refused("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks),
      413);
  std::string fields;
  for (int i = 0; i < 10'000; ++i) fields += "A: b\r\n";
  EXPECT_EQ(refused(get("/hello", fields)), 431);
  fields.resize(6 * 64);
  EXPECT_EQ(refused(get("/hello", fields)), 431);  // with Host they are 65
  EXPECT_EQ(refused(get("/hello", "X: " + std::string(9000, 'x') + "\r\n")), 431);
  EXPECT_EQ(refused(get("/" + huge)), 431);
  EXPECT_EQ(
      refused("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3;" + huge),
      400);
  RawClient client{serving.port()};
  EXPECT_EQ(body_of(client.ask(post("/echo", huge.substr(0, 16 << 10)))).size(), 16 << 10);
  fields.resize(6 * 63);
  EXPECT_EQ(body_of(client.ask(get("/hello", fields))), "hello");
}

/// A server whose time stands still until it is told to move.
struct Timed {
  explicit Timed(Limits limits = {}) : serving({.loops = 1, .limits = limits}, clock) {}
  VirtualClock clock;
  Serving serving;
};

TEST(HttpHostile, V39_ASlowHeadIsEndedInTime) {
  Timed timed;
  RawClient client{timed.serving.port()};
  client.send("GET /hello HTTP/1.1\r\nHost: ");
  RawClient other{timed.serving.port()};
  EXPECT_EQ(body_of(other.ask(get("/hello"))), "hello");  // the first bytes are read by now
  timed.clock.advance(4s);
  client.send("x");
  EXPECT_EQ(body_of(other.ask(get("/hello"))), "hello");
  EXPECT_FALSE(client.has_input());
  timed.clock.advance(1100ms);
  EXPECT_EQ(status_of(client.answer()), 408);
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(body_of(other.ask(get("/hello"))), "hello");
  EXPECT_EQ(timed.serving.metric("sluice_http_refused_total{cause=\"timeout\"}"), "1");
}

TEST(HttpHostile, V39_ASlowBodyIsEndedInTime) {
  Timed timed;
  RawClient client{timed.serving.port()};
  client.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\nab");
  RawClient other{timed.serving.port()};
  EXPECT_EQ(body_of(other.ask(get("/hello"))), "hello");
  timed.clock.advance(4s);
  client.send("c");
  EXPECT_EQ(body_of(other.ask(get("/hello"))), "hello");
  timed.clock.advance(1100ms);
  EXPECT_EQ(status_of(client.answer()), 408);
  EXPECT_TRUE(client.is_closed());
}

TEST(HttpHostile, V39_AnIdleClientIsClosedAndAnActiveOneStays) {
  Timed timed;
  RawClient idle{timed.serving.port()};
  RawClient active{timed.serving.port()};
  EXPECT_EQ(body_of(idle.ask(get("/hello"))), "hello");
  EXPECT_EQ(body_of(active.ask(get("/hello"))), "hello");
  timed.clock.advance(40s);
  EXPECT_EQ(body_of(active.ask(get("/hello"))), "hello");
  timed.clock.advance(21s);
  EXPECT_TRUE(idle.is_closed());
  EXPECT_EQ(body_of(active.ask(get("/hello"))), "hello");
}

TEST(HttpHostile, V39_AReaderThatDoesNotReadIsDropped) {
  Timed timed;
  RawClient client{timed.serving.port(), nullptr, 4096};
  // More than the buffers of the kernel take: the server has unsent bytes, and reads no more.
  std::string asked;
  for (int i = 0; i < 1000; ++i) asked += get("/large");
  client.send(asked);
  const auto count = [&] {
    return timed.serving.metric("sluice_http_requests_total{route=\"large\",code=\"200\"}");
  };
  std::string before = "-";
  ASSERT_TRUE(test::comes_true([&] {
    RawClient other{timed.serving.port()};
    other.ask(get("/hello"));
    return std::exchange(before, count()) == before && !before.empty();
  }));
  EXPECT_LT(std::stoi(before), 1000);
  timed.clock.advance(31s);
  ASSERT_TRUE(test::comes_true([&] {
    return timed.serving.metric("sluice_http_refused_total{cause=\"slow_reader\"}") == "1";
  }));
}

/// What the kernel holds of this server's answers, in bytes, of connections whatever their state.
std::size_t unsent_in_kernel(std::uint16_t port) {
  std::ifstream table{"/proc/net/tcp"};
  std::string line;
  std::size_t bytes = 0;
  const auto ours = fmt::format("0100007F:{:04X}", port);
  while (std::getline(table, line)) {
    std::istringstream words{line};
    std::string number, local, remote, state, queues;
    words >> number >> local >> remote >> state >> queues;
    if (local == ours && state != "0A") bytes += std::stoul(queues.substr(0, 8), nullptr, 16);
  }
  return bytes;
}

// The kernel takes megabytes for each client that does not read, and keeps what is left of it for
// minutes after the end.
TEST(HttpHostile, V39_AReaderThatDoesNotReadHoldsLittleOfTheKernelAndNothingAfterItsEnd) {
  Timed timed;
  RawClient client{timed.serving.port(), nullptr, 128 << 10};
  std::string asked;
  for (int i = 0; i < 400; ++i) asked += get("/large");
  client.send(asked);
  const auto port = timed.serving.port();
  std::size_t before = 0;
  ASSERT_TRUE(test::comes_true([&] {
    RawClient other{port};
    other.ask(get("/hello"));
    return std::exchange(before, unsent_in_kernel(port)) == before && before > 0;
  }));
  EXPECT_LT(before, 512U << 10);
  EXPECT_TRUE(test::comes_true([&] {
    timed.clock.advance(31s);  // again where the server was only now about to wait
    return unsent_in_kernel(port) == 0;
  }));
}

// All that it did not read lies with the kernel: to the server it is idle.
TEST(HttpHostile, V39_SoDoesAnIdleOneThatHasNotTakenItsAnswer) {
  Timed timed;
  RawClient client{timed.serving.port(), nullptr, 4096};
  client.send(get("/large"));
  const auto port = timed.serving.port();
  ASSERT_TRUE(test::comes_true([&] { return unsent_in_kernel(port) > 0; }));
  EXPECT_TRUE(test::comes_true([&] {
    timed.clock.advance(61s);
    return unsent_in_kernel(port) == 0;
  }));
}

}  // namespace
}  // namespace sluice::http
