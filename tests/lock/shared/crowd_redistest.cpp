/// Readers and writers in real time.
#include <future>
#include <latch>
#include <list>
#include <shared_mutex>
#include <thread>

#include "lock/shared/server_shared.hpp"
#include "support/history.hpp"

namespace sluice {
namespace {

class SharedCrowd : public ServerShared {
 protected:
  /// Their leases as a renewal leaves them: all of the same length.
  void align_leases() {
    side_.command({"EVAL",
                   "for _, key in ipairs(redis.call('KEYS', '*')) do "
                   "if redis.call('PTTL', key) > 0 then redis.call('PEXPIRE', key, 30000) end end",
                   "0"});
  }
  /// How many commands the server executes meanwhile, scripts' own commands included.
  template <class Action>
  std::int64_t commands_of(Action action) {
    side_.command({"CONFIG", "RESETSTAT"});
    action();
    const std::string stats = side_.command({"INFO", "commandstats"}).as_text();
    std::int64_t all = 0;
    for (auto at = stats.find("calls="); at != stats.npos; at = stats.find("calls=", at + 1))
      all += std::atoll(stats.c_str() + at + 6);
    return all;
  }
};

TEST_F(SharedCrowd, K14_ReleaseOfAReaderDoesNotLookAtTheOthers) {
  std::vector<Held> holds;
  for (int i = 0; i < 400; ++i) holds.push_back(mutex_.acquire_shared().get());
  align_leases();
  const auto commands = commands_of([&] {
    for (auto& hold : holds) EXPECT_EQ(hold.release().get().kind, Kind::released);
  });
  EXPECT_LT(commands, 400 * 40);
  EXPECT_EQ(side_.command({"EXISTS", "stock", "sluice_rw_leases:{stock}"}), Value::integer(0));
}

TEST_F(SharedCrowd, A09_AnOwnersNextEntryDoesNotTouchItsOthers) {
  const Owner owner;
  std::vector<Held> entries;
  const auto enter = [&](int many) {
    for (int i = 0; i < many; ++i) entries.push_back(mutex_.acquire_shared(owner).get());
  };
  enter(1);
  const auto of_second = commands_of([&] { enter(1); });
  enter(297);
  constexpr int beside = 20;  // what others ask meanwhile; each entry took two commands of the next
  EXPECT_LE(commands_of([&] { enter(1); }), of_second + beside);
  const auto leave = [&] {
    EXPECT_EQ(entries.back().release().get().kind, Kind::still_held);
    entries.pop_back();
  };
  const auto of_last = commands_of(leave);
  EXPECT_LE(of_last, 25);
  while (entries.size() > 2) leave();
  EXPECT_LE(of_last, commands_of(leave) + beside);
  EXPECT_EQ(entries.back().release().get().kind, Kind::released);
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
}

TEST_F(SharedCrowd, A09_JavaSeesTheLeaseOfAnOwnerThatEnteredOften) {
  const Owner owner;
  const auto outer = mutex_.acquire_shared(owner).get();
  const auto inner = mutex_.acquire_shared(owner).get();
  // As after a renewal when the second hold key has ended: Java's release looks at all of them.
  side_.command({"DEL", "{stock}:" + owner.id().text + ":rwlock_timeout:2"});
  test::JavaPeer java{server_.port()};
  test::JavaPeer::ReadLock reading{java, "stock"};
  ASSERT_TRUE(reading.acquire().is_null());
  reading.release();
  EXPECT_GT(side_.command({"PTTL", "stock"}).as_integer(), 25'000);
  EXPECT_EQ(side_.command({"HGET", "stock", owner.id().text}), Value::bulk_string("2"));
}

TEST_F(SharedCrowd, K14_NeitherWithAReaderOfJavaAndAWriterThatWaits) {
  test::JavaPeer java{server_.port()};
  test::JavaPeer::ReadLock reading{java, "stock"};
  ASSERT_TRUE(reading.acquire().is_null());
  const auto other = open(server_.url());
  SharedMutex there{*other, "stock"};
  std::vector<Held> holds;
  for (int i = 0; i < 3; ++i) holds.push_back(mutex_.acquire_shared().get());
  auto writing = std::async(std::launch::async, [&] { return there.acquire().get(); });
  await_queue(1);
  for (auto& hold : holds) hold.release().get();
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(1)) << "Java reads";
  const auto ended = std::chrono::steady_clock::now();
  reading.release();
  EXPECT_TRUE(writing.get().valid());
  EXPECT_LT(std::chrono::steady_clock::now() - ended, 10s);
}

TEST_F(SharedCrowd, K14_LastHoldThatIsLeftBoundsTheHash) {
  SharedMutex brief{*store_, "stock", {.lease = 10s, .watchdog = false}};
  auto first = brief.acquire_shared().get();
  auto last = mutex_.acquire_shared().get();
  last.release().get();
  EXPECT_LE(side_.command({"PTTL", "stock"}).as_integer(), 10'000) << "or Java waits longer";
  first.release().get();
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
}

TEST_F(SharedCrowd, RW02_WriterAmongContinuousReaders) {
  const auto other = open(server_.url());
  SharedMutex there{*other, "stock"};
  std::atomic<bool> written{false};
  std::atomic<int> read{0};
  {
    std::vector<std::jthread> crew;
    std::latch begun{4};
    for (int i = 0; i < 4; ++i) {
      crew.emplace_back([&, i] {
        SharedMutex& mutex = i % 2 ? mutex_ : there;
        for (bool first = true; !written; first = false) {
          const std::shared_lock reading{mutex};
          if (first) begun.count_down();
          ++read;
        }
      });
    }
    begun.wait();
    const auto held = there.try_acquire(30s).get();
    EXPECT_TRUE(held) << "it starves";
    written = true;
  }
  EXPECT_GE(read.load(), 4);
}

TEST_F(SharedCrowd, NeverAWriterBesideOthers) {
  const auto other = open(server_.url());
  SharedMutex there{*other, "stock", {.preference = SharedMutexOptions::Preference::readers}};
  const auto path = folder_ / "record";
  int written = 0;  // no atomic: the lock protects it
  {
    std::vector<std::jthread> crew;
    for (int i = 0; i < 8; ++i) {
      crew.emplace_back([&, i] {
        test::Recorder record{path, "thread " + std::to_string(i)};
        SharedMutex& mutex = i % 2 ? mutex_ : there;
        for (int round = 0; round < 50; ++round) {
          if ((i + round) % 4 == 0) {
            const auto held = mutex.acquire().get();
            record.enter(held.token().value);
            ++written;
            record.leave();
          } else {
            const std::shared_lock lock{mutex};
            record.enter_shared();
            record.leave_shared();
          }
        }
      });
    }
  }
  const auto verdict = test::check(test::read_history(path));
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_EQ(verdict.entries, 400U);
  EXPECT_EQ(written, 100);
  EXPECT_EQ(side_.command({"EXISTS", "stock"}), Value::integer(0));
}

TEST_F(SharedCrowd, W03_HoldersAreToldWhenTheServerComesBackEmpty) {
  SharedMutex till{*store_, "till"};
  auto reading = mutex_.acquire_shared().get();
  auto writing = till.acquire().get();
  std::latch told{2};
  for (auto* held : {&reading, &writing})
    held->on_lost([&](LostCause cause) {
      EXPECT_EQ(cause, LostCause::taken);
      told.count_down();
    });
  server_.restart(false);
  told.wait();
  EXPECT_EQ(reading.release().get().kind, Kind::not_held);
  EXPECT_EQ(writing.release().get().kind, Kind::not_held);
}

}  // namespace
}  // namespace sluice
