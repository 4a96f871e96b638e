// Who a client is and what it chooses of its connection: AUTH, HELLO, SELECT, CLIENT, RESET.
#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;
using Login = TwoServers;

constexpr std::string_view wrong_password =
    "-WRONGPASS invalid username-password pair or user is disabled.";

TEST_F(Login, TodaysClientsConnect) {
  ProxyUnderTest proxy{ports()};
  const std::vector<Texts> handshakes{
      // redis-py, jedis, lettuce, node-redis, go-redis, redis-cli, hiredis
      {"HELLO 3", "CLIENT SETINFO LIB-NAME redis-py", "CLIENT SETINFO LIB-VER 5.0.1", "SELECT 0",
       "PING"},
      {"HELLO 3", "CLIENT SETINFO lib-name jedis", "CLIENT SETINFO lib-ver 5.1.0",
       "CLIENT SETNAME jd"},
      {"HELLO 3 SETNAME app", "CLIENT SETINFO lib-name Lettuce", "PING", "INFO"},
      {"HELLO 3", "CLIENT SETINFO LIB-VER 1.6.0", "CLIENT SETINFO LIB-NAME node-redis", "SELECT 0"},
      {"HELLO 3", "CLIENT SETINFO LIB-NAME go-redis(,go1.22)", "CLIENT SETINFO LIB-VER 9.5.1",
       "SELECT 0", "CLIENT SETNAME x"},
      {"COMMAND", "COMMAND DOCS get", "INFO", "PING"},
      {"PING", "SELECT 0"}};
  for (const auto& handshake : handshakes) {
    PlainClient client{proxy.port()};
    for (const auto& reply : ask_all(client, handshake)) EXPECT_NE(reply.front(), '-') << reply;
    EXPECT_EQ(ask(client, "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none"),
              "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.");
    EXPECT_EQ(ask(client, "SET k " + handshake.front().substr(0, 4)), "+OK");
    EXPECT_EQ(ask(client, "GET k"), "$4 " + handshake.front().substr(0, 4));
  }
}

TEST_F(Login, HelloTellsWhoWeAre) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto body = [](int protocol, std::string id) {
    return "$6 server $6 sluice $7 version $5 " SLUICE_VERSION " $5 proto :" +
           std::to_string(protocol) + " $2 id " + id +
           " $4 mode $5 proxy $4 role $6 master $7 modules *0";
  };
  const auto id = ask(client, "CLIENT ID");
  EXPECT_EQ(ask(client, "HELLO"), "*14 " + body(2, id));
  EXPECT_EQ(ask(client, "HELLO 3"), "%7 " + body(3, id));
  EXPECT_EQ(ask(client, "HELLO 2 SETNAME me"), "*14 " + body(2, id));
  EXPECT_EQ(ask(client, "CLIENT GETNAME"), "$2 me");
}

TEST_F(Login, HelloRefusesWhatRedisRefuses) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "HELLO 4"), "-NOPROTO unsupported protocol version");
  EXPECT_EQ(ask(client, "HELLO 1"), "-NOPROTO unsupported protocol version");
  EXPECT_EQ(ask(client, "HELLO three"), "-ERR Protocol version is not an integer or out of range");
  EXPECT_EQ(ask(client, "HELLO 3 SETNAME"), "-ERR Syntax error in HELLO option 'SETNAME'");
  EXPECT_EQ(ask(client, "HELLO 3 NONSENSE"), "-ERR Syntax error in HELLO option 'NONSENSE'");
  EXPECT_EQ(ask(client, "HELLO 3 AUTH nobody x"), wrong_password);
  EXPECT_EQ(ask(client, "CLIENT TRACKINGINFO"),
            "*6 $5 flags *1 $3 off $8 redirect :-1 $8 prefixes *0")
      << "it is still one of RESP2";
}

