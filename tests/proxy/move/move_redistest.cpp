// Keys follow the ring, under load: T57 to T60 of the facts on topology.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>

#include "proxy/config/read.hpp"
#include "proxy/move/counter_load.hpp"
#include "proxy/move/move_rig.hpp"
#include "proxy/support/asking.hpp"
#include "support/comes_true.hpp"

namespace sluice::test {
namespace {

std::vector<std::uint16_t> ports_of(const MoveRig& rig) {
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < rig.proxies(); ++i) ports.push_back(rig.port(i));
  return ports;
}

/// SLUICE_LONG: so many times as long; 20 is a million requests.
int how_long() {
  const char* const times = std::getenv("SLUICE_LONG");
  return times ? std::max(std::atoi(times), 1) : 1;
}

/// The users of a server that nothing is moved from or to.
const std::string only_ours = "*2 $7 default $6 tester";

/// So many more requests of the load are answered.
bool goes_on(const CounterLoad& load, std::uint64_t requests = 500) {
  const auto before = load.done();
  return comes_true([&] { return load.done() >= before + requests; });
}

TEST(RingMove, KeysFollowUnderLoadAndNoneIsLost) {
  MoveRig rig{2};
  CounterLoad load{{.ports = ports_of(rig)}};
  ASSERT_TRUE(goes_on(load));
  rig.move_all();
  ASSERT_TRUE(goes_on(load));
  const auto& history = load.stop();
  EXPECT_EQ(contradictions(history, load.last(rig.port(0))), std::vector<std::string>{});
  EXPECT_EQ(load.last(rig.port(0)), load.last(rig.port(1)));
  EXPECT_EQ(load.unknown(), 0U) << fmt::format("{}", load.errors());
  EXPECT_EQ(load.refused(), 0U) << fmt::format("{}", load.errors());
  EXPECT_EQ(rig.misplaced(), std::vector<std::string>{});
  auto newest = rig.direct(2);
  EXPECT_EQ(ask(newest, "ACL USERS"), only_ours);
  EXPECT_EQ(rig.tell_proxy(0, {"MOVE", "STATUS"}), "none drained ");
}

/// What a move makes at the servers, without the fence.
void make_user(MoveRig& rig) {
  for (std::size_t i = 0; i < MoveRig::servers; ++i) {
    auto client = rig.direct(i);
    ASSERT_EQ(ask(client, "ACL SETUSER mover on >secret ~* &* +@all"), "+OK");
  }
}

std::vector<std::string> phase(const MoveRig& rig, std::string name) {
  const auto print = proxy::config::print_of_move(proxy::config::load(rig.old_file()),
                                                  proxy::config::load(rig.new_file()));
  return {"MOVE", std::move(name), rig.new_file(), "mover", "secret", print};
}

TEST(RingMove, WithoutTheBarrierTheCheckerFindsWhatIsLost) {
  MoveRig rig{2};
  CounterLoad load{{.ports = ports_of(rig), .keys = 20}};
  ASSERT_TRUE(goes_on(load));
  make_user(rig);
  ASSERT_EQ(rig.tell_proxy(0, phase(rig, "MOVING")).substr(0, 7), "moving ");
  ASSERT_TRUE(goes_on(load, 2000));
  const auto& history = load.stop();
  EXPECT_NE(contradictions(history, load.last(rig.port(0))), std::vector<std::string>{});
}

TEST(RingMove, T58KilledAtEachStepItGoesOnAndNothingIsLost) {
  MoveRig rig{2};
  {
    auto client = PlainClient{rig.port(0)};
    for (int i = 0; i < 20000; ++i) client.send(request(fmt::format("SET filler{} x", i)));
    for (int i = 0; i < 20000; ++i) ASSERT_FALSE(client.read().is_error());
  }
  CounterLoad load{{.ports = ports_of(rig)}};
  ASSERT_TRUE(goes_on(load));
  std::size_t victim = 0;
  for (int round = how_long(); round > 0; --round) {
    rig.forget_told();
    for (const std::string_view step :
         {"held", "fenced", "moving", "moved so far", "all keys have moved, but"}) {
      SCOPED_TRACE(step);
      auto mover = rig.start_mover();
      ASSERT_TRUE(rig.comes_to_tell(step)) << rig.told();
      mover.kill();
      rig.kill_proxy(victim);
      rig.start_proxy(victim);
      victim = 1 - victim;
    }
    auto mover = rig.start_mover();
    ASSERT_TRUE(goes_on(load, 2000));
    rig.place_files(true);
    ASSERT_EQ(mover.wait(), 0) << rig.told();
    ASSERT_TRUE(goes_on(load));
    EXPECT_EQ(rig.misplaced(true), std::vector<std::string>{});
    if (round > 1) rig.move_all(true);
  }
  const auto& history = load.stop();
  RecordProperty("requests", std::to_string(history.size()));
  EXPECT_EQ(contradictions(history, load.last(rig.port(0))), std::vector<std::string>{});
  EXPECT_NE(load.unknown() + load.refused(), 0U);  // proxies were killed amid of requests
}

TEST(RingMove, AProxyThatTheMoverDoesNotKnowIsFencedOut) {
  MoveRig rig{2};
  CounterLoad load{{.ports = ports_of(rig)}};
  ASSERT_TRUE(goes_on(load));
  auto mover = rig.start_mover(false, {}, 1);
  ASSERT_TRUE(rig.comes_to_tell("all keys have moved, but")) << rig.told();
  ASSERT_TRUE(goes_on(load));
  PlainClient stranger{rig.port(1)};
  EXPECT_TRUE(ask(stranger, "GET key").starts_with("-NOPERM "));
  const auto& history = load.stop();
  EXPECT_EQ(contradictions(history, load.last(rig.port(0))), std::vector<std::string>{});
  EXPECT_NE(load.refused(), 0U);
}

TEST(RingMove, PausedItServesAndBackItGoesAllTheWay) {
  MoveRig rig{2};
  CounterLoad load{{.ports = ports_of(rig)}};
  ASSERT_TRUE(goes_on(load));
  auto mover = rig.start_mover();
  ASSERT_TRUE(rig.comes_to_tell("all keys have moved, but")) << rig.told();
  EXPECT_NE(rig.start_mover().wait(), 0);
  EXPECT_TRUE(rig.told().contains("by another process")) << rig.told();
  mover.signal(SIGINT);
  EXPECT_EQ(mover.wait(), 75);
  EXPECT_TRUE(rig.comes_to_tell("it pauses")) << rig.told();
  ASSERT_TRUE(goes_on(load));
  EXPECT_EQ(rig.misplaced(true), std::vector<std::string>{});
  auto back = rig.start_mover(true);
  EXPECT_EQ(back.wait(), 0) << rig.told();  // the old files lie there still
  ASSERT_TRUE(goes_on(load));
  const auto& history = load.stop();
  EXPECT_EQ(contradictions(history, load.last(rig.port(0))), std::vector<std::string>{});
  EXPECT_EQ(load.unknown() + load.refused(), 0U) << fmt::format("{}", load.errors());
  EXPECT_EQ(rig.misplaced(false), std::vector<std::string>{});
  auto server = rig.direct(0);
  EXPECT_EQ(ask(server, "ACL USERS"), only_ours);
}

TEST(RingMove, WhereClientsDoNotEndWhatTheyAreAmidOfAllIsAsBefore) {
  MoveRig rig;
  const auto key = rig.moving_key();
  auto server = rig.direct(rig.home(key, false));
  PlainClient client{rig.port(0)};
  ASSERT_EQ(ask(server, "CLIENT PAUSE 100000 WRITE"), "+OK");
  client.send(request("SET " + key + " 1"));
  auto mover = rig.start_mover(false, {"--patience", "0.2"});
  EXPECT_NE(mover.wait(), 0);
  EXPECT_TRUE(rig.told().contains("clients are still amid of requests")) << rig.told();
  EXPECT_EQ(rig.tell_proxy(0, {"MOVE", "STATUS"}), "none busy ");
  ASSERT_EQ(ask(server, "CLIENT UNPAUSE"), "+OK");
  EXPECT_EQ(text_of(client.read()), "+OK");
  EXPECT_EQ(ask(client, "INCR " + key), ":2");
  EXPECT_EQ(ask(server, "ACL USERS"), only_ours);
}

TEST(RingMove, ATransactionThatIsOpenEndsAndABlockedClientIsTold) {
  MoveRig rig;
  const auto key = rig.moving_key();
  const auto list = rig.moving_key("list");
  PlainClient watcher{rig.port(0)}, blocked{rig.port(0)}, other{rig.port(0)};
  ASSERT_EQ(ask(watcher, "WATCH " + key), "+OK");
  ASSERT_EQ(ask(watcher, "MULTI"), "+OK");
  ASSERT_EQ(ask(watcher, "SET " + key + " x"), "+QUEUED");
  blocked.send(request("BLPOP " + list + " 0"));
  auto old_home = rig.direct(rig.home(list, false));
  ASSERT_TRUE(comes_true([&] { return ask(old_home, "CLIENT LIST").contains("cmd=blpop"); }));
  auto mover = rig.start_mover();
  ASSERT_TRUE(rig.comes_to_tell("all keys have moved, but")) << rig.told();
  EXPECT_TRUE(text_of(blocked.read()).starts_with("-UNBLOCKED"));
  EXPECT_TRUE(ask(watcher, "EXEC").starts_with("-EXECABORT"));
  EXPECT_EQ(ask(other, "GET " + key), "_");

  ASSERT_EQ(ask(watcher, "WATCH " + key), "+OK");
  ASSERT_EQ(ask(watcher, "MULTI"), "+OK");
  ASSERT_EQ(ask(watcher, "SET " + key + " y"), "+QUEUED");
  EXPECT_EQ(ask(watcher, "EXEC"), "*1 +OK");
  blocked.send(request("BLPOP " + list + " 0"));
  auto new_home = rig.direct(2);
  ASSERT_TRUE(comes_true([&] { return ask(new_home, "CLIENT LIST").contains("cmd=blpop"); }));
  EXPECT_EQ(ask(other, "RPUSH " + list + " element"), ":1");
  EXPECT_TRUE(text_of(blocked.read()).ends_with("element"));
  rig.place_files(true);
  EXPECT_EQ(mover.wait(), 0) << rig.told();
}

/// The contents of all servers, by database and key.
std::map<std::string, std::string> contents(MoveRig& rig) {
  std::map<std::string, std::string> all;
  for (std::size_t i = 0; i < MoveRig::servers; ++i)
    for (const char* const database : {"0", "3"}) {
      auto client = rig.direct(i);
      client.command({"SELECT", database});
      const auto keys = client.command({"KEYS", "*"});
      for (const auto& key : keys.as_items()) {
        auto& is = all[fmt::format("{} {}", database, key.as_text())];
        is += client.command({"DUMP", key.as_text()}).as_text();  // twice, if it lies twice
        if (client.command({"PTTL", key.as_text()}).as_integer() > 0) is += " with a ttl";
      }
    }
  return all;
}

TEST(RingMove, TypesDatabasesAndTimesToLiveMove) {
  MoveRig rig;
  PlainClient client{rig.port(0)};
  for (const auto* const database : {"0", "3"}) {
    ASSERT_EQ(ask(client, fmt::format("SELECT {}", database)), "+OK");
    for (int i = 0; i < 20; ++i) {
      for (const auto* const line : {"SET s{} {} PX 1000000", "RPUSH l{} a {}", "SADD e{} {}",
                                     "HSET h{} field {}", "ZADD z{} {} m", "XADD x{} 1-1 field {}"})
        ASSERT_FALSE(ask(client, fmt::format(fmt::runtime(line), i, i)).starts_with("-"));
    }
  }
  const auto before = contents(rig);
  ASSERT_EQ(before.size(), 240U);
  auto mover = rig.start_mover();
  ASSERT_TRUE(rig.comes_to_tell("all keys have moved, but")) << rig.told();
  EXPECT_EQ(contents(rig), before);
  EXPECT_EQ(ask(client, "FLUSHALL").front(), '-');
  EXPECT_EQ(ask(client, "SORT l1 BY w_*").front(), '-');
  EXPECT_TRUE(text_of(PlainClient{rig.port(0)}.command({"GET", "s1"})).ends_with("1"));
  EXPECT_TRUE(rig.tell_proxy(0, {"RELOAD"}).contains("keys move"));
  rig.place_files(true);
  EXPECT_EQ(mover.wait(), 0) << rig.told();
  EXPECT_EQ(contents(rig), before);
}

TEST(RingMove, BetweenServersThatSpeakTls) {
  const Certificates certificates;
  MoveRig rig{certificates, {"tls-cluster yes"}};
  CounterLoad load{{.ports = ports_of(rig)}};
  ASSERT_TRUE(goes_on(load));
  rig.move_all();
  ASSERT_TRUE(goes_on(load));
  const auto& history = load.stop();
  EXPECT_EQ(contradictions(history, load.last(rig.port(0))), std::vector<std::string>{});
  EXPECT_EQ(load.unknown() + load.refused(), 0U) << fmt::format("{}", load.errors());
  EXPECT_EQ(rig.misplaced(), std::vector<std::string>{});
}

TEST(RingMove, ServersThatWouldSendKeysPlainlyAreToldBeforeAnyIsHeld) {
  const Certificates certificates;
  MoveRig rig{certificates, {}};
  auto mover = rig.start_mover();
  EXPECT_NE(mover.wait(), 0);
  EXPECT_TRUE(rig.told().contains("give it `tls-cluster yes`")) << rig.told();
  PlainClient client{rig.port(0)};
  EXPECT_EQ(ask(client, "SET " + rig.moving_key() + " 1"), "+OK");
}

TEST(RingMove, T59WhereTheNewServerIsFullTheOldOneServesReads) {
  MoveRig rig;
  const auto key = rig.moving_key();
  PlainClient client{rig.port(0)};
  ASSERT_EQ(ask(client, "SET " + key + " 7"), "+OK");
  auto newest = rig.direct(2);
  ASSERT_EQ(ask(newest, "CONFIG SET maxmemory 1"), "+OK");
  auto mover = rig.start_mover();
  ASSERT_TRUE(rig.comes_to_tell("OOM")) << rig.told();
  EXPECT_EQ(ask(client, "GET " + key), "$1 7");
  EXPECT_EQ(ask(client, "GET " + rig.moving_key("absent")), "_");
  const auto refused = ask(client, "INCR " + key);
  EXPECT_TRUE(refused.starts_with("-ERR nothing was done") && refused.contains("OOM")) << refused;
  ASSERT_EQ(ask(newest, "CONFIG SET maxmemory 0"), "+OK");
  EXPECT_EQ(ask(client, "INCR " + key), ":8");
  ASSERT_TRUE(rig.comes_to_tell("all keys have moved, but")) << rig.told();
  rig.place_files(true);
  EXPECT_EQ(mover.wait(), 0) << rig.told();
  EXPECT_EQ(ask(client, "GET " + key), "$1 8");
}

TEST(RingMove, T60ALargeKeyIsCopiedInPiecesWhileItIsRead) {
  MoveRig rig;
  std::vector<std::string> keys;
  PlainClient client{rig.port(0)};
  const auto make = [&](std::string_view prefix, std::string_view script) {
    keys.push_back(rig.moving_key(prefix));
    ASSERT_EQ(text_of(client.command({"EVAL", script, "1", keys.back()})), "_");
  };
  make("hash",
       "for i = 1, 30000 do redis.call('HSET', KEYS[1], 'field' .. i, ('v'):rep(60) .. i) end");
  make("zset", "for i = 1, 30000 do redis.call('ZADD', KEYS[1], i / 7, ('m'):rep(60) .. i) end");
  make("set", "for i = 1, 30000 do redis.call('SADD', KEYS[1], ('m'):rep(60) .. i) end");
  make("list", "for i = 1, 30000 do redis.call('RPUSH', KEYS[1], ('e'):rep(80) .. i) end");
  make("string",
       "redis.call('SET', KEYS[1], ('0123456789abc'):rep(300000)) redis.call('PEXPIRE', KEYS[1], "
       "1000000)");
  const auto digest_of = [&](std::size_t server, const std::string& key) {
    auto direct = rig.direct(server);
    return text_of(direct.command({"DEBUG", "DIGEST-VALUE", key}));
  };
  std::vector<std::string> before;
  for (const auto& key : keys) before.push_back(digest_of(rig.home(key, false), key));
  auto mover = rig.start_mover();
  ASSERT_TRUE(rig.comes_to_tell("moving")) << rig.told();
  EXPECT_EQ(ask(client, "HLEN " + keys[0]), ":30000");  // by whichever home has it
  EXPECT_EQ(ask(client, "LLEN " + keys[3]), ":30000");
  ASSERT_TRUE(rig.comes_to_tell("all keys have moved, but")) << rig.told();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(digest_of(2, keys[i]), before[i]) << keys[i];
    auto old_home = rig.direct(rig.home(keys[i], false));
    EXPECT_EQ(ask(old_home, "EXISTS " + keys[i]), ":0");
  }
  auto newest = rig.direct(2);
  EXPECT_TRUE(ask(newest, "INFO commandstats").contains("cmdstat_rename:calls=5"));
  EXPECT_GT(newest.command({"PTTL", keys[4]}).as_integer(), 0);
  EXPECT_EQ(ask(client, "HSET " + keys[0] + " more 1"), ":1");
  rig.place_files(true);
  EXPECT_EQ(mover.wait(), 0) << rig.told();
}

