// Group commit: how many syncs there are, which thread does them, and what waits for them.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>

#include "engine/embedded_store.hpp"
#include "engine/log/memory_disk.hpp"
#include "sluice/metrics.hpp"
#include "sluice/when_all.hpp"
#include "support/collected_log.hpp"
#include "support/comes_true.hpp"
#include "support/temp_dir.hpp"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using test::MemoryDisk;

constexpr const char* increment_file = "appendonly.aof.1.incr.aof";

template <class Condition>
void await(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

TEST(GroupCommit, SyncsOnceForEachCallOfASingleCaller) {
  MemoryDisk disk;
  const auto store = open_embedded({}, disk.folder());
  const auto before = disk.syncs();
  for (int i = 0; i < 100; ++i) store->run({"INCR", "n"}).get();
  EXPECT_EQ(disk.syncs() - before, 100U);
  for (int i = 0; i < 100; ++i) store->run({"GET", "n"}).get();
  EXPECT_EQ(disk.syncs() - before, 100U) << "reads have nothing to wait for";
}

TEST(GroupCommit, SharesSyncsAmongThreads) {
  constexpr int callers = 64;
  constexpr int calls = 50;
  const sluice::test::TempDir folder;
  const auto store = open_embedded({.path = folder.str()});
  const auto before = metrics().engine_fsyncs.load();
  std::vector<std::thread> threads;
  for (int i = 0; i < callers; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < calls; ++k) store->run({"INCR", "n"}).get();
    });
  for (auto& thread : threads) thread.join();
  const auto syncs = metrics().engine_fsyncs.load() - before;
  EXPECT_LT(syncs, callers * calls / 4);
  EXPECT_GE(syncs, static_cast<std::uint64_t>(calls))
      << "no call may end before a sync of its own round";
  EXPECT_EQ(store->run({"GET", "n"}).get(), Value::bulk_string(std::to_string(callers * calls)));
}

TEST(GroupCommit, SyncsOnceForAllCoroutinesOfAThread) {
  MemoryDisk disk;
  const auto store = open_embedded({}, disk.folder());
  const auto before = disk.syncs();
  const auto increment_once = [&]() -> Task<void> {
    auto asked = store->run({"INCR", "n"});
    co_await asked;
  };
  for (int round = 0; round < 10; ++round) {
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 256; ++i) tasks.push_back(increment_once());
    when_all(std::move(tasks)).get();
  }
  EXPECT_EQ(disk.syncs() - before, 10U);
}

TEST(GroupCommit, ServesCoroutinesThatNobodyWaitsFor) {
  MemoryDisk disk;
  const auto store = open_embedded({}, disk.folder());
  std::atomic<int> done{0};
  const auto work = [&]() -> Task<void> {
    for (int i = 0; i < 10; ++i) {
      auto asked = store->run({"INCR", "n"});
      co_await asked;
    }
    ++done;
  };
  for (int i = 0; i < 8; ++i) spawn(work());
  await([&] { return done == 8; });
  EXPECT_NE(disk.content(increment_file).find("INCR"), std::string::npos);
}

TEST(GroupCommit, CommitsWhatATaskDidThatWasDropped) {
  MemoryDisk disk;
  const auto store = open_embedded({}, disk.folder());
  const auto before = disk.syncs();
  { const auto dropped = store->run({"SET", "k", "v"}); }
  await([&] { return disk.syncs() > before; });
  EXPECT_NE(disk.content(increment_file).find("SET"), std::string::npos);
}

/// As a lock that is granted as its Store closes, and whose caller has left.
TEST(GroupCommit, WhatIsGivenBackAsTheStoreClosesIsOnDisk) {
  MemoryDisk disk;
  auto store = open_embedded({}, disk.folder());
  disk.hold_syncs();
  const auto grant_and_give_back = [](Store& from) -> Task<void> {
    auto granting = from.run({"SET", "granted", "1"});
    co_await granting;
    auto given_back = from.run({"DEL", "granted"});
    co_await given_back;
  };
  spawn(grant_and_give_back(*store));
  await([&] { return disk.is_syncing(); });
  std::thread later{[&] {
    std::this_thread::sleep_for(50ms);  // the Store closes meanwhile
    disk.release_syncs();
  }};
  store.reset();
  later.join();
  store = open_embedded({}, disk.folder());
  EXPECT_EQ(store->run({"EXISTS", "granted"}).get(), Value::integer(0));
}

/// It has no caller to stop it.
TEST(GroupCommit, ACoroutineWithoutAnEndDoesNotKeepTheStoreOpen) {
  MemoryDisk disk;
  auto store = open_embedded({}, disk.folder());
  std::atomic<int> calls{0};
  std::optional<Errc> end;
  const auto work = [&](Store& at) -> Task<void> {
    for (;; ++calls) {
      auto asked = at.run({"INCR", "n"});
      co_await asked;
    }
  };
  spawn(work(*store), [&](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const Error& error) {
      end = error.errc();
    }
  });
  await([&] { return calls > 2; });
  store.reset();
  EXPECT_EQ(end, Errc::closed);
}

