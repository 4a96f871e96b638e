// redis+sentinel://: real servers, and real Sentinels that fail over between them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <thread>

#include "redis/at_server.hpp"
#include "redis/sentinel_store.hpp"
#include "support/certificates.hpp"
#include "support/comes_true.hpp"
#include "support/fault_proxy.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"
#include "support/sentinel_rig.hpp"
#include "support/server_pair.hpp"
#include "support/silent_port.hpp"
#include "support/slow_names.hpp"
#include "support/told.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::failure_of;
using test::PlainClient;
using test::SentinelRig;

/// A first master that no Sentinel can make a replica of: it lives on as the master that it was.
const std::vector<std::string> stubborn{"rename-command SLAVEOF \"\"",
                                        "rename-command REPLICAOF \"\""};

net::Endpoint local(std::uint16_t port) {
  return {.host = "127.0.0.1", .port = port, .unix_path = {}};
}

redis::SentinelStoreOptions options_of(const std::vector<std::uint16_t>& sentinels) {
  redis::SentinelStoreOptions options{.server = {},
                                      .sentinels = {},
                                      .name = std::string{SentinelRig::name},
                                      .sentinel_user = {},
                                      .sentinel_password = {},
                                      .sentinel_tls = {}};
  for (const auto port : sentinels) options.sentinels.push_back(local(port));
  options.server.name = "shop";
  options.server.connect_timeout = options.server.command_timeout = 30s;
  options.server.backoff_min = 2ms;
  options.server.backoff_max = 50ms;
  return options;
}

redis::SentinelStoreOptions options_of(SentinelRig& rig) {
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < rig.sentinels(); ++i) ports.push_back(rig.sentinel(i).port());
  return options_of(ports);
}

std::string info(std::uint16_t port, std::string_view section) {
  return PlainClient{port}.command({"INFO", section}).as_text();
}

bool is_master(test::RedisServer& server) {
  return info(server.port(), "replication").find("role:master") != std::string::npos;
}

/// Of "name:NUMBER" or "name:word=NUMBER".
std::int64_t number_in(const std::string& text, const std::string& name) {
  const auto at = text.find(name);
  return at == std::string::npos ? 0 : std::atoll(text.c_str() + at + name.size());
}

/// How many connections of the Store a server has, without those that ask for its role.
std::size_t connections(test::RedisServer& server) {
  const auto list = PlainClient{server.port()}.command({"CLIENT", "LIST"}).as_text();
  std::size_t all = 0;
  for (auto at = list.find("name=shop"); at != std::string::npos;
       at = list.find("name=shop", at + 1))
    all += list.substr(at, list.find('\n', at) - at).find("cmd=role") == std::string::npos ? 1 : 0;
  return all;
}

/// By a word to the master, of which Sentinels are not told.
bool hand_over(SentinelRig& rig) {
  // It wants to have heard of the replica that it is there.
  PlainClient master{rig.server(0).port()};
  const auto to = std::to_string(rig.server(1).port());
  return comes_true([&] {
    return !master.command({"FAILOVER", "TO", "127.0.0.1", to}).is_error();
  });
}

/// Whether that is the server that the Store's calls go to now.
bool is_at(Store& store, test::RedisServer& server) {
  const auto port = store.run({"CONFIG", "GET", "port"}, {.repeatable = true}).get();
  return port.as_items().at(1).as_text() == std::to_string(server.port());
}

TEST(SentinelStore, OpensAndTellsWhatItIs) {
  SentinelRig rig{{.replicas = 0, .sentinels = 1}};
  auto options = options_of(rig);
  options.server.database = 3;
  const auto store = redis::open_sentinel(options);
  EXPECT_EQ(store->run({"INCR", "n"}).get().as_integer(), 1);
  EXPECT_EQ(PlainClient{rig.server(0).port()}.command({"EXISTS", "n"}).as_integer(), 0);
  EXPECT_EQ(store->describe(), rig.url() + "/3");
}

TEST(SentinelStore, T34_OpensThoughTheFirstSentinelIsSilent) {
  const test::SilentPort silent;
  SentinelRig rig{{.replicas = 0, .sentinels = 1}};
  auto options = options_of(rig);
  options.sentinels.insert(options.sentinels.begin(), local(silent.port()));
  EXPECT_EQ(redis::open_sentinel(options)->run({"INCR", "n"}).get().as_integer(), 1);
}

TEST(SentinelStore, T35_ANameThatNoneKnowsIsAnErrorOfItsOwn) {
  SentinelRig rig{{.replicas = 0, .sentinels = 1}};
  auto options = options_of(rig);
  options.name = "shop";
  const auto failure = failure_of([&] { redis::open_sentinel(options); });
  EXPECT_EQ(failure.errc(), Errc::server);
  EXPECT_NE(failure.message().find("no Sentinel knows a master 'shop'"), std::string::npos)
      << failure.what();
}

