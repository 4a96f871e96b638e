// What a reload takes away is away at once.
#include "proxy/flow/two_servers.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;
using ReloadedRights = TwoServers;

const std::string writer = " - {name: writer, password: w}";
const std::string narrowed = " - {name: writer, password: w, read_only: true}";
const std::string guest = " - {name: guest, password: g}";
constexpr const char* closed = "";

TEST_F(ReloadedRights, X11_AUserWhoMayLessMayLessAtOnce) {
  ProxyUnderTest proxy{ports(), {"users:", writer, guest}};
  PlainClient client{proxy.port()}, queued{proxy.port()}, blocked{proxy.port()};
  PlainClient other{proxy.port()};
  for (auto* one : {&client, &queued, &blocked}) EXPECT_EQ(ask(*one, "AUTH writer w"), "+OK");
  EXPECT_EQ(ask(other, "AUTH guest g"), "+OK");
  EXPECT_EQ(ask_all(queued, {"MULTI", "SET k x"}), (Texts{"+OK", "+QUEUED"}));
  blocked.send(request("BLPOP l 0"));
  auto first = direct(0), second = direct(1);
  ASSERT_TRUE(comes_true([&] {
    return info_of(first, "blocked_clients") == "1" || info_of(second, "blocked_clients") == "1";
  }));
  proxy.reload(ports(), {"users:", narrowed, guest});
  EXPECT_EQ(ask(client, "SET k v").substr(0, 7), "-NOPERM");
  EXPECT_EQ(ask(client, "GET k"), "_");
  EXPECT_EQ(ask(queued, "EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
  EXPECT_EQ(text_of(blocked.read()), "-UNBLOCKED what this user may do has changed");
  EXPECT_EQ(ask(blocked, "PING"), "+PONG");
  EXPECT_EQ(ask(other, "SET k v"), "+OK") << "the others are as before";
  proxy.reload(ports(), {"users:", writer, guest});
  EXPECT_EQ(ask(client, "SET k w"), "+OK");
}

TEST_F(ReloadedRights, X11_AUserWhoIsRemovedIsClosed) {
  ProxyUnderTest proxy{ports(), {"redis_auth: sesame", "users:", writer, guest}};
  PlainClient idle{proxy.port()}, listening{proxy.port()}, blocked{proxy.port()};
  PlainClient other{proxy.port()}, by_default{proxy.port()};
  for (auto* one : {&idle, &listening, &blocked}) EXPECT_EQ(ask(*one, "AUTH guest g"), "+OK");
  EXPECT_EQ(ask(other, "AUTH writer w"), "+OK");
  EXPECT_EQ(ask(by_default, "AUTH sesame"), "+OK");
  EXPECT_EQ(ask(listening, "SUBSCRIBE c"), "*3 $9 subscribe $1 c :1");
  blocked.send(request("BLPOP l 0"));
  auto first = direct(0), second = direct(1);
  ASSERT_TRUE(comes_true([&] {
    return info_of(first, "blocked_clients") == "1" || info_of(second, "blocked_clients") == "1";
  }));
  proxy.reload(ports(), {"redis_auth: other", "users:", writer});
  EXPECT_EQ(idle.read_raw(), closed);
  EXPECT_EQ(listening.read_raw(), closed);
  EXPECT_EQ(text_of(blocked.read()), "-UNBLOCKED what this user may do has changed");
  EXPECT_EQ(blocked.read_raw(), closed);
  EXPECT_EQ(ask(other, "SET k v"), "+OK");
  EXPECT_EQ(ask(by_default, "GET k"), "$1 v") << "another password: who is in stays in";
  proxy.reload(ports(), {"users:", writer});
  EXPECT_EQ(by_default.read_raw(), closed) << "the default user has no password now";
  EXPECT_EQ(ask(other, "GET k"), "$1 v");
}

std::string limited(const std::string& acl) {
  return " - {name: writer, password: w, acl: \"" + acl + "\"}";
}

TEST_F(ReloadedRights, X11_RightsThatAreTakenAreTakenAtOnce) {
  ProxyUnderTest proxy{ports(), {"users:", limited("+@all ~* &*"), guest}};
  PlainClient client{proxy.port()}, queued{proxy.port()}, blocked{proxy.port()};
  for (auto* one : {&client, &queued, &blocked}) EXPECT_EQ(ask(*one, "AUTH writer w"), "+OK");
  EXPECT_EQ(ask_all(queued, {"MULTI", "SET k x"}), (Texts{"+OK", "+QUEUED"}));
  blocked.send(request("BLPOP l 0"));
  auto first = direct(0), second = direct(1);
  ASSERT_TRUE(comes_true([&] {
    return info_of(first, "blocked_clients") == "1" || info_of(second, "blocked_clients") == "1";
  }));
  proxy.reload(ports(), {"timeout: 20000", "users:", limited("+@all ~* &*"), guest});
  EXPECT_EQ(ask(client, "SET k v"), "+OK") << "nothing was taken";
  proxy.reload(ports(), {"users:", limited("+@all ~app:* &*"), guest});
  EXPECT_EQ(ask(client, "SET k v").substr(0, 7), "-NOPERM");
  EXPECT_EQ(ask(client, "GET app:1"), "_");
  EXPECT_EQ(ask(queued, "EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
  EXPECT_EQ(text_of(blocked.read()), "-UNBLOCKED what this user may do has changed");
  EXPECT_EQ(ask_all(queued, {"MULTI", "SET app:1 x"}), (Texts{"+OK", "+QUEUED"}));
  proxy.reload(ports(), {"users:", writer, guest});
  EXPECT_EQ(ask(client, "SET k w"), "+OK");
  EXPECT_EQ(ask(queued, "EXEC"), "*1 +OK") << "more rights spoil nothing";
  proxy.reload(ports(), {"users:", limited("+get ~*"), guest});
  EXPECT_EQ(ask(client, "SET k w").substr(0, 7), "-NOPERM") << "a first acl is less than none";
}

TEST_F(ReloadedRights, X11_WhoListensToWhatWasTakenIsClosed) {
  ProxyUnderTest proxy{ports(), {"users:", limited("+@all ~* &a* &b*"), guest}};
  PlainClient on_a{proxy.port()}, on_b{proxy.port()}, on_pattern{proxy.port()};
  PlainClient sharded{proxy.port()}, other{proxy.port()};
  for (auto* one : {&on_a, &on_b, &on_pattern, &sharded})
    EXPECT_EQ(ask(*one, "AUTH writer w"), "+OK");
  EXPECT_EQ(ask(other, "AUTH guest g"), "+OK");
  EXPECT_EQ(ask(on_a, "SUBSCRIBE a1"), "*3 $9 subscribe $2 a1 :1");
  EXPECT_EQ(ask(on_b, "SUBSCRIBE b1"), "*3 $9 subscribe $2 b1 :1");
  EXPECT_EQ(ask(on_pattern, "PSUBSCRIBE b*"), "*3 $10 psubscribe $2 b* :1");
  EXPECT_EQ(ask(sharded, "SSUBSCRIBE b2"), "*3 $10 ssubscribe $2 b2 :1");
  EXPECT_EQ(ask(other, "SUBSCRIBE b1"), "*3 $9 subscribe $2 b1 :1");
  proxy.reload(ports(), {"users:", limited("+@all ~* &a* &b1*"), guest});
  EXPECT_EQ(on_pattern.read_raw(), closed) << "a pattern is right to the letter alone";
  EXPECT_EQ(sharded.read_raw(), closed);
  proxy.reload(ports(), {"users:", limited("+@all ~* &a*"), guest});
  EXPECT_EQ(on_b.read_raw(), closed);
  PlainClient speaker{proxy.port()};
  EXPECT_EQ(ask_all(speaker, {"AUTH guest g", "PUBLISH a1 x", "PUBLISH b1 y"}),
            (Texts{"+OK", ":1", ":1"}));
  EXPECT_EQ(text_of(on_a.read()), "*3 $7 message $2 a1 $1 x");
  EXPECT_EQ(text_of(other.read()), "*3 $7 message $2 b1 $1 y");
}

TEST_F(ReloadedRights, X11_AFirstPasswordIsAskedOfAll) {
  for (const bool strict : {false, true}) {
    ProxyUnderTest proxy{ports(), strict ? Texts{"compat: strict"} : Texts{}};
    PlainClient plain{proxy.port()}, silent{proxy.port()};
    EXPECT_EQ(ask(plain, "SET k v"), "+OK");
    EXPECT_EQ(ask(silent, "GET k"), "$1 v");
    Texts settings{"redis_auth: sesame"};
    if (strict) settings.emplace_back("compat: strict");
    proxy.reload(ports(), settings);
    EXPECT_EQ(plain.read_raw(), closed);
    EXPECT_EQ(silent.read_raw(), closed);
    PlainClient after{proxy.port()};
    EXPECT_EQ(ask(after, "GET k").substr(0, 7), "-NOAUTH");
    EXPECT_EQ(ask_all(after, {"AUTH sesame", "GET k"}), (Texts{"+OK", "$1 v"}));
  }
}

}  // namespace
}  // namespace sluice::test
