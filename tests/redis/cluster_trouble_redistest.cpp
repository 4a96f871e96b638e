// A Store of a real cluster while slots move, and nodes change their roles, die and fall silent.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "base/sha1.hpp"
#include "redis/at_cluster.hpp"
#include "redis/fake_node.hpp"
#include "sluice/when_all.hpp"
#include "store/reply_error.hpp"
#include "support/fault_proxy.hpp"
#include "support/free_port.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::failure_of;
using test::FakeNode;

class ClusterTrouble : public test::AtCluster {};

/// Counts in keys of all masters, by INCR, from threads of its own.
class Counting {
 public:
  Counting(Store& store, int threads)
      : store_(store), counters_(static_cast<std::size_t>(threads)) {
    for (int i = 0; i < threads; ++i)
      crowd_.emplace_back([this, i](const std::stop_token& stop) {
        auto& counter = counters_[static_cast<std::size_t>(i)];
        while (!stop.stop_requested()) try {
            store_.run({"INCR", key(i)}).get();
            ++counter.acknowledged;
          } catch (const Error& error) {
            ++(error.effect() == Effect::none ? counter.refused : counter.unknown);
          }
      });
  }

  static std::string key(int i) { return "counter:" + std::to_string(i); }
  /// Each thread has been given so many replies.
  void wait_for(int more) {
    std::vector<int> before;
    for (const auto& counter : counters_) before.push_back(counter.acknowledged);
    EXPECT_TRUE(comes_true([&] {
      for (std::size_t i = 0; i < counters_.size(); ++i)
        if (counters_[i].acknowledged < before[i] + more) return false;
      return true;
    }));
  }
  void stop() { crowd_.clear(); }
  int unknown() const { return sum(&Counter::unknown); }
  int refused() const { return sum(&Counter::refused); }
  /// What was acknowledged is there; what is there was acknowledged, or is unknown.
  void check() {
    stop();
    for (std::size_t i = 0; i < counters_.size(); ++i) {
      const auto value = store_.run({"GET", key(static_cast<int>(i))}).get().as_integer();
      EXPECT_GE(value, counters_[i].acknowledged);
      EXPECT_LE(value, counters_[i].acknowledged + counters_[i].unknown);
    }
  }

 private:
  struct Counter {
    std::atomic<int> acknowledged{0};
    std::atomic<int> refused{0};
    std::atomic<int> unknown{0};
  };
  int sum(std::atomic<int> Counter::*one) const {
    int all = 0;
    for (const auto& counter : counters_) all += counter.*one;
    return all;
  }

  Store& store_;
  std::vector<Counter> counters_;
  std::vector<std::jthread> crowd_;
};

/// While it lives masters change places when a test asks for it, and not because one stood still
/// for a second: what that one acknowledges when it goes on is lost, the last words of each caller.
class AskedFailovers {
 public:
  explicit AskedFailovers(std::function<void(std::string_view, std::string_view)> set)
      : set_(std::move(set)) {
    set_("cluster-replica-no-failover", "yes");
    set_("cluster-node-timeout", "5000");
  }
  ~AskedFailovers() {
    set_("cluster-replica-no-failover", "no");
    set_("cluster-node-timeout", "1000");
  }
  AskedFailovers(const AskedFailovers&) = delete;
  AskedFailovers& operator=(const AskedFailovers&) = delete;

 private:
  const std::function<void(std::string_view, std::string_view)> set_;
};

TEST_F(ClusterTrouble, T01_OneSeedOfThreeAliveIsEnough) {
  auto options = at(rig());
  options.seeds.resize(1);
  options.seeds.push_back({.host = "127.0.0.1", .port = 1, .unix_path = {}});
  options.seeds.push_back({.host = "127.0.0.1", .port = 2, .unix_path = {}});
  EXPECT_EQ(redis::open_cluster(options)->run({"PING"}).get().as_text(), "PONG");
  options.seeds.erase(options.seeds.begin());
  const auto refused = failure_of([&] { redis::open_cluster(options); });
  EXPECT_EQ(refused.errc(), Errc::connection);
  EXPECT_NE(refused.message().find("127.0.0.1:2"), std::string::npos) << refused.message();
}

TEST_F(ClusterTrouble, AServerWithoutAClusterIsRefused) {
  const test::RedisServer alone;
  redis::ClusterStoreOptions options{.node = {}, .seeds = {}};
  options.seeds.push_back({.host = "127.0.0.1", .port = alone.port(), .unix_path = {}});
  const auto refused = failure_of([&] { redis::open_cluster(options); });
  EXPECT_EQ(refused.errc(), Errc::server);
  EXPECT_NE(refused.message().find("no node of a cluster"), std::string::npos) << refused.message();
}

/// Moves a node that runs to another port of its own.
void listen_at(std::uint16_t before, std::uint16_t after) {
  test::PlainClient client{before};
  EXPECT_EQ(client.command({"CONFIG", "SET", "port", std::to_string(after)}),
            Value::simple_string("OK"));
  client.command({"CLIENT", "KILL", "TYPE", "normal"});
}

