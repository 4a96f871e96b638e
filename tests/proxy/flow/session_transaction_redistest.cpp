// MULTI, EXEC, DISCARD, WATCH and UNWATCH through the proxy.
#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;
using Transactions = TwoServers;

constexpr const char* aborted = "-EXECABORT Transaction discarded because of previous errors.";
constexpr const char* aborted_by_loss =
    "-EXECABORT Transaction discarded because the connection to its server was lost: nothing of it "
    "was done";
constexpr const char* crossed =
    "-CROSSSLOT Keys in request don't have the same home: they are on different servers";

TEST_F(Transactions, InOneWrite) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto key = proxy.key_at(1);
  EXPECT_EQ(ask_all(client, {"SET " + key + " 1", "MULTI", "INCR " + key, "PING", "GET " + key,
                             "EXEC", "GET " + key}),
            (Texts{"+OK", "+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*3 :2 +PONG $1 2", "$1 2"}));
}

TEST_F(Transactions, OneByOneAndAgain) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  for (int i = 1; i <= 3; ++i) {
    const auto key = proxy.key_at(static_cast<std::size_t>(i % 2), "again" + std::to_string(i));
    EXPECT_EQ(ask(client, "MULTI"), "+OK");
    EXPECT_EQ(ask(client, "INCR " + key), "+QUEUED");
    EXPECT_EQ(ask(client, "EXEC"), "*1 :1");
    EXPECT_EQ(ask(client, "GET " + key), "$1 1");
  }
}

TEST_F(Transactions, WhatWasAskedBeforeIsDoneBefore) {
  ProxyUnderTest proxy{ports(), {"server_connections: 3"}};
  const auto key = proxy.key_at(0);
  std::vector<std::unique_ptr<PlainClient>> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(std::make_unique<PlainClient>(proxy.port()));
  for (int round = 0; round < 50; ++round) {
    auto& client = *clients[static_cast<std::size_t>(round % 8)];
    const auto value = std::to_string(round);
    EXPECT_EQ(ask_all(client, {"SET " + key + " " + value, "MULTI", "GET " + key,
                               "SET " + key + " x", "EXEC", "GET " + key, "WATCH " + key,
                               "GET " + key, "UNWATCH", "SET " + key + " y", "GET " + key}),
              (Texts{"+OK", "+OK", "+QUEUED", "+QUEUED",
                     "*2 $" + std::to_string(value.size()) + " " + value + " +OK", "$1 x", "+OK",
                     "$1 x", "+OK", "+OK", "$1 y"}));
  }
}

TEST_F(Transactions, InResp3) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  ASSERT_EQ(ask(client, "HELLO 3").front(), '%');
  EXPECT_EQ(ask_all(client, {"MULTI", "HSET h f v", "HGETALL h", "EXEC"})[3], "*2 :1 %1 $1 f $1 v");
  PlainClient other{proxy.port()};
  ASSERT_EQ(ask(client, "WATCH h"), "+OK");
  ASSERT_EQ(ask(other, "HSET h f w"), ":0");
  client.send(request("MULTI") + request("HGETALL h") + request("EXEC"));
  const std::string replies = "+OK\r\n+QUEUED\r\n_\r\n";
  EXPECT_EQ(read_bytes(client, replies.size()), replies);
}

TEST_F(Transactions, ManyKeysOfOneHomeGoAsTheyAre) {
  ProxyUnderTest proxy{ports(), {"hash_tag: \"{}\""}};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask_all(client, {"MULTI", "MSET {t}a 1 {t}b 2", "MGET {t}a {t}b", "DEL {t}a {t}b",
                             "RENAME {t}x {t}y", "EXEC"}),
            (Texts{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED",
                   "*4 +OK *2 $1 1 $1 2 :2 -ERR no such key"}));
}

TEST_F(Transactions, AKeyWithAnotherHomeSpoilsIt) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto here = proxy.key_at(0), there = proxy.key_at(1);
  EXPECT_EQ(ask_all(client, {"MULTI", "SET " + here + " 1", "SET " + there + " 1",
                             "SET " + here + " 2", "EXEC", "GET " + here, "GET " + there}),
            (Texts{"+OK", "+QUEUED", crossed, "+QUEUED", aborted, "_", "_"}));
  EXPECT_EQ(
      ask_all(client, {"MULTI", "MSET " + here + " 1 " + there + " 1", "EXEC", "GET " + here}),
      (Texts{"+OK", crossed, aborted, "_"}));
  EXPECT_EQ(
      ask_all(client, {"WATCH " + here, "MULTI", "SET " + there + " 1", "EXEC", "GET " + there}),
      (Texts{"+OK", "+OK", crossed, aborted, "_"}));
  EXPECT_EQ(ask(client, "WATCH " + here + " " + there), crossed);
  EXPECT_EQ(ask_all(client, {"MULTI", "SET " + here + " 3", "EXEC"}),
            (Texts{"+OK", "+QUEUED", "*1 +OK"}));
}

