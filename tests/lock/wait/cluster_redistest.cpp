/// Locks in a real cluster: each Store is to the servers a process of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>

#include "base/hash_slot.hpp"
#include "lock/background.hpp"
#include "lock/fair/fair_mutex.lua.hpp"
#include "redis/cluster_store.hpp"
#include "sluice/lock.hpp"
#include "sluice/metrics.hpp"
#include "support/cluster_rig.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;

test::ClusterRig& rig() {
  static test::ClusterRig rig;
  return rig;
}

std::unique_ptr<Store> open_rig() {
  redis::ClusterStoreOptions options{.node = {}, .seeds = {}};
  for (std::size_t i = 0; i < rig().size(); ++i)
    options.seeds.push_back({.host = "127.0.0.1", .port = rig().node(i).port(), .unix_path = {}});
  options.node.connect_timeout = options.node.command_timeout = 30s;
  return redis::open_cluster(std::move(options));
}

/// A process that wants the lock, on a thread of its own, and notes when it was in.
template <class Lock>
class Comer {
 public:
  Comer(std::string lock, std::string who, std::vector<std::string>& record, std::mutex& mutex)
      : store_(open_rig()),
        lock_(*store_, std::move(lock)),
        thread_([this, who = std::move(who), &record, &mutex] {
          auto held = lock_.acquire().get();
          {
            const std::lock_guard guard{mutex};
            record.push_back(who);
          }
          held.release().get();
        }) {}

 private:
  const std::unique_ptr<Store> store_;
  Lock lock_;
  std::jthread thread_;
};

class ClusterLock : public testing::Test {
 protected:
  ClusterLock() {
    rig().heal();
    store_ = open_rig();
    store_->run({"FLUSHALL"}).get();
  }

  /// Waits until so many stand in the queue of the fair lock.
  void await_waiters(std::int64_t many) {
    ASSERT_TRUE(comes_true([&] {
      return store_->run({"LLEN", "redisson_lock_queue:{stock}"}).get().as_integer() == many;
    }));
  }
  void comes(const std::string& who) {
    comers_.push_back(std::make_unique<Comer<FairMutex>>("stock", who, record_, mutex_));
    await_waiters(static_cast<std::int64_t>(comers_.size()));
  }
  std::vector<std::string> came() {
    comers_.clear();  // waits for their threads
    return record_;
  }

  const int slot_ = hash_slot("stock");
  std::unique_ptr<Store> store_;
  std::mutex mutex_;
  std::vector<std::string> record_;
  std::vector<std::unique_ptr<Comer<FairMutex>>> comers_;
};

using Names = std::vector<std::string>;

TEST_F(ClusterLock, T27_AHandOverFindsProcessesWhereverTheyListen) {
  FairMutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  for (const auto* const who : {"a", "b", "c"}) comes(who);
  held = {};
  EXPECT_EQ(came(), (Names{"a", "b", "c"}));
}

TEST_F(ClusterLock, T28_TicketsSurviveAFailover) {
  FairMutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  for (const auto* const who : {"a", "b", "c"}) comes(who);
  rig().fail_over(rig().master_of("stock"));
  held = {};
  EXPECT_EQ(came(), (Names{"a", "b", "c"}));
}

TEST_F(ClusterLock, T29_ASlotThatMovesDelaysAHandOver) {
  const auto from = rig().master_of("stock");
  const auto to = rig().master_of_slot((slot_ + 8192) % 16384);
  ASSERT_NE(from, to);
  FairMutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  for (const auto* const who : {"a", "b", "c"}) comes(who);
  rig().begin_move(slot_, from, to);
  std::jthread release{[&] { held = {}; }};
  rig().move_keys(slot_, from, to);
  // They find the grant at the new master, where they may not be heard yet.
  rig().end_move(slot_, from, to);
  EXPECT_EQ(came(), (Names{"a", "b", "c"}));
  rig().move_slot(slot_, to, from);
}