TEST_F(ClusterTrouble, T02_WhenNoKnownNodeAnswersTheSeedsAreAskedAnew) {
  test::FaultProxy seed{rig().node(0).port()};  // a name that leads elsewhere later
  auto options = at(rig());
  options.seeds.resize(1);
  options.seeds[0].port = seed.port();
  const auto named = redis::open_cluster(options);
  named->run({"SET", "{s}", "1"}).get();
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < rig().size(); ++i) {
    ports.push_back(test::free_port());
    listen_at(rig().node(i).port(), ports[i]);
  }
  seed.turn_to(ports[0]);
  EXPECT_EQ(named->run({"GET", "{s}"}).get().as_text(), "1");
  EXPECT_EQ(named->run({"DBSIZE"}).get(), Value::integer(1));
  for (std::size_t i = 0; i < rig().size(); ++i) listen_at(ports[i], rig().node(i).port());
}

TEST_F(ClusterTrouble, T03_NodesWithoutAnAddressAreWhereTheAnswerCameFrom) {
  set("cluster-preferred-endpoint-type", "unknown-endpoint");
  const auto named = redis::open_cluster(at(rig()));
  for (const auto* const key : {"a", "b", "c", "{m}"}) {
    EXPECT_EQ(named->run({"SET", key, key}).get().as_text(), "OK");
  }
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  rig().move_slot(hash_slot("{m}"), from, to);
  EXPECT_EQ(named->run({"GET", "{m}"}).get().as_text(), "{m}");  // MOVED 10276 :7001
  rig().move_slot(hash_slot("{m}"), to, from);
  set("cluster-preferred-endpoint-type", "ip");
}