TEST_F(Login, ThePasswordOpens) {
  const std::unique_ptr<RedisServer> server =
      std::make_unique<RedisServer>(Texts{"requirepass sesame"});
  ProxyUnderTest proxy{{server->port()}, {"redis_auth: sesame"}};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "GET k"), "-NOAUTH Authentication required.");
  EXPECT_EQ(ask(client, "PING"), "-NOAUTH Authentication required.");
  EXPECT_TRUE(
      ask(client, "HELLO 3").starts_with("-NOAUTH HELLO must be called with the client already"));
  EXPECT_EQ(ask(client, "AUTH sesam"), wrong_password);
  EXPECT_EQ(ask(client, "AUTH sesamesesame"), wrong_password);
  EXPECT_EQ(ask(client, "AUTH somebody sesame"), wrong_password);
  EXPECT_EQ(ask(client, "GET k"), "-NOAUTH Authentication required.");
  EXPECT_EQ(ask(client, "AUTH sesame"), "+OK");
  EXPECT_EQ(ask(client, "GET k"), "_");
  EXPECT_EQ(ask(client, "AUTH wrong"), wrong_password);
  EXPECT_EQ(ask(client, "GET k"), "_") << "who was in stays in";
  EXPECT_EQ(ask(client, "RESET"), "+RESET");
  EXPECT_EQ(ask(client, "GET k"), "-NOAUTH Authentication required.");
  EXPECT_TRUE(ask(client, "HELLO 3 AUTH default sesame SETNAME n").starts_with("%7 "));
  EXPECT_EQ(ask(client, "SET k v"), "+OK");
}

TEST_F(Login, WithoutAPasswordAuthIsAnError) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "AUTH x"),
            "-ERR AUTH <password> called without any password configured for the default user. Are "
            "you sure your configuration is correct?");
  EXPECT_EQ(ask(client, "AUTH default x"), "+OK");
  EXPECT_EQ(ask(client, "AUTH a b c"), "-ERR syntax error");
}

TEST_F(Login, StrictIsAsTwemproxy) {
  ProxyUnderTest open{ports(), {"compat: strict"}};
  PlainClient client{open.port()};
  EXPECT_EQ(ask(client, "AUTH x"), "-ERR Client sent AUTH, but no password is set");
  const std::unique_ptr<RedisServer> server =
      std::make_unique<RedisServer>(Texts{"requirepass sesame"});
  ProxyUnderTest closed{{server->port()}, {"compat: strict", "redis_auth: sesame"}};
  PlainClient other{closed.port()};
  EXPECT_EQ(ask(other, "GET k"), "-NOAUTH Authentication required");
  EXPECT_EQ(ask(other, "AUTH x"), "-ERR invalid password");
  EXPECT_EQ(ask(other, "AUTH sesame"), "+OK");
  EXPECT_EQ(ask(other, "GET k"), "_");
}

TEST_F(Login, UsersWhoMayOnlyRead) {
  ProxyUnderTest proxy{ports(),
                       {"users:", "  - {name: writer, password: w}",
                        "  - {name: reader, password: r, read_only: true}"}};
  PlainClient writer{proxy.port()}, reader{proxy.port()};
  EXPECT_EQ(ask(writer, "AUTH default any"), wrong_password);
  EXPECT_EQ(ask(writer, "AUTH w"), wrong_password);
  EXPECT_EQ(ask(writer, "AUTH writer r"), wrong_password);
  EXPECT_EQ(ask(writer, "AUTH writer w"), "+OK");
  EXPECT_EQ(ask(writer, "SET k v"), "+OK");
  EXPECT_TRUE(ask(reader, "HELLO 3 AUTH reader r").starts_with("%7 "));
  for (const std::string allowed : {"GET k", "MGET k l", "PING", "INFO", "COMMAND COUNT",
                                    "CLIENT ID", "DBSIZE", "SELECT 0", "EVAL_RO return 0"})
    EXPECT_NE(ask(reader, allowed).substr(0, 7), "-NOPERM") << allowed;
  for (const std::string forbidden : {"SET k x", "DEL k", "DEL k l", "MSET k x l y", "BLPOP k 1",
                                      "EVAL return 0", "FUNCTION LOAD x", "PUBLISH c m"}) {
    EXPECT_TRUE(
        ask(reader, forbidden).starts_with("-NOPERM this user has no permissions to run the '"))
        << forbidden;
  }
  EXPECT_EQ(
      ask_all(reader, {"MULTI", "GET k", "SET k x", "EXEC"}),
      (Texts{"+OK", "+QUEUED", "-NOPERM this user has no permissions to run the 'set' command",
             "-EXECABORT Transaction discarded because of previous errors."}));
  EXPECT_EQ(ask(reader, "GET k"), "$1 v");
  EXPECT_NE(ask(reader, "CLIENT INFO").find("user=reader"), std::string::npos);
}