TEST(RingMove, T60TheFieldsOfALargeHashEndWhenTheyWouldHave) {
  MoveRig rig;
  const auto key = rig.moving_key();
  PlainClient client{rig.port(0)};
  const auto made = text_of(client.command(
      {"EVAL",
       "for i = 1, 30000 do redis.call('HSET', KEYS[1], 'field' .. i, ('v'):rep(60) .. i) end "
       "for i = 1, 30000, 1000 do "
       "  redis.call('HPEXPIREAT', KEYS[1], 4102444800000 + i, 'FIELDS', 1, 'field' .. i) end",
       "1", key}));
  if (made.contains("Unknown Redis command"))
    GTEST_SKIP() << "fields have times to live since Redis 7.4 and Valkey 9; this server has none";
  ASSERT_EQ(made, "_");
  auto mover = rig.start_mover();
  ASSERT_TRUE(rig.comes_to_tell("all keys have moved, but")) << rig.told();
  auto newest = rig.direct(2);
  EXPECT_EQ(ask(newest, "HLEN " + key), ":30000");
  EXPECT_TRUE(ask(newest, "INFO commandstats").contains("cmdstat_rename:calls=1"));
  EXPECT_EQ(ask(newest, "HPEXPIRETIME " + key + " FIELDS 3 field1 field2 field29001"),
            "*3 :4102444800001 :-1 :4102444829001");
  rig.place_files(true);
  EXPECT_EQ(mover.wait(), 0) << rig.told();
}

