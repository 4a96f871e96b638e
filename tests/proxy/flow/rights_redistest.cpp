// What a user with the setting `acl` may do, on every way that a request can go.
#include <algorithm>

#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;

constexpr std::string_view no_key =
    "-NOPERM this user has no permissions to access one of the keys used as arguments";
constexpr std::string_view no_channel =
    "-NOPERM this user has no permissions to access one of the channels used as arguments";

std::string no_command(std::string_view name) {
  return "-NOPERM this user has no permissions to run the '" + std::string{name} + "' command";
}

struct UserRights : TwoServers {
  static Texts users(const std::string& acl, const std::string& more = "") {
    return {"users:", " - {name: u, password: p, acl: \"" + acl + "\"" + more + "}",
            " - {name: root, password: r}"};
  }
  /// As the user of these tests.
  struct User : PlainClient {
    explicit User(ProxyUnderTest& proxy) : PlainClient{proxy.port()} {
      EXPECT_EQ(ask(*this, "AUTH u p"), "+OK");
    }
  };
  /// How often the servers have done the command. (What the proxy refuses they never see.)
  static std::size_t done(const std::string& command) {
    std::size_t calls = 0;
    for (const std::size_t server : {0, 1}) {
      auto client = direct(server);
      const auto text = text_of(client.command({"INFO", "commandstats"}));
      const auto mark = "cmdstat_" + command + ":calls=";
      if (const auto at = text.find(mark); at != std::string::npos)
        calls += std::stoul(text.substr(at + mark.size()));
    }
    return calls;
  }
};

TEST_F(UserRights, CommandsKeysAndChannelsAreChecked) {
  ProxyUnderTest proxy{ports(), users("+@all -@dangerous -config ~app:* %R~shared:* &news:*")};
  User user{proxy};
  EXPECT_EQ(ask_all(user, {"SET app:1 v", "GET app:1", "GET shared:1", "SET shared:1 v", "GET x",
                           "INFO", "KEYS *", "CONFIG GET x", "EXISTS x", "PING", "ECHO x",
                           "PUBLISH news:1 x", "PUBLISH other x"}),
            (Texts{"+OK", "$1 v", "_", std::string{no_key}, std::string{no_key}, no_command("info"),
                   no_command("keys"), no_command("config|get"), std::string{no_key}, "+PONG",
                   "$1 x", ":0", std::string{no_channel}}));
  EXPECT_EQ(ask(user, "GETT x").substr(0, 20), "-ERR unknown command");
  EXPECT_EQ(ask(user, "GET").substr(0, 29), "-ERR wrong number of argument");
}

TEST_F(UserRights, OfSeveralKeysAllAreChecked) {
  ProxyUnderTest proxy{ports(), users("+@all ~app:* %R~r:* %W~w:*")};
  User user{proxy};
  const auto before = done("set") + done("mset") + done("del") + done("unlink");
  EXPECT_EQ(ask_all(user, {"MSET app:1 a app:2 b app:3 c x d", "DEL app:1 app:2 app:3 x",
                           "UNLINK r:1 app:1", "MGET app:1 w:1", "TOUCH app:1 x"}),
            Texts(5, std::string{no_key}));
  EXPECT_EQ(done("set") + done("mset") + done("del") + done("unlink"), before) << "not even a part";
  EXPECT_EQ(ask_all(user, {"MSET app:1 a app:2 b app:3 c w:1 d", "MGET app:1 app:2 r:1"}),
            (Texts{"+OK", "*3 $1 a $1 b _"}));
  EXPECT_EQ(
      ask_all(user, {"SET w:1 v", "SET w:1 v GET", "GET w:1", "BITFIELD r:1 GET u8 0",
                     "BITFIELD r:1 SET u8 0 1", "STRLEN w:1"}),
      (Texts{"+OK", std::string{no_key}, std::string{no_key}, "*1 :0", std::string{no_key}, ":1"}));
}

TEST_F(UserRights, ATransactionWithADeniedCommandIsNotDone) {
  ProxyUnderTest proxy{ports(), users("+@all -incr ~app:*")};
  User user{proxy};
  EXPECT_EQ(
      ask_all(user, {"MULTI", "SET {app:}1 v", "SET x v", "INCR app:1", "EXEC", "GET {app:}1"}),
      (Texts{"+OK", std::string{no_key}, std::string{no_key}, no_command("incr"),
             "-EXECABORT Transaction discarded because of previous errors.", std::string{no_key}}));
  EXPECT_EQ(ask_all(user, {"MULTI", "SET app:1 v", "GET app:1", "EXEC"}),
            (Texts{"+OK", "+QUEUED", "+QUEUED", "*2 +OK $1 v"}));
  EXPECT_EQ(ask(user, "WATCH x"), no_key);
}

TEST_F(UserRights, AnExecThatIsDeniedEndsTheTransaction) {
  const auto no_exec =
      "-EXECABORT Transaction discarded because of: " + no_command("exec").substr(1);
  ProxyUnderTest proxy{ports(), users("+@all -exec -discard ~app:*")};
  User user{proxy};
  EXPECT_EQ(ask_all(user, {"MULTI", "SET app:1 v", "DISCARD", "EXEC", "GET app:1", "EXEC"}),
            (Texts{"+OK", "+QUEUED", no_command("discard"), no_exec, "_", no_exec}));
}