TEST_F(Login, RepliesOfResp3AreThoseOfTheServers) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  ASSERT_TRUE(ask(client, "HELLO 3").starts_with("%7 "));
  const auto here = proxy.key_at(0), there = proxy.key_at(1), none = proxy.key_at(1, "none");
  ASSERT_EQ(ask(client, "MSET " + here + " 1 " + there + " 2"), "+OK");
  client.send(request("MGET " + none + " " + here + " " + there));
  const std::string merged = "*3\r\n_\r\n$1\r\n1\r\n$1\r\n2\r\n";
  EXPECT_EQ(read_bytes(client, merged.size()), merged);
  client.send(request("GET " + none) + request("CLIENT GETNAME"));
  EXPECT_EQ(read_bytes(client, 6), "_\r\n_\r\n");

  ASSERT_EQ(ask(client, "HSET h f v"), ":1");
  EXPECT_EQ(ask(client, "HGETALL h"), "%1 $1 f $1 v");
  ASSERT_EQ(ask(client, "ZADD z 1.5 m"), ":1");
  EXPECT_EQ(ask(client, "ZRANGE z 0 -1 WITHSCORES"), "*1 *2 $1 m ,1.5");
  ASSERT_EQ(ask(client, "SADD s m"), ":1");
  EXPECT_EQ(ask(client, "SMEMBERS s"), "~1 $1 m");
  EXPECT_EQ(ask(client, "DEL " + here + " " + there + " " + none), ":2");

  ASSERT_EQ(ask(client, "RESET"), "+RESET");
  client.send(request("GET " + none) + request("CLIENT GETNAME"));
  EXPECT_EQ(read_bytes(client, 10), "$-1\r\n$-1\r\n") << "RESET has made it one of RESP2";
}

TEST_F(Login, DatabasesAreApart) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()}, other{proxy.port()};
  EXPECT_EQ(
      ask_all(client, {"SET k zero", "SELECT 3", "SET k three", "GET k", "SELECT 0", "GET k"}),
      (Texts{"+OK", "+OK", "+OK", "$5 three", "+OK", "$4 zero"}));
  EXPECT_EQ(ask(other, "GET k"), "$4 zero");
  EXPECT_EQ(ask(client, "SELECT 16384"), "-ERR DB index is out of range");
  EXPECT_EQ(ask(client, "SELECT -1"), "-ERR DB index is out of range");
  EXPECT_EQ(ask(client, "SELECT x"), "-ERR value is not an integer or out of range");
}

TEST_F(Login, ADatabaseThatIsNotThereIsTheServersError) {
  ProxyUnderTest proxy{ports(), {"auto_eject_hosts: true", "server_failure_limit: 1"}};
  PlainClient client{proxy.port()}, other{proxy.port()};
  ASSERT_EQ(ask(other, "SET k zero"), "+OK");
  EXPECT_EQ(
      ask_all(client, {"SELECT 99", "SET k wrong", "GET k", "MULTI", "SET k wrong", "EXEC"}),
      (Texts{"+OK", "-ERR DB index is out of range", "-ERR DB index is out of range", "+OK",
             "-ERR DB index is out of range",
             "-EXECABORT Transaction discarded because the connection to its server was lost: "
             "nothing of it was done"}));
  EXPECT_EQ(ask(client, "BLPOP k 1"), "-ERR DB index is out of range");
  EXPECT_EQ(ask(other, "GET k"), "$4 zero")
      << "nothing was done in another database, and no server is out";
  EXPECT_EQ(ask_all(client, {"SELECT 0", "GET k"}), (Texts{"+OK", "$4 zero"}));
}

