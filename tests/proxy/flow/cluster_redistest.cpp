/// A proxy before a Redis Cluster: its clients see one server, whatever its nodes do.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "base/hash_slot.hpp"
#include "proxy/flow/replica_reads.hpp"
#include "proxy/support/asking.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "support/cluster_rig.hpp"
#include "support/comes_true.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"

namespace sluice::test {
namespace {

ClusterRig& rig() {
  static ClusterRig rig;
  return rig;
}

PoolLines before_it(std::vector<std::string> more = {"timeout: 30000"}) {
  PoolLines pool{{"redis: true", fmt::format("cluster: [127.0.0.1:{}]", rig().node(0).port())}};
  pool.lines.insert(pool.lines.end(), more.begin(), more.end());
  return pool;
}

/// Another master than that of the key.
std::size_t other_than(const std::string& key) {
  for (const auto* const other : {"a", "b", "c"})
    if (rig().master_of(other) != rig().master_of(key)) return rig().master_of(other);
  return 0;
}

/// By its end or by a reset; waits for it.
bool is_closed(PlainClient& client) try {
  return client.read_raw().empty();
} catch (const std::system_error& error) {
  return error.code() == std::errc::connection_reset;
}

/// Whether a client of a node waits in a blocking command.
bool has_blocked(std::size_t node) {
  return rig().client_of(node).command({"INFO", "clients"}).as_text().find("blocked_clients:0") ==
         std::string::npos;
}

class ProxyBeforeACluster : public testing::Test {
 protected:
  void SetUp() override {
    rig().heal();
    for (std::size_t i = 0; i < rig().size(); ++i) rig().client_of(i).command({"FLUSHALL"});
    proxy.emplace(before_it());
    client.emplace(proxy->port());
  }
  /// What a server without a cluster would never say.
  static void expect_no_redirection(const Value& reply) {
    if (!reply.is_error()) return;
    EXPECT_FALSE(reply.as_text().starts_with("MOVED") || reply.as_text().starts_with("ASK"))
        << reply.as_text();
  }
  std::string text(std::initializer_list<std::string_view> words) {
    const auto reply = client->command(words);
    return reply.is_text() || reply.is_error() ? reply.as_text() : to_string(reply);
  }

