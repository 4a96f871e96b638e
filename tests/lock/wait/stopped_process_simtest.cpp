/// A process that stands still (SIGSTOP) costs the others two seconds in all, on every primitive,
/// however many tickets it has. And what waits notices within two seconds that a hold has ended.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <list>

#include "lock/semaphore/guest.hpp"
#include "lock/virtual_lock.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;

/// A caller that waits in the background, and keeps what it gets.
template <class Held>
class Caller {
 public:
  template <class Enter>
  explicit Caller(Enter enter) {
    spawn(keep(enter(stop_.get_token())), [this](std::exception_ptr error) { error_ = error; });
  }
  ~Caller() { stop_.request_stop(); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  bool in() const { return held.has_value(); }
  std::optional<Held> held;

 private:
  Task<void> keep(Task<std::optional<Held>> entering) { held = co_await entering; }
  std::stop_source stop_;
  std::exception_ptr error_;
};

/// One primitive of one process: a line of its own.
template <class Lock, class Held, auto enter>
struct Process {
  template <class... Name>
  explicit Process(Store& store, Name&&... name)
      : line(store), lock(line, std::forward<Name>(name)...) {}

  void call(milliseconds wait = 1h) {
    callers.emplace_back([&](std::stop_token stop) { return enter(lock, wait, std::move(stop)); });
  }
  bool is_in() const { return callers.back().in(); }
  void leave() { callers.clear(); }