TEST(SentinelStore, WhereNoSentinelAnswersTheErrorSaysSo) {
  const auto failure = failure_of([] { redis::open_sentinel(options_of({test::free_port()})); });
  EXPECT_EQ(failure.errc(), Errc::connection);
  EXPECT_NE(failure.message().find("no Sentinel answers"), std::string::npos) << failure.what();
  EXPECT_NE(failure.message().find("refused"), std::string::npos) << failure.what();
}

TEST(SentinelStore, WhatIsNoSentinelIsCalledSo) {
  const test::RedisServer server;
  const auto failure = failure_of([&] { redis::open_sentinel(options_of({server.port()})); });
  EXPECT_NE(failure.message().find("is no Sentinel"), std::string::npos) << failure.what();
}

TEST(SentinelStore, T36_AReplicaIsWaitedForWithoutHaste) {
  SentinelRig rig{{.replicas = 0,
                   .sentinels = 1,
                   .master_config = {fmt::format("replicaof 127.0.0.1 {}", test::free_port())}}};
  const auto port = rig.server(0).port();
  const auto begin = std::chrono::steady_clock::now();
  auto opening =
      std::async(std::launch::async, [&] { return redis::open_sentinel(options_of(rig)); });
  std::int64_t asked = 0;
  EXPECT_TRUE(comes_true([&] {
    asked = number_in(info(port, "commandstats"), "cmdstat_role:calls=");
    return asked >= 5;
  }));
  const auto waited = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(asked, waited / 100ms + 2);
  PlainClient{port}.command({"REPLICAOF", "NO", "ONE"});
  EXPECT_TRUE(is_at(*opening.get(), rig.server(0)));
}

TEST(SentinelStore, T37_AMasterThatLivesIsLeft) {
  SentinelRig rig{{.master_config = stubborn}};
  const auto store = redis::open_sentinel(options_of(rig));
  test::Told heard;
  const auto listener = store->listen("news", heard.handler()).get();
  std::atomic<int> reconnects{0};
  const auto watcher = store->on_reconnect([&] { ++reconnects; });
  EXPECT_TRUE(is_at(*store, rig.server(0)));

  rig.fail_over();
  EXPECT_TRUE(comes_true([&] { return is_at(*store, rig.server(1)); }));
  EXPECT_TRUE(comes_true([&] { return connections(rig.server(0)) == 0; }));
  EXPECT_TRUE(is_master(rig.server(0))) << "it would go on acknowledging";

  EXPECT_TRUE(heard.wait_for(Message::Kind::gap));
  PlainClient{rig.server(1).port()}.command({"PUBLISH", "news", "a new master"});
  EXPECT_TRUE(heard.hears("a new master"));
  EXPECT_TRUE(comes_true([&] { return reconnects > 0; }));
}

TEST(SentinelStore, T38_ALostMessageCostsAPoll) {
  SentinelRig rig{{.sentinels = 1,
                   .master_config = stubborn,
                   .sentinel_config = {"user poll on >deaf ~* +@all -subscribe"}}};
  auto options = options_of(rig);
  options.sentinel_user = "poll";
  options.sentinel_password = "deaf";
  const auto store = redis::open_sentinel(options);
  rig.fail_over();
  EXPECT_TRUE(comes_true([&] { return is_at(*store, rig.server(1)); }));
}