TEST_F(UserRights, ScriptsAndWhatWaitsAreChecked) {
  ProxyUnderTest proxy{ports(), users("+@all -blmove ~app:*")};
  User user{proxy};
  const auto sha = ask(user, "SCRIPT LOAD return(1)").substr(4);
  EXPECT_EQ(ask_all(user, {"EVAL return(1) 1 app:1", "EVAL return(1) 2 {app:}1 x",
                           "EVALSHA " + sha + " 1 app:1", "EVALSHA " + sha + " 1 x",
                           "EVAL return(1) 0", "BLPOP x 0", "BLMOVE app:1 app:1 LEFT LEFT 0",
                           "XREAD BLOCK 0 STREAMS x 0", "SORT app:1 GET #"}),
            (Texts{":1", std::string{no_key}, ":1", std::string{no_key}, ":1", std::string{no_key},
                   no_command("blmove"), std::string{no_key},
                   "-ERR GET option of SORT denied due to insufficient ACL permissions."}));
}

TEST_F(UserRights, ChannelsAreCheckedAndPatternsToTheLetter) {
  ProxyUnderTest proxy{ports(), users("+@all &news:* &exact")};
  User user{proxy};
  EXPECT_EQ(ask_all(user, {"SUBSCRIBE news:1 other", "PSUBSCRIBE news:1*", "SSUBSCRIBE x"}),
            Texts(3, std::string{no_channel}));
  EXPECT_EQ(ask_all(user, {"PSUBSCRIBE news:*", "SUBSCRIBE exact"}),
            (Texts{"*3 $10 psubscribe $6 news:* :1", "*3 $9 subscribe $5 exact :2"}));
}

TEST_F(UserRights, InlineRequestsAndPipelinesAreChecked) {
  ProxyUnderTest proxy{ports(), users("+@read +@connection ~app:*")};
  User user{proxy};
  user.send("GET app:1\r\nGET x\r\nSET app:1 v\r\nPING\r\n" + request("GET x") + request("ECHO y"));
  for (const std::string& expected :
       {std::string{"_"}, std::string{no_key}, no_command("set"), std::string{"+PONG"},
        std::string{no_key}, std::string{"$1 y"}})
    EXPECT_EQ(text_of(user.read()), expected);
}

TEST_F(UserRights, HoldBesideReadOnlyAndAllow) {
  auto settings = users("+@all ~app:*", ", read_only: true");
  settings.insert(settings.begin(), "allow: [flushall, config get]");
  settings.insert(settings.begin(), "commands: {MY.GET: key 1 read, MY.SET: key 1}");
  ProxyUnderTest proxy{ports(), settings};
  User user{proxy};
  EXPECT_EQ(
      ask_all(user, {"GET app:1", "GET x", "SET app:1 v", "FLUSHALL", "MY.SET app:1", "MY.GET x"}),
      (Texts{"_", std::string{no_key}, no_command("set"), no_command("flushall"),
             no_command("MY.SET"), std::string{no_key}}));
  EXPECT_EQ(ask(user, "MY.GET app:1").substr(0, 28), "-ERR unknown command 'MY.GET") << "Redis's";
}

TEST_F(UserRights, BelongToTheUserNotToTheConnection) {
  ProxyUnderTest proxy{ports(), users("+get +auth ~app:*")};
  User user{proxy};
  EXPECT_EQ(ask_all(user, {"SET x v", "AUTH root r", "SET x v", "AUTH u p", "GET x", "RESET"}),
            (Texts{no_command("set"), "+OK", "+OK", "+OK", std::string{no_key}, "+RESET"}));
  EXPECT_EQ(ask(user, "GET app:1"), "-NOAUTH Authentication required.");
}

/// What a server answers each user who may do the same by its own ACL.
TEST_F(UserRights, RefusalsAreThoseOfTheServer) {
  const std::string acl = "+@all -@dangerous +info -get ~app:* %R~r:* (+get %R~s:*) &c*";
  ProxyUnderTest proxy{ports(), users(acl)};
  User user{proxy};
  auto server = direct(0);
  ASSERT_EQ(
      text_of(server.command({"ACL", "SETUSER", "u", "reset", "on", ">p", "+@all", "-@dangerous",
                              "+info", "-get", "~app:*", "%R~r:*", "(+get %R~s:*)", "&c*"})),
      "+OK");
  const auto version = info_of(server, "redis_version");
  ASSERT_EQ(ask(server, "AUTH u p"), "+OK");
  for (const auto* line :
       {"GET app:1", "GET s:1", "GET r:1", "SET r:1 v", "HGETALL r:1", "COPY r:1 app:1",
        "COPY app:1 r:1", "KEYS *", "CONFIG GET x", "SUBSCRIBE d", "PUBLISH d x", "ZCARD x", "PING",
        "EXISTS s:1", "DEBUG SLEEP 0", "CLIENT KILL ID 1", "CLIENT ID"}) {
    const auto ours = ask(user, line), theirs = ask(server, line);
    EXPECT_EQ(ours.substr(0, 7) == "-NOPERM", theirs.substr(0, 7) == "-NOPERM") << line;
    if (version.starts_with("7.0") && theirs.starts_with("-NOPERM")) {
      EXPECT_EQ(ours, theirs);
    }
  }
  auto root = direct(0);
  EXPECT_EQ(text_of(root.command({"ACL", "DELUSER", "u"})), ":1");
}

}  // namespace
}  // namespace sluice::test