TEST_F(Transactions, WithoutAKey) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask_all(client, {"MULTI", "EXEC", "MULTI", "DISCARD", "PING"}),
            (Texts{"+OK", "*0", "+OK", "+OK", "+PONG"}));
  EXPECT_EQ(ask_all(client, {"MULTI", "PING", "ECHO x", "EVAL return{1} 0", "EXEC"}),
            (Texts{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "*3 +PONG $1 x *1 :1"}));
  const auto key = proxy.key_at(1);
  EXPECT_EQ(
      ask_all(client,
              {"MULTI", "PING first", "EVAL return{2} 0", "SET " + key + " v", "PING", "EXEC"}),
      (Texts{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "*4 $5 first *1 :2 +OK +PONG"}));
}

TEST_F(Transactions, OutOfPlace) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask_all(client, {"EXEC", "DISCARD", "UNWATCH"}),
            (Texts{"-ERR EXEC without MULTI", "-ERR DISCARD without MULTI", "+OK"}));
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k 1", "MULTI", "WATCH k", "UNWATCH", "EXEC"}),
            (Texts{"+OK", "+QUEUED", "-ERR MULTI calls can not be nested",
                   "-ERR WATCH inside MULTI is not allowed", "+QUEUED", "*2 +OK +OK"}));
  EXPECT_EQ(ask_all(client, {"WATCH k", "EXEC", "UNWATCH", "GET k"}),
            (Texts{"+OK", "-ERR EXEC without MULTI", "+OK", "$1 1"}));
}

TEST_F(Transactions, DiscardedNothingIsDone) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k 1", "DISCARD", "GET k", "EXEC"}),
            (Texts{"+OK", "+QUEUED", "+OK", "_", "-ERR EXEC without MULTI"}));
  EXPECT_EQ(ask_all(client, {"WATCH k", "MULTI", "DISCARD", "MULTI", "FOO", "DISCARD", "PING"})[5],
            "+OK");
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k 1", "RESET", "GET k"}),
            (Texts{"+OK", "+QUEUED", "+RESET", "_"}));
}

TEST_F(Transactions, AnErrorBeforeExecSpoilsIt) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  for (const std::string wrong : {"FOO bar", "GET", "DBSIZE", "SELECT 1", "SCAN 0", "SUBSCRIBE c",
                                  "CLIENT ID", "HELLO 3", "CONFIG GET x"}) {
    const auto replies = ask_all(client, {"MULTI", "SET k 1", wrong, "EXEC", "GET k"});
    EXPECT_EQ(replies[2].substr(0, 5), "-ERR ") << wrong;
    EXPECT_EQ(replies[3], aborted) << wrong;
    EXPECT_EQ(replies[4], "_") << wrong;
  }
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k text", "INCR k", "EXEC"})[3],
            "*2 +OK -ERR value is not an integer or out of range");
}

TEST_F(Transactions, WatchedKeys) {
  ProxyUnderTest proxy{ports(), {"hash_tag: \"{}\""}};
  PlainClient client{proxy.port()}, other{proxy.port()};
  EXPECT_EQ(ask_all(client, {"WATCH {t}a {t}b", "GET {t}a", "MULTI", "SET {t}a 1", "EXEC"}),
            (Texts{"+OK", "_", "+OK", "+QUEUED", "*1 +OK"}));
  EXPECT_EQ(ask(client, "WATCH {t}a"), "+OK");
  EXPECT_EQ(ask(client, "WATCH {t}b"), "+OK");
  EXPECT_EQ(ask(other, "SET {t}b 9"), "+OK");
  EXPECT_EQ(ask_all(client, {"MULTI", "SET {t}a 2", "EXEC", "GET {t}a"}),
            (Texts{"+OK", "+QUEUED", "_", "$1 1"}));
  EXPECT_EQ(ask(client, "WATCH {t}a"), "+OK");
  EXPECT_EQ(ask(client, "SET {t}a 3"), "+OK");
  EXPECT_EQ(ask_all(client, {"MULTI", "EXEC"}), (Texts{"+OK", "_"})) << "it changed the key itself";
  EXPECT_EQ(ask(client, "WATCH {t}a"), "+OK");
  EXPECT_EQ(ask(other, "SET {t}a 4"), "+OK");
  EXPECT_EQ(ask_all(client, {"UNWATCH", "MULTI", "GET {t}a", "EXEC"}),
            (Texts{"+OK", "+OK", "+QUEUED", "*1 $1 4"}));
}

