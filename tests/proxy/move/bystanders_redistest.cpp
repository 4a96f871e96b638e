/// Who else is logged in at the servers whose keys move: replicas, Sentinels, applications, tools.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/move/counter_load.hpp"
#include "proxy/move/move_rig.hpp"
#include "proxy/support/asking.hpp"
#include "support/comes_true.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"
#include "support/sentinel_rig.hpp"

namespace sluice::test {
namespace {

/// As whom proxies, Sentinels and replicas log in at the servers.
struct Login {
  const char* name;
  std::vector<std::string> server, pool, sentinel, replica;
  std::string auth;  ///< what an application says first
};

void PrintTo(const Login& login, std::ostream* out) { *out << login.name; }

const Login logins[] = {
    {"Open", {}, {}, {}, {}, ""},
    {"Password",
     {"requirepass pw", "masterauth pw"},
     {"server_password: pw"},
     {"sentinel auth-pass m pw"},
     {"requirepass pw", "masterauth pw"},
     "AUTH pw"},
    {"AclUser",
     {"user ring on >pw ~* &* +@all (~x* +get)", "user app on >pw ~app* &news +@all -debug"},
     {"server_user: ring", "server_password: pw"},
     {"sentinel auth-user m ring", "sentinel auth-pass m pw"},
     {"masteruser ring", "masterauth pw"},
     "AUTH ring pw"},
    {"FewRights",
     {"user ring on >pw resetchannels &__sentinel__:hello &n* ~count* ~key* -@all +@read +@write "
      "+@connection +@transaction +@pubsub +acl +client +migrate +memory +info +role +psync "
      "+replconf +slaveof +config|rewrite"},
     {"server_user: ring", "server_password: pw"},
     {"sentinel auth-user m ring", "sentinel auth-pass m pw"},
     {"masteruser ring", "masterauth pw"},
     "AUTH ring pw"},
};

/// A master of the ring with a replica and a Sentinel that would fail over soon.
class RingMoveBystanders : public testing::TestWithParam<Login> {
 protected:
  static constexpr std::string_view down_after = "3000";  // ms

  void SetUp() override {
    const auto& login = GetParam();
    rig.emplace(2, login.server, login.pool);
    auto lines = login.replica;
    lines.push_back(fmt::format("replicaof 127.0.0.1 {}", master().port()));
    replica.emplace(lines);
    const auto port = free_port();
    std::vector<std::string> config{
        fmt::format("port {}", port), "bind 127.0.0.1",
        fmt::format("sentinel monitor m 127.0.0.1 {} 1", master().port()),
        fmt::format("sentinel down-after-milliseconds m {}", down_after),
        "sentinel failover-timeout m 10000"};
    config.insert(config.end(), login.sentinel.begin(), login.sentinel.end());
    sentinel.emplace(port, config);
    ASSERT_TRUE(comes_true([&] { return is_replica_in(); }));
    ASSERT_TRUE(comes_true([&] { return ask_sentinel("SENTINEL REPLICAS m").contains("slave"); }));
  }

  RedisServer& master() { return rig->server(0); }
  std::string ask_sentinel(const std::string& line) {
    PlainClient client{sentinel->port()};
    return ask(client, line);
  }
  std::string ask_master(const std::string& line) {
    auto client = rig->direct(0);
    return ask(client, line);
  }
  bool is_replica_in() { return ask_master("INFO replication").contains("state=online"); }
  bool is_master_well() {
    return ask_master("ROLE").contains("master") &&
           !ask_sentinel("SENTINEL MASTER m").contains("s_down") &&
           ask_sentinel("SENTINEL GET-MASTER-ADDR-BY-NAME m")
               .ends_with(std::to_string(master().port()));
  }
  std::optional<PlainClient> application() {
    std::optional<PlainClient> client{master().port()};
    if (!GetParam().auth.empty()) EXPECT_EQ(ask(*client, GetParam().auth), "+OK");
    return client;
  }
  std::vector<std::string> rights() {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < MoveRig::servers; ++i) {
      auto client = rig->direct(i);
      all.push_back(ask(client, "ACL LIST"));
    }
    return all;
  }
  /// False: the Sentinel has given the master up. True: longer than it waits has gone by.
  bool outlasts_sentinel() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{5};
    bool is_well = true;
    EXPECT_TRUE(comes_true([&] {
      is_well &= is_master_well();
      return !is_well || std::chrono::steady_clock::now() > until;
    }));
    return is_well;
  }

  std::optional<MoveRig> rig;
  std::optional<RedisServer> replica;
  std::optional<SentinelRig::Sentinel> sentinel;
};

