// Limits of users and addresses, with real clients and servers. The clock stands still where tokens
// are counted.
#include <algorithm>
#include <atomic>
#include <thread>

#include "proxy/flow/two_servers.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/memcached.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;
using RateLimits = TwoServers;

const std::string refused =
    "-ERR rate limit of this user or address reached, nothing was done: try again later";
const Texts users{"users:", " - {name: calm, password: c}", " - {name: wild, password: w}"};

Texts with(Texts lines, const Texts& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

/// How many of so many requests, sent at once, are not refused.
std::size_t served(PlainClient& client, std::size_t asked, const std::string& line) {
  const auto replies = ask_all(client, Texts(asked, line));
  return asked - static_cast<std::size_t>(std::ranges::count(replies, refused));
}

TEST_F(RateLimits, AUserGetsItsBurstAndTheOtherIsUnharmed) {
  VirtualClock clock;
  ProxyUnderTest proxy{
      ports(), with({"rate_limit: {per_user: 100/s burst 200}"}, users), {"workers: 3"}, clock};
  std::vector<PlainClient> wild;  // on all workers
  std::size_t granted = 0;
  for (int i = 0; i < 12; ++i) {
    wild.emplace_back(proxy.port());
    granted += ask(wild.back(), "AUTH wild w") == "+OK" ? 0 : 1000;
  }
  PlainClient calm{proxy.port()};
  EXPECT_EQ(ask(calm, "AUTH calm c"), "+OK");
  for (auto& client : wild) granted += served(client, 100, "INCR wild");
  EXPECT_EQ(granted, 200U);
  EXPECT_EQ(served(calm, 200, "INCR calm"), 200U);
  auto first = direct(0), second = direct(1);
  EXPECT_TRUE(ask(first, "GET wild") == "$3 200" || ask(second, "GET wild") == "$3 200")
      << "what was refused was not done";
  proxy.pass(1s);
  EXPECT_EQ(served(wild[0], 150, "INCR wild"), 100U);
  EXPECT_EQ(totals(proxy).limited_requests, 12 * 100 - 200 + 50);
}

TEST_F(RateLimits, AHostileUserDoesNotHoldUpTheOther) {
  ProxyUnderTest proxy{ports(), with({"rate_limit: {per_user: 500/s}"}, users)};
  std::atomic<bool> done{false};
  std::atomic<std::size_t> attacks{0};
  std::thread hostile{[&] {
    PlainClient wild{proxy.port()};
    static_cast<void>(ask(wild, "AUTH wild w"));
    for (; !done; attacks += 100) static_cast<void>(served(wild, 100, "SET k wild"));
  }};
  PlainClient calm{proxy.port()};
  EXPECT_EQ(ask(calm, "AUTH calm c"), "+OK");
  EXPECT_TRUE(comes_true([&] { return attacks > 2000; }));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(ask(calm, "SET mine v"), "+OK");
  done = true;
  hostile.join();
  EXPECT_GT(totals(proxy).limited_requests, 0);
}

TEST_F(RateLimits, ARequestBeforeLoginAndAuthItselfCountForTheAddress) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), with({"rate_limit: {per_address: 20/s}"}, users), {}, clock};
  PlainClient stranger{proxy.port()};
  for (int i = 0; i < 9; ++i) EXPECT_EQ(ask(stranger, "GET k"), "-NOAUTH Authentication required.");
  EXPECT_EQ(ask(stranger, "AUTH calm c"), "+OK");
  EXPECT_EQ(served(stranger, 30, "GET k"), 10U);
  PlainClient other{proxy.port()};
  EXPECT_EQ(ask(other, "AUTH wild w"), refused) << "it comes from the same address";
  EXPECT_EQ(totals(proxy).limited_requests, 21);
}

TEST_F(RateLimits, ARequestOfSeveralKeysCountsAsThatMany) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {"rate_limit: {per_address: 10/s}"}, {}, clock};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "MGET a b c d"), "*4 _ _ _ _");
  EXPECT_EQ(ask(client, "MSET a 1 b 2 c 3"), "+OK");
  EXPECT_EQ(served(client, 20, "GET a"), 3U);
}

TEST_F(RateLimits, BytesCountWhereTheyAreLimited) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {"rate_limit: {bytes_per_address: 10kb/s}"}, {}, clock};
  PlainClient client{proxy.port()};
  const std::string value(4000, 'x');
  EXPECT_EQ(served(client, 5, "SET k " + value), 2U);
  proxy.pass(1s);
  EXPECT_EQ(served(client, 5, "SET k " + value), 2U);
}

