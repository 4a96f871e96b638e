/// Holds of a read-write lock that have to be on a replica.
#include <future>

#include "lock/shared/server_shared.hpp"
#include "sluice/metrics.hpp"

namespace sluice {
namespace {

class DurableSharing : public ServerShared {
 protected:
  void await_replica(test::PlainClient& replica) {
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (replica.command({"INFO", "replication"}).as_text().find("master_link_status:up") ==
           std::string::npos)
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "the replica does not connect";
  }
  std::vector<std::string> replica_settings() {
    return {"replicaof 127.0.0.1 " + std::to_string(server_.port())};
  }
  static std::string field_of(const Held& held, bool reads) {
    return held.owner().text + (reads ? "" : ":write");
  }

  const SharedMutexOptions durable_{.durability = {.replicas = 1, .within = 5s}};
};

TEST_F(DurableSharing, Q02_AcquireThatNoReplicaHasFailsAndIsTakenBack) {
  SharedMutex mutex{*store_, "stock", {.durability = {.replicas = 1, .within = 50ms}}};
  for (const bool reads : {true, false}) {
    try {
      (void)(reads ? mutex.try_acquire_shared() : mutex.try_acquire()).get();
      FAIL() << "acquired without a replica";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::unsynced);
      EXPECT_EQ(failure.effect(), Effect::none);
      EXPECT_NE(failure.message().find("0 of 1 replicas"), std::string::npos) << failure.message();
    }
    EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
  }
  EXPECT_EQ(side_.command({"KEYS", "*rwlock_timeout*"}).as_items().size(), 0U);
  EXPECT_TRUE(mutex_.try_acquire().get());
}

TEST_F(DurableSharing, ReplicaHasTheHoldBeforeItCounts) {
  test::RedisServer replica{replica_settings()};
  test::PlainClient there{replica.port()};
  await_replica(there);
  SharedMutex mutex{*store_, "stock", durable_};
  for (const bool reads : {true, false}) {
    auto held = (reads ? mutex.acquire_shared() : mutex.acquire()).get();
    EXPECT_EQ(there.command({"HGET", "stock", field_of(held, reads)}), Value::bulk_string("1"));
    EXPECT_EQ(held.release().get().kind, Kind::released);
  }
}

TEST_F(DurableSharing, HandOverToADurableWaiterIsOnTheReplicaToo) {
  test::RedisServer replica{replica_settings()};
  test::PlainClient there{replica.port()};
  await_replica(there);
  const auto other = open(server_.url());
  SharedMutex elsewhere{*other, "stock", durable_};
  SharedMutex mutex{*store_, "stock", durable_};
  for (const bool reads : {true, false}) {
    auto before = elsewhere.acquire().get();
    const auto handed_over = metrics().lock_handed_over.load();
    auto waiting = std::async(std::launch::async, [&] {
      auto held = (reads ? mutex.acquire_shared() : mutex.acquire()).get();
      const Value on_replica = there.command({"HGET", "stock", field_of(held, reads)});
      held.release().get();
      return on_replica;
    });
    await_queue(1);
    before.release().get();
    EXPECT_EQ(waiting.get(), Value::bulk_string("1"));
    EXPECT_EQ(metrics().lock_handed_over.load(), handed_over) << "the message alone does not count";
  }
}

}  // namespace
}  // namespace sluice