TEST_F(Login, AServerThatRefusesOurPasswordSaysSo) {
  const auto server = std::make_unique<RedisServer>(Texts{"requirepass sesame"});
  ProxyUnderTest proxy{{server->port()}, {"server_password: wrong"}};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "SET k v"), wrong_password);
  EXPECT_EQ(ask(client, "SET k v"), wrong_password);
}

TEST_F(Login, WhatAClientTellsOfItself) {
  ProxyUnderTest proxy{ports(), {}, {"workers: 2"}};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "CLIENT SETNAME one"), "+OK");
  EXPECT_EQ(ask(client, "CLIENT SETINFO LIB-NAME lib"), "+OK");
  EXPECT_EQ(ask(client, "CLIENT SETNAME two"), "+OK");
  EXPECT_EQ(ask(client, "CLIENT SETINFO lib-ver 1.2"), "+OK");
  EXPECT_EQ(ask(client, "CLIENT GETNAME"), "$3 two");
  const auto info = ask(client, "CLIENT INFO");
  for (const auto* part : {" name=two ", " db=0 ", " flags=N ", " multi=-1 ",
                           " user=default redir=-1 resp=2 lib-name=lib lib-ver=1.2"})
    EXPECT_NE(info.find(part), std::string::npos) << info;
  EXPECT_EQ(ask(client, "CLIENT SETINFO LIB-AGE 1"), "-ERR Unrecognized option 'LIB-AGE'");
  EXPECT_EQ(ask(client, "CLIENT SETNAME " + std::string(257, 'x')),
            "-ERR name is too long: at most 256 bytes");
  client.send("*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$3\r\na b\r\n");
  EXPECT_EQ(text_of(client.read()),
            "-ERR Client names cannot contain spaces, newlines or special characters.");
  client.send("*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$0\r\n\r\n");
  EXPECT_EQ(text_of(client.read()), "+OK");
  EXPECT_EQ(ask(client, "CLIENT GETNAME"), "_");
  PlainClient other{proxy.port()};
  EXPECT_NE(ask(client, "CLIENT ID"), ask(other, "CLIENT ID"));
}

TEST_F(Login, WhatSharedConnectionsCannotDoIsRefused) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_TRUE(
      ask(client, "CLIENT TRACKING ON").starts_with("-ERR CLIENT TRACKING cannot be served"));
  EXPECT_EQ(ask(client, "CLIENT TRACKING OFF"), "+OK");
  EXPECT_TRUE(
      ask(client, "CLIENT CACHING YES").starts_with("-ERR CLIENT CACHING can be called only"));
  EXPECT_EQ(ask(client, "CLIENT GETREDIR"), ":-1");
  EXPECT_TRUE(
      ask(client, "CLIENT NO-EVICT ON").starts_with("-ERR CLIENT NO-EVICT cannot be served"));
  EXPECT_EQ(ask(client, "CLIENT NO-TOUCH OFF"), "+OK");
}

TEST_F(Login, RepliesAreSwitchedOff) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto here = proxy.key_at(0), there = proxy.key_at(1);
  for (const auto& line : {"SET " + here + " 1", std::string{"CLIENT REPLY OFF"}, "INCR " + here,
                           "MSET " + there + " 1 " + here + " 5", std::string{"PING"},
                           std::string{"FOO"}, std::string{"CLIENT REPLY ON"},
                           std::string{"CLIENT REPLY SKIP"}, "INCR " + here, "GET " + here})
    client.send(request(line));
  EXPECT_EQ(text_of(client.read()), "+OK");
  EXPECT_EQ(text_of(client.read()), "+OK") << "of REPLY ON";
  EXPECT_EQ(text_of(client.read()), "$1 6");
  EXPECT_EQ(ask(client, "CLIENT REPLY MAYBE"), "-ERR syntax error");
}

}  // namespace
}  // namespace sluice::test
