// A Store of a real cluster: three masters with a replica each.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <ctime>
#include <functional>
#include <thread>

#include "base/hash_slot.hpp"
#include "base/sha1.hpp"
#include "redis/at_cluster.hpp"
#include "redis/fake_node.hpp"
#include "store/reply_error.hpp"
#include "support/certificates.hpp"
#include "support/free_port.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::failure_of;
using test::FakeNode;

class ClusterStoreTest : public test::AtCluster {};

TEST_F(ClusterStoreTest, RunsCommandsOfAllSlots) {
  for (int i = 0; i < 100; ++i) {
    const auto key = std::to_string(i);
    EXPECT_EQ(store->run({"SET", key, key}).get(), Value::simple_string("OK"));
    EXPECT_EQ(store->run({"GET", key}).get(), Value::bulk_string(key));
  }
  EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(100));
  EXPECT_EQ(store->run({"KEYS", "*"}).get().as_items().size(), 100U);
}

TEST_F(ClusterStoreTest, RunsAScriptThatANodeDoesNotKnow) {
  static const std::string text = "return {KEYS[1], ARGV[1]}";
  const auto sha1 = sha1_hex(text);
  const Script script{"test", text, sha1};
  for (const auto* const key : {"a", "b", "c", "a", "b", "c"})
    EXPECT_EQ(to_string(store->run(script, {key}, {"x"}).get()),
              "[\"" + std::string{key} + "\", \"x\"]");
  store->run({"SCRIPT", "FLUSH"}).get();
  EXPECT_EQ(to_string(store->run(script, {"b"}, {"x"}).get()), "[\"b\", \"x\"]");
}

/// It has written, so it may not be sent again, however it is called; nor does it lead anywhere.
TEST_F(ClusterStoreTest, D03_WhatAScriptSaysItselfIsItsReply) {
  const auto other = hash_slot("own") == 5 ? 6 : 5;
  const FakeNode stranger{[](const auto&) { return std::string{"+OK\r\n"}; }};
  for (const std::string& words :
       {std::string{"TRYAGAIN later"}, std::string{"CLUSTERDOWN by me"}, std::string{"LOADING"},
        std::string{"READONLY for now"}, std::string{"UNBLOCKED by me"},
        std::string{"MASTERDOWN by me"},
        fmt::format("MOVED {} 127.0.0.1:{}", other, stranger.port()),
        fmt::format("ASK {} 127.0.0.1:{}", other, stranger.port()),
        fmt::format("MOVED {} 127.0.0.1:{}", hash_slot("own"), stranger.port())}) {
    const bool of_its_slot = words.starts_with(fmt::format("MOVED {} ", hash_slot("own")));
    const auto text =
        fmt::format("redis.call('INCR', KEYS[1]) return redis.error_reply('{}')", words);
    const auto sha1 = sha1_hex(text);
    const Script script{"test", text, sha1};
    store->run({"DEL", "own"}).get();
    const std::string_view keys[] = {"own"};
    const CallOptions brief{.timeout = of_its_slot ? 100ms : 30s};
    const std::vector<std::function<void()>> ways{
        [&] { store->run(script, Words{keys}, {}, brief).get(); },
        [&] {
          store->run({"EVAL", text, "1", "own"}, brief).get();
        },
        [&] {
          store->run({"EVALSHA", sha1, "1", "own"}, brief).get();
        },
        [&] {
          Batch batch;
          batch.add(script, Words{keys}, {});
          const auto replies = store->run(std::move(batch), brief).get();
          throw error_of_script(replies.at(0).as_text(), script, Words{keys});
        },
        [&] {
          Batch batch;
          const std::string_view command[] = {"EVAL", text, "1", "own"};
          batch.add(Words{command});
          const auto replies = store->run(std::move(batch), brief).get();
          throw error_of_command(replies.at(0).as_text(), Words{command});
        }};
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const auto said = failure_of(ways[way]);
      if (of_its_slot) continue;  // the words of a server: it is asked again, but not the stranger
      EXPECT_EQ(said.effect(), Effect::unknown) << words << ", way " << way;
      EXPECT_EQ(store->run({"GET", "own"}).get().as_text(), std::to_string(way + 1))
          << words << ", way " << way << ": " << said.message();
    }
  }
  EXPECT_EQ(stranger.connections(), 0) << "a script led to it, with the password";
}