TEST(GroupCommit, HoldsBackAReadOfWhatIsNotOnDisk) {
  MemoryDisk disk;
  const auto store = open_embedded({}, disk.folder());
  disk.hold_syncs();
  std::atomic<bool> written{false};
  std::atomic<bool> read{false};
  std::thread writer{[&] {
    store->run({"SET", "k", "v"}).get();
    written = true;
  }};
  await([&] { return disk.is_syncing(); });
  std::thread reader{[&] {
    store->run({"GET", "k"}).get();
    read = true;
  }};
  auto unstarted =
      store->run({"GET", "k"});  // executed behind the reader's or before it, answered by neither
  EXPECT_FALSE(written);
  EXPECT_FALSE(read);
  disk.release_syncs();
  EXPECT_EQ(unstarted.get(), Value::bulk_string("v"));
  writer.join();
  reader.join();
}

TEST(GroupCommit, LeavesTheNextRoundToOneThatCameMeanwhile) {
  MemoryDisk disk;
  const auto store = open_embedded({}, disk.folder());
  const auto before = disk.syncs();
  disk.hold_syncs();
  std::vector<std::thread> threads;
  threads.emplace_back([&] { store->run({"INCR", "n"}).get(); });
  await([&] { return disk.is_syncing(); });
  std::atomic<int> executed{0};
  for (int i = 0; i < 10; ++i)
    threads.emplace_back([&] {
      auto asked = store->run({"INCR", "n"});
      ++executed;
      asked.get();
    });
  await([&] { return executed == 10; });
  disk.release_syncs();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(disk.syncs() - before, 2U) << "one for the first, one for all that came meanwhile";
}

TEST(GroupCommit, SyncsEachSecondWithEverysec) {
  MemoryDisk disk;
  VirtualClock clock;
  const auto store = open_embedded({.fsync = Fsync::everysec, .clock = &clock}, disk.folder());
  const auto before = disk.syncs();
  for (int i = 0; i < 10; ++i) store->run({"INCR", "n"}).get();
  EXPECT_EQ(disk.syncs(), before);
  EXPECT_NE(disk.content(increment_file).find("INCR"), std::string::npos)
      << "the operating system has it at once";
  clock.advance(1s);
  await([&] { return disk.syncs() == before + 1; });
  clock.advance(10s);
  EXPECT_EQ(clock.pending_timers(), 0U) << "no timer without something to sync";
  EXPECT_EQ(disk.syncs(), before + 1);
}

TEST(GroupCommit, E10_WithEverysecAWriteWaitsForASyncOfTwoSeconds) {
  const sluice::test::CollectedLog log;
  MemoryDisk disk;
  VirtualClock clock;
  const auto store = open_embedded({.fsync = Fsync::everysec, .clock = &clock}, disk.folder());
  store->run({"SET", "a", "1"}).get();
  disk.hold_syncs();
  clock.advance(1s);
  await([&] { return disk.is_syncing(); });
  clock.advance(1999ms);
  store->run({"SET", "b", "1"}).get();
  clock.advance(1ms);
  std::thread writer{[&] { store->run({"SET", "c", "1"}).get(); }};
  EXPECT_TRUE(sluice::test::comes_true([&] { return log.count("syncing the log for 2 s") == 1; }));
  EXPECT_EQ(disk.content(increment_file).find("\r\nc\r\n"), std::string::npos);
  disk.release_syncs();
  writer.join();
  EXPECT_NE(disk.content(increment_file).find("\r\nc\r\n"), std::string::npos);
}

TEST(GroupCommit, RefusesWritesAfterASyncOfEverysecFailed) {
  const sluice::test::CollectedLog log;
  MemoryDisk disk;
  VirtualClock clock;
  const auto store = open_embedded({.fsync = Fsync::everysec, .clock = &clock}, disk.folder());
  store->run({"SET", "a", "1"}).get();
  disk.fail(disk.operations(), EIO, false);
  clock.advance(1s);
  await([&] { return log.text().contains("cannot sync"); });
  EXPECT_EQ(store->run({"GET", "a"}).get(), Value::bulk_string("1"));
  EXPECT_THROW(store->run({"SET", "b", "1"}).get(), Error);
  EXPECT_EQ(store->run({"GET", "a"}).get(), Value::bulk_string("1")) << "nothing is only in memory";
}

/// The count that a store has told last, by its write or by a read, while one operation of the disk
/// fails and those of `for_good` after it.
std::int64_t told_before_a_crash(MemoryDisk& disk, Fsync policy, std::size_t fails, bool for_good) {
  std::int64_t told = 0;
  const auto store = open_embedded({.fsync = policy}, disk.folder());
  disk.fail(disk.operations() + fails, EIO, for_good);
  for (int call = 0; call < 12; ++call) {
    const bool is_write = call % 3 == 0;
    try {
      const auto reply = store->run({is_write ? "INCR" : "GET", "n"}).get();
      if (!reply.is_null()) told = std::max(told, reply.as_integer());
    } catch (const Error& error) {
      EXPECT_TRUE(is_write || error.effect() == Effect::none) << error.message();
    }
  }
  return told;
}