TEST_F(Transactions, ConnectionsAreUsedAgain) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  auto server = direct(0);
  const auto key = proxy.key_at(0);
  const auto once = [&] {
    return ask_all(client, {"WATCH " + key, "MULTI", "INCR " + key, "EXEC", "MULTI", "GET " + key,
                            "DISCARD", "RPUSH " + key + "l x", "BLPOP " + key + "l 1"})[3];
  };
  EXPECT_EQ(once(), "*1 :1");
  const auto connections = info_of(server, "total_connections_received");
  for (int i = 2; i < 20; ++i) EXPECT_EQ(once(), "*1 :" + std::to_string(i));
  EXPECT_EQ(info_of(server, "total_connections_received"), connections);
}

TEST_F(Transactions, AClientThatGoesLeavesNothingBehind) {
  ProxyUnderTest proxy{ports()};
  auto server = direct(0);
  const auto key = proxy.key_at(0);
  {
    PlainClient client{proxy.port()};
    ask_all(client, {"WATCH " + key, "MULTI", "SET " + key + " 1"});
    EXPECT_EQ(info_of(server, "connected_clients"), "2");  // and this one
  }
  EXPECT_TRUE(comes_true([&] { return info_of(server, "connected_clients") == "1"; }));
  EXPECT_EQ(ask(server, "GET " + key), "_");
}

TEST_F(Transactions, AClientThatHasSaidAllGetsItsReplies) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto here = proxy.key_at(0), there = proxy.key_at(1);
  client.send(request("SET " + there + " 1") + request("MULTI") + request("INCR " + here) +
              request("EXEC") + request("MGET " + here + " " + there));
  client.finish_sending();
  const std::string replies = "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n:1\r\n*2\r\n$1\r\n1\r\n$1\r\n1\r\n";
  EXPECT_EQ(read_bytes(client, replies.size() + 1), replies) << "and then it is closed";
}

TEST(TransactionsWithoutServers, LostBeforeExecNothingWasDone) {
  RedisServer server;
  ProxyUnderTest proxy{{server.port()}};
  PlainClient client{proxy.port()}, watcher{proxy.port()};
  ASSERT_EQ(ask_all(watcher, {"SET k 0", "WATCH k"}), (Texts{"+OK", "+OK"}));
  ASSERT_EQ(ask_all(client, {"MULTI", "SET k 1"}), (Texts{"+OK", "+QUEUED"}));
  server.kill();
  server.start();
  EXPECT_EQ(ask(client, "SET k 2"),
            "-ERR the connection to the server of this transaction was lost");
  EXPECT_EQ(ask(client, "EXEC"), aborted_by_loss);
  EXPECT_EQ(ask_all(watcher, {"MULTI", "SET k 3"})[0], "+OK");
  EXPECT_EQ(ask(watcher, "EXEC"), aborted_by_loss) << "nobody watches the key any more";
  EXPECT_EQ(ask(client, "GET k"), "_");
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k 4", "EXEC"}), (Texts{"+OK", "+QUEUED", "*1 +OK"}));
}

TEST(TransactionsWithoutServers, LostInExecNobodyKnows) {
  RedisServer server;
  VirtualClock clock;
  ProxyUnderTest proxy{{server.port()}, {"timeout: 300"}, {}, clock};
  PlainClient client{proxy.port()};
  ASSERT_EQ(ask_all(client, {"SET k 0", "MULTI", "INCR k"}), (Texts{"+OK", "+OK", "+QUEUED"}));
  server.stop();
  EXPECT_EQ(
      ask_as_time_passes(client, "EXEC", proxy),
      "-ERR the connection to the server was lost during EXEC: the transaction was done wholly or "
      "not at all, and the proxy cannot know which");
  server.cont();
  EXPECT_TRUE(comes_true([&] { return ask(client, "GET k").front() == '$'; }));
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k 4", "EXEC"}), (Texts{"+OK", "+QUEUED", "*1 +OK"}));
}

