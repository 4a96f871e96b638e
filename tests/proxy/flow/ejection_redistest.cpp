// What becomes of the keys of a server that fails.
#include "proxy/flow/two_servers.hpp"
#include "proxy/support/collected_log.hpp"

namespace sluice::test {
namespace {

const std::string refused = "-ERR Connection refused";

/// The clock stands still where a server is to answer, however slow the machine is.
struct Failing {
  explicit Failing(std::vector<std::string> settings)
      : proxy({one.port(), other.port()}, std::move(settings), {}, clock) {}

  /// True when the first server has been given up.
  bool gives_up(PlainClient& client) {
    return comes_true([&] {
      static_cast<void>(ask_as_time_passes(client, "GET " + key, proxy));
      return totals(proxy).server_ejects > 0;
    });
  }
  /// True when it is back, and a request of its key is answered so.
  bool comes_back(PlainClient& client, const std::string& line, const std::string& reply) {
    return comes_true([&] {
      if (totals(proxy, 0).out_queue == 0) proxy.pass(std::chrono::milliseconds{50});
      return ask(client, line) == reply;
    });
  }

  RedisServer one, other;
  VirtualClock clock;
  ProxyUnderTest proxy;
  std::string key = proxy.key_at(0), its_neighbour = proxy.key_at(1);
};

const std::vector<std::string> fail{"auto_eject_hosts: true", "on_failure: fail",
                                    "server_failure_limit: 2", "server_retry_timeout: 200",
                                    "timeout: 200"};

TEST(OnFailureFail, KeysStayWhereTheyAreAndGetErrorsAtOnce) {
  Failing made{fail};
  PlainClient client{made.proxy.port()};
  EXPECT_EQ(ask(client, "SET " + made.key + " 1"), "+OK");
  made.one.stop();
  ASSERT_TRUE(made.gives_up(client));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(ask(client, "SET " + made.key + " 2"), refused);
    EXPECT_EQ(ask(client, "SET " + made.its_neighbour + " 2"), "+OK");
  }
  PlainClient other{made.other.port()};
  EXPECT_EQ(ask(other, "EXISTS " + made.key), ":0");
  made.one.cont();
  EXPECT_TRUE(made.comes_back(client, "GET " + made.key, "$1 1"));
  EXPECT_GT(totals(made.proxy, 0).health_checks, 0);
}

TEST(OnFailureFail, NothingIsAskedOfAServerThatDoesNotPassItsCheck) {
  Failing made{fail};
  PlainClient client{made.proxy.port()};
  made.one.stop();
  ASSERT_TRUE(made.gives_up(client));
  ASSERT_TRUE(comes_true([&] {
    made.proxy.pass(std::chrono::milliseconds{50});
    return totals(made.proxy, 0).health_checks >= 3;
  }));
  EXPECT_EQ(ask(client, "GET " + made.key), refused);
  EXPECT_EQ(totals(made.proxy).server_ejects, 1);
  made.one.cont();
}

TEST(OnFailureFail, AServerThatIsStartedAgainIsBackAfterItsCheck) {
  Failing made{fail};
  PlainClient client{made.proxy.port()};
  EXPECT_EQ(ask(client, "SET " + made.key + " 1"), "+OK");
  made.one.kill();
  ASSERT_TRUE(made.gives_up(client));
  made.one.start();
  EXPECT_TRUE(made.comes_back(client, "SET " + made.key + " 2", "+OK"));
  EXPECT_EQ(ask(client, "GET " + made.key), "$1 2");
}

TEST(OnFailureRehash, KeysMoveToTheOthersAndComeBack) {
  Failing made{{"auto_eject_hosts: true", "on_failure: rehash", "server_failure_limit: 1",
                "server_retry_timeout: 200", "timeout: 200"}};
  PlainClient client{made.proxy.port()};
  EXPECT_EQ(ask(client, "SET " + made.key + " home"), "+OK");
  made.one.stop();
  ASSERT_TRUE(made.gives_up(client));
  EXPECT_EQ(ask(client, "SET " + made.key + " away"), "+OK");
  PlainClient other{made.other.port()};
  EXPECT_EQ(ask(other, "GET " + made.key), "$4 away");
  EXPECT_EQ(ask(client, "GET " + made.key), "$4 away");
  made.one.cont();
  EXPECT_TRUE(made.comes_back(client, "GET " + made.key, "$4 home"));
  EXPECT_GT(totals(made.proxy, 0).health_checks, 0);
}

TEST(Frictions, U17_TheLogAndACounterSayWhenAServerIsEjectedAndWhenItIsBack) {
  CollectedLog log;
  Failing made{fail};
  const auto name = "pool 'under_test': server 'a' (127.0.0.1:" + std::to_string(made.one.port());
  PlainClient client{made.proxy.port()};
  EXPECT_EQ(ask(client, "SET " + made.key + " 1"), "+OK");
  EXPECT_EQ(totals(made.proxy, 0).server_ejected, 0);
  made.one.stop();
  ASSERT_TRUE(made.gives_up(client));
  EXPECT_EQ(log.count(name + ") is ejected after 2 failures, the last: timed out"), 1U);
  EXPECT_EQ(log.count(name + ") is back"), 0U);
  EXPECT_TRUE(comes_true([&] { return totals(made.proxy, 0).server_ejected == 1; }));
  EXPECT_EQ(totals(made.proxy, 1).server_ejected, 0);
  made.one.cont();
  ASSERT_TRUE(made.comes_back(client, "GET " + made.key, "$1 1"));
  EXPECT_EQ(log.count(name + ") is back"), 1U);
  EXPECT_TRUE(comes_true([&] { return totals(made.proxy, 0).server_ejected == 0; }));
}

}  // namespace
}  // namespace sluice::test
