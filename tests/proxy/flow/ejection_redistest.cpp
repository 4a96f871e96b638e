// What becomes of the keys of a server that fails.
#include <fmt/format.h>

#include "proxy/flow/two_servers.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/memcached.hpp"
#include "support/collected_log.hpp"

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

TEST(OnFailureFail, AServerWhoseUserMayNotPingComesBack) {
  Failing made{fail};
  PlainClient client{made.proxy.port()};
  EXPECT_EQ(ask(client, "SET " + made.key + " 1"), "+OK");
  PlainClient admin{made.one.port()};
  EXPECT_EQ(ask(admin, "ACL SETUSER default -ping"), "+OK");
  made.one.stop();
  ASSERT_TRUE(made.gives_up(client));
  made.one.cont();
  EXPECT_TRUE(made.comes_back(client, "GET " + made.key, "$1 1"));
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

TEST(Frictions, U17_TheLogAndTheStatisticsSayWhenAServerIsEjectedAndWhenItIsBack) {
  CollectedLog log;
  Failing made{fail};
  const auto name = fmt::format("pool 'under_test': server 'a' (127.0.0.1:{})", made.one.port());
  const auto standing = [&](std::size_t server) {
    return made.proxy.proxy().registry().snapshot().pools.front().servers.at(server).standing;
  };
  PlainClient client{made.proxy.port()};
  EXPECT_EQ(ask(client, "SET " + made.key + " 1"), "+OK");
  EXPECT_EQ(standing(0).state, proxy::watch::ServerState::up);
  made.one.stop();
  ASSERT_TRUE(made.gives_up(client));
  EXPECT_EQ(log.count(name + " is ejected after 2 failures, the last: timed out; it is checked in "
                             "200 ms, and until then requests for its keys get an error"),
            1U);
  EXPECT_EQ(log.count(" is back"), 0U);
  EXPECT_NE(standing(0).state, proxy::watch::ServerState::up);
  EXPECT_EQ(standing(0).cause, "timed out");
  EXPECT_EQ(standing(1).state, proxy::watch::ServerState::up);
  EXPECT_TRUE(comes_true([&] { return totals(made.proxy, 0).server_ejected == 1; }));
  EXPECT_TRUE(comes_true([&] {
    made.proxy.pass(std::chrono::milliseconds{50});
    return standing(0).state == proxy::watch::ServerState::probing;
  }));
  made.one.cont();
  ASSERT_TRUE(made.comes_back(client, "GET " + made.key, "$1 1"));
  EXPECT_EQ(log.count(name + " is back, and has its keys again: it was ejected for "), 1U);
  EXPECT_EQ(log.count(" checks, because: timed out"), 1U);
  EXPECT_EQ(standing(0).state, proxy::watch::ServerState::up);
  EXPECT_TRUE(comes_true([&] { return totals(made.proxy, 0).server_ejected == 0; }));
}

TEST(Frictions, U17_AServerThatWasKilledIsToldOfOnceByAllWorkers) {
  CollectedLog log;
  RedisServer server, other;
  ProxyUnderTest proxy{{server.port(), other.port()},
                       {"auto_eject_hosts: true", "on_failure: rehash", "server_failure_limit: 1",
                        "server_retry_timeout: 100"},
                       {"workers: 3"}};
  const auto key = proxy.key_at(0);
  std::vector<std::unique_ptr<PlainClient>> clients;  // more than there are workers
  for (int i = 0; i < 12; ++i) {
    clients.push_back(std::make_unique<PlainClient>(proxy.port()));
    EXPECT_EQ(ask(*clients.back(), "SET " + key + " v"), "+OK");
  }
  const auto ask_until = [&](std::string_view line) {
    return comes_true([&] {
      for (auto& client : clients) static_cast<void>(ask(*client, "GET " + key));
      return log.count(line) != 0;
    });
  };
  server.kill();
  EXPECT_TRUE(ask_until(" is ejected "));
  EXPECT_EQ(log.count(" is ejected after 1 failures, the last: "), 1U);
  EXPECT_EQ(log.count(", and until then its keys go to the other servers"), 1U);
  server.start();
  EXPECT_TRUE(ask_until(" is back, and has its keys again"));
  for (auto& client : clients) EXPECT_EQ(ask(*client, "SET " + key + " v"), "+OK");
  EXPECT_EQ(log.count(" is ejected "), 1U);
  EXPECT_EQ(log.count(" is back"), 1U);
  EXPECT_EQ(totals(proxy).server_ejects, 1);
}

TEST(OnFailureFail, ARequestWithNoreplyIsNotAnsweredWithAnErrorEither) {
  Memcached server;
  ProxyUnderTest proxy{
      PoolLines{{"on_failure: fail", "server_failure_limit: 1", "server_retry_timeout: 600000",
                 "servers:", " - " + server.address() + ":1"}}};
  server.kill();
  const auto said = talk(proxy.port(), "get k\r\nset k 0 0 1 noreply\r\n1\r\nmn\r\n", "MN\r\n");
  EXPECT_TRUE(said.bytes.starts_with("SERVER_ERROR ")) << said.bytes;
  EXPECT_TRUE(comes_true([&] { return totals(proxy).server_ejects == 1; }));
  EXPECT_EQ(talk(proxy.port(), "set k 0 0 1 noreply\r\n1\r\nmn\r\n", "MN\r\n").bytes, "MN\r\n");
}

}  // namespace
}  // namespace sluice::test