TEST(TransactionsWithoutServers, NoServerNoTransaction) {
  RedisServer server;
  ProxyUnderTest proxy{{server.port()}};
  PlainClient client{proxy.port()};
  server.kill();
  const auto replies = ask_all(
      client, {"MULTI", "SET k 1", "GET k", "EXEC", "WATCH k", "MULTI", "PING", "EXEC", "PING"});
  EXPECT_EQ(replies[0], "+OK");
  EXPECT_EQ(replies[1].substr(0, 4), "-ERR");
  EXPECT_EQ(replies[3], aborted_by_loss);
  EXPECT_EQ(replies[4].substr(0, 4), "-ERR");
  EXPECT_EQ(replies[5], "+OK");
  EXPECT_EQ(replies[7], aborted_by_loss);
  EXPECT_EQ(replies[8], "+PONG");
}

TEST(TransactionsWithoutServers, AServerThatTakesNoMultiDoesNothing) {
  RedisServer server{{"user default on nopass ~* &* +@all -multi"}};
  ProxyUnderTest proxy{{server.port()}};
  PlainClient client{proxy.port()};
  const auto replies = ask_all(client, {"SET k 0", "MULTI", "SET k 1", "SET k 2", "EXEC", "GET k"});
  EXPECT_EQ(replies[2].substr(0, 7), "-NOPERM");
  EXPECT_EQ(replies[3], "-ERR the connection to the server of this transaction was lost");
  EXPECT_EQ(replies[4], aborted_by_loss);
  EXPECT_EQ(replies[5], "$1 0");
}

TEST_F(Transactions, X06_TheSessionsStateGoesWithThem) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask_all(client, {"SET k zero", "WATCH k", "SELECT 2", "MULTI", "SET k two", "EXEC",
                             "GET k", "SELECT 0", "GET k"}),
            (Texts{"+OK", "+OK", "+OK", "+OK", "+QUEUED", "*1 +OK", "$3 two", "+OK", "$4 zero"}));
  EXPECT_EQ(ask(client, "WATCH h"), "+OK");
  EXPECT_EQ(ask(client, "HELLO 3").front(), '%');
  EXPECT_EQ(ask_all(client, {"MULTI", "HSET h f v", "HGETALL h", "EXEC"})[3], "*2 :1 %1 $1 f $1 v");
  PlainClient other{proxy.port()};
  // Watched in the database that was chosen then, done in the one that is chosen now.
  EXPECT_EQ(ask_all(client, {"WATCH k", "SELECT 2", "WATCH k"}), (Texts{"+OK", "+OK", "+OK"}));
  EXPECT_EQ(ask(other, "SET k changed"), "+OK");
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k three", "EXEC", "GET k"}),
            (Texts{"+OK", "+QUEUED", "_", "$3 two"}));
  // A database that the server does not have: nothing is done in another.
  EXPECT_EQ(ask_all(client, {"WATCH k", "SELECT 99", "MULTI", "SET k wrong", "EXEC", "SELECT 2",
                             "GET k", "SELECT 0", "GET k"}),
            (Texts{"+OK", "+OK", "+OK", "-ERR DB index is out of range", aborted_by_loss, "+OK",
                   "$3 two", "+OK", "$7 changed"}));
  EXPECT_EQ(ask_all(client, {"MULTI", "GET k", "EXEC"})[2], "*1 $7 changed")
      << "a connection that is used again is as the next client wants it";
}

TEST_F(Transactions, X10_NothingOfOneWhoseMultiIsRefusedIsDone) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto key = proxy.key_at(0);
  auto server = direct(0);
  const Texts transaction{"MULTI", "INCR " + key, "INCR " + key, "EXEC"};
  EXPECT_EQ(ask_all(client, transaction)[3], "*2 :1 :2");
  ASSERT_EQ(ask(server, "ACL SETUSER default -multi"), "+OK");
  const auto replies = ask_all(client, transaction);
  EXPECT_EQ(ask(server, "ACL SETUSER default +multi"), "+OK");
  EXPECT_EQ(replies[0], "+OK");
  for (const auto at : {1U, 2U}) EXPECT_EQ(replies[at].front(), '-') << replies[at];
  EXPECT_EQ(replies[3], aborted_by_loss);
  EXPECT_EQ(ask(client, "GET " + key), "$1 2");
  EXPECT_EQ(ask_all(client, transaction)[3], "*2 :3 :4");
}

}  // namespace
}  // namespace sluice::test