  test::FaultyStore line;
  Lock lock;
  std::list<Caller<Held>> callers{};
};

constexpr auto try_lock = [](auto& lock, milliseconds wait, std::stop_token stop) {
  return lock.try_acquire(wait, std::move(stop));
};
constexpr auto try_read = [](SharedMutex& lock, milliseconds wait, std::stop_token stop) {
  return lock.try_acquire_shared(wait, std::move(stop));
};
constexpr auto try_permit = [](Semaphore& semaphore, milliseconds wait, std::stop_token stop) {
  return semaphore.try_acquire(1, wait, std::move(stop));
};

using MutexProcess = Process<Mutex, Held, try_lock>;
using FairProcess = Process<FairMutex, Held, try_lock>;
using Writers = Process<SharedMutex, Held, try_lock>;
using Readers = Process<SharedMutex, Held, try_read>;
using Desks = Process<Semaphore, Held, try_permit>;
using PermitProcess = Process<PermitSemaphore, HeldPermit, try_lock>;
using Names = std::vector<std::string>;
using Many = Process<MultiLock, MultiHeld, try_lock>;

class StoppedProcess : public VirtualLock {
 protected:
  /// A holder; a process with many waiters that stops; one waiter behind them that runs. When the
  /// holder leaves, the waiter is in within two seconds; and when the process goes on and the
  /// waiter leaves, the process gets its turn soon. `on_their_way`: questions that the process sent
  /// before it stopped, and that the server reads after the holder has left.
  template <class P, class... Name>
  void play_with(int on_their_way, int waiters, Name... name) {
    P holder{*store_, name...};
    P stops{*store_, name...};
    P runs{*store_, name...};
    holder.call();
    ASSERT_TRUE(holder.is_in());
    for (int i = 0; i < waiters; ++i) stops.call();
    runs.call();
    ASSERT_FALSE(runs.is_in());
    clock_.advance(10s);
    stop(stops.line);
    for (int i = 0; i < on_their_way; ++i) stops.call();
    holder.leave();
    stops.line.let_go();
    clock_.advance(2s);
    EXPECT_TRUE(runs.is_in());
    go_on(stops.line);
    clock_.advance(2s);
    runs.leave();
    for (int left = waiters + on_their_way; left > 0; --left) {
      clock_.advance(2s);
      const auto is_in = [](const auto& caller) { return caller.in(); };
      const auto next = std::ranges::find_if(stops.callers, is_in);
      ASSERT_NE(next, stops.callers.end()) << "it is back in the queue; left: " << left;
      stops.callers.erase(next);
    }
  }
  template <class P, class... Name>
  void play(int waiters, Name... name) {
    play_with<P>(0, waiters, name...);
  }
};

TEST_F(StoppedProcess, K06_MultiLock) { play<Many>(4, Names{"{s}a", "{s}b"}); }
TEST_F(StoppedProcess, K08_Mutex) { play<MutexProcess>(12, std::string{"stock"}); }
TEST_F(StoppedProcess, K08_FairMutex) { play<FairProcess>(12, std::string{"stock"}); }
TEST_F(StoppedProcess, K08_SharedMutexWriters) { play<Writers>(12, std::string{"stock"}); }
TEST_F(StoppedProcess, K08_Semaphore) {
  Semaphore{*store_, "desks"}.try_set_permits(1).get();
  play<Desks>(70, std::string{"desks"});
}
TEST_F(StoppedProcess, K08_PermitSemaphore) {
  PermitSemaphore{*store_, "desks"}.try_set_permits(1).get();
  play<PermitProcess>(70, std::string{"desks"});
}

TEST_F(StoppedProcess, CO02_QuestionsOnTheirWayDoNotKeepAProcessAlive) {
  play_with<Many>(20, 4, Names{"{s}a", "{s}b"});
  play_with<MutexProcess>(20, 100, std::string{"mutex"});
  play_with<FairProcess>(20, 100, std::string{"fair"});
  play_with<Writers>(20, 100, std::string{"shared"});
  Semaphore{*store_, "desks"}.try_set_permits(1).get();
  play_with<Desks>(20, 100, std::string{"desks"});
  PermitSemaphore{*store_, "beds"}.try_set_permits(1).get();
  play_with<PermitProcess>(20, 100, std::string{"beds"});
}

TEST_F(StoppedProcess, K08_ReadersThatStoppedKeepNoWriterOut) {
  Writers holder{*store_, "stock"};
  Readers stops{*store_, "stock"};
  Writers runs{*store_, "stock"};
  holder.call();
  for (int i = 0; i < 70; ++i) stops.call();
  runs.call();
  clock_.advance(10s);
  stop(stops.line);
  holder.leave();
  clock_.advance(2s);
  EXPECT_TRUE(runs.is_in());
  go_on(stops.line);
  runs.leave();
  clock_.advance(2s);
  for (const auto& caller : stops.callers) EXPECT_TRUE(caller.in());
}

TEST_F(StoppedProcess, ThreeThatStoppedCostTwoSecondsEach) {
  std::list<FairProcess> stopped;
  FairProcess holder{*store_, "stock"};
  FairProcess runs{*store_, "stock"};
  holder.call();
  for (int i = 0; i < 3; ++i) {
    stopped.emplace_back(*store_, "stock");
    for (int waiter = 0; waiter < 5; ++waiter) stopped.back().call();
  }
  runs.call();
  for (auto& process : stopped) stop(process.line);
  holder.leave();
  clock_.advance(6s);
  EXPECT_TRUE(runs.is_in());
  for (auto& process : stopped) go_on(process.line);
}

TEST_F(StoppedProcess, OneThatStoppedLongBeforeItsTurnCostsNothing) {
  FairProcess holder{*store_, "stock"};
  FairProcess stops{*store_, "stock"};
  FairProcess runs{*store_, "stock"};
  holder.call();
  for (int i = 0; i < 12; ++i) stops.call();
  runs.call();
  stop(stops.line);
  clock_.advance(5s);
  holder.leave();
  EXPECT_TRUE(runs.is_in());
  go_on(stops.line);
}

TEST_F(StoppedProcess, WaitersOfOneProcessLookAsOne) {
  FairProcess holder{*store_, "stock"};
  FairProcess waits{*store_, "stock"};
  holder.call();
  for (int i = 0; i < 50; ++i) waits.call();
  const auto asked = waits.line.executed("lock/fair/acquire");
  clock_.advance(20s);
  EXPECT_LE(waits.line.executed("lock/fair/acquire"), asked + 30);
}

// --- holds that end from outside ---

/// `ends`: what ends the hold behind the backs of all. The waiter of another process is in soon.
template <class P, class... Name>
void expect_noticed(Store& store, VirtualClock& clock, const std::function<void()>& ends,
                    Name... name) {
  P holder{store, name...};
  P waits{store, name...};
  holder.call();
  ASSERT_TRUE(holder.is_in());
  waits.call();
  clock.advance(5s);
  ends();
  clock.advance(2s);
  EXPECT_TRUE(waits.is_in());
}

TEST_F(StoppedProcess, K29_FlushAllIsNoticedWithinTwoSeconds) {
  const auto flush = [this] { store_->run({"FLUSHALL"}).get(); };
  const std::string stock = "stock";
  expect_noticed<MutexProcess>(*store_, clock_, flush, stock);
  expect_noticed<FairProcess>(*store_, clock_, flush, stock);
  expect_noticed<Writers>(*store_, clock_, flush, stock);
  expect_noticed<Many>(*store_, clock_, flush, Names{"{s}a", "{s}b"});
}

TEST_F(StoppedProcess, K32_DeletedLockIsNoticedWithinTwoSeconds) {
  const auto del = [this] { store_->run({"DEL", "stock"}).get(); };
  const std::string stock = "stock";
  expect_noticed<MutexProcess>(*store_, clock_, del, stock);
  expect_noticed<FairProcess>(*store_, clock_, del, stock);
  store_->run({"FLUSHALL"}).get();
  expect_noticed<Writers>(*store_, clock_, del, stock);
}

TEST_F(StoppedProcess, K32_WaitersBehindAHolderOfTheirOwnProcessNoticeToo) {
  MutexProcess one{*store_, "stock"};
  for (int i = 0; i < 3; ++i) one.call();
  clock_.advance(5s);
  ASSERT_TRUE(one.callers.front().in());
  for (auto next = std::next(one.callers.begin()); next != one.callers.end(); ++next) {
    EXPECT_FALSE(next->in());
    store_->run({"DEL", "stock"}).get();
    clock_.advance(2s);
    EXPECT_TRUE(next->in());
    clock_.advance(5s);
  }
}

// --- what the dead leave behind ---

TEST_F(StoppedProcess, K09_TwentyDeadWaitersOfAFairMutexCostNothingLater) {
  FairProcess holder{*store_, "stock"};
  holder.call();
  for (int i = 0; i < 20; ++i) {
    const std::string owner = "6f1c0e7a-3c57-4b5e-9d0b-2a6c54ad1f00:" + std::to_string(i);
    store_->run({"RPUSH", "redisson_lock_queue:{stock}", owner}).get();
    store_->run({"ZADD", "redisson_lock_timeout:{stock}", "9999999999999", owner}).get();
    store_
        ->run({"HSET", "sluice_lock_tickets:{stock}", owner,
               "r 1500 1 sluice:inbox:of-nobody host 1 t1 d"})
        .get();
  }
  FairProcess last{*store_, "stock"};
  last.call(1ms);
  clock_.advance(1ms);
  holder.leave();
  clock_.advance(128s);
  FairProcess waits{*store_, "stock"};
  waits.call();
  EXPECT_TRUE(waits.is_in());
}

/// What stands in the queues, to be written again: as on a server that has lost what came after.
class SavedQueues {
 public:
  explicit SavedQueues(Store& store) : store_(store) {
    const Value keys = store_.run({"KEYS", "*"}).get();
    for (const Value& key : keys.as_items()) save(key.as_text());
  }
  void restore() const {
    for (const auto& command : commands_) {
      const std::vector<std::string_view> words{command.begin(), command.end()};
      store_.run(Words{words}, {}).get();
    }
  }