TEST_F(RateLimits, ARefusedCommandAbortsTheTransactionAndExecIsNeverRefused) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {"rate_limit: {per_address: 3/s}"}, {}, clock};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k 1", "SET k 2", "SET k 3", "EXEC", "GET k"}),
            (Texts{"+OK", "+QUEUED", "+QUEUED", refused,
                   "-EXECABORT Transaction discarded because of previous errors.", refused}));
  proxy.pass(1s);
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k 1", "GET k", "EXEC"}),
            (Texts{"+OK", "+QUEUED", "+QUEUED", "*2 +OK $1 1"}));
}

TEST_F(RateLimits, ADelayedClientWaitsForItsTurnAndNobodyElseDoes) {
  VirtualClock clock;
  ProxyUnderTest proxy{
      ports(), with({"rate_limit: {per_user: 10/s, action: delay}"}, users), {}, clock};
  PlainClient wild{proxy.port()}, calm{proxy.port()};
  EXPECT_EQ(ask(wild, "AUTH wild w"), "+OK");
  EXPECT_EQ(ask(calm, "AUTH calm c"), "+OK");
  std::string bytes;
  for (int i = 0; i < 15; ++i) bytes += request("INCR wild");
  wild.send(bytes);
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(text_of(wild.read()), fmt::format(":{}", i));
  EXPECT_TRUE(comes_true([&] { return totals(proxy).delayed_requests == 1; }));
  EXPECT_EQ(ask(calm, "INCR calm"), ":1");
  proxy.pass(100ms);
  EXPECT_EQ(text_of(wild.read()), ":11");
  EXPECT_EQ(ask(calm, "INCR calm"), ":2");
  for (int i = 12; i <= 15; ++i) {
    const auto reply = read_as_time_passes(wild, proxy);
    ASSERT_TRUE(reply);
    EXPECT_EQ(text_of(*reply), fmt::format(":{}", i));
  }
  EXPECT_EQ(totals(proxy).limited_requests, 0);
}

TEST_F(RateLimits, OneWhoseTurnWouldComeTooLateIsRefused) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {"rate_limit: {per_address: 1/m, action: delay}"}, {}, clock};
  PlainClient client{proxy.port()};
  EXPECT_EQ(served(client, 5, "INCR k"), 1U);
}

TEST_F(RateLimits, AReloadChangesThemAtOnce) {
  VirtualClock clock;
  ProxyUnderTest proxy{ports(), {"rate_limit: {per_address: 10/s, action: delay}"}, {}, clock};
  PlainClient client{proxy.port()}, waiting{proxy.port()};
  EXPECT_EQ(served(client, 10, "INCR k"), 10U);
  waiting.send(request("INCR k"));
  EXPECT_TRUE(comes_true([&] { return totals(proxy).delayed_requests == 1; }));
  proxy.reload(ports(), {"rate_limit: {per_address: 10/s burst 5}"});
  EXPECT_EQ(text_of(waiting.read()), ":11") << "it was paid for";
  EXPECT_EQ(served(client, 20, "INCR k"), 5U);
  proxy.reload(ports(), {});
  EXPECT_EQ(served(client, 100, "INCR k"), 100U);
  proxy.reload(ports(), {"rate_limit: {per_address: 10/s}"});
  EXPECT_EQ(served(client, 100, "INCR k"), 10U) << "also of clients that were here before";
}

TEST(RateLimitsOfMemcached, ARefusedRequestWithNoreplyIsSilent) {
  Memcached server;
  VirtualClock clock;
  ProxyUnderTest proxy{
      PoolLines{{"rate_limit: {per_address: 3/s}", "servers:", " - " + server.address() + ":1"}},
      {},
      clock};
  const std::string error =
      "SERVER_ERROR rate limit of this address reached, nothing was done: try again later\r\n";
  const auto said = talk(proxy.port(),
                         "set k 0 0 1\r\n1\r\n"
                         "set k 0 0 1 noreply\r\n2\r\n"
                         "get k\r\n"
                         "set k 0 0 1 noreply\r\n3\r\n"
                         "set k 0 0 1\r\n4\r\n"
                         "mn\r\n"
                         "quit\r\n",
                         "");
  EXPECT_EQ(said.bytes, "STORED\r\nVALUE k 0 1\r\n2\r\nEND\r\n" + error + error);
}

}  // namespace
}  // namespace sluice::test