TEST(GroupCommit, CO11_WhatWasReadIsThereAfterACrash) {
  const sluice::test::CollectedLog quiet;
  for (const auto policy : {Fsync::always, Fsync::everysec, Fsync::never})
    for (const bool for_good : {false, true})
      for (std::size_t fails = 0; fails < 12; ++fails) {
        MemoryDisk disk;
        const auto told = told_before_a_crash(disk, policy, fails, for_good);
        disk.heal();
        if (policy == Fsync::always) disk.cut_power();
        const auto store = open_embedded({}, disk.folder());
        EXPECT_GE(store->run({"INCRBY", "n", "0"}).get().as_integer(), told)
            << fails << " operations are done, then the disk fails"
            << (for_good ? " for good" : " once");
      }
}

/// What a call throws; nothing: it was answered.
std::optional<Error> refusal(Store& store, Words words) {
  try {
    store.run(words).get();
    return std::nullopt;
  } catch (const Error& error) {
    return error;
  }
}

class DiskUnderWay : public testing::TestWithParam<int> {
 protected:
  const sluice::test::CollectedLog log_;
  MemoryDisk disk_;
  VirtualClock clock_;
  std::unique_ptr<EmbeddedStore> store_ = open_embedded({.clock = &clock_}, disk_.folder());
};

TEST_P(DiskUnderWay, E08_WhatItRefusesIsOneKindOfError) {
  for (const std::size_t operation : {0, 1}) {  // the write, or its sync
    disk_.fail(disk_.operations() + operation, GetParam(), true);
    const auto first = refusal(*store_, std::array{"SET"sv, "a"sv, "1"sv});
    const auto write = refusal(*store_, std::array{"SET"sv, "a"sv, "1"sv});
    const auto read = refusal(*store_, std::array{"GET"sv, "a"sv});
    ASSERT_TRUE(first && write && read);
    EXPECT_EQ(first->effect(), Effect::unknown);
    EXPECT_EQ(write->effect(), Effect::none);
    EXPECT_EQ(read->effect(), Effect::none);
    for (const auto& error : {*first, *write, *read})
      EXPECT_EQ(error.errc(), Errc::out_of_space) << error.message();
    disk_.heal();
    EXPECT_FALSE(refusal(*store_, std::array{"BGREWRITEAOF"sv})) << "it was begun";
    store_->rewrite();
    EXPECT_FALSE(refusal(*store_, std::array{"SET"sv, "a"sv, "2"sv}));
  }
}

TEST_P(DiskUnderWay, S03_WhenItIsGoodAgainACallHasTheEngineMended) {
  store_->run({"SET", "a", "1"}).get();
  disk_.fail(disk_.operations(), GetParam(), true);
  EXPECT_TRUE(refusal(*store_, std::array{"SET"sv, "a"sv, "2"sv}));
  constexpr int seconds = 600;
  for (int i = 0; i < seconds; ++i) {
    clock_.advance(1s);
    EXPECT_TRUE(refusal(*store_, std::array{"GET"sv, "a"sv}));
  }
  EXPECT_LE(log_.count("could not be rewritten"), seconds / 8 + 4U) << "it tries now and then";
  disk_.heal();
  EXPECT_TRUE(sluice::test::comes_true([&] {
    clock_.advance(1s);
    return !refusal(*store_, std::array{"SET"sv, "b"sv, "3"sv});
  }));
  EXPECT_EQ(log_.count("takes writes again"), 1U) << log_.text();
  store_ = nullptr;
  disk_.cut_power();
  store_ = open_embedded({}, disk_.folder());
  EXPECT_EQ(store_->run({"MGET", "a", "b"}).get(),
            Value::array({Value::bulk_string("2"), Value::bulk_string("3")}));
}

INSTANTIATE_TEST_SUITE_P(Errors, DiskUnderWay, testing::Values(EIO, EROFS, ENOSPC, EDQUOT, EFBIG));

TEST(GroupCommit, NeverSyncsWithNeverButAtARewrite) {
  MemoryDisk disk;
  const auto store = open_embedded({.fsync = Fsync::never}, disk.folder());
  const auto before = disk.syncs();
  for (int i = 0; i < 10; ++i) store->run({"INCR", "n"}).get();
  EXPECT_EQ(disk.syncs(), before);
  EXPECT_NE(disk.content(increment_file).find("INCR"), std::string::npos);
}

TEST(GroupCommit, WaitsForTheLogWhenACallThatWaitedIsServed) {
  MemoryDisk disk;
  const auto store = open_embedded({}, disk.folder());
  std::thread waiter{[&] {
    const auto reply = store->run({"BLPOP", "list", "0"}).get();
    EXPECT_EQ(reply.as_items().at(1), Value::bulk_string("x"));
    EXPECT_NE(disk.content(increment_file).find("LPOP"), std::string::npos);
  }};
  store->run({"RPUSH", "list", "x"}).get();
  waiter.join();
}

}  // namespace
}  // namespace sluice::engine