 private:
  void save(const std::string& key) {
    const std::string type = store_.run({"TYPE", key}).get().as_text();
    const bool ours = key.starts_with("sluice_") || key.starts_with("redisson_lock_queue");
    if (!ours || (type != "list" && type != "hash" && type != "zset")) return;
    const bool is_hash = type == "hash";
    const std::string_view write = type == "list" ? "RPUSH" : is_hash ? "HSET" : "ZADD";
    auto& command = commands_.emplace_back(std::vector<std::string>{std::string{write}, key});
    const std::string_view read = type == "list" ? "LRANGE" : "ZRANGE";
    const Value all =
        is_hash ? store_.run({"HGETALL", key}).get() : store_.run({read, key, "0", "-1"}).get();
    for (const Value& word : all.as_items()) {
      if (type == "zset")
        command.push_back(
            fmt::format("{:.0f}", store_.run({"ZSCORE", key, word.as_text()}).get().as_number()));
      command.push_back(word.as_text());
    }
  }

  Store& store_;
  std::vector<std::vector<std::string>> commands_;
};

/// Five wait and have all had their turn when the server is one that knows nothing of it.
template <class P, class... Name>
void expect_no_stray_grant_to_last(Store& store, VirtualClock& clock, Name... name) {
  std::list<P> waited;
  std::optional<SavedQueues> saved;
  for (int i = 0; i < 6; ++i) {
    waited.emplace_back(store, name...);
    waited.back().call();
  }
  saved.emplace(store);
  for (auto& process : waited) {
    ASSERT_TRUE(process.is_in());
    process.leave();
    clock.advance(10ms);
  }
  saved->restore();
  P holder{store, name...};
  P waits{store, name...};
  holder.call();
  waits.call();
  clock.advance(10ms);
  holder.leave();
  clock.advance(100ms);
  EXPECT_TRUE(waits.is_in());
}

TEST_F(StoppedProcess, GrantToARequestThatHasEndedIsGivenUpAtOnce) {
  const std::string stock = "stock";
  expect_no_stray_grant_to_last<MutexProcess>(*store_, clock_, stock);
  expect_no_stray_grant_to_last<Writers>(*store_, clock_, std::string{"prices"});
  expect_no_stray_grant_to_last<FairProcess>(*store_, clock_, std::string{"fair"});
  expect_no_stray_grant_to_last<Many>(*store_, clock_, Names{"{s}a", "{s}b"});
  Semaphore{*store_, "desks"}.try_set_permits(1).get();
  expect_no_stray_grant_to_last<Desks>(*store_, clock_, std::string{"desks"});
  PermitSemaphore{*store_, "beds"}.try_set_permits(1).get();
  expect_no_stray_grant_to_last<PermitProcess>(*store_, clock_, std::string{"beds"});
}

TEST_F(StoppedProcess, QueuesLeaveNothingBehind) {
  const auto keys = [this] { return store_->run({"KEYS", "*"}).get().as_items().size(); };
  {
    test::FaultyStore dead{*store_};
    FairMutex fair{dead, "fair"};
    Mutex mutex{dead, "mutex"};
    SharedMutex shared{dead, "shared"};
    auto first = mutex.acquire().get();
    auto second = shared.acquire().get();
    auto third = fair.acquire().get();
    Writers writer{*store_, "shared"};
    FairProcess in_order{*store_, "fair"};
    MutexProcess waits{*store_, "mutex"};
    writer.call(10min);
    in_order.call(10min);
    waits.call(10min);
    EXPECT_GT(keys(), 6U);
    for (auto* line : {&dead, &writer.line, &in_order.line, &waits.line}) stop(*line);
    clock_.advance(11min);
    clock_.advance(26h);
    EXPECT_EQ(keys(), 0U);
    for (auto* line : {&dead, &writer.line, &in_order.line, &waits.line}) go_on(*line);
  }
}

TEST_F(StoppedProcess, K02_TokensRiseThoughTheServerLostAPartOfItsData) {
  Mutex mutex{line_, "stock"};
  FairMutex fair{line_, "fair"};
  SharedMutex shared{line_, "shared"};
  const auto tokens = [&] {
    return std::vector{mutex.acquire().get().token(), fair.acquire().get().token(),
                       shared.acquire().get().token()};
  };
  const auto before = tokens();
  std::vector<std::string> saved;
  const std::vector<std::string> counters{
      "redisson_lock_token:{stock}", "redisson_lock_token:{fair}", "redisson_lock_token:{shared}"};
  for (const auto& counter : counters)
    saved.push_back(store_->run({"GET", counter}).get().as_text());
  clock_.advance(1ms);
  for (int i = 0; i < 10; ++i) tokens();
  const auto last = tokens();
  for (std::size_t i = 0; i < counters.size(); ++i) {
    store_->run({"SET", counters[i], saved[i]}).get();
    EXPECT_GT(last[i], before[i]);
  }
  clock_.advance(1ms);
  const auto after = tokens();
  for (std::size_t i = 0; i < counters.size(); ++i) EXPECT_GT(after[i], last[i]);
}

TEST_F(StoppedProcess, ATokenIsGivenOnceAlsoAtTheEndOfNumbers) {
  Mutex mutex{line_, "stock"};
  store_->run({"SET", "redisson_lock_token:{stock}", "9007199254740991"}).get();
  EXPECT_EQ(mutex.acquire().get().token().value, 9007199254740992U);
  EXPECT_EQ(error_of(mutex.acquire()), Errc::script);
  EXPECT_FALSE(exists("stock"));
}

TEST_F(StoppedProcess, K19_CountersEndADayAfterTheLastHold) {
  (void)Mutex{line_, "stock"}.acquire().get();
  EXPECT_GT(ttl("redisson_lock_token:{stock}"), 24h) << "longer than any lease";
  clock_.advance(26h);
  EXPECT_FALSE(exists("redisson_lock_token:{stock}"));
}

}  // namespace
}  // namespace sluice
