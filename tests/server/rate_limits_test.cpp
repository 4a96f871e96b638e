// How often a buyer, or an address, may ask: on virtual time, and over HTTP.
#include "server/rate_limits.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.hpp"
#include "shop_fixture.hpp"
#include "sluice/clock.hpp"
#include "support/paths.hpp"

namespace sluice::server {
namespace {

/// How many of so many requests at once are let through.
int passed(RateTable& table, std::string_view name, int requests) {
  int passed = 0;
  for (int i = 0; i < requests; ++i) passed += !table.take(name);
  return passed;
}

TEST(RateTable, LetsAsManyThroughAsTheRateSays) {
  VirtualClock clock;
  RateTable table{clock, {.quota = 5, .window = 10s}};
  EXPECT_EQ(passed(table, "ann", 20), 5);
  EXPECT_EQ(passed(table, "bob", 20), 5);
  clock.advance(1999ms);
  EXPECT_EQ(passed(table, "ann", 20), 0);
  clock.advance(1ms);
  EXPECT_EQ(passed(table, "ann", 20), 1);
  clock.advance(1h);
  EXPECT_EQ(passed(table, "ann", 20), 5) << "and no more than a window's, however long it waited";
}

TEST(RateTable, WhoWaitsAsLongAsHeIsToldIsServed) {
  VirtualClock clock;
  RateTable table{clock, {.quota = 3, .window = 10s}};
  for (int i = 0; i < 100; ++i) {
    const auto wait = table.take("ann");
    if (!wait) continue;
    ASSERT_GT(*wait, 0ns);
    clock.advance(*wait - 1ns);
    EXPECT_TRUE(table.look("ann"));
    clock.advance(1ns);
    EXPECT_FALSE(table.take("ann"));
  }
}

TEST(RateTable, WhoAsksInTimeIsNeverRefused) {
  VirtualClock clock;
  RateTable table{clock, {.quota = 7, .window = 1s}};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(table.take("ann")) << i;
    clock.advance(std::chrono::nanoseconds{1s} / 7 + 1ns);
  }
}

TEST(RateTable, ALookCountsNothing) {
  VirtualClock clock;
  RateTable table{clock, {.quota = 1, .window = 1s}};
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(table.look("ann"));
  EXPECT_FALSE(table.take("ann"));
  EXPECT_TRUE(table.look("ann"));
}

// Wall time may be set as one likes; the steady clock alone counts.
TEST(RateTable, AClockThatIsSetChangesNothing) {
  VirtualClock clock;
  RateTable table{clock, {.quota = 5, .window = 10s}};
  EXPECT_EQ(passed(table, "ann", 20), 5);
  clock.jump_wall(24h);
  EXPECT_EQ(passed(table, "ann", 20), 0);
  clock.jump_wall(-48h);
  EXPECT_EQ(passed(table, "ann", 20), 0);
  clock.advance(10s);
  EXPECT_EQ(passed(table, "ann", 20), 5);
}

// A million names have asked once each: who asks all the time is still known, since only those
// that asked for as much push him out; and nobody is refused because of them.
TEST(RateTable, AFloodOfNamesFreesNobodyWhoAsksTooOften) {
  VirtualClock clock;
  RateTable table{clock, {.quota = 10, .window = 10s}, 4096};
  EXPECT_EQ(passed(table, "hammer", 20), 10);
  int refused = 0;
  for (int i = 0; i < 1'000'000; ++i) refused += table.take(std::to_string(i)).has_value();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(passed(table, "hammer", 20), 0);
  EXPECT_EQ(passed(table, "ann", 20), 10);
}

TEST(RateTable, ThreadsGetNoMoreTogether) {
  VirtualClock clock;
  RateTable table{clock, {.quota = 1000, .window = 10s}};
  std::atomic<int> all{0};
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 4; ++i) crew.emplace_back([&] { all += passed(table, "ann", 500); });
  }
  EXPECT_EQ(all, 1000);
}

