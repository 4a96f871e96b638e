// A real cluster whose network is cut: a master with some clients on one side, the others on the
// other one.
#include <gtest/gtest.h>

#include "redis/at_cluster.hpp"
#include "sluice/lock.hpp"
#include "support/partition.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::failure_of;
using test::Outpost;
using test::Partition;

class Cut : public testing::Test {
 protected:
  static void SetUpTestSuite() { why_not() = Partition::enter(); }

  void SetUp() override {
    if (!why_not().empty()) GTEST_SKIP() << "no network can be cut here: " << why_not();
    rig().heal();
    store = redis::open_cluster(test::at(rig()));
    store->run({"FLUSHALL"}).get();
    minority = rig().master_of("{stock}");
    heir = rig().replica_of(minority);
  }
  void TearDown() override { Partition::heal(); }

  static std::string& why_not() {
    static std::string reason;
    return reason;
  }
  static test::ClusterRig& rig() {
    static test::ClusterRig all{{.config = {}, .apart = true}};
    return all;
  }
  std::string say(std::size_t node, std::string_view section) {
    return rig().client_of(node).command({"INFO", section}).as_text();
  }
  std::string place() { return rig().host(minority); }

  /// Only the master of "{stock}" and `others` are on the one side; returns when the other side has
  /// elected its replica.
  void cut_off(const std::vector<std::string>& others = {}) {
    for (std::size_t i = 0; i < rig().size(); ++i) {
      if (i == minority) continue;
      Partition::cut(place(), rig().host(i));
      for (const auto& other : others) Partition::cut(other, rig().host(i));
    }
    ASSERT_TRUE(comes_true(
        [&] { return say(heir, "replication").find("role:master") != std::string::npos; }));
  }

  std::unique_ptr<Store> store;
  std::size_t minority = 0;
  std::size_t heir = 0;
};

TEST_F(Cut, T06_TheMapOfACutOffMasterIsNotTaken) {
  store->run({"SET", "{stock}", "before"}).get();
  cut_off();
  auto cut = rig().client_of(minority);
  EXPECT_TRUE(comes_true([&] {
    return cut.command({"CLUSTER", "INFO"}).as_text().find("state:fail") != std::string::npos;
  }));
  EXPECT_NE(cut.command({"CLUSTER", "NODES"}).as_text().find("myself,master"), std::string::npos);

  // Who is connected to both sides goes on with the other one.
  EXPECT_EQ(store->run({"SET", "{stock}", "after"}).get().as_text(), "OK");
  EXPECT_EQ(rig().client_of(heir).command({"GET", "{stock}"}).as_text(), "after");
  auto options = test::at(rig());
  std::swap(options.seeds[0], options.seeds[minority]);
  EXPECT_EQ(redis::open_cluster(options)->run({"GET", "{stock}"}).get().as_text(), "after");

  options.seeds.resize(1);
  options.node.connect_timeout = 500ms;
  const auto refused = failure_of([&] { redis::open_cluster(options); });
  EXPECT_NE(refused.message().find("cut off"), std::string::npos) << refused.message();

  Partition::heal();
  rig().heal();
  EXPECT_EQ(store->run({"GET", "{stock}"}).get().as_text(), "after");
}

TEST_F(Cut, T31_OfTwoHoldersTheFenceRefusesTheOneThatWasCutOff) {
  const Outpost outpost;
  std::unique_ptr<Store> cut;
  outpost.run([&] { cut = redis::open_cluster(test::at(rig())); });
  EXPECT_TRUE(cut->run({"GET", "{stock}"}).get().is_null());
  // It does not notice in time that it is alone. Who uses it from here is not heard by it either.
  rig().client_of(minority).command({"CONFIG", "SET", "cluster-node-timeout", "60000"});
  Partition::cut(place(), place());
  cut_off({Outpost::address});

  Mutex durable_there{*cut, "stock", {.durability = {.replicas = 1, .within = 50ms}}};
  EXPECT_EQ(failure_of([&] { const auto held = durable_there.acquire().get(); }).errc(),
            Errc::unsynced);

  Mutex there{*cut, "stock"};
  Mutex here{*store, "stock"};
  auto first = there.acquire().get();
  auto second = here.acquire().get();
  EXPECT_TRUE(first.valid() && second.valid()) << "what Redis cannot know";
  Fence fence{*store, "stock"};
  EXPECT_TRUE(fence.admit(second.token()).get().has_value());
  EXPECT_FALSE(fence.admit(first.token()).get().has_value());

  Partition::heal();
  EXPECT_TRUE(comes_true([&] { return first.lost().stop_requested(); }));
  EXPECT_TRUE(second.valid());
  second.release().get();
  rig().client_of(minority).command({"CONFIG", "SET", "cluster-node-timeout", "1000"});
}

}  // namespace
}  // namespace sluice