TEST_F(ClusterLock, LK03_AReplicaThatStandsStillCostsTheHoldsOfItsShardAlone) {
  const std::string tags[] = {"stock", "other"};
  ASSERT_NE(rig().master_of(tags[0]), rig().master_of(tags[1]));
  const MutexOptions durable{.lease = 3s, .durability = {.replicas = 1, .within = 200ms}};
  std::array<std::vector<Held>, 2> holds;
  for (int i = 0; i < 20; ++i) {
    for (std::size_t shard = 0; shard < 2; ++shard) {
      Mutex mutex{*store_, fmt::format("{{{}}}:{}", tags[shard], i), durable};
      holds[shard].push_back(mutex.acquire().get());
    }
  }
  const auto valid = [&](std::size_t shard) {
    return std::ranges::count_if(holds[shard], &Held::valid);
  };
  auto& replica = rig().node(rig().replica_of(rig().master_of(tags[0])));
  replica.stop();
  EXPECT_TRUE(comes_true([&] { return valid(0) == 0; }));
  const auto renewed = metrics().lock_renewals.load();
  EXPECT_TRUE(comes_true([&] { return metrics().lock_renewals.load() >= renewed + 20; }));
  EXPECT_EQ(valid(1), 20);
  replica.cont();
}

TEST_F(ClusterLock, AScriptIsNotHalfDoneWhileItsSlotIsUnderWay) {
  const auto from = rig().master_of("stock");
  const auto to = rig().master_of_slot((slot_ + 8192) % 16384);
  FairMutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  comes("a");
  rig().begin_move(slot_, from, to);
  auto source = rig().client_of(from);
  const auto request = source.command({"HGET", "stock", "sluice:request"}).as_text();
  const auto reply = source.command({"EVAL", scripts::lock_fair_release.sharded->text, "5", "stock",
                                     "redisson_lock_queue:{stock}", "redisson_lock_timeout:{stock}",
                                     "sluice_lock_tickets:{stock}", "redisson_lock_token:{stock}",
                                     request, "redisson_lock__channel:{stock}", ""});
  EXPECT_EQ(reply.as_text().substr(0, 8), "TRYAGAIN") << to_string(reply);
  EXPECT_EQ(source.command({"EXISTS", "stock", "redisson_lock_queue:{stock}"}), Value::integer(2));
  rig().move_keys(slot_, from, to);
  rig().end_move(slot_, from, to);
  held.release().get();
  EXPECT_EQ(came(), (Names{"a"}));
  rig().move_slot(slot_, to, from);
}

TEST_F(ClusterLock, T30_ADeadWaiterIsSkipped) {
  FairMutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  const auto master = rig().master_of("stock");
  auto side = rig().client_of(master);
  std::optional<test::PlainClient> dead{rig().client_of(master)};  // heard here, and then no more
  const std::string inbox = "sluice:inbox:dead{stock}";
  (void)dead->command({"SSUBSCRIBE", inbox});
  side.command({"RPUSH", "redisson_lock_queue:{stock}", "dead:1"});
  side.command({"ZADD", "redisson_lock_timeout:{stock}", "99999999999999", "dead:1"});
  side.command({"HSET", "sluice_lock_tickets:{stock}", "dead:1",
                "r 1500 1 " + inbox + " host 1 t1 d", inbox, "99999999999999", inbox + " heard",
                "1", "sluice:inbox:node", rig().id_of(master)});
  comers_.push_back(std::make_unique<Comer<FairMutex>>("stock", "a", record_, mutex_));
  await_waiters(2);
  dead.reset();
  ASSERT_TRUE(comes_true([&] {
    return side.command({"PUBSUB", "SHARDNUMSUB", inbox}).as_items().at(1).as_integer() == 0;
  }));
  held.release().get();
  await_waiters(0);
  EXPECT_NE(side.command({"HEXISTS", "stock", "dead:1"}), Value::integer(1));
  EXPECT_EQ(came(), (Names{"a"}));
}