class RateLimited : public ShopTest {
 protected:
  void begin_with(RateLimitOptions rates, std::vector<std::string> trusted = {}) {
    auto how = options();
    how.rates = rates;
    how.http.trusted = std::move(trusted);
    begin({tea(1000, 0)}, std::move(how));
  }
  Answer buy_as(std::string_view buyer, std::string_view forwarded_for) const {
    return ask(
        "POST", "/v1/sales/tea/orders",
        {{"Sluice-Buyer", buyer}, {"Idempotency-Key", "k"}, {"X-Forwarded-For", forwarded_for}});
  }
};

constexpr Rate few{.quota = 5, .window = 3600s};

TEST_F(RateLimited, ABuyerWhoAsksTooOftenIsToldWhenToComeBack) {
  begin_with({.buyer = few});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(buy("ann", "k").status, i == 0 ? 201 : 200);
  const auto refused = buy("ann", "k");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.problem(), "too-many-requests");
  EXPECT_TRUE(refused.has("RateLimit-Policy: \"buyer\";q=5;w=3600")) << refused.head;
  const auto at = refused.head.find("Retry-After: ");
  ASSERT_NE(at, std::string::npos);
  const auto after = std::stoi(refused.head.substr(at + 13));
  EXPECT_TRUE(refused.has(fmt::format("RateLimit: \"buyer\";r=0;t={}", after))) << refused.head;
  EXPECT_GT(after, 700) << "one in 720 s";
  EXPECT_LE(after, 720 + 1800);
  EXPECT_EQ(buy("bob", "k").status, 201) << "another buyer of the same address";
  EXPECT_EQ(ask("GET", "/v1/sales/tea").status, 200);
}

TEST_F(RateLimited, V38_ThoseWhoAreRefusedComeBackAtDifferentTimes) {
  begin_with({.buyer = {.quota = 1, .window = 3600s}});
  std::set<std::string> times;
  for (int i = 0; i < 20; ++i) {
    const auto name = fmt::format("b{}", i);
    EXPECT_EQ(buy(name, "k").status, 201);
    const auto head = buy(name, "k").head;
    const auto at = head.find("Retry-After: ");
    times.insert(head.substr(at, head.find('\r', at) - at));
  }
  EXPECT_GT(times.size(), 10U);
}

TEST_F(RateLimited, AnAddressIsCountedForAllItsBuyers) {
  begin_with({.client = few});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(buy(fmt::format("b{}", i), "k").status, 201);
  const auto refused = buy("eve", "k");
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.has("RateLimit-Policy: \"client\";q=5;w=3600")) << refused.head;
  EXPECT_EQ(ask("GET", "/v1/sales/tea").status, 429);
  EXPECT_EQ(ask("GET", "/v1/sales").status, 429);
  EXPECT_EQ(ask("GET", "/v1/sales/tea/events").status, 429);
  EXPECT_EQ(ask("GET", "/nothing").status, 404) << "a route comes first";
}

// Or one could try tokens for ever.
TEST_F(RateLimited, WhoDoesNotSayWhoHeIsIsCountedByHisAddress) {
  begin_with({.client = few});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(buy("", "k").status, 401);
  EXPECT_EQ(buy("", "k").status, 429);
}

// Each of them asks the store.
TEST_F(RateLimited, WhatEverybodyMaySeeIsCountedByTheAddress) {
  for (const auto* const path : {"/v1/sales", "/v1/sales/tea", "/v1/sales/tea/queue/draw",
                                 "/v1/sales/tea/events", "/sales/tea"}) {
    auto how = options();
    how.rates = {.buyer = {}, .client = few};
    how.rooms = {{.name = "tea"}};
    begin({tea(1000, 0)}, std::move(how));
    for (int i = 0; i < 5; ++i) ask("GET", "/v1/sales");
    EXPECT_EQ(ask("GET", path).status, 429) << path;
  }
}

TEST_F(RateLimited, BehindATrustedProxyTheClientIsWhomItNames) {
  begin_with({.client = few}, {"127.0.0.0/8"});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(buy_as("ann", "203.0.113.7").status, i == 0 ? 201 : 200);
  EXPECT_EQ(buy_as("ann", "203.0.113.7").status, 429);
  EXPECT_EQ(buy_as("ann", "203.0.113.8").status, 200);
  // The first /64 of IPv6 is one client, whatever its host calls itself.
  for (int i = 0; i < 5; ++i) EXPECT_EQ(buy_as("ann", fmt::format("2001:db8::{}", i)).status, 200);
  EXPECT_EQ(buy_as("ann", "2001:db8::ffff").status, 429);
  EXPECT_EQ(buy_as("ann", "2001:db8:0:1::1").status, 200);
  // A proxy that does not say for whom it asks is not one client.
  for (int i = 0; i < 10; ++i) EXPECT_EQ(buy("ann", "k").status, 200);
}

