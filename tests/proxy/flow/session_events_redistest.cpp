// What a client has begun, and what happens meanwhile: a beginning of what it means is done, or it
// is told clearly that nothing is.
#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;

class SessionEvents : public TwoServers {
 protected:
  static std::string everywhere(const std::string& line) {
    auto first = direct(0), second = direct(1);
    return ask(first, line) + " " + ask(second, line);
  }
  static bool somebody_is_blocked() {
    auto first = direct(0), second = direct(1);
    return info_of(first, "blocked_clients") == "1" || info_of(second, "blocked_clients") == "1";
  }
};

// The i-th request of a pipeline is refused by a rate limit, for every i.
TEST_F(SessionEvents, PX03_ALimitLeavesWhatFollowsAsItIsMeant) {
  const std::vector<Texts> sessions{
      {"MULTI", "INCR k", "INCR k", "INCR k", "EXEC"},
      {"SELECT 3", "INCR k", "INCR k"},
      {"WATCH k", "MULTI", "INCR k", "INCR k", "EXEC"},
      {"AUTH guest g", "INCR k", "INCR k"},
      {"CLIENT REPLY ON", "INCR k"},
  };
  for (std::size_t which = 0; which < sessions.size(); ++which) {
    const auto& session = sessions[which];
    for (std::size_t free = 0; free <= session.size(); ++free) {
      everywhere("FLUSHALL");
      ProxyUnderTest proxy{ports(),
                           {"rate_limit: {per_user: 50/s burst " + std::to_string(free + 1) + "}",
                            "users:", " - {name: app, password: a}",
                            " - {name: guest, password: g, read_only: true}"}};
      PlainClient client{proxy.port()};
      EXPECT_EQ(ask(client, "AUTH app a"), "+OK");
      ask(client, "GET k");  // one of the burst
      for (const auto& line : session) client.send(request(line));
      Texts replies;
      for (std::size_t i = 0; i < session.size(); ++i) replies.push_back(text_of(client.read()));
      const bool is_done = replies.back().find("rate limit") == std::string::npos;
      SCOPED_TRACE(std::to_string(which) + ", " + std::to_string(free) + " free");
      const auto in_zero = everywhere("GET k");
      if (which == 0 || which == 2) {  // all or nothing
        EXPECT_TRUE(in_zero == "_ _" || in_zero == "$1 3 _" || in_zero == "_ $1 3" ||
                    in_zero == "$1 2 _" || in_zero == "_ $1 2")
            << in_zero;
        EXPECT_EQ(in_zero == "_ _", !is_done || replies.back().starts_with("-EXECABORT"))
            << replies.back();
      } else if (which == 1) {
        EXPECT_EQ(in_zero, "_ _") << "database 0 was not meant";
      } else if (which == 3) {
        EXPECT_EQ(in_zero, "_ _") << "by the user before";
      }
    }
  }
}

TEST_F(SessionEvents, PX05_ATransactionWhoseKeyGetsAnotherHomeIsNotDoneAtTheOldOne) {
  for (const bool watches : {false, true}) {
    ProxyUnderTest proxy{ports()};
    const auto moving = proxy.key_at(0), staying = proxy.key_at(1);
    PlainClient client{proxy.port()}, other{proxy.port()};
    if (watches) EXPECT_EQ(ask(client, "WATCH " + moving), "+OK");
    EXPECT_EQ(ask(client, "MULTI"), "+OK");
    if (!watches) EXPECT_EQ(ask(client, "SET " + moving + " x"), "+QUEUED");
    EXPECT_EQ(ask_all(other, {"MULTI", "SET " + staying + " x"}), (Texts{"+OK", "+QUEUED"}));
    proxy.reload({ports()[1]});
    if (watches) {
      const auto queued = ask(client, "SET " + moving + " x");
      EXPECT_EQ(queued.front(), '-') << queued;
    }
    EXPECT_EQ(ask(client, "EXEC").substr(0, 10), "-EXECABORT");
    EXPECT_EQ(everywhere("GET " + moving), "_ _");
    EXPECT_EQ(ask(other, "EXEC"), "*1 +OK") << "its home is the same";
    EXPECT_EQ(ask_all(client, {"MULTI", "SET " + moving + " y", "EXEC"}).back(), "*1 +OK");
    everywhere("FLUSHALL");
  }
}

TEST_F(SessionEvents, PX04_AClientThatWaitsHearsThatItsKeyHasAnotherHome) {
  ProxyUnderTest proxy{ports()};
  const auto moving = proxy.key_at(0), staying = proxy.key_at(1);
  PlainClient client{proxy.port()}, other{proxy.port()};
  client.send(request("BLPOP " + moving + " 0"));
  ASSERT_TRUE(comes_true([] { return somebody_is_blocked(); }));
  other.send(request("BLPOP " + staying + " 0"));
  auto second = direct(1);
  ASSERT_TRUE(comes_true([&] { return info_of(second, "blocked_clients") == "1"; }));
  proxy.reload({ports()[1]});
  EXPECT_EQ(text_of(client.read()), "-UNBLOCKED a key has another home now: ask again");
  client.send(request("BLPOP " + moving + " 0"));
  PlainClient giver{proxy.port()};
  EXPECT_EQ(ask(giver, "RPUSH " + staying + " s"), ":1");
  EXPECT_EQ(text_of(other.read()),
            "*2 $" + std::to_string(staying.size()) + " " + staying + " $1 s");
  EXPECT_EQ(ask(giver, "RPUSH " + moving + " m"), ":1");
  EXPECT_EQ(text_of(client.read()),
            "*2 $" + std::to_string(moving.size()) + " " + moving + " $1 m");
}

TEST_F(SessionEvents, PX08_ADatabaseThatTheClientChoseStaysItsOwn) {
  ProxyUnderTest proxy{ports(), {"redis_db: 0"}};
  PlainClient chose{proxy.port()}, took{proxy.port()}, waits{proxy.port()}, queued{proxy.port()};
  EXPECT_EQ(ask(chose, "SELECT 0"), "+OK");
  EXPECT_EQ(ask(took, "PING"), "+PONG");
  waits.send(request("BLPOP l 0"));
  ASSERT_TRUE(comes_true([] { return somebody_is_blocked(); }));
  EXPECT_EQ(ask_all(queued, {"MULTI", "SET q x"}), (Texts{"+OK", "+QUEUED"}));
  proxy.reload(ports(), {"redis_db: 1"});
  EXPECT_EQ(ask(chose, "SET chosen x"), "+OK");
  EXPECT_EQ(ask(took, "SET given x"), "+OK");
  EXPECT_EQ(text_of(waits.read()), "-UNBLOCKED the database of this pool has changed");
  EXPECT_EQ(ask(queued, "EXEC").substr(0, 10), "-EXECABORT");
  EXPECT_NE(everywhere("GET chosen"), "_ _");
  EXPECT_EQ(everywhere("GET given"), "_ _");
  EXPECT_EQ(everywhere("GET q"), "_ _");
}

}  // namespace
}  // namespace sluice::test