  std::optional<ProxyUnderTest> proxy;
  std::optional<PlainClient> client;
};

TEST_F(ProxyBeforeACluster, T51_APlainClientSeesOneServer) {
  std::vector<std::string> mset{"MSET"}, mget{"MGET"}, del{"DEL"};
  for (int i = 0; i < 30; ++i) {
    mset.push_back(fmt::format("k{}", i));
    mset.push_back(fmt::format("v{}", i));
    mget.push_back(fmt::format("k{}", i));
    del.push_back(fmt::format("k{}", i));
  }
  EXPECT_EQ(client->command(mset).as_text(), "OK");
  const auto values = client->command(mget);
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(values.as_items().at(static_cast<std::size_t>(i)).as_text(), fmt::format("v{}", i));
  EXPECT_EQ(client->command({"DBSIZE"}).as_integer(), 30);
  EXPECT_EQ(client->command({"KEYS", "*"}).as_items().size(), 30U);
  std::set<std::string> seen;
  std::string cursor = "0";
  do {
    const auto part = client->command({"SCAN", cursor});
    cursor = part.as_items().at(0).as_text();
    for (const auto& key : part.as_items().at(1).as_items()) seen.insert(key.as_text());
  } while (cursor != "0");
  EXPECT_EQ(seen.size(), 30U);
  EXPECT_EQ(client->command({"EXISTS", "k1", "k2", "none"}).as_integer(), 2);
  EXPECT_EQ(client->command({"TOUCH", "k1", "k2"}).as_integer(), 2);
  EXPECT_EQ(client->command({"UNLINK", "k28", "k29"}).as_integer(), 2);
  EXPECT_EQ(client->command(del).as_integer(), 28);

  EXPECT_EQ(text({"EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "{a}1", "x"}), "OK");
  EXPECT_TRUE(text({"EVAL", "return 1", "2", "a", "b"}).starts_with("CROSSSLOT"));
  EXPECT_TRUE(text({"SINTER", "a", "b"}).starts_with("CROSSSLOT"));
  const auto sha = text({"SCRIPT", "LOAD", "return KEYS[1]"});
  for (const auto* const key : {"a", "b", "c", "d"})
    EXPECT_EQ(text({"EVALSHA", sha, "1", key}), key);

  EXPECT_EQ(text({"WATCH", "{t}n"}), "OK");
  EXPECT_EQ(text({"MULTI"}), "OK");
  EXPECT_EQ(text({"INCR", "{t}n"}), "QUEUED");
  EXPECT_EQ(text({"SET", "{t}m", "1"}), "QUEUED");
  EXPECT_EQ(client->command({"EXEC"}).as_items().at(0).as_integer(), 1);

  client->send(request("BLPOP queue 30"));
  const auto home = rig().master_of("queue");
  EXPECT_TRUE(comes_true([&] { return has_blocked(home); }));
  EXPECT_EQ(PlainClient{proxy->port()}.command({"RPUSH", "queue", "x"}).as_integer(), 1);
  EXPECT_EQ(client->read().as_items().at(1).as_text(), "x");

  EXPECT_TRUE(text({"CLUSTER", "INFO"}).find("cluster support disabled") != std::string::npos);
  EXPECT_TRUE(text({"SELECT", "1"}).starts_with("ERR SELECT is not allowed"));
  EXPECT_EQ(text({"SELECT", "0"}), "OK");
}

TEST_F(ProxyBeforeACluster, AMessageComesOnceAndNotificationsComeFromAllNodes) {
  PlainClient hears{proxy->port()};
  hears.send(request("PSUBSCRIBE new*"));
  hears.read();
  hears.send(request("SUBSCRIBE news"));
  hears.read();
  EXPECT_GE(client->command({"PUBLISH", "news", "1"}).as_integer(), 1);
  std::multiset<std::string> said;
  for (int i = 0; i < 2; ++i) said.insert(hears.read().as_items().at(0).as_text());
  EXPECT_EQ(said, (std::multiset<std::string>{"message", "pmessage"}));
  for (std::size_t i = 0; i < rig().size(); ++i)
    rig().client_of(i).command({"CONFIG", "SET", "notify-keyspace-events", "KEA"});
  hears.send(request("PSUBSCRIBE __keyspace@0__:*"));
  EXPECT_EQ(hears.read().as_items().at(0).as_text(), "psubscribe");
  std::multiset<std::string> keys;
  for (const auto* const key : {"a", "b", "c"}) {
    client->command({"SET", key, "1"});
    keys.insert(hears.read().as_items().at(2).as_text());
  }
  EXPECT_EQ(keys, (std::multiset<std::string>{"__keyspace@0__:a", "__keyspace@0__:b",
                                              "__keyspace@0__:c"}));
}

TEST_F(ProxyBeforeACluster, WhatAScriptSaysItselfIsItsReply) {
  const std::string script = "redis.call('INCR', KEYS[1]) return {err = ARGV[1]}";
  const auto sha = text({"SCRIPT", "LOAD", script});
  const auto nowhere = free_port();
  std::int64_t done = 0;
  for (const auto& error :
       {fmt::format("MOVED {} 127.0.0.1:{}", (hash_slot("{s}n") + 1) % hash_slots, nowhere),
        fmt::format("ASK 1 127.0.0.1:{}", nowhere), std::string{"MOVED to paradise"},
        std::string{"TRYAGAIN the stock is low"}, std::string{"CLUSTERDOWN x"},
        std::string{"LOADING x"}, std::string{"MASTERDOWN x"}, std::string{"READONLY x"},
        std::string{"NOSCRIPT x"}, std::string{"UNBLOCKED x"}}) {
    EXPECT_EQ(text({"EVAL", script, "1", "{s}n", error}), error);
    EXPECT_EQ(text({"EVALSHA", sha, "1", "{s}n", error}), error);
    EXPECT_EQ(text({"GET", "{s}n"}), std::to_string(done += 2)) << error;
  }
  EXPECT_EQ(totals(*proxy).detours, 0);
}

TEST_F(ProxyBeforeACluster, T52_ASlotThatMovesIsNoErrorAndNoOrderIsLost) {
  const auto from = rig().master_of("{m}");
  const auto to = other_than("{m}");
  const int slot = hash_slot("{m}");
  const auto sha = text({"SCRIPT", "LOAD", "return redis.call('INCR', KEYS[1])"});
  EXPECT_EQ(text({"SET", "{m}here", "1"}), "OK");
  rig().begin_move(slot, from, to);
  EXPECT_EQ(text({"GET", "{m}here"}), "1");       // at the source
  EXPECT_EQ(text({"SET", "{m}new", "2"}), "OK");  // ASK
  rig().client_of(to).command({"SCRIPT", "FLUSH"});
  EXPECT_EQ(client->command({"EVALSHA", sha, "1", "{m}sum"}).as_integer(),
            1);  // ASK, and a script that is not there
  // One key here and one there: it waits until the slot has moved.
  client->send(request("MGET {m}here {m}new") + request("INCR {m}sum") +
               request("APPEND {m}log a") + request("APPEND {m}log b"));
  EXPECT_TRUE(comes_true([&] { return totals(*proxy).detours > 5; }));
  rig().move_keys(slot, from, to);
  rig().end_move(slot, from, to);
  const auto both = client->read();
  EXPECT_EQ(to_string(both), "[\"1\", \"2\"]");
  EXPECT_EQ(client->read().as_integer(), 2);
  EXPECT_EQ(client->read().as_integer(), 1);
  EXPECT_EQ(client->read().as_integer(), 2);
  EXPECT_EQ(text({"GET", "{m}log"}), "ab");
  rig().move_slot(slot, to, from);
  EXPECT_EQ(text({"GET", "{m}here"}), "1");  // MOVED
}

TEST_F(ProxyBeforeACluster, TheEmptyKeyMovesAsAnyOther) {
  const auto from = rig().master_of_slot(0);
  EXPECT_EQ(client->command({"SET", "", "v"}).as_text(), "OK");
  rig().move_slot(0, from,
                  from == rig().master_of("a") ? rig().master_of("b") : rig().master_of("a"));
  EXPECT_EQ(to_string(client->command({"MGET", "", "k"})), "[\"v\", (nil)]");  // MOVED
}

TEST_F(ProxyBeforeACluster, T52_TryAgainIsToldAtTheDeadlineAlone) {
  const auto from = rig().master_of("{d}");
  const auto to = other_than("{d}");
  const int slot = hash_slot("{d}");
  ProxyUnderTest hasty{before_it({"timeout: 300"})};
  PlainClient client{hasty.port()};
  EXPECT_EQ(client.command({"SET", "{d}here", "1"}).as_text(), "OK");
  rig().begin_move(slot, from, to);
  EXPECT_EQ(client.command({"SET", "{d}new", "2"}).as_text(), "OK");
  const auto union_of_both = request("SUNION {d}here {d}new");
  client.send(union_of_both + union_of_both);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(text_of(client.read()).starts_with("-TRYAGAIN"));
  EXPECT_GT(totals(hasty).detours, 4);
  EXPECT_EQ(client.command({"GET", "{d}new"}).as_text(), "2") << "and the next is served";
  rig().move_keys(slot, from, to);
  rig().end_move(slot, from, to);
}

TEST_F(ProxyBeforeACluster, T51_ATransactionWhoseSlotMovesIsAborted) {
  const auto move = [](const std::string& key) {
    rig().move_slot(hash_slot(key), rig().master_of(key), other_than(key));
  };
  EXPECT_EQ(text({"MULTI"}), "OK");
  EXPECT_EQ(text({"SET", "{x}a", "1"}), "QUEUED");
  move("{x}");
  EXPECT_TRUE(text({"SET", "{x}b", "1"}).starts_with("TRYAGAIN"));
  EXPECT_TRUE(text({"EXEC"}).starts_with("EXECABORT"));
  EXPECT_EQ(client->command({"EXISTS", "{x}a", "{x}b"}).as_integer(), 0);
  EXPECT_EQ(text({"MULTI"}), "OK");
  EXPECT_EQ(text({"SET", "{y}a", "1"}), "QUEUED");
  move("{y}");
  EXPECT_TRUE(text({"EXEC"}).starts_with("EXECABORT"));
  EXPECT_EQ(client->command({"EXISTS", "{y}a"}).as_integer(), 0);
  EXPECT_EQ(text({"MULTI"}), "OK");
  EXPECT_EQ(text({"SET", "{y}a", "1"}), "QUEUED");
  EXPECT_TRUE(text({"SET", "{z}a", "1"}).starts_with("CROSSSLOT"));
  EXPECT_TRUE(text({"EXEC"}).starts_with("EXECABORT"));
  // Whoever begins with it, when its map may be of before the move.
  move("{z}");
  EXPECT_EQ(text({"WATCH", "{z}n"}), "OK");
  EXPECT_EQ(text({"MULTI"}), "OK");
  EXPECT_EQ(text({"INCR", "{z}n"}), "QUEUED");
  EXPECT_EQ(client->command({"EXEC"}).as_items().at(0).as_integer(), 1);
}

TEST_F(ProxyBeforeACluster, T51_WhoWaitsGoesOnAtTheSlotsNewHome) {
  const auto from = rig().master_of("{w}");
  const auto to = other_than("{w}");
  const int slot = hash_slot("{w}");
  client->send(request("BLPOP {w}queue 0"));
  EXPECT_TRUE(comes_true([&] { return has_blocked(from); }));
  rig().move_slot(slot, from, to);
  EXPECT_TRUE(comes_true([&] { return has_blocked(to); }));
  EXPECT_EQ(PlainClient{proxy->port()}.command({"RPUSH", "{w}queue", "x"}).as_integer(), 1);
  EXPECT_EQ(client->read().as_items().at(1).as_text(), "x");
}

TEST_F(ProxyBeforeACluster, T51_WhoWaitsGoesOnForTheRestOfItsTime) {
  const auto from = rig().master_of("{v}");
  const auto to = other_than("{v}");
  client->send(request("BLPOP {v}queue 1000"));
  EXPECT_TRUE(comes_true([&] { return has_blocked(from); }));
  auto hears = rig().client_of(to);
  hears.command({"MONITOR"});
  rig().move_slot(hash_slot("{v}"), from, to);
  std::string said;
  while (said.find("\"BLPOP\"") == std::string::npos) said = hears.read().as_text();
  EXPECT_EQ(said.find("\"1000\""), std::string::npos) << said;
  EXPECT_EQ(PlainClient{proxy->port()}.command({"RPUSH", "{v}queue", "x"}).as_integer(), 1);
  EXPECT_EQ(client->read().as_items().at(1).as_text(), "x");
  // What is over by then looks once more.
  client->send(request("BLPOP {w}queue 0.01"));
  EXPECT_TRUE(client->read().is_null());
}

TEST_F(ProxyBeforeACluster, T53_AFailoverLosesNoRequestAndNoOrder) {
  const std::string key = "{f}n";
  const auto old = rig().master_of(key);
  constexpr int each = 50;
  std::int64_t last = 0;
  const auto round = [&] {
    std::string bytes;
    for (int i = 0; i < each; ++i) bytes += request(fmt::format("INCR {}", key));
    client->send(bytes);
    for (int i = 0; i < each; ++i) {
      const auto reply = client->read();
      ASSERT_FALSE(reply.is_error()) << reply.as_text();
      ASSERT_EQ(reply.as_integer(), ++last);
    }
  };
  round();
  const auto heir = rig().replica_of(old);
  EXPECT_EQ(rig().client_of(heir).command({"CLUSTER", "FAILOVER"}).as_text(), "OK");
  auto asks = rig().client_of(heir);
  EXPECT_TRUE(comes_true([&] {
    round();
    return HasFatalFailure() ||
           asks.command({"INFO", "replication"}).as_text().find("role:master") != std::string::npos;
  }));
  round();
}

TEST_F(ProxyBeforeACluster, T55_ReadsOfReplicasShowOnesOwnWrites) {
  ProxyUnderTest reading{before_it({"timeout: 30000", "read_from: replica"})};
  PlainClient client{reading.port()};
  auto& replica = rig().node(rig().replica_of(rig().master_of("{r}")));
  for (int i = 3; i < 5; ++i) {
    const auto value = std::to_string(i);
    client.command({"SET", "{r}", value});
    EXPECT_EQ(client.command({"GET", "{r}"}).as_text(), value);
    EXPECT_TRUE(reads_at(replica, client, "{r}", value));
  }
  // A new connection that has not said READONLY would be told MOVED.
  PlainClient{replica.port()}.command({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(reads_at(replica, client, "{r}", "4"));
  EXPECT_TRUE(client.command({"LLEN", "{r}"}).as_text().starts_with("WRONGTYPE"));
  // A transaction, and what is watched, is the master's.
  const auto before = gets(replica);
  for (int i = 0; i < 5; ++i) {
    client.command({"WATCH", "{r}"});
    EXPECT_EQ(client.command({"GET", "{r}"}).as_text(), "4");
    client.command({"MULTI"});
    client.command({"GET", "{r}"});
    EXPECT_EQ(client.command({"EXEC"}).as_items().at(0).as_text(), "4");
  }
  EXPECT_EQ(gets(replica), before);
  EXPECT_TRUE(reads_at(replica, client, "{r}", "4"));
  // It stands still: what it was asked the master answers.
  replica.stop();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.command({"GET", "{r}"}).as_text(), "4");
  client.command({"SET", "{r}", "5"});
  EXPECT_EQ(client.command({"GET", "{r}"}).as_text(), "5");
  replica.cont();
  EXPECT_TRUE(reads_at(replica, client, "{r}", "5"));
}

TEST_F(ProxyBeforeACluster, T55_AKeyThatHasMovedIsNotAbsentAtAReplica) {
  ProxyUnderTest reading{before_it({"timeout: 30000", "read_from: replica"})};
  PlainClient client{reading.port()};
  const auto from = rig().master_of("{g}");
  const auto to = other_than("{g}");
  const int slot = hash_slot("{g}");
  auto& replica = rig().node(rig().replica_of(from));
  client.command({"SET", "{g}", "here"});
  ASSERT_TRUE(reads_at(replica, client, "{g}", "here"));
  rig().begin_move(slot, from, to);
  rig().move_keys(slot, from, to);
  // The replica does not know that the slot is under way, and says that there is no such key.
  PlainClient asks{replica.port()};
  asks.command({"READONLY"});
  EXPECT_TRUE(comes_true([&] { return asks.command({"GET", "{g}"}).is_null(); }));
  EXPECT_TRUE(reads_at(replica, client, "{g}", "here")) << "it was not asked";
  EXPECT_EQ(client.command({"EXISTS", "{g}"}).as_integer(), 1);
  EXPECT_EQ(client.command({"STRLEN", "{g}"}).as_integer(), 4);
  EXPECT_EQ(client.command({"TYPE", "{g}"}).as_text(), "string");
  rig().end_move(slot, from, to);
  EXPECT_EQ(client.command({"GET", "{g}"}).as_text(), "here");
  EXPECT_TRUE(reads_at(rig().node(rig().replica_of(to)), client, "{g}", "here"));
  rig().move_slot(slot, to, from);
}

TEST_F(ProxyBeforeACluster, T55_RepliesOfReplicasAndMastersKeepTheirOrder) {
  ProxyUnderTest reading{
      before_it({"timeout: 30000", "read_from: replica", "read_your_writes: false"})};
  PlainClient client{reading.port()};
  auto& replica = rig().node(rig().replica_of(rig().master_of("{o}")));
  client.command({"SET", "{o}", "there"});
  ASSERT_TRUE(comes_true([&] { return client.command({"GET", "{o}"}).is_text(); }));
  ASSERT_TRUE(reads_at(replica, client, "{o}", "there"));
  const auto before = gets(replica);
  std::int64_t count = 0;
  EXPECT_TRUE(comes_true([&] {
    std::string bytes;
    for (int i = 0; i < 10; ++i)
      bytes += request("GET {o}") + request("INCR {o}n") +
               request(fmt::format("GET {{o}}{}", count + i)) +
               request(fmt::format("SET {{o}}{} x", count + i));
    client.send(bytes);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(client.read().as_text(), "there");
      EXPECT_EQ(client.read().as_integer(), ++count);
      EXPECT_TRUE(client.read().is_null()) << "as before the write behind it";
      EXPECT_EQ(client.read().as_text(), "OK");
    }
    return gets(replica) > before + 20;
  }));
}

TEST_F(ProxyBeforeACluster, PX02_WhatATransactionHangsOnIsReadAtTheMaster) {
  for (const auto* const own : {"false", "true"}) {
    ProxyUnderTest reading{before_it(
        {"timeout: 30000", "read_from: replica", fmt::format("read_your_writes: {}", own)})};
    PlainClient client{reading.port()};
    auto& replica = rig().node(rig().replica_of(rig().master_of("{w}")));
    client.command({"SET", "{w}", "0"});
    ASSERT_TRUE(comes_true([&] { return client.command({"GET", "{w}"}).is_text(); }));
    ASSERT_TRUE(reads_at(replica, client, "{w}", "0"));
    const auto before = gets(replica);
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(ask(client, "WATCH {w}"), "+OK");
      EXPECT_EQ(client.command({"GET", "{w}"}).as_text(), std::to_string(i)) << own;
      EXPECT_EQ(ask_all(client, {"MULTI", "INCR {w}", "EXEC"}).back(),
                "*1 :" + std::to_string(i + 1));
    }
    EXPECT_EQ(gets(replica), before) << own;
  }
}

TEST_F(ProxyBeforeACluster, T55_AFailoverFailsNoReadOfReplicas) {
  ProxyUnderTest reading{before_it({"timeout: 30000", "read_from: replica"})};
  PlainClient client{reading.port()};
  const auto old = rig().master_of("{s}");
  const auto heir = rig().replica_of(old);
  client.command({"SET", "{s}", "1"});
  EXPECT_TRUE(reads_at(rig().node(heir), client, "{s}", "1"));
  EXPECT_EQ(rig().client_of(heir).command({"CLUSTER", "FAILOVER"}).as_text(), "OK");
  auto asks = rig().client_of(heir);
  EXPECT_TRUE(comes_true([&] {
    EXPECT_EQ(client.command({"GET", "{s}"}).as_text(), "1");
    return asks.command({"INFO", "replication"}).as_text().find("role:master") != std::string::npos;
  }));
  client.command({"SET", "{s}", "2"});
  EXPECT_TRUE(reads_at(rig().node(old), client, "{s}", "2"));
}

TEST_F(ProxyBeforeACluster, T53_AMasterThatDiesIsWaitedFor) {
  const std::string key = "{f}n";
  EXPECT_EQ(client->command({"INCR", key}).as_integer(), 1);
  const auto old = rig().master_of(key);
  rig().node(old).kill();
  // What was under way is an error; what is asked when it is dead waits for its heir.
  PlainClient waits{proxy->port()};
  waits.send(request("BLPOP {f}queue 0"));
  EXPECT_EQ(client->command({"GET", key}).as_text(), "1") << "a read goes again";
  EXPECT_EQ(client->command({"INCR", key}).as_integer(), 2);
  EXPECT_EQ(client->command({"RPUSH", "{f}queue", "x"}).as_integer(), 1);
  EXPECT_EQ(waits.read().as_items().at(1).as_text(), "x");
}

TEST_F(ProxyBeforeACluster, AReloadKeepsWhoWaitsAndPutsARingInItsPlace) {
  client->send(request("BLPOP {r}queue 0"));
  const auto home = rig().master_of("{r}queue");
  EXPECT_TRUE(comes_true([&] { return has_blocked(home); }));
  proxy->reload(before_it({"timeout: 20000"}));
  EXPECT_EQ(PlainClient{proxy->port()}.command({"RPUSH", "{r}queue", "x"}).as_integer(), 1);
  EXPECT_EQ(client->read().as_items().at(1).as_text(), "x");
  RedisServer plain;
  proxy->reload(std::vector<std::uint16_t>{plain.port()});
  EXPECT_EQ(text({"SET", "k", "of the ring"}), "OK");
  proxy->reload(before_it());
  EXPECT_EQ(text({"SET", "k", "of the cluster"}), "OK");
  EXPECT_EQ(PlainClient{plain.port()}.command({"GET", "k"}).as_text(), "of the ring");
}

TEST_F(ProxyBeforeACluster, WithoutANodeThatTellsRequestsAreRefusedInTime) {
  ProxyUnderTest lost{PoolLines{{"redis: true", "connect_timeout: 300ms", "timeout: 300",
                                 fmt::format("cluster: [127.0.0.1:{}]", free_port())}}};
  PlainClient asks{lost.port()};
  for (const auto* const line : {"GET a", "INFO", "BLPOP a 0", "EVAL x 1 a"})
    EXPECT_TRUE(ask(asks, line).starts_with("-CLUSTERDOWN no node")) << line;
  for (const auto* const line : {"MGET a b", "KEYS *", "SCAN 0", "SUBSCRIBE a"})
    EXPECT_TRUE(ask(asks, line).starts_with("-ERR")) << line;
  EXPECT_EQ(ask(asks, "PING"), "+PONG");
}

TEST_F(ProxyBeforeACluster, T56_AShardChannelWhoseSlotMovesIsNeverSilent) {
  PlainClient hears{proxy->port()};
  hears.send(request("SSUBSCRIBE {c}1 {n}1"));  // of two slots
  EXPECT_EQ(hears.read().as_items().at(1).as_text(), "{c}1");
  EXPECT_EQ(hears.read().as_items().at(1).as_text(), "{n}1");
  EXPECT_EQ(client->command({"SPUBLISH", "{c}1", "x"}).as_integer(), 1);
  EXPECT_EQ(hears.read().as_items().at(2).as_text(), "x");
  const auto from = rig().master_of("{c}1");
  const auto to = other_than("{c}1");
  rig().move_slot(hash_slot("{c}1"), from, to);
  EXPECT_TRUE(is_closed(hears)) << "its library subscribes again";
  PlainClient again{proxy->port()};
  again.send(request("SSUBSCRIBE {c}1"));
  EXPECT_EQ(again.read().as_items().at(1).as_text(), "{c}1");
  EXPECT_EQ(client->command({"SPUBLISH", "{c}1", "y"}).as_integer(), 1);
  EXPECT_EQ(again.read().as_items().at(2).as_text(), "y");
}

TEST_F(ProxyBeforeACluster, D09_NodesWithoutAPasswordAreServed) {
  ProxyUnderTest with_password{before_it({"timeout: 30000", "redis_auth: sesame"})};
  PlainClient client{with_password.port()};
  EXPECT_EQ(client.command({"AUTH", "sesame"}).as_text(), "OK");
  for (const auto* const key : {"a", "b", "c"})
    EXPECT_EQ(client.command({"SET", key, "1"}).as_text(), "OK") << key;
}

}  // namespace
}  // namespace sluice::test
