/// Holds that have to be on replicas, and servers that are not what they were.
#include <condition_variable>
#include <future>
#include <mutex>

#include "lock/server_lock.hpp"
#include "sluice/metrics.hpp"
#include "sluice/multi_lock.hpp"
#include "support/fault_proxy.hpp"

namespace sluice {
namespace {

/// What a hold is told, in order.
class Reports {
 public:
  void listen_to(Held& held) {
    held.on_risk([this](Risk risk) { note("risk: " + std::string{to_string(risk)}); });
    held.on_lost([this](LostCause cause) { note("lost: " + std::string{to_string(cause)}); });
  }
  /// The reports, once there are so many; what there is after 30 s.
  std::vector<std::string> await(std::size_t many) {
    std::unique_lock lock{mutex_};
    noted_.wait_for(lock, 30s, [&] { return reports_.size() >= many; });
    return reports_;
  }

 private:
  void note(std::string report) {
    const std::lock_guard lock{mutex_};
    reports_.push_back(std::move(report));
    noted_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable noted_;
  std::vector<std::string> reports_;
};

class Durable : public ServerLock {
 protected:
  void await_replica(test::PlainClient& replica) {
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (replica.command({"INFO", "replication"}).as_text().find("master_link_status:up") ==
           std::string::npos)
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "the replica does not connect";
    // The server may not have noticed yet, and does not ask the replica until then.
    side_.command({"SET", "replicated", "1"});
    side_.command({"DEL", "replicated"});
    ASSERT_EQ(side_.command({"WAIT", "1", "20000"}), Value::integer(1));
  }
};

TEST_F(Durable, Q02_AcquireThatNoReplicaHasFailsAndIsTakenBack) {
  Mutex mutex{*store_, "stock", {.durability = {.replicas = 1, .within = 50ms}}};
  try {
    (void)mutex.try_acquire().get();
    FAIL() << "acquired without a replica";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::unsynced);
    EXPECT_EQ(failure.effect(), Effect::none);
    EXPECT_NE(failure.message().find("0 of 1 replicas"), std::string::npos) << failure.message();
  }
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
  Mutex careless{*store_, "stock"};
  EXPECT_TRUE(careless.try_acquire().get());
}

TEST_F(Durable, ReplicaHasTheHoldBeforeItCounts) {
  test::RedisServer replica{{"replicaof 127.0.0.1 " + std::to_string(server_.port())}};
  test::PlainClient there{replica.port()};
  await_replica(there);
  Mutex mutex{*store_, "stock", {.durability = {.replicas = 1, .within = 5s}}};
  const auto held = mutex.acquire().get();
  EXPECT_EQ(there.command({"HGET", "stock", held.owner().text}), Value::bulk_string("1"));
}

TEST_F(Durable, ManyThatNoReplicaHasAreTakenBack) {
  MultiLock both{*store_, {"one", "stock"}, {.durability = {.replicas = 1, .within = 50ms}}};
  try {
    (void)both.try_acquire().get();
    FAIL() << "acquired without a replica";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::unsynced);
    EXPECT_EQ(failure.effect(), Effect::none);
  }
  EXPECT_EQ(side_.command({"EXISTS", "one", "stock"}), Value::integer(0));
  // The same when they were waited for.
  Mutex single{*store_, "stock"};
  auto held = single.acquire().get();
  auto waiting = std::async(std::launch::async, [&] { (void)both.acquire().get(); });
  await_waiters(1);
  held.release().get();
  EXPECT_THROW(waiting.get(), Error);
  EXPECT_EQ(side_.command({"EXISTS", "one", "stock"}), Value::integer(0));
}

TEST_F(Durable, ReplicaHasManyBeforeTheyCount) {
  test::RedisServer replica{{"replicaof 127.0.0.1 " + std::to_string(server_.port())}};
  test::PlainClient there{replica.port()};
  await_replica(there);
  MultiLock both{*store_, {"one", "two"}, {.durability = {.replicas = 1, .within = 5s}}};
  const auto held = both.acquire().get();
  EXPECT_EQ(there.command({"EXISTS", "one", "two"}), Value::integer(2));
}

TEST_F(Durable, HandOverToADurableWaiterIsOnTheReplicaToo) {
  test::RedisServer replica{{"replicaof 127.0.0.1 " + std::to_string(server_.port())}};
  test::PlainClient there{replica.port()};
  await_replica(there);
  const auto other = open(server_.url());
  const MutexOptions durable{.durability = {.replicas = 1, .within = 5s}};
  Mutex mutex{*store_, "stock", durable};
  Mutex elsewhere{*other, "stock", durable};
  auto held = elsewhere.acquire().get();
  auto waiting = std::async(std::launch::async, [&] {
    const auto entered = mutex.acquire().get();
    return there.command({"HGET", "stock", entered.owner().text});
  });
  await_waiters(1);
  held.release().get();
  EXPECT_EQ(waiting.get(), Value::bulk_string("1"));
}

/// A replica that stops: nothing that the server writes from then on is on it.
class DurableWithAReplica : public Durable {
 protected:
  void SetUp() override { await_replica(there_); }
  void await_loss(const Held& held) {
    const auto patience = std::chrono::steady_clock::now() + 30s;
    while (held.valid()) ASSERT_LT(std::chrono::steady_clock::now(), patience) << "for ever";
  }
  /// The replica may be slow.
  static Held acquire_at_last(Mutex& mutex) {
    for (int left = 100;; --left) try {
        return mutex.acquire().get();
      } catch (const Error&) {
        if (left == 0) throw;
      }
  }