TEST_F(ClusterStoreTest, T13_KeysOfSeveralSlotsAreRefusedAndNothingIsSent) {
  const auto refused = failure_of([&] { store->run({"MSET", "a", "1", "b", "2"}).get(); });
  EXPECT_EQ(refused.errc(), Errc::bad_argument);
  EXPECT_EQ(refused.effect(), Effect::none);
  EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(0));
}

TEST_F(ClusterStoreTest, ABatchGoesToAllNodesAndKeepsItsOrderAtEach) {
  Batch batch;
  for (int i = 0; i < 300; ++i)
    batch.add({"RPUSH", "list:" + std::to_string(i % 10), std::to_string(i)});
  const auto replies = store->run(std::move(batch)).get();
  ASSERT_EQ(replies.size(), 300U);
  for (int i = 0; i < 300; ++i)
    EXPECT_EQ(replies[static_cast<std::size_t>(i)], Value::integer(i / 10 + 1));
}

/// Of the processor, whatever else the machine does.
std::chrono::nanoseconds cost_of_item(Store& store, int items) {
  Batch batch;
  for (int i = 0; i < items; ++i) batch.add({"SET", std::to_string(i), "1"});
  const auto begin = std::clock();
  store.run(std::move(batch)).get();
  return std::chrono::nanoseconds{(std::clock() - begin) * (1'000'000'000 / CLOCKS_PER_SEC)} /
         items;
}

TEST_F(ClusterStoreTest, F8_AnItemOfALargeBatchCostsWhatOneOfASmallBatchDoes) {
  auto small = cost_of_item(*store, 2'000), large = cost_of_item(*store, 32'000);
  for (int i = 0; i < 3 && large > 4 * small; ++i) {
    small = std::max(small, cost_of_item(*store, 2'000));
    large = std::min(large, cost_of_item(*store, 32'000));
  }
  EXPECT_LE(large, 4 * small);
}

TEST_F(ClusterStoreTest, ASlotThatMovesIsFollowed) {
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  const int slot = hash_slot("{m}");
  store->run({"SET", "{m}here", "1"}).get();
  rig().begin_move(slot, from, to);
  EXPECT_EQ(store->run({"GET", "{m}here"}).get().as_text(), "1");       // at the source
  EXPECT_EQ(store->run({"SET", "{m}new", "2"}).get().as_text(), "OK");  // ASK
  rig().move_keys(slot, from, to);
  EXPECT_EQ(store->run({"GET", "{m}here"}).get().as_text(), "1");  // ASK
  rig().end_move(slot, from, to);
  EXPECT_EQ(store->run({"GET", "{m}here"}).get().as_text(), "1");  // MOVED
  EXPECT_EQ(store->run({"GET", "{m}new"}).get().as_text(), "2");
  rig().move_slot(slot, to, from);
}

TEST_F(ClusterStoreTest, T12_TransactionsAreScripts) {
  Batch batch;
  batch.add({"MULTI"}).add({"SET", "{m}1", "1"}).add({"SET", "{m}2", "1"}).add({"EXEC"});
  EXPECT_EQ(failure_of([&] { store->run(batch).get(); }).errc(), Errc::bad_argument);
  EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(0));

  // A script is executed whole or not at all, while its slot is under way, too.
  static const std::string text =
      "redis.call('incr', KEYS[1]) redis.call('incr', KEYS[2]) return redis.call('get', KEYS[1])";
  const auto sha1 = sha1_hex(text);
  const Script script{"both", text, sha1};
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  std::atomic<int> done{0};
  std::jthread caller{[&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      store->run(script, {"{m}1", "{m}2"}, {}).get();
      ++done;
    }
  }};
  for (int turn = 0; turn < 4; ++turn) {
    const auto before = done.load();
    EXPECT_TRUE(comes_true([&] { return done > before; }));
    turn % 2 == 0 ? rig().move_slot(hash_slot("{m}"), from, to)
                  : rig().move_slot(hash_slot("{m}"), to, from);
  }
  caller.request_stop();
  caller.join();
  EXPECT_EQ(store->run({"GET", "{m}1"}).get().as_text(), std::to_string(done));
  EXPECT_EQ(store->run({"GET", "{m}2"}).get().as_text(), std::to_string(done));
}

TEST_F(ClusterStoreTest, HearsWhatIsPublished) {
  std::atomic<int> told{0};
  const auto classic =
      store->listen("news", [&](const Message& one) { told += one.payload == "hello"; }).get();
  EXPECT_EQ(store->run({"PUBLISH", "news", "hello"}).get().as_integer(), 1);
  EXPECT_TRUE(comes_true([&] { return told == 1; }));

  std::atomic<int> heard{0};
  const auto listener =
      store->subscribe("shard", [&](const Message& one) { heard += one.payload == "hello"; }).get();
  EXPECT_EQ(store->run({"SPUBLISH", "shard", "hello"}).get().as_integer(), 1);
  EXPECT_TRUE(comes_true([&] { return heard == 1; }));
}

TEST_F(ClusterStoreTest, ACallUnderWayEndsWhenTheStoreIsClosed) {
  std::exception_ptr failure;
  std::jthread waiting{[&] {
    try {
      store->run({"BLPOP", "nothing", "0"}).get();
    } catch (...) {
      failure = std::current_exception();
    }
  }};
  auto client = rig().client_of(rig().master_of("nothing"));
  EXPECT_TRUE(comes_true([&] {
    return client.command({"INFO", "clients"}).as_text().find("blocked_clients:1") !=
           std::string::npos;
  }));
  store.reset();
  waiting.join();
  EXPECT_EQ(failure_of([&] { std::rethrow_exception(failure); }).errc(), Errc::closed);
}

TEST(ClusterTls, T48_NodesThatAreToldAsAddressesAreVerifiedByTheirNames) {
  test::Certificates files;
  files.make("node", "DNS:localhost,DNS:node-0.example,DNS:node-1.example");
  files.make("other", "DNS:localhost,DNS:node-0.example");
  std::vector<std::uint16_t> ports;
  test::ClusterRig rig{{.masters = 2, .replicas = 0, .own_config = [&](std::size_t number) {
                          ports.push_back(test::free_port());
                          auto lines = files.redis(ports.back(), "no", "node");
                          lines.push_back("tls-cluster yes");
                          lines.push_back(
                              fmt::format("cluster-announce-hostname node-{}.example", number));
                          return lines;
                        }}};
  redis::ClusterStoreOptions options{.node = {}, .seeds = {}};
  options.node.connect_timeout = options.node.command_timeout = 30s;
  options.node.tls = std::make_shared<net::TlsClient>(net::TlsClientOptions{
      .files = {.certificate = {}, .key = {}, .ca = files["ca.pem"]}, .server_name = {}});
  options.seeds.push_back({.host = "localhost", .port = ports[0], .unix_path = {}});
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(comes_true([&] {
      const auto nodes = rig.client_of(i).command({"CLUSTER", "NODES"}).as_text();
      return nodes.find("node-0.example") != nodes.npos &&
             nodes.find("node-1.example") != nodes.npos;
    }));
  const auto store = redis::open_cluster(options);
  for (const auto* const key : {"a", "b", "c", "d"})
    EXPECT_EQ(store->run({"SET", key, key}).get().as_text(), "OK");

  EXPECT_FALSE(rig.client_of(1)
                   .command({"CONFIG", "SET", "tls-cert-file", files["other.pem"], "tls-key-file",
                             files["other.key"]})
                   .is_error());
  const auto again = redis::open_cluster(options);
  const auto refused = failure_of([&] {
    for (const auto* const key : {"a", "b", "c", "d"})
      again->run({"SET", key, key}, {.timeout = 2s}).get();
  });
  EXPECT_NE(refused.message().find("node-1.example"), std::string::npos) << refused.message();
  EXPECT_EQ(refused.effect(), Effect::none);
}

}  // namespace
}  // namespace sluice