TEST_F(ClusterTrouble, T03_ANodeWhoseNameIsNotAnnouncedIsNotDialled) {
  const auto nameless = master_of("{s}");
  const auto other = other_than("{s}");
  for (std::size_t i = 0; i < rig().size(); ++i)
    if (i != nameless)
      rig().client_of(i).command({"CONFIG", "SET", "cluster-announce-hostname", "localhost"});
  set("cluster-preferred-endpoint-type", "hostname");
  for (std::size_t i = 0; i < rig().size(); ++i)
    EXPECT_TRUE(comes_true([&] {
      auto client = rig().client_of(i);
      const auto slots = to_string(client.command({"CLUSTER", "SLOTS"}), 100'000);
      int named = 0;
      for (auto at = slots.find("\"localhost\""); at != slots.npos;
           at = slots.find("\"localhost\"", at + 1))
        ++named;
      return named == 5;
    }));
  const auto named = redis::open_cluster(at(rig()));
  const std::string here = "{" + std::string{master_of("a") == other ? "a" : "b"} + "}";
  if (master_of(here) != nameless) {
    EXPECT_EQ(named->run({"SET", here, "1"}).get().as_text(), "OK");
  }
  const auto refused = failure_of([&] {
    named->run({"SET", "{s}", "1"}, {.timeout = 500ms}).get();
  });
  EXPECT_EQ(refused.errc(), Errc::connection);
  EXPECT_EQ(refused.effect(), Effect::none);
  EXPECT_NE(refused.message().find("cluster-announce-hostname"), std::string::npos)
      << refused.message();
  set("cluster-preferred-endpoint-type", "ip");
  set("cluster-announce-hostname", "");
}

TEST_F(ClusterTrouble, T04_AMasterIsKilledUnderLoad) {
  const auto victim = master_of(Counting::key(0));
  Counting counting{*store, 6};
  counting.wait_for(20);
  rig().node(victim).kill();
  counting.wait_for(20);  // also where its replica has to be elected first
  counting.check();
  EXPECT_EQ(counting.refused(), 0) << "the deadline is far";
  EXPECT_LE(counting.unknown(), 6) << "what was under way";
}

TEST_F(ClusterTrouble, T05_FailoversAreSeenByNobody) {
  const AskedFailovers asked{set};
  Counting counting{*store, 6};
  for (int i = 0; i < 3; ++i) {
    counting.wait_for(20);
    rig().fail_over(master_of(Counting::key(i)));
  }
  counting.wait_for(20);
  counting.check();
  EXPECT_EQ(counting.refused(), 0);
  EXPECT_EQ(counting.unknown(), 0);
}

int questions(test::ClusterRig& rig) {
  int all = 0;
  for (std::size_t i = 0; i < rig.size(); ++i) {
    const auto stats = rig.client_of(i).command({"INFO", "commandstats"}).as_text();
    const auto at = stats.find("cmdstat_cluster|shards:calls=");
    if (at != std::string::npos) all += std::atoi(stats.c_str() + stats.find('=', at) + 1);
  }
  return all;
}

TEST_F(ClusterTrouble, T08_ManyThreadsAskNoMoreThanTenTimesASecond) {
  const AskedFailovers asked{set};
  const auto begin = std::chrono::steady_clock::now();
  const int before = questions(rig());
  Counting counting{*store, test::is_sanitized ? 64 : 1000};
  counting.wait_for(2);
  rig().fail_over(master_of(Counting::key(0)));
  counting.wait_for(2);
  counting.check();
  const auto seconds =
      std::chrono::ceil<std::chrono::seconds>(std::chrono::steady_clock::now() - begin);
  EXPECT_LE(questions(rig()) - before, 10 * (seconds.count() + 1));
}

TEST_F(ClusterTrouble, T07_ANodeThatNobodyHasToldOfIsUsedWithOneQuestion) {
  const test::RedisServer stranger{{"cluster-enabled yes", "cluster-node-timeout 1000",
                                    fmt::format("cluster-port {}", test::free_port())}};
  test::PlainClient there{stranger.port()};
  const auto id = there.command({"CLUSTER", "MYID"}).as_text();
  const auto from = master_of("{m}");
  const auto slot = std::to_string(hash_slot("{m}"));
  const auto bus = there.command({"CONFIG", "GET", "cluster-port"}).as_items().at(1).as_text();
  auto source = rig().client_of(from);
  source.command({"CLUSTER", "MEET", "127.0.0.1", std::to_string(stranger.port()), bus});
  for (std::size_t i = 0; i < rig().size(); ++i)
    EXPECT_TRUE(comes_true([&] {
      const auto nodes = rig().client_of(i).command({"CLUSTER", "NODES"}).as_text();
      return nodes.find(id) != nodes.npos && nodes.find("handshake") == nodes.npos;
    }));
  EXPECT_TRUE(comes_true([&] {
    return there.command({"CLUSTER", "INFO"}).as_text().find("cluster_known_nodes:7") !=
           std::string::npos;
  }));
  store->run({"GET", "{m}"}).get();
  there.command({"CLUSTER", "SETSLOT", slot, "IMPORTING", rig().id_of(from)});
  there.command({"CLUSTER", "SETSLOT", slot, "NODE", id});
  source.command({"CLUSTER", "SETSLOT", slot, "NODE", id});
  EXPECT_TRUE(comes_true([&] {
    return there.command({"SET", "{m}", "1"}) == Value::simple_string("OK");
  }));
  const int before = questions(rig());
  EXPECT_EQ(store->run({"GET", "{m}"}).get().as_text(), "1");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(store->run({"GET", "{m}"}).get().as_text(), "1");
  EXPECT_LE(questions(rig()) - before, 6) << "a round of three, and one that was due";
  // As it was.
  there.command({"DEL", "{m}"});
  source.command({"CLUSTER", "SETSLOT", slot, "IMPORTING", id});
  source.command({"CLUSTER", "SETSLOT", slot, "NODE", rig().id_of(from)});
  for (std::size_t i = 0; i < rig().size(); ++i) {
    rig().client_of(i).command({"CLUSTER", "SETSLOT", slot, "NODE", rig().id_of(from)});
    rig().client_of(i).command({"CLUSTER", "FORGET", id});
  }
}

/// Two nodes of which each says that the other has the slot.
TEST(ClusterCircle, T09_MovedInACircleEndsByTheDeadlineAndWithoutHaste) {
  std::atomic<const FakeNode*> first{nullptr};
  std::atomic<const FakeNode*> second{nullptr};
  const FakeNode one{[&](const auto&) { return one.moved_to(*second); }};
  const FakeNode other{[&](const auto&) { return other.moved_to(*first); }};
  first = &one;
  second = &other;
  const auto store = redis::open_cluster(one.options());
  const auto ask = [&] {
    return failure_of([&] { store->run({"INCR", "key"}, {.timeout = 500ms}).get(); });
  };
  auto failure = ask();
  int asked = 1;
  // On a slow machine the time may be over while a question is on its way.
  for (; failure.errc() == Errc::timeout && asked < 20; ++asked) failure = ask();
  EXPECT_EQ(failure.effect(), Effect::none) << failure.message();
  EXPECT_NE(failure.message().find("MOVED"), std::string::npos) << failure.message();
  EXPECT_LE(one.calls() + other.calls(), 500 * asked) << "it would be ten thousands without pauses";
}

TEST_F(ClusterTrouble, T10_ScriptsOfSeveralKeysWaitForTheMoveOfTheirSlot) {
  static const std::string text =
      "return redis.call('incr', KEYS[1]) + redis.call('exists', KEYS[2], KEYS[3])";
  const auto sha1 = sha1_hex(text);
  const Script script{"test", text, sha1};
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  const int slot = hash_slot("{m}");
  const auto run = [&] { return store->run(script, {"{m}1", "{m}2", "{m}3"}, {}).get(); };
  EXPECT_EQ(run(), Value::integer(1));
  store->run({"SET", "{m}2", "here"}).get();
  rig().begin_move(slot, from, to);  // of three keys one is absent: TRYAGAIN, on either side
  std::atomic<bool> is_done{false};
  std::jthread caller{[&] {
    EXPECT_EQ(run(), Value::integer(3));
    is_done = true;
  }};
  auto source = rig().client_of(from);
  const auto refusals = [&] {
    const auto stats = source.command({"INFO", "errorstats"}).as_text();
    return stats.find("errorstat_TRYAGAIN") != std::string::npos;
  };
  EXPECT_TRUE(comes_true(refusals));
  EXPECT_FALSE(is_done);
  rig().move_keys(slot, from, to);
  rig().end_move(slot, from, to);
  caller.join();
  rig().move_slot(slot, to, from);
}

TEST_F(ClusterTrouble, T11_AScriptThatTheTargetOfASlotDoesNotKnowRunsOnce) {
  static const std::string text = "return redis.call('incr', KEYS[1])";
  const auto sha1 = sha1_hex(text);
  const Script script{"test", text, sha1};
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  const int slot = hash_slot("{m}");
  EXPECT_EQ(store->run(script, {"{m}known"}, {}).get(), Value::integer(1));
  rig().client_of(to).command({"SCRIPT", "FLUSH"});
  rig().begin_move(slot, from, to);
  EXPECT_EQ(store->run(script, {"{m}new"}, {}).get(), Value::integer(1));
  EXPECT_EQ(store->run(script, {"{m}new"}, {}).get(), Value::integer(2));
  rig().move_keys(slot, from, to);
  rig().end_move(slot, from, to);
  EXPECT_EQ(store->run({"GET", "{m}new"}).get().as_text(), "2");
  rig().move_slot(slot, to, from);
}

TEST_F(ClusterTrouble, T14_ASilentMasterHoldsUpNobodyElse) {
  const auto silent = master_of("{s}");
  const std::string healthy = "{" + std::string{master_of("a") == silent ? "b" : "a"} + "}";
  ASSERT_NE(master_of(healthy), silent);
  set("cluster-node-timeout", "60000");  // the cluster does not notice
  rig().node(silent).stop();
  std::atomic<bool> is_done{false};
  std::jthread caller{[&] {
    store->run({"INCR", "{s}"}, {.timeout = 60s}).get();
    is_done = true;
  }};
  for (int i = 1; i <= 200; ++i) EXPECT_EQ(store->run({"INCR", healthy}).get(), Value::integer(i));
  EXPECT_FALSE(is_done);
  rig().node(silent).cont();
  caller.join();
  set("cluster-node-timeout", "1000");
}

TEST_F(ClusterTrouble, T14_ASilentMasterIsLeftWhenItsSlotsHaveAnother) {
  const auto silent = master_of("{s}");
  std::exception_ptr failure;
  rig().node(silent).stop();
  std::jthread writer{[&] {
    try {
      store->run({"INCR", "{s}"}, {.timeout = 60s}).get();
    } catch (...) {
      failure = std::current_exception();
    }
  }};
  // It may be sent again, and so it is.
  EXPECT_TRUE(store->run({"GET", "{s}nothing"}, {.timeout = 60s}).get().is_null());
  writer.join();
  if (failure) {
    EXPECT_EQ(failure_of([&] { std::rethrow_exception(failure); }).effect(), Effect::unknown);
  }
  EXPECT_NE(master_of("{s}"), silent);
}

TEST_F(ClusterTrouble, T15_AtAnAddressOfANodeAForeignOneIsNotSpokenTo) {
  const test::RedisServer foreign{{"cluster-enabled yes", "cluster-require-full-coverage no",
                                   fmt::format("cluster-port {}", test::free_port())}};
  test::PlainClient there{foreign.port()};
  there.command({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
  EXPECT_TRUE(comes_true([&] { return !there.command({"SET", "a", "1"}).is_error(); }));
  there.command({"FLUSHALL"});
  store->run({"SET", "{s}", "1"}).get();
  set("cluster-node-timeout", "60000");  // nobody takes its place
  const auto master = master_of("{s}");
  const auto port = std::to_string(rig().node(master).port());
  rig().node(master).kill();
  EXPECT_EQ(there.command({"CONFIG", "SET", "port", port}), Value::simple_string("OK"));
  const auto refused = failure_of([&] { store->run({"SET", "{s}", "2"}, {.timeout = 1s}).get(); });
  EXPECT_EQ(refused.effect(), Effect::none);
  EXPECT_NE(refused.message().find("another cluster"), std::string::npos) << refused.message();
  EXPECT_EQ(there.command({"DBSIZE"}), Value::integer(0));
  EXPECT_EQ(there.command({"CONFIG", "SET", "port", std::to_string(test::free_port())}),
            Value::simple_string("OK"));
  rig().node(master).start();
  EXPECT_EQ(store->run({"SET", "{s}", "3"}).get().as_text(), "OK");
  set("cluster-node-timeout", "1000");
}

TEST_F(ClusterTrouble, T16_AMasterThatComesBackEmptyIsTold) {
  std::atomic<int> told{0};
  const auto watch = store->watch_connection([&] { ++told; });
  store->run({"SET", "{s}", "here"}).get();
  set("cluster-node-timeout", "60000");  // nobody takes its place
  const auto master = master_of("{s}");
  rig().node(master).kill();
  rig().node(master).start();
  EXPECT_TRUE(comes_true([&] { return told > 0; }));
  EXPECT_TRUE(store->run({"GET", "{s}"}).get().is_null());
  set("cluster-node-timeout", "1000");
}

TEST_F(ClusterTrouble, T17_OfABatchOnlyTheItemsOfADeadNodeFail) {
  set("cluster-node-timeout", "60000");
  const auto dead = master_of("a");
  std::vector<bool> is_dead;
  Batch batch;
  for (int i = 0; i < 30; ++i) {
    const auto key = std::to_string(i);
    is_dead.push_back(master_of(key) == dead);
    batch.add({"INCR", key});
  }
  ASSERT_TRUE(std::ranges::count(is_dead, true) > 0 && std::ranges::count(is_dead, false) > 0);
  store->run({"PING"}).get();
  rig().node(dead).kill();
  const auto replies = store->run(batch, {.timeout = 2s}).get();
  ASSERT_EQ(replies.size(), is_dead.size());
  for (std::size_t i = 0; i < replies.size(); ++i) {
    if (!is_dead[i]) {
      EXPECT_EQ(replies[i], Value::integer(1)) << to_string(replies[i]);
      continue;
    }
    ASSERT_TRUE(replies[i].is_error()) << to_string(replies[i]);
    const Error lost = error_of_reply(replies[i].as_text());
    EXPECT_EQ(lost.errc(), Errc::connection) << lost.message();
  }
  rig().node(dead).start();
  set("cluster-node-timeout", "1000");
}

TEST_F(ClusterTrouble, ABatchThatEndsWithWaitGoesOnAtTheNextMaster) {
  // The connection of such batches is there, and one is under way when the node falls silent.
  Batch first;
  first.add({"SET", "{s}", "1"}).add({"WAIT", "1", "10000"});
  EXPECT_EQ(store->run(first).get().back(), Value::integer(1));
  const auto silent = master_of("{s}");
  rig().node(silent).stop();
  std::vector<std::jthread> crowd;
  for (int i = 0; i < 3; ++i)  // one is sent, the others wait behind it
    crowd.emplace_back([&] {
      Batch batch;
      batch.add({"SET", "{s}", "2"}).add({"WAIT", "0", "1000"});
      const auto replies = store->run(batch, {.timeout = 60s, .repeatable = true}).get();
      EXPECT_EQ(replies.at(0), Value::simple_string("OK")) << to_string(replies.at(0));
    });
  crowd.clear();
  EXPECT_NE(master_of("{s}"), silent) << "which goes on only when the test is over";
}

TEST_F(ClusterTrouble, CommandsToAllMastersGoOnWhereOneWasReplaced) {
  for (int i = 0; i < 30; ++i) store->run({"SET", std::to_string(i), "1"}).get();
  const auto silent = master_of("1");
  auto replica = rig().client_of(rig().replica_of(silent));
  auto master = rig().client_of(silent);
  EXPECT_TRUE(
      comes_true([&] { return master.command({"DBSIZE"}) == replica.command({"DBSIZE"}); }));
  rig().node(silent).stop();
  EXPECT_EQ(store->run({"DBSIZE"}, {.timeout = 60s}).get(), Value::integer(30));
  EXPECT_EQ(store->run({"FLUSHALL"}, {.timeout = 60s, .repeatable = true}).get(),
            Value::simple_string("OK"));
  EXPECT_EQ(store->run({"DBSIZE"}, {.timeout = 60s}).get(), Value::integer(0));
  EXPECT_NE(master_of("1"), silent) << "which goes on only when the test is over";
}

TEST_F(ClusterTrouble, AThreadsCallsTakeTurnsAtAllMasters) {
  std::mt19937_64 random{1};
  const auto ask = [&] -> Task<void> {
    for (int i = 0; i < 4; ++i) {
      auto asked = store->run({"INCR", std::to_string(random() % 12)}, {.timeout = 5s});
      co_await asked;
    }
  };
  for (int round = 0; round < 600; ++round) {
    std::vector<Task<void>> asked;
    for (int i = 0; i < 4; ++i) asked.push_back(ask());
    ASSERT_NO_THROW(when_all(std::move(asked)).get()) << "in round " << round;
  }
}

TEST(ClusterBlocking, WhatIsRedirectedWaitsForTheRestOfItsTime) {
  std::mutex mutex;
  std::vector<std::string> times;
  const FakeNode target{[&](const auto& words) {
    const std::lock_guard lock{mutex};
    times.push_back(words.back());
    return std::string{"_\r\n"};
  }};
  const FakeNode source{[&](const auto&) {
    std::this_thread::sleep_for(20ms);  // it blocks
    return source.moved_to(target);
  }};
  const auto pop = [&](std::string_view time) {
    return redis::open_cluster(source.options())->run({"BLPOP", "key", time}).get();
  };
  EXPECT_TRUE(pop("100").is_null());
  EXPECT_TRUE(pop("0").is_null());
  EXPECT_TRUE(pop("0.01").is_null());
  const std::lock_guard lock{mutex};
  ASSERT_EQ(times.size(), 2U) << "the time of the last one was over";
  EXPECT_LT(std::stod(times[0]), 100);
  EXPECT_GT(std::stod(times[0]), 0);
  EXPECT_EQ(times[1], "0") << "for ever";
}

TEST_F(ClusterTrouble, T18_OneThreadsOrderInASlotSurvivesRedirections) {
  const auto append = [](Store& to, std::string word) -> Task<void> {
    auto asked = to.run({"APPEND", "{order}", word}, {.timeout = 60s});
    co_await asked;
  };
  std::string expected;
  for (int turn = 0; turn < 2; ++turn) {
    std::jthread failing_over{[] { rig().fail_over(master_of("{order}")); }};
    for (int i = 0; i < 2000; ++i) {
      const auto word = std::to_string(i) + ",";
      expected += word;
      spawn(append(*store, word));
      if (i % 100 == 0) {
        EXPECT_EQ(store->run({"GET", "{order}"}).get().as_text(), expected);
      }
    }
    failing_over.join();
    EXPECT_EQ(store->run({"GET", "{order}"}).get().as_text(), expected);
    rig().heal();
  }
}

/// Threads that append numbers to a list of their own, five at a time: as calls, or with a batch of
/// three among them.
class Appending {
 public:
  Appending(Store& store, int threads) : store_(store), counts_(static_cast<std::size_t>(threads)) {
    for (int i = 0; i < threads; ++i)
      crowd_.emplace_back([this, i](const std::stop_token& stop) {
        auto& next = counts_[static_cast<std::size_t>(i)];
        for (int group = 0; !stop.stop_requested(); ++group) {
          std::vector<Task<void>> five;
          const bool is_plain = group % 2 == 0;
          for (int n = 0; n < 5; n += is_plain || n != 1 ? 1 : 3)
            five.push_back(is_plain || n != 1 ? append(key(i), std::to_string(next + n))
                                              : append_three(key(i), next + n));
          when_all(std::move(five)).get();
          next += 5;
        }
      });
  }

  /// Each thread has appended so many more.
  void wait_for(int more) {
    const std::vector<int> before{counts_.begin(), counts_.end()};
    EXPECT_TRUE(comes_true([&] {
      for (std::size_t i = 0; i < counts_.size(); ++i)
        if (counts_[i] < before[i] + more) return false;
      return true;
    }));
  }
  /// How many groups of five are not in their order; of how many.
  std::pair<int, int> check() {
    crowd_.clear();
    int odd = 0, all = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const auto list = store_.run({"LRANGE", key(static_cast<int>(i)), "0", "-1"}).get();
      const auto& items = list.as_items();
      EXPECT_EQ(items.size(), static_cast<std::size_t>(counts_[i]));
      for (std::size_t group = 0; group + 5 <= items.size(); group += 5, ++all)
        for (std::size_t n = group; n < group + 5; ++n)
          if (items[n].as_text() != std::to_string(n)) {
            ++odd;
            break;
          }
    }
    return {odd, all};
  }

 private:
  static std::string key(int i) { return "{m}list:" + std::to_string(i); }
  Task<void> append(std::string key, std::string number) {
    auto asked = store_.run({"RPUSH", key, number}, {.timeout = 60s});
    co_await asked;
  }

  Task<void> append_three(std::string key, int number) {
    Batch three;
    for (int n = 0; n < 3; ++n) three.add({"RPUSH", key, std::to_string(number + n)});
    auto asked = store_.run(std::move(three), {.timeout = 60s});
    for (const auto& reply : co_await asked) EXPECT_FALSE(reply.is_error()) << to_string(reply);
  }

  Store& store_;
  std::vector<std::atomic<int>> counts_;
  std::vector<std::jthread> crowd_;
};

TEST_F(ClusterTrouble, D07_TheOrderOfEachOfManyThreadsSurvivesMovesAndFailovers) {
  const char* const times = std::getenv("SLUICE_LONG");
  const int turns = 10 * (times ? std::atoi(times) : 1);
  const int slot = hash_slot("{m}");
  Appending lists{*store, 6};
  for (int turn = 0; turn < turns; ++turn) {
    const auto from = master_of("{m}");
    const auto to = other_than("{m}");
    for (const auto& [source, target] : {std::pair{from, to}, std::pair{to, from}}) {
      rig().begin_move(slot, source, target);
      lists.wait_for(20);
      rig().move_keys(slot, source, target);
      lists.wait_for(20);
      rig().end_move(slot, source, target);
      lists.wait_for(20);
    }
    if (turn % 3 == 0 || times) {
      rig().fail_over(from);
      rig().heal();
    }
    lists.wait_for(100);
  }
  // A node that stands still for half a second is not waited for.
  const auto [odd, all] = lists.check();
  fmt::print("{} of {} groups are out of order\n", odd, all);
  EXPECT_LE(odd * 500, all) << odd << " of " << all;
}

/// A script that nobody knows, with two keys or with one.
struct NewScript {
  NewScript()
      : text(fmt::format("return redis.call('set', KEYS[1], ARGV[1]) -- {}", ++count)),
        sha1(sha1_hex(text)) {}
  inline static int count = 0;
  const std::string text;
  const std::string sha1;
  const Script script{"put", text, sha1};
};

/// [put(x), put(y) = 1, GET y] as a batch, or as calls of one thread: what GET says.
Value put_both(Store& store, Words x, std::string_view y, bool in_batch) {
  const NewScript put;
  static constexpr std::string_view one[] = {"1"};
  if (in_batch) {
    Batch batch;
    batch.add(put.script, x, one).add(put.script, {&y, 1}, one).add({"GET", y});
    return store.run(std::move(batch)).get().at(2);
  }
  Value got;
  const auto run = [&](Task<Value> asked, Value& reply) -> Task<void> { reply = co_await asked; };
  Value first, second;
  std::vector<Task<void>> three;
  three.push_back(run(store.run(put.script, x, one), first));
  three.push_back(run(store.run(put.script, {&y, 1}, one), second));
  three.push_back(run(store.run({"GET", y}), got));
  when_all(std::move(three)).get();
  return got;
}

TEST_F(ClusterTrouble, D14_ARedirectedScriptLetsTheNextOneBeExecutedInItsPlace) {
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  const int slot = hash_slot("{m}");
  std::string beside = "{0}y";
  for (int i = 1; master_of(beside) != from; ++i) beside = fmt::format("{{{}}}y", i);
  enum class Refusal { ask, try_again, moved };
  for (const auto refusal : {Refusal::ask, Refusal::try_again, Refusal::moved})
    for (const std::string& y : {std::string{"{m}y"}, beside})
      for (const bool in_batch : {true, false}) {
        SCOPED_TRACE(fmt::format("{} {} {}", static_cast<int>(refusal), y, in_batch));
        store->run({"FLUSHALL"}).get();
        store->run({"SET", y, "0"}).get();
        std::vector<std::string_view> x{"{m}x"};
        if (refusal == Refusal::try_again) {
          store->run({"SET", "{m}x", "0"}).get();
          x.emplace_back("{m}none");
        }
        rig().begin_move(slot, from, to);
        const bool has_moved = refusal == Refusal::moved;
        const auto finish = [&] {
          rig().move_keys(slot, from, to);
          rig().end_move(slot, from, to);
        };
        if (has_moved) finish();
        Value got;
        std::jthread caller{[&] { got = put_both(*store, x, y, in_batch); }};
        EXPECT_TRUE(comes_true([&] { return store->run({"GET", y}).get().as_text() == "1"; }));
        if (!has_moved) finish();
        caller.join();
        EXPECT_EQ(to_string(got), "\"1\"");
        rig().move_slot(slot, to, from);
      }
}

bool has_blocked_client(std::size_t node, test::ClusterRig& rig) {
  return rig.client_of(node).command({"INFO", "clients"}).as_text().find("blocked_clients:1") !=
         std::string::npos;
}

/// The item before it brings the text, and is refused with it.
TEST_F(ClusterTrouble, AForgottenScriptOfADurableBatchIsAskedForAgain) {
  static const std::string text = "return redis.call('rpush', KEYS[1], 'x')";
  const auto sha1 = sha1_hex(text);
  const Script script{"test", text, sha1};
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  const int slot = hash_slot("{m}");
  const auto push = [&](std::vector<std::vector<std::string_view>> calls, milliseconds timeout) {
    Batch batch;
    for (const auto& keys : calls) batch.add(script, keys, {});
    batch.add({"WAIT", "1", "1000"});
    return store->run(std::move(batch), {.timeout = timeout}).get();
  };
  for (const auto* const key : {"a", "b", "c"})
    if (master_of(key) == to) push({{key}}, 10s);  // the connection knows the script
  rig().begin_move(slot, from, to);
  auto target = rig().client_of(to);
  target.command({"ASKING"});
  target.command({"SET", "{m}there", "1"});
  target.command({"SCRIPT", "FLUSH"});
  target.command({"CONFIG", "RESETSTAT"});
  const auto replies = push({{"{m}nowhere", "{m}there"}, {"{m}new"}}, 300ms);
  EXPECT_TRUE(replies.at(0).is_error()) << "its keys are at two nodes, as far as these know";
  EXPECT_EQ(replies.at(1), Value::integer(1));
  const auto errors = target.command({"INFO", "errorstats"}).as_text();
  EXPECT_NE(errors.find("errorstat_NOSCRIPT"), std::string::npos) << errors;
  EXPECT_EQ(errors.find("errorstat_MOVED"), std::string::npos) << errors;
  rig().move_keys(slot, from, to);
  rig().end_move(slot, from, to);
  rig().move_slot(slot, to, from);
}

TEST_F(ClusterTrouble, T19_ABlockingCommandGoesOnAtTheNewMaster) {
  const auto before = master_of("{queue}");
  std::jthread waiting{[&] {
    EXPECT_EQ(to_string(store->run({"BLPOP", "{queue}", "60"}).get()), R"(["{queue}", "1"])");
  }};
  EXPECT_TRUE(comes_true([&] { return has_blocked_client(before, rig()); }));
  const auto after = rig().fail_over(before);
  EXPECT_TRUE(comes_true([&] { return has_blocked_client(after, rig()); }));
  store->run({"RPUSH", "{queue}", "1"}).get();
}

TEST_F(ClusterTrouble, T22_ANodeWithoutSlotsIsLeft) {
  auto options = at(rig());
  options.node.name = "leaves";
  const auto named = redis::open_cluster(options);
  const auto before = master_of("{s}");
  const auto is_there = [&] {
    return rig().client_of(before).command({"CLIENT", "LIST"}).as_text().find("name=leaves") !=
           std::string::npos;
  };
  named->run({"SET", "{s}", "1"}).get();
  EXPECT_TRUE(is_there());
  rig().fail_over(before);
  EXPECT_EQ(named->run({"GET", "{s}"}).get().as_text(), "1");
  EXPECT_TRUE(comes_true([&] { return !is_there(); }));
}

/// What a handler has heard.
class Heard {
 public:
  MessageHandler handler() {
    return [this](const Message& message) {
      const std::lock_guard lock{mutex_};
      if (message.kind == Message::Kind::gap) ++gaps_;
      if (message.kind == Message::Kind::published) words_.insert(message.payload);
    };
  }
  int gaps() const {
    const std::lock_guard lock{mutex_};
    return gaps_;
  }
  bool has(const std::string& word) const {
    const std::lock_guard lock{mutex_};
    return words_.contains(word);
  }

 private:
  mutable std::mutex mutex_;
  int gaps_ = 0;
  std::set<std::string> words_;
};

TEST_F(ClusterTrouble, T23_AChannelOfASlotThatMovesIsHeardAtItsNewMaster) {
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  Heard sharded;
  Heard classic;
  const auto one = store->subscribe("{m}", sharded.handler()).get();
  const auto two = store->listen("{m}", classic.handler()).get();
  rig().move_slot(hash_slot("{m}"), from, to);
  EXPECT_TRUE(comes_true([&] { return sharded.gaps() == 1; }));
  EXPECT_EQ(store->run({"SPUBLISH", "{m}", "moved"}).get(), Value::integer(1));
  EXPECT_TRUE(comes_true([&] { return sharded.has("moved"); }));
  EXPECT_TRUE(comes_true([&] { return classic.gaps() == 1; }));
  EXPECT_EQ(store->run({"PUBLISH", "{m}", "moved"}).get(), Value::integer(1));
  EXPECT_TRUE(comes_true([&] { return classic.has("moved"); }));
  EXPECT_EQ(sharded.gaps(), 1);
  EXPECT_EQ(classic.gaps(), 1);
  rig().move_slot(hash_slot("{m}"), to, from);
}

TEST_F(ClusterTrouble, T24_AfterAFailoverAChannelIsHeardAtTheNewMaster) {
  Heard heard;
  const auto listener = store->subscribe("{s}", heard.handler()).get();
  rig().node(master_of("{s}")).kill();
  EXPECT_TRUE(comes_true([&] { return heard.gaps() == 1; }));
  EXPECT_EQ(store->run({"SPUBLISH", "{s}", "hello"}).get(), Value::integer(1));
  EXPECT_TRUE(comes_true([&] { return heard.has("hello"); }));
}

TEST_F(ClusterTrouble, T25_ManyChannelsOfSeveralSlotsAreSubscribedAnew) {
  constexpr int channels = 100;
  std::vector<Heard> heard(channels);
  std::vector<Listener> listeners;
  for (int i = 0; i < channels; ++i)
    listeners.push_back(
        store->subscribe("c" + std::to_string(i), heard[static_cast<std::size_t>(i)].handler())
            .get());
  for (std::size_t i = 0; i < rig().size(); ++i)
    rig().client_of(i).command({"CLIENT", "KILL", "TYPE", "pubsub"});
  for (const auto& one : heard) EXPECT_TRUE(comes_true([&] { return one.gaps() == 1; }));
  for (int i = 0; i < channels; ++i)
    EXPECT_EQ(store->run({"SPUBLISH", "c" + std::to_string(i), "again"}).get(), Value::integer(1));
  for (const auto& one : heard) EXPECT_TRUE(comes_true([&] { return one.has("again"); }));
}

TEST_F(ClusterTrouble, T26_WhatTheServerEndsUnaskedAnswersNothing) {
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  Heard heard;
  for (int turn = 0; turn < 10; ++turn) {
    const auto listener = store->subscribe("{m}", heard.handler()).get();
    const auto gaps = heard.gaps();
    std::atomic<bool> moves{true};
    std::jthread others{[&] {  // SSUBSCRIBE and SUNSUBSCRIBE meanwhile, on the same connection
      for (int i = 0; moves || i < 20; ++i) {
        Heard one;
        const auto other = store->subscribe("{n}" + std::to_string(i), one.handler()).get();
        EXPECT_EQ(store->run({"SPUBLISH", "{n}" + std::to_string(i), "x"}).get(),
                  Value::integer(1));
        EXPECT_TRUE(comes_true([&] { return one.has("x"); }));
      }
    }};
    turn % 2 == 0 ? rig().move_slot(hash_slot("{m}"), from, to)
                  : rig().move_slot(hash_slot("{m}"), to, from);
    EXPECT_TRUE(comes_true([&] { return heard.gaps() > gaps; }));
    moves = false;
  }
}

}  // namespace
}  // namespace sluice