TEST(SentinelStore, T39_TheSwitchOfAnotherMasterIsIgnored) {
  SentinelRig rig{{.replicas = 0, .sentinels = 1}};
  const auto store = redis::open_sentinel(options_of(rig));
  const auto connection = store->run({"CLIENT", "ID"}).get().as_integer();
  const test::ServerPair others;
  const auto port = others.url().substr(others.url().rfind(':') + 1);
  PlainClient hears{rig.sentinel(0).port()};
  hears.command({"SUBSCRIBE", "+switch-master"});
  PlainClient sentinel{rig.sentinel(0).port()};
  sentinel.command({"SENTINEL", "MONITOR", "others", "127.0.0.1", port, "1"});
  EXPECT_TRUE(comes_true([&] {
    return !sentinel.command({"SENTINEL", "FAILOVER", "others"}).is_error();
  }));
  EXPECT_NE(to_string(hears.read(), 1'000).find("others 127.0.0.1"), std::string::npos);
  EXPECT_TRUE(is_at(*store, rig.server(0)));
  EXPECT_EQ(store->run({"CLIENT", "ID"}).get().as_integer(), connection);
}

TEST(SentinelStore, T40_TheMastersPasswordIsNotSentToASentinel) {
  SentinelRig rig{{.replicas = 0,
                   .sentinels = 1,
                   .master_config = {"requirepass masters"},
                   .sentinel_config = {"sentinel auth-pass m masters"}}};
  test::FaultProxy line{rig.sentinel(0).port()};
  const auto secret = line.on(
      [](const test::Passing& passing) {
        return std::ranges::any_of(passing.words, [](const std::string& word) {
          return word.find("masters") != std::string::npos;
        });
      },
      {.times = test::Deed::always});
  const auto all = line.on(test::any_request(), {.times = test::Deed::always});
  auto options = options_of({line.port()});
  options.server.password = "masters";
  const auto store = redis::open_sentinel(options);
  EXPECT_EQ(store->run({"INCR", "n"}).get().as_integer(), 1);
  EXPECT_TRUE(line.await_hits(all, 10));
  EXPECT_EQ(line.hits(secret), 0U);

  options.server.password = "wrong";
  const auto failure = failure_of([&] { redis::open_sentinel(options); });
  EXPECT_EQ(failure.errc(), Errc::authentication) << failure.what();
  EXPECT_EQ(failure.message().find("wrong"), std::string::npos) << failure.what();
}

TEST(SentinelStore, T41_AStaleSentinelDoesNotLeadBack) {
  SentinelRig rig{{.sentinels = 1, .master_config = stubborn}};
  const auto port = test::free_port();
  test::FaultProxy line{port};
  const auto asked = line.on(test::reply_to("SENTINEL"), {.times = test::Deed::always});
  const auto store = redis::open_sentinel(options_of({rig.sentinel(0).port(), line.port()}));
  rig.fail_over();
  EXPECT_TRUE(comes_true([&] { return is_at(*store, rig.server(1)); }));
  rig.sentinel(0).process().stop();
  // It knows of no failover, and names a server that says of itself that it is the master.
  const SentinelRig::Sentinel stale{
      port,
      {fmt::format("port {}", port), "bind 127.0.0.1",
       fmt::format("sentinel monitor m 127.0.0.1 {} 1", rig.server(0).port())}};
  // Five polls of four commands each: what the other one has said is forgotten by then.
  EXPECT_TRUE(comes_true([&] { return line.hits(asked) >= 20; }));
  EXPECT_TRUE(is_at(*store, rig.server(1)));
  EXPECT_TRUE(comes_true([&] { return connections(rig.server(0)) == 0; }));
}

TEST(SentinelStore, T42_WithoutSentinelsAllGoesOn) {
  SentinelRig rig{{.replicas = 0, .sentinels = 1}};
  const auto store = redis::open_sentinel(options_of(rig));
  rig.kill_sentinels();
  EXPECT_TRUE(is_at(*store, rig.server(0)));
  PlainClient{rig.server(0).port()}.command({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(is_at(*store, rig.server(0))) << "and is found again where it was";
  rig.server(0).kill();
  const auto failure = failure_of([&] { store->run({"SET", "a", "1"}, {.timeout = 1s}).get(); });
  EXPECT_EQ(failure.errc(), Errc::connection) << failure.what();
  rig.server(0).start();
  EXPECT_TRUE(is_at(*store, rig.server(0)));
}

TEST(SentinelStore, T43_AfterFailoverToTheRoleLeadsOn) {
  SentinelRig rig{{.sentinels = 1}};
  const auto store = redis::open_sentinel(options_of(rig));
  EXPECT_TRUE(is_at(*store, rig.server(0)));
  ASSERT_TRUE(hand_over(rig));
  EXPECT_TRUE(comes_true([&] { return is_at(*store, rig.server(1)); }));
}

TEST(SentinelStore, WithoutAMasterACallWaitsToItsDeadlineAndTheErrorSaysWhy) {
  SentinelRig rig{{.replicas = 0, .sentinels = 1}};
  const auto store = redis::open_sentinel(options_of(rig));
  PlainClient server{rig.server(0).port()};
  const auto nobody = std::to_string(test::free_port());
  server.command({"REPLICAOF", "127.0.0.1", nobody});
  const auto failure = failure_of([&] { store->run({"SET", "a", "1"}, {.timeout = 1s}).get(); });
  EXPECT_EQ(failure.errc(), Errc::connection) << failure.what();
  EXPECT_EQ(failure.effect(), Effect::none) << failure.what();
  for (const auto& words : {std::string{"name no server that is the master 'm'"}, nobody})
    EXPECT_NE(failure.message().find(words), std::string::npos) << failure.what();
  auto waiting = std::async(std::launch::async, [&] { return store->run({"INCR", "n"}).get(); });
  server.command({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(waiting.get().as_integer(), 1);
}

TEST(SentinelStore, ACallThatAReplicaHasRefusedGoesToTheMaster) {
  SentinelRig rig{{.sentinels = 1}};
  const auto store = redis::open_sentinel(options_of(rig));
  auto waiting = std::async(std::launch::async, [&] {
    return store->run({"BLPOP", "queue", "0"}, {.timeout = 30s}).get();
  });
  EXPECT_TRUE(comes_true(
      [&] { return number_in(info(rig.server(0).port(), "clients"), "blocked_clients:") == 1; }));
  ASSERT_TRUE(hand_over(rig));
  // Not one of them may be repeated, and none was executed by the replica.
  int acknowledged = 0;
  for (int i = 0; !is_master(rig.server(1)) || i < 100; ++i) {
    store->run({"INCR", "n"}).get();
    ++acknowledged;
  }
  EXPECT_EQ(store->run({"GET", "n"}).get().as_text(), std::to_string(acknowledged));
  store->run({"RPUSH", "queue", "one"}).get();
  EXPECT_EQ(waiting.get().as_items().at(1).as_text(), "one");
}

/// Who speaks TLS: the server, the Sentinel.
class SentinelStoreOverTls : public testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(SentinelStoreOverTls, D19_ServersAndSentinelsMayDiffer) {
  const auto [server_tls, sentinel_tls] = GetParam();
  const test::Certificates files;
  const auto port = test::free_port();
  const test::RedisServer server{files.redis(port, "no")};  // it has a plain port, too
  const auto watching = test::free_port();
  auto config = files.redis(sentinel_tls ? watching : 0, "no");
  config.insert(
      config.end(),
      {fmt::format("port {}", sentinel_tls ? 0 : watching), "bind 127.0.0.1",
       fmt::format("tls-replication {}", server_tls ? "yes" : "no"),
       fmt::format("sentinel monitor a/b 127.0.0.1 {} 1", server_tls ? port : server.port())});
  const SentinelRig::Sentinel sentinel{watching, config};
  auto options = options_of({watching});
  options.name = "a/b";
  net::TlsClientOptions tls;
  tls.files.ca = files["ca.pem"];
  const auto client = std::make_shared<net::TlsClient>(tls);
  if (server_tls) options.server.tls = client;
  if (sentinel_tls) options.sentinel_tls = client;
  const auto store = redis::open_sentinel(options);
  EXPECT_EQ(store->run({"INCR", "n"}).get().as_integer(), 1);
  EXPECT_EQ(store->describe(), fmt::format("{}+sentinel://127.0.0.1:{}/a%2Fb/0",
                                           server_tls ? "rediss" : "redis", watching));
}

INSTANTIATE_TEST_SUITE_P(Deployments, SentinelStoreOverTls,
                         testing::Values(std::pair(false, false), std::pair(false, true),
                                         std::pair(true, false), std::pair(true, true)));

TEST(SentinelStore, ACertificateOfAnotherServerIsRefused) {
  const test::Certificates files;
  const auto port = test::free_port();
  const test::RedisServer server{files.redis(port, "no")};
  const auto watching = test::free_port();
  auto config = files.redis(watching, "no");
  config.insert(config.end(), {"port 0", "bind 127.0.0.1", "tls-replication yes",
                               fmt::format("sentinel monitor m 127.0.0.1 {} 1", port)});
  const SentinelRig::Sentinel sentinel{watching, config};
  auto options = options_of({watching});
  net::TlsClientOptions tls;
  tls.files.ca = files["ca.pem"];
  options.sentinel_tls = std::make_shared<net::TlsClient>(tls);
  tls.server_name = "other";
  options.server.tls = std::make_shared<net::TlsClient>(tls);
  const auto failure = failure_of([&] { redis::open_sentinel(options); });
  EXPECT_EQ(failure.errc(), Errc::authentication) << failure.what();
  EXPECT_NE(failure.message().find("other"), std::string::npos) << failure.what();
}

TEST(SentinelStore, ReplicasAnswerReadsThatMayBeOld) {
  SentinelRig rig{{.replicas = 2, .sentinels = 1}};
  auto options = options_of(rig);
  options.server.database = 3;
  options.server.replica_max_lag = 1s;
  const auto store = redis::open_sentinel(options);
  const CallOptions at_replica{.read_from = ReadFrom::replica};
  const auto is_read_from_replica = [&](std::initializer_list<std::string_view> command) {
    const auto served = metrics().redis_replica_reads.load();
    return comes_true([&] {
      store->run(command, at_replica).get();
      return metrics().redis_replica_reads.load() > served;
    });
  };
  store->run({"SET", "k", "0"}).get();
  EXPECT_TRUE(is_read_from_replica({"GET", "k"}));
  EXPECT_TRUE(is_read_from_replica({"EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "k"}));
  EXPECT_EQ(failure_of([&] {
              store->run({"LLEN", "k"}, at_replica).get();
            }).errc(),
            Errc::wrong_type);
  for (int i = 1; i < 100; ++i) {
    const auto value = std::to_string(i);
    store->run({"SET", "k", value}).get();
    const auto options_of_read =
        CallOptions{.read_from = ReadFrom::replica, .no_older_than = store->clock().steady()};
    EXPECT_EQ(store->run({"GET", "k"}, options_of_read).get().as_text(), value);
  }
  // The master stays behind, alone with what it had; its replicas have another one.
  rig.fail_over();
  EXPECT_TRUE(comes_true([&] { return !is_at(*store, rig.server(0)); }));
  store->run({"SET", "k", "after"}).get();
  EXPECT_TRUE(comes_true([&] {
    return store->run({"GET", "k"}, at_replica).get().as_text() == "after";
  }));
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(store->run({"GET", "k"}, at_replica).get().as_text(), "after");
  EXPECT_TRUE(is_read_from_replica({"GET", "k"}));
}

TEST(SentinelStore, AMasterThatDiesIsWaitedFor) {
  SentinelRig rig;
  const auto store = redis::open_sentinel(options_of(rig));
  EXPECT_TRUE(is_at(*store, rig.server(0)));
  rig.server(0).kill();
  EXPECT_TRUE(is_at(*store, rig.server(1)));
}

/// The names of all Sentinels are answered after so many ms.
class SentinelStoreByNames : public testing::TestWithParam<int> {};

TEST_P(SentinelStoreByNames, D11_SlowNamesAreWaitedForWithinConnectTimeout) {
  if (!test::SlowNames::are_there) GTEST_SKIP();
  const test::SlowNames names;
  SentinelRig rig{{.replicas = 0, .sentinels = 2}};
  auto options = options_of(rig);
  for (auto& sentinel : options.sentinels) sentinel.host = test::SlowNames::after_ms(GetParam());
  EXPECT_EQ(redis::open_sentinel(options)->run({"INCR", "n"}).get().as_integer(), 1);
}

INSTANTIATE_TEST_SUITE_P(Deployments, SentinelStoreByNames, testing::Values(200, 600, 1500, 4000));

/// Nobody answers before the door is opened: a Sentinel far away, then the server that it names.
TEST(SentinelStore, D11_OpeningWaitsForWhoIsFarAwayWithinConnectTimeout) {
  const test::RedisServer server;
  test::FaultProxy to_server{server.port()};
  const auto port = test::free_port();
  const SentinelRig::Sentinel sentinel{
      port,
      {fmt::format("port {}", port), "bind 127.0.0.1",
       fmt::format("sentinel monitor m 127.0.0.1 {} 1", to_server.port())}};
  test::FaultProxy to_sentinel{port};
  to_server.set_door(test::FaultProxy::Door::held);
  to_sentinel.set_door(test::FaultProxy::Door::held);
  auto opening = std::async(std::launch::async,
                            [&] { return redis::open_sentinel(options_of({to_sentinel.port()})); });
  EXPECT_EQ(opening.wait_for(1200ms), std::future_status::timeout);
  const auto told = to_sentinel.on(test::reply_to("SENTINEL"), {.times = test::Deed::always});
  to_sentinel.set_door(test::FaultProxy::Door::open);
  EXPECT_TRUE(to_sentinel.await_hits(told, 4));
  EXPECT_EQ(opening.wait_for(1200ms), std::future_status::timeout);
  to_server.set_door(test::FaultProxy::Door::open);
  EXPECT_EQ(opening.get()->run({"INCR", "n"}).get().as_integer(), 1);
}

TEST(SentinelStore, D11_OpeningEndsWithConnectTimeoutAndSaysWhy) {
  const test::SilentPort silent;
  auto options = options_of({silent.port()});
  options.server.connect_timeout = 1200ms;
  const auto begin = std::chrono::steady_clock::now();
  const auto failure = failure_of([&] { redis::open_sentinel(options); });
  EXPECT_EQ(failure.errc(), Errc::connection) << failure.what();
  EXPECT_NE(failure.message().find("no Sentinel answers"), std::string::npos) << failure.what();
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 1200ms);
}

}  // namespace
}  // namespace sluice