TEST_P(RingMoveBystanders, D04_SentinelsAndReplicasStayInAndNothingIsLost) {
  const auto before = rights();
  CounterLoad load{{.ports = {rig->port(0), rig->port(1)}}};
  ASSERT_TRUE(comes_true([&] { return load.done() > 200; })) << fmt::format("{}", load.errors());
  auto watcher = application(), blocked = application(), listener = application(),
       plain = application();
  const auto moving = rig->moving_key();
  EXPECT_EQ(ask(*plain, "PING"), "+PONG");
  static_cast<void>(ask(*watcher, "MONITOR"));
  blocked->send(request("BLPOP " + moving + " 0"));
  EXPECT_TRUE(ask(*listener, "SUBSCRIBE news").contains("news"));
  auto stranger = rig->direct(0);  // a user of its own
  ASSERT_TRUE(comes_true([&] { return ask_master("CLIENT LIST").contains("cmd=blpop"); }));

  auto mover = rig->start_mover();
  ASSERT_TRUE(rig->comes_to_tell("all keys have moved, but")) << rig->told();
  EXPECT_TRUE(ask_master("CLIENT KILL TYPE replica").starts_with(":"));
  EXPECT_TRUE(outlasts_sentinel()) << ask_sentinel("SENTINEL MASTER m");
  EXPECT_TRUE(comes_true([&] { return is_replica_in(); })) << "a replica that comes back";
  EXPECT_EQ(ask(stranger, "PING"), "+PONG");
  EXPECT_TRUE(rig->told().contains("'tester'")) << rig->told();
  // Who could touch keys may not any more, whether it stays connected or comes back.
  EXPECT_FALSE(ask_master("CLIENT LIST").contains("cmd=blpop"));
  EXPECT_FALSE(ask_master("CLIENT LIST").contains("cmd=monitor"));
  PlainClient late{master().port()};
  if (!GetParam().auth.empty()) static_cast<void>(ask(late, GetParam().auth));
  for (const auto* const line :
       {"SET {} 1", "GET {}", "DEL {}", "EVAL return{{redis.call('set','{}',1)}} 0", "FLUSHALL",
        "SWAPDB 0 1", "SORT {} STORE {}", "RENAME {} x", "COPY {} x"}) {
    const auto words = fmt::format(fmt::runtime(line), moving, moving);
    EXPECT_TRUE(ask(late, words).starts_with("-")) << words;
  }

  rig->place_files(true);
  ASSERT_EQ(mover.wait(), 0) << rig->told();
  EXPECT_EQ(rights(), before);
  EXPECT_TRUE(is_master_well());
  auto again = application();
  EXPECT_NE(ask(*again, "EXISTS " + moving).front(), '-') << "it may as before";
  const auto& history = load.stop();
  EXPECT_EQ(contradictions(history, load.last(rig->port(0))), std::vector<std::string>{});
  EXPECT_EQ(load.unknown() + load.refused(), 0U) << fmt::format("{}", load.errors());
}

TEST_P(RingMoveBystanders, D04_RightsAreAsBeforeWhereverTheMoverIsKilled) {
  const auto before = rights();
  auto stopped = rig->start_mover();
  ASSERT_TRUE(rig->comes_to_tell("held")) << rig->told();
  stopped.kill();
  if (rig->tell_proxy(0, {"MOVE", "STATUS"}).starts_with("held")) {
    EXPECT_EQ(rig->start_mover(false, {"--cancel"}).wait(), 0) << rig->told();
    EXPECT_EQ(rights(), before);
  }
  for (const std::string_view step :
       {"held", "fenced", "moving", "moved so far", "all keys have moved, but"}) {
    SCOPED_TRACE(step);
    rig->forget_told();
    auto mover = rig->start_mover();
    // Behind the fence it is not told again that requests are held.
    ASSERT_TRUE(comes_true([&] {
      return rig->told().contains(step) || rig->told().contains("all keys have moved, but");
    })) << rig->told();
    mover.kill();
  }
  EXPECT_TRUE(outlasts_sentinel()) << ask_sentinel("SENTINEL MASTER m");
  rig->move_all();
  EXPECT_EQ(rights(), before);
  rig->move_all(true);
  EXPECT_EQ(rights(), before);
  EXPECT_TRUE(is_replica_in());
  EXPECT_TRUE(is_master_well());
}

INSTANTIATE_TEST_SUITE_P(Logins, RingMoveBystanders, testing::ValuesIn(logins),
                         [](const auto& row) { return std::string{row.param.name}; });

}  // namespace
}  // namespace sluice::test
