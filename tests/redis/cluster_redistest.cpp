// A Store of a real cluster: three masters with a replica each.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/sha1.hpp"
#include "redis/at_cluster.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::failure_of;

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

}  // namespace
}  // namespace sluice
