// Reads that are asked once more when their connection breaks.
#include "proxy/flow/two_servers.hpp"
#include "support/fault_proxy.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;

/// Two servers, each behind something that breaks connections.
class Retries : public TwoServers {
 protected:
  std::vector<std::uint16_t> fragile() const { return {one_.port(), other_.port()}; }
  static bool is_loss(const std::string& reply) {
    return reply == "-ERR unknown" || reply == "-ERR Connection reset by peer";
  }

  FaultProxy one_{servers_[0]->port()};
  FaultProxy other_{servers_[1]->port()};
};

TEST_F(Retries, AReadWhoseReplyWasCutIsAskedAgain) {
  ProxyUnderTest proxy{fragile(), {"retry_reads: true"}};
  PlainClient client{proxy.port()};
  const auto key = proxy.key_at(0);
  EXPECT_EQ(ask(client, "SET " + key + " value"), "+OK");
  for (std::size_t bytes = 0; bytes < 11; ++bytes) {  // "$5\r\nvalue\r\n"
    one_.on(reply_to("GET"), {.fault = LineFault::cut, .bytes = bytes});
    EXPECT_EQ(ask(client, "GET " + key), "$5 value");
  }
  EXPECT_EQ(totals(proxy).retries, 11);
}

TEST_F(Retries, OnlyWhenToldTo) {
  ProxyUnderTest proxy{fragile()};
  PlainClient client{proxy.port()};
  one_.on(reply_to("GET"), {.fault = LineFault::cut});
  const auto reply = ask(client, "GET " + proxy.key_at(0));
  EXPECT_TRUE(is_loss(reply)) << reply;
  EXPECT_EQ(totals(proxy).retries, 0);
}

TEST_F(Retries, OnlyOnce) {
  ProxyUnderTest proxy{fragile(), {"retry_reads: true"}};
  PlainClient client{proxy.port()};
  const auto cut = one_.on(reply_to("GET"), {.fault = LineFault::cut, .times = Deed::always});
  const auto reply = ask(client, "GET " + proxy.key_at(0));
  EXPECT_TRUE(is_loss(reply)) << reply;
  EXPECT_EQ(one_.hits(cut), 2U);
}

TEST_F(Retries, NeverAWrite) {
  ProxyUnderTest proxy{fragile(), {"retry_reads: true"}};
  PlainClient client{proxy.port()};
  const auto key = proxy.key_at(0);
  one_.on(reply_to("INCR"), {.fault = LineFault::cut});
  const auto reply = ask(client, "INCR " + key);
  EXPECT_TRUE(is_loss(reply)) << reply;
  EXPECT_EQ(ask(client, "GET " + key), "$1 1");  // it was done, and once
}

TEST_F(Retries, ReadsInAPipelineInTheirOrder) {
  ProxyUnderTest proxy{fragile(), {"retry_reads: true"}};
  PlainClient client{proxy.port()};
  Texts asked, expected;
  for (int i = 0; i < 50; ++i) {
    const auto key = proxy.key_at(static_cast<std::size_t>(i % 2), "p" + std::to_string(i) + ":");
    EXPECT_EQ(ask(client, "SET " + key + " " + std::to_string(10 + i)), "+OK");
    asked.push_back("GET " + key);
    expected.push_back("$2 " + std::to_string(10 + i));
  }
  one_.on(reply_to("GET"), {.fault = LineFault::cut, .bytes = 3, .skip = 7});
  other_.on(reply_to("GET"), {.fault = LineFault::cut, .skip = 11});
  EXPECT_EQ(ask_all(client, asked), expected);
  EXPECT_EQ(totals(proxy).retries, (25 - 7) + (25 - 11));
}

TEST_F(Retries, NotAReadThatWouldSeeAWriteBehindIt) {
  ProxyUnderTest proxy{fragile(), {"retry_reads: true"}};
  PlainClient client{proxy.port()};
  const auto key = proxy.key_at(0);
  EXPECT_EQ(ask(client, "SET " + key + " before"), "+OK");
  one_.on(reply_to("GET"), {.fault = LineFault::cut});
  const auto replies = ask_all(client, {"GET " + key, "SET " + key + " after", "GET " + key});
  EXPECT_TRUE(is_loss(replies[0])) << replies[0];
  EXPECT_TRUE(is_loss(replies[1])) << replies[1];
  EXPECT_TRUE(replies[2] == "$5 after" || replies[2] == "$6 before") << replies[2];
}

TEST_F(Retries, Fragments) {
  ProxyUnderTest proxy{fragile(), {"retry_reads: true"}};
  PlainClient client{proxy.port()};
  const auto a = proxy.key_at(0), b = proxy.key_at(1);
  EXPECT_EQ(ask(client, "MSET " + a + " 1 " + b + " 2"), "+OK");
  one_.on(reply_to("MGET"), {.fault = LineFault::cut, .bytes = 5});
  EXPECT_EQ(ask(client, "MGET " + a + " " + b), "*2 $1 1 $1 2");
  other_.on(reply_to("DBSIZE"), {.fault = LineFault::cut});
  EXPECT_EQ(ask(client, "DBSIZE"), ":2");
  one_.on(reply_to("SCAN"), {.fault = LineFault::cut, .bytes = 5});
  EXPECT_TRUE(ask(client, "SCAN 0").ends_with(" *1 $" + std::to_string(a.size()) + " " + a));
  EXPECT_EQ(totals(proxy).retries, 3);
  one_.on(reply_to("DEL"), {.fault = LineFault::cut});
  const auto reply = ask(client, "DEL " + a + " " + b);
  EXPECT_TRUE(is_loss(reply)) << reply;
  EXPECT_EQ(totals(proxy).retries, 3);
}

TEST_F(Retries, NotOfWhatTookTooLong) {
  ProxyUnderTest proxy{fragile(), {"retry_reads: true", "timeout: 100"}};
  PlainClient client{proxy.port()};
  one_.on(reply_to("GET"), {.fault = LineFault::hold});
  EXPECT_EQ(ask(client, "GET " + proxy.key_at(0)), "-ERR Connection timed out");
  EXPECT_EQ(totals(proxy).retries, 0);
}

TEST_F(Retries, PartialRepliesHaveAnErrorForEachKeyThatHasNoValue) {
  ProxyUnderTest proxy{fragile(), {"partial_replies: true"}};
  PlainClient client{proxy.port()};
  const auto a = proxy.key_at(0), b = proxy.key_at(1), c = proxy.key_at(0, "other");
  EXPECT_EQ(ask(client, "MSET " + a + " 1 " + b + " 2 " + c + " 3"), "+OK");
  one_.set_door(FaultProxy::Door::closed);
  one_.cut();
  ASSERT_TRUE(comes_true([&] { return totals(proxy, 0).server_connections == 0; }));
  EXPECT_EQ(ask(client, "MGET " + a + " " + b + " " + c),
            "*3 -ERR Connection refused $1 2 -ERR Connection refused");
  EXPECT_EQ(ask(client, "MSET " + a + " 1 " + b + " 2"), "-ERR Connection refused");
}

}  // namespace
}  // namespace sluice::test