TEST_F(ClusterLock, T32_AJavaPeerIsHeardByShardChannelsAndHearsThem) {
  auto side = rig().client_of(rig().master_of("stock"));
  const std::string channel = "redisson_lock__channel:{stock}";
  const std::string java = "3f1b0a52-7cd0-4a6b-9be1-3ab5a9ad0c11:1";
  side.command({"HSET", "stock", java, "1"});
  side.command({"PEXPIRE", "stock", "60000"});
  Mutex mutex{*store_, "stock"};
  std::optional<Held> held;
  std::jthread waiter{[&] { held = mutex.acquire().get(); }};
  ASSERT_TRUE(comes_true([&] {
    return side.command({"PUBSUB", "SHARDNUMSUB", channel}).as_items().at(1).as_integer() == 1;
  }));
  side.command({"DEL", "stock"});
  EXPECT_EQ(side.command({"SPUBLISH", channel, "0"}), Value::integer(1));
  waiter.join();
  ASSERT_TRUE(held);

  auto peer = rig().client_of(rig().master_of("stock"));
  (void)peer.command({"SSUBSCRIBE", channel});
  held.reset();
  EXPECT_EQ(to_string(peer.read()), R"(["smessage", "redisson_lock__channel:{stock}", "0"])");
}

TEST_F(ClusterLock, T33_AHoldThatIsLostIsToldOf) {
  Mutex mutex{*store_, "stock", {.lease = 1s}};
  auto held = mutex.acquire().get();
  store_->run({"DEL", "stock"}).get();
  EXPECT_TRUE(comes_true([&] { return held.lost().stop_requested(); }));
}

TEST_F(ClusterLock, AHoldIsUncertainWhereItsSlotHasAnotherMasterAndProvesToBeThere) {
  const auto master = rig().master_of("stock");
  std::string elsewhere;
  for (int i = 0; elsewhere.empty(); ++i)
    if (const auto name = std::to_string(i); rig().master_of(name) != master) elsewhere = name;
  Mutex mutex{*store_, "stock", {.lease = 4s}};
  Mutex other{*store_, elsewhere, {.lease = 4s}};
  auto held = mutex.acquire().get();
  auto held_elsewhere = other.acquire().get();
  std::atomic<int> warned = 0;
  std::atomic<int> warned_elsewhere = 0;
  held.on_risk([&](Risk risk) { warned += risk == Risk::uncertain; });
  held_elsewhere.on_risk([&](Risk risk) { warned_elsewhere += risk == Risk::uncertain; });
  const auto renewed = metrics().lock_renewals.load();
  ASSERT_TRUE(comes_true([&] { return metrics().lock_renewals.load() > renewed + 4; }));
  const auto near = metrics().lock_near_misses.load();
  rig().fail_over(master);
  EXPECT_TRUE(comes_true([&] { return warned == 1; }));
  EXPECT_TRUE(comes_true([&] { return metrics().lock_near_misses.load() > near; }))
      << "it survived";
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(warned_elsewhere, 0);
}

TEST_F(ClusterLock, RenewalsOfManySlotsGoTogether) {
  std::vector<std::unique_ptr<Mutex>> mutexes;
  std::vector<Held> holds;
  for (int i = 0; i < 200; ++i) {
    mutexes.push_back(
        std::make_unique<Mutex>(*store_, std::to_string(i), MutexOptions{.lease = 2s}));
    holds.push_back(mutexes.back()->acquire().get());
  }
  const auto renewed = metrics().lock_renewals.load();
  EXPECT_TRUE(comes_true([&] { return metrics().lock_renewals.load() >= renewed + 200; }));
  for (const auto& held : holds) EXPECT_TRUE(held.valid());
}

TEST_F(ClusterLock, ManyNamesAreTakenSlotBySlot) {
  MultiLock all{*store_, {"a", "b", "c", "d"}};
  auto held = all.acquire().get();
  EXPECT_EQ(held.tokens().size(), 4U);
  EXPECT_FALSE((Mutex{*store_, "c"}.try_acquire().get()));
}

TEST_F(ClusterLock, NamesWhoseKeysWouldPartAreRefused) {
  for (const auto* const name : {"a}b", "a{}", "{}", "a{b"}) {
    EXPECT_THROW((Mutex{*store_, name}), Error) << name;
    EXPECT_THROW((Semaphore{*store_, name}), Error) << name;
  }
  EXPECT_THROW((Latch{*store_, "{shop}x"}), Error) << "Redisson's channel of it";
  EXPECT_NO_THROW((Mutex{*store_, "{shop}x"}));
}

}  // namespace
}  // namespace sluice