TEST(RingMove, PX01_WhatIsDeniedIsDeniedWhileKeysMove) {
  MoveRig rig{1, {}, {"users:", "  - {name: app, password: a, acl: '+@all ~app:* &*'}"}};
  const auto key = rig.moving_key("secret");
  auto old_home = rig.direct(rig.home(key, false));
  ASSERT_EQ(old_home.command({"SETRANGE", key, "8000000", "x"}).as_integer(), 8'000'001);
  PlainClient client{rig.port(0)}, app{rig.port(0)};
  ASSERT_EQ(ask(app, "AUTH app a"), "+OK");
  auto mover = rig.start_mover();
  std::size_t asked = 0;
  while (rig.told().find("all keys have moved, but") == std::string::npos && asked < 100'000) {
    for (const auto* const verb : {"GET ", "STRLEN ", "TYPE ", "DUMP ", "DEL ", "PERSIST "})
      ASSERT_TRUE(ask(app, verb + key).starts_with("-NOPERM")) << verb << asked;
    ++asked;
  }
  ASSERT_TRUE(rig.comes_to_tell("all keys have moved, but")) << rig.told();
  EXPECT_GT(asked, 0U);
  auto newest = rig.direct(2);
  EXPECT_EQ(ask(newest, "STRLEN " + key), ":8000001");
  rig.place_files(true);
  EXPECT_EQ(mover.wait(), 0) << rig.told();
}

TEST(RingMove, T57ReloadsUnderLoadLoseNothing) {
  MoveRig rig;
  CounterLoad load{{.ports = ports_of(rig)}};
  ASSERT_TRUE(goes_on(load));
  for (int i = 0; i < 20; ++i) {
    ASSERT_FALSE(rig.tell_proxy(0, {"RELOAD"}).empty());
    ASSERT_TRUE(goes_on(load, 50));
  }
  const auto& history = load.stop();
  EXPECT_EQ(contradictions(history, load.last(rig.port(0))), std::vector<std::string>{});
  EXPECT_EQ(load.unknown() + load.refused(), 0U) << fmt::format("{}", load.errors());
}

}  // namespace
}  // namespace sluice::test
