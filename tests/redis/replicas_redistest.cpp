// Reads from the replicas of a real cluster.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "redis/at_cluster.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;

/// A Store that may read from replicas.
class ClusterReplicas : public test::AtCluster {
 protected:
  ClusterReplicas() { open(1s); }

  void open(std::chrono::milliseconds max_lag) {
    auto options = at(rig());
    options.node.replica_max_lag = max_lag;
    store = redis::open_cluster(options);
  }
  Value read(std::initializer_list<std::string_view> command,
             SteadyTime no_older_than = SteadyTime::min()) {
    return store->run(command, {.read_from = ReadFrom::replica, .no_older_than = no_older_than})
        .get();
  }
  /// How many commands of this name the node has executed; what it has refused is none.
  static std::int64_t executed(std::size_t node, const std::string& name) {
    const auto stats = rig().client_of(node).command({"INFO", "commandstats"}).as_text();
    const auto at = stats.find("cmdstat_" + name + ":calls=");
    return at == std::string::npos ? 0 : std::atoll(stats.c_str() + stats.find('=', at) + 1);
  }
  /// Reads the key until that replica has answered a read once more.
  bool is_read_from(std::size_t replica, const std::string& key) {
    const auto before = executed(replica, "get");
    return comes_true([&] {
      read({"GET", key});
      return executed(replica, "get") > before;
    });
  }
};

TEST_F(ClusterReplicas, AnswerReadsThatMayBeOldAndNoOthers) {
  store->run({"SET", "{r}", "1"}).get();
  const auto replica = rig().replica_of(master_of("{r}"));
  const auto served = metrics().redis_replica_reads.load();
  EXPECT_TRUE(is_read_from(replica, "{r}"));
  EXPECT_GT(metrics().redis_replica_reads.load(), served);
  const auto before = executed(replica, "get");
  for (int i = 0; i < 100; ++i) store->run({"GET", "{r}"}).get();
  EXPECT_EQ(executed(replica, "get"), before) << "the call has not said so";
  EXPECT_EQ(read({"INCR", "{r}"}), Value::integer(2));
  EXPECT_EQ(read({"HSCAN", "{r}hash", "0"}).as_items().size(), 2U);
}

TEST_F(ClusterReplicas, ShowOnesOwnWritesWhereThatIsAskedFor) {
  for (int i = 0; i < 300; ++i) {
    store->run({"SET", "{r}", std::to_string(i)}).get();
    EXPECT_EQ(read({"GET", "{r}"}, store->clock().steady()).as_text(), std::to_string(i));
  }
  const auto written = store->clock().steady();
  const auto replica = rig().replica_of(master_of("{r}"));
  const auto before = executed(replica, "get");
  EXPECT_TRUE(comes_true([&] {
    EXPECT_EQ(read({"GET", "{r}"}, written).as_text(), "299");
    return executed(replica, "get") > before;
  }));
}

TEST_F(ClusterReplicas, T21_AReplicaWithoutItsMasterIsNotReadAndReadonlyIsSaidAgain) {
  open(60s);  // what it had is not too old in this test
  const auto master = master_of("{r}");
  const auto replica = rig().replica_of(master);
  store->run({"SET", "{r}", "1"}).get();
  ASSERT_TRUE(is_read_from(replica, "{r}"));
  // Every connection is lost; a new one that has not said READONLY would be told MOVED.
  auto server = rig().client_of(replica);
  server.command({"CLIENT", "KILL", "TYPE", "normal"});
  EXPECT_TRUE(is_read_from(replica, "{r}"));

  server.command({"CONFIG", "SET", "masteruser", "nobody"});
  server.command({"CONFIG", "SET", "masterauth", "wrong"});
  server.command({"CLIENT", "KILL", "TYPE", "master"});
  const auto is_down = [&] {
    return server.command({"INFO", "replication"}).as_text().find("master_link_status:down") !=
           std::string::npos;
  };
  ASSERT_TRUE(comes_true(is_down));
  store->run({"SET", "{r}", "2"}).get();
  EXPECT_TRUE(comes_true([&] { return read({"GET", "{r}"}).as_text() == "2"; }));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(read({"GET", "{r}"}).as_text(), "2");
  EXPECT_TRUE(is_down());
  server.command({"READONLY"});
  EXPECT_EQ(server.command({"GET", "{r}"}).as_text(), "1") << "what would have been read";

  server.command({"CONFIG", "SET", "masteruser", ""});
  server.command({"CONFIG", "SET", "masterauth", ""});
  EXPECT_TRUE(is_read_from(replica, "{r}"));
}

TEST_F(ClusterReplicas, AReplicaThatStandsStillFailsNoRead) {
  store->run({"SET", "{r}", "1"}).get();
  const auto replica = rig().replica_of(master_of("{r}"));
  ASSERT_TRUE(is_read_from(replica, "{r}"));
  rig().node(replica).stop();
  const auto served = metrics().redis_replica_reads.load();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(read({"GET", "{r}"}).as_text(), "1");
  EXPECT_EQ(metrics().redis_replica_reads.load(), served);
  rig().node(replica).cont();
  EXPECT_TRUE(is_read_from(replica, "{r}"));
}

TEST_F(ClusterReplicas, AKeyThatHasMovedIsNotAbsent) {
  const auto from = master_of("{m}");
  const auto to = other_than("{m}");
  const int slot = hash_slot("{m}");
  const auto replica = rig().replica_of(from);
  store->run({"SET", "{m}", "here"}).get();
  ASSERT_TRUE(is_read_from(replica, "{m}"));
  rig().begin_move(slot, from, to);
  rig().move_keys(slot, from, to);
  // The replica does not know that the slot is under way, and says that there is no such key.
  auto server = rig().client_of(replica);
  server.command({"READONLY"});
  EXPECT_TRUE(comes_true([&] { return server.command({"GET", "{m}"}).is_null(); }));
  const auto before = executed(replica, "get");
  EXPECT_TRUE(comes_true([&] {
    EXPECT_EQ(read({"GET", "{m}"}).as_text(), "here");
    EXPECT_EQ(read({"EXISTS", "{m}"}), Value::integer(1));
    return executed(replica, "get") > before;
  })) << "it was not asked";
  rig().end_move(slot, from, to);
  EXPECT_EQ(read({"GET", "{m}"}).as_text(), "here");
  EXPECT_TRUE(is_read_from(rig().replica_of(to), "{m}"));
  rig().move_slot(slot, to, from);
}

TEST_F(ClusterReplicas, AFailoverFailsNoRead) {
  store->run({"SET", "{s}", "0"}).get();
  const auto master = master_of("{s}");
  ASSERT_TRUE(is_read_from(rig().replica_of(master), "{s}"));
  std::atomic<bool> goes_on{true};
  std::jthread reading{[&] {
    while (goes_on) EXPECT_EQ(read({"GET", "{s}"}).as_text(), "0");
  }};
  rig().fail_over(master);
  EXPECT_TRUE(is_read_from(master, "{s}")) << "the old master is the replica now";
  goes_on = false;
}

}  // namespace
}  // namespace sluice