TEST_F(RateLimited, V46_AStrangersXForwardedForIsIgnored) {
  begin_with({.client = few});
  for (int i = 0; i < 5; ++i) EXPECT_NE(buy_as("ann", fmt::format("203.0.113.{}", i)).status, 429);
  EXPECT_EQ(buy_as("ann", "203.0.113.99").status, 429);
}

// One who hammers uses up his own rate, not that of those who share his address.
TEST_F(RateLimited, ABuyersRefusalsDoNotCountForHisAddress) {
  begin_with({.buyer = {.quota = 2, .window = 3600s}, .client = few});
  for (int i = 0; i < 20; ++i) buy("hammer", "k");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(buy(fmt::format("b{}", i), "k").status, 201);
  EXPECT_EQ(buy("late", "k").status, 429);
}

/// One request by a unix socket: what comes back until the server closes.
std::string ask_unix(const std::string& path, std::string_view forwarded_for) {
  const Descriptor socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return "no connection";
  const auto request = fmt::format(
      "GET /v1/sales/tea HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n"
      "X-Forwarded-For: {}\r\n\r\n",
      forwarded_for);
  static_cast<void>(::send(socket.number(), request.data(), request.size(), MSG_NOSIGNAL));
  std::string answer;
  char bytes[4096];
  for (;;) {
    const auto got = ::recv(socket.number(), bytes, sizeof bytes, 0);
    if (got <= 0) return answer;
    answer.append(bytes, static_cast<std::size_t>(got));
  }
}

// Nobody knows whose address it is: all buyers would be one.
TEST_F(RateLimited, ClientsOfAUnixSocketAreLimitedWhereTheirProxySaysForWhomItAsks) {
  for (const bool is_trusted : {false, true}) {
    auto how = options();
    how.rates = {.client = few};
    how.http.listen = {.host = {}, .port = 0, .unix_path = (folder_ / "socket").string()};
    if (is_trusted) how.http.trusted = {"unix"};
    begin({tea(10)}, std::move(how));
    int refused = 0;
    for (int i = 0; i < 10; ++i)
      refused += ask_unix((folder_ / "socket").string(), "203.0.113.7").starts_with("HTTP/1.1 429");
    EXPECT_EQ(refused, is_trusted ? 5 : 0);
    EXPECT_TRUE(ask_unix((folder_ / "socket").string(), "203.0.113.8").starts_with("HTTP/1.1 200"));
  }
}

TEST_F(RateLimited, MetricsOfTheServiceAreThoseOfTheDocuments) {
  begin_with({});
  buy("ann", "k");
  const auto text = test::ask(service_->health_port(), "GET", "/metrics").body;
  std::set<std::string> answered;
  std::set<std::string> written;
  const auto is_ours = [](const std::string& name) {
    return name.starts_with("sluice_http_") || name.starts_with("sluice_service_");
  };
  std::istringstream lines{text};
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("# TYPE ") && is_ours(line.substr(7)))
      answered.insert(line.substr(7, line.rfind(' ') - 7));
  std::ifstream document{test::source_path("docs/metrics.md")};
  for (std::string line; std::getline(document, line);)
    if (line.starts_with("| `") && is_ours(line.substr(3)))
      written.insert(line.substr(3, line.find('`', 3) - 3));
  EXPECT_EQ(written, answered);
}

TEST_F(RateLimited, ItIsCounted) {
  begin_with({.buyer = {.quota = 1, .window = 3600s}});
  for (int i = 0; i < 3; ++i) buy("ann", "k");
  const auto text = test::ask(service_->health_port(), "GET", "/metrics").body;
  EXPECT_NE(text.find("sluice_service_limited_total{by=\"buyer\"} 2\n"), text.npos);
  EXPECT_NE(text.find("sluice_service_limited_total{by=\"client\"} 0\n"), text.npos);
}

}  // namespace
}  // namespace sluice::server