  test::RedisServer replica_{{"replicaof 127.0.0.1 " + std::to_string(server_.port())}};
  test::PlainClient there_{replica_.port()};
  const Durability one_{.replicas = 1, .within = 500ms};
};

TEST_F(DurableWithAReplica, K01_RenewalsThatItDoesNotHaveDoNotCount) {
  const Durability slow{.replicas = 1, .within = 2s};
  Mutex mutex{*store_, "stock", {.lease = 4s, .durability = slow}};
  SharedMutex shared{*store_, "shared", {.lease = 4s, .durability = slow}};
  const Owner owner;
  const auto held = mutex.acquire(owner).get();
  const auto reads = shared.acquire_shared().get();
  const auto renewed = metrics().lock_renewals.load();
  const auto patience = std::chrono::steady_clock::now() + 20s;
  while (metrics().lock_renewals.load() < renewed + 4) {
    std::this_thread::sleep_for(10ms);
    ASSERT_LT(std::chrono::steady_clock::now(), patience) << "not renewed";
  }
  ASSERT_TRUE(held.valid() && reads.valid()) << "renewed, and the replica has it";
  replica_.stop();
  std::this_thread::sleep_for(400ms);
  {
    const auto again = mutex.try_acquire(owner).get();  // a re-entry adds no time either
  }
  await_loss(held);
  await_loss(reads);
  replica_.cont();
}

TEST_F(DurableWithAReplica, K01_TurnsThatItDoesNotKnowOfAreGivenBack) {
  Mutex mutex{*store_, "stock", {.durability = one_, .hand_off = {.within_process = 1}}};
  auto held = acquire_at_last(mutex);
  auto waiting = std::async(std::launch::async, [&] { (void)mutex.acquire().get(); });
  std::this_thread::sleep_for(100ms);
  replica_.stop();
  held.release().get();
  EXPECT_THROW(waiting.get(), Error);
  Mutex careless{*store_, "stock"};
  EXPECT_TRUE(careless.try_acquire(20s).get());
  replica_.cont();
}

TEST_F(DurableWithAReplica, K28_AGiveUpComesAfterTheDurableRequestThatItEnds) {
  test::FaultProxy proxy{server_.port()};
  const auto hasty = open(proxy.url(), {.command_timeout = 1s});
  Mutex mutex{*hasty, "stock", {.durability = one_}};
  acquire_at_last(mutex).release().get();  // the scripts are known
  const auto token = side_.command({"GET", "redisson_lock_token:{stock}"});
  const auto is_acquire = [](const test::Passing& passing) {
    return passing.kind == test::Passing::Kind::request &&
           std::ranges::find(passing.words, "stock") != passing.words.end();
  };
  const auto late = proxy.on(is_acquire, {.fault = test::LineFault::hold});
  EXPECT_THROW((void)mutex.try_acquire().get(), Error);
  EXPECT_EQ(proxy.hits(late), 1U);
  proxy.let_go();
  const auto patience = std::chrono::steady_clock::now() + 20s;  // the lease is 30 s
  const auto await = [&](const std::function<bool()>& done) {
    while (!done() && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    return done();
  };
  EXPECT_TRUE(await([&] {
    return side_.command({"GET", "redisson_lock_token:{stock}"}) != token;
  })) << "it is granted late";
  EXPECT_TRUE(await([&] {
    return side_.command({"EXISTS", "stock"}) == Value::integer(0);
  })) << "a hold of nobody";
}

TEST_F(DurableWithAReplica, SixteenThreadsWaitForItOnceATurn) {
  Mutex mutex{*store_, "stock", {.durability = {.replicas = 1, .within = 5s}}};
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 16; ++i)
    threads.push_back(std::async(std::launch::async, [&] {
      for (int round = 0; round < 40; ++round) mutex.acquire().get().release().get();
    }));
  for (auto& thread : threads) thread.get();
  const std::string stats{side_.command({"INFO", "commandstats"}).as_text()};
  const auto at = stats.find("cmdstat_wait:calls=");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LE(std::stoi(stats.substr(at + 19)), 16 * 40 / 5);
}

TEST_F(Durable, W03_ServerThatCameBackEmptyIsUncertainThenALoss) {
  Mutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  Reports reports;
  reports.listen_to(held);
  server_.restart(false);
  const auto told = reports.await(2);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], "risk: another server answers than the one that granted it");
  EXPECT_EQ(told[1], "lost: the server does not know the hold any more");
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  const auto next = mutex.acquire().get();
  EXPECT_GT(next.token(), held.token());
}

TEST_F(Durable, ServerThatCameBackWithItsDataIsUncertainOnly) {
  Mutex mutex{*store_, "stock", {.lease = 10min}};
  auto held = mutex.acquire().get();
  Reports reports;
  reports.listen_to(held);
  const auto renewed = metrics().lock_renewals.load();
  server_.restart(true);
  const auto told = reports.await(1);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0], "risk: another server answers than the one that granted it");
  const auto patience = std::chrono::steady_clock::now() + 30s;
  while (metrics().lock_renewals.load() == renewed)
    ASSERT_LT(std::chrono::steady_clock::now(), patience) << "it is not renewed at once";
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

}  // namespace
}  // namespace sluice
