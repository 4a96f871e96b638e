// What users' code may do to the library: callbacks that throw and block, coroutines that are
// destroyed, forks, threads that end, statics that outlive main(). The numbers are those of attacks
// that succeeded once.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "contract/stores.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/latch.hpp"
#include "sluice/metrics.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/quorum_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"
#include "sluice/store.hpp"
#include "sluice/when_all.hpp"
#include "support/comes_true.hpp"
#include "support/foreign.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/thread_sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::Foreign;

class LifetimesContract : public test::StoreContract {
 protected:
  /// A hold that is renewed each second, and outlives that a process stands still for a while.
  static inline const MutexOptions brief{.lease = 4s};
};
SLUICE_EVERY_STORE(LifetimesContract);

template <class Body>
std::optional<Errc> errc_of(Body body) {
  try {
    body();
  } catch (const Error& failure) {
    return failure.errc();
  }
  return std::nullopt;
}

template <class Body>
bool is_closed(Body body) {
  return errc_of(std::move(body)) == Errc::closed;
}

/// How many threads of this process block `signal`, or do not.
int threads(bool block, int signal) {
  int found = 0;
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
    std::ifstream status{task.path() / "status"};
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("SigBlk:"))
        found += (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) == (block ? 1 : 0);
  }
  return found;
}

/// The exit status of a child that runs `body`.
template <class Body>
int in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    ::_exit(body());
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

/// Until each of `holds` brief ones has been renewed.
bool are_renewed(std::uint64_t holds) {
  const auto before = metrics().lock_renewals.load();
  return comes_true([&] { return metrics().lock_renewals.load() >= before + 2 * holds; });
}

bool has_waiter(Mutex& mutex) { return !mutex.info().get().waiters.empty(); }

Foreign hold(Mutex& mutex, bool& in) {
  auto held = co_await mutex.acquire();
  in = true;
}

template <class Acquire>
Foreign wait_for(Acquire acquire) {
  auto asked = acquire();
  [[maybe_unused]] const auto held = co_await asked;
}

Foreign hold_and_ask(Mutex& mutex, Store& store, bool& in) {
  const std::scoped_lock lock{mutex};
  in = true;
  auto asked = store.run({"PING"});
  co_await asked;
  in = false;
}

TEST_P(LifetimesContract, K05_AnOnLostThatThrowsAnythingLosesNoOtherHold) {
  std::vector<std::unique_ptr<Mutex>> locks;
  std::vector<Held> holds;
  std::promise<void> thrown;
  for (int i = 0; i < 8; ++i) {
    locks.push_back(std::make_unique<Mutex>(store(), name("lock " + std::to_string(i)), brief));
    holds.push_back(locks.back()->acquire().get());
  }
  holds[0].on_lost([&](LostCause) {
    thrown.set_value();
    throw 42;
  });
  EXPECT_TRUE(locks[0]->force_release().get());
  thrown.get_future().get();
  EXPECT_TRUE(are_renewed(holds.size() - 1));
  for (std::size_t i = 1; i < holds.size(); ++i) EXPECT_TRUE(holds[i].valid()) << i;
}

TEST_P(LifetimesContract, K22_AnOnLostMayBlockAndCallTheStore) {
  Mutex mutex{store(), name("lock"), brief};
  Mutex other{store(), name("other"), brief};
  auto held = mutex.acquire().get();
  auto kept = other.acquire().get();
  std::promise<void> called;
  std::promise<void> go_on;
  std::promise<std::string> answered;
  held.on_lost([&](LostCause) {
    called.set_value();
    go_on.get_future().wait();
    answered.set_value(store().run({"PING"}).get().as_text());
  });
  EXPECT_TRUE(mutex.force_release().get());
  called.get_future().get();
  EXPECT_EQ(store().run({"PING"}).get().as_text(), "PONG");
  EXPECT_TRUE(are_renewed(1));
  EXPECT_TRUE(kept.valid()) << "it was renewed meanwhile";
  go_on.set_value();
  EXPECT_EQ(answered.get_future().get(), "PONG");
}

TEST_P(LifetimesContract, HandlersOfChannelsMayBlockAndCallTheStore) {
  std::promise<std::string> answered;
  const std::string channel = name("channel");
  const auto listener = store()
                            .listen(channel,
                                    [&](const Message&) {
                                      answered.set_value(store().run({"PING"}).get().as_text());
                                    })
                            .get();
  store().run({"PUBLISH", channel, "x"}).get();
  EXPECT_EQ(answered.get_future().get(), "PONG");
}

TEST_P(LifetimesContract, K12_TwoAcquiresOfOneOwnerAtOnce) {
  Mutex mutex{store(), name("lock")};
  const Owner owner;
  std::vector<Task<Held>> both;
  both.push_back(mutex.acquire(owner));
  both.push_back(mutex.acquire(owner));
  auto holds = when_all(std::move(both)).get();
  EXPECT_EQ(holds[0].token(), holds[1].token());
  EXPECT_EQ(holds[0].entries(), 2U);
  holds.clear();
  EXPECT_TRUE(mutex.try_acquire(30s).get());
}

TEST_P(LifetimesContract, K12_AReaderThatWantsToWriteAtOnceIsRefused) {
  SharedMutex mutex{store(), name("lock")};
  const Owner owner;
  std::vector<Task<Held>> both;
  both.push_back(mutex.acquire_shared(owner));
  both.push_back(mutex.acquire(owner));
  EXPECT_EQ(errc_of([&] { when_all(std::move(both)).get(); }), Errc::bad_argument);
  EXPECT_TRUE(mutex.try_acquire(30s).get());
}

TEST_P(LifetimesContract, K21_ACoroutineDestroyedWhileItAwaitsAcquireLeavesNothing) {
  Mutex mutex{store(), name("lock")};
  bool in = false;
  {
    const auto other = has_second() ? second() : nullptr;
    Mutex elsewhere{other ? *other : store(), name("lock")};
    auto held = elsewhere.acquire().get();
    for (const bool at_once : {true, false}) {
      const Foreign waiter = hold(mutex, in);
      EXPECT_TRUE(at_once || !other || comes_true([&] { return has_waiter(mutex); }));
      waiter.coroutine.destroy();
    }
  }
  EXPECT_TRUE(mutex.try_acquire(30s).get());
  const Foreign early = hold(mutex, in);  // free: a hold may come all the same, and is given back
  early.coroutine.destroy();
  EXPECT_TRUE(mutex.try_acquire(30s).get());
}

TEST_P(LifetimesContract, K21_ADestroyedWaiterMayLeaveItsMutexBehind) {
  auto store_of_all = GetParam() >= test::StoreKind::redis ? second() : open("embedded:");
  auto mutex = std::make_unique<Mutex>(*store_of_all, name("lock"));
  bool in = false;
  {
    Mutex elsewhere{has_second() ? store() : *store_of_all, name("lock")};
    const auto held = elsewhere.acquire().get();
    const Foreign waiter = hold(*mutex, in);
    EXPECT_TRUE(!has_second() || comes_true([&] { return has_waiter(*mutex); }));
    waiter.coroutine.destroy();
  }
  mutex.reset();
  store_of_all.reset();
  EXPECT_FALSE(in);
}

TEST_P(LifetimesContract, K21_ADestroyedWaiterLeavesItsQueue) {
  Semaphore desks{store(), name("desks")};
  PermitSemaphore permits{store(), name("permits")};
  MultiLock locks{store(), {name("lock")}};
  Mutex lock{store(), name("lock")};
  desks.try_set_permits(1).get();
  permits.try_set_permits(1).get();
  const auto desk = desks.try_acquire().get();
  const auto permit = permits.try_acquire().get();
  const auto held = lock.try_acquire().get();
  ASSERT_TRUE(desk && permit && held);
  const auto waiters = [&] {
    return desks.info().get().waiters.size() + permits.info().get().waiters.size() +
           lock.info().get().waiters.size();
  };
  const Foreign all[] = {wait_for([&] { return desks.acquire(); }),
                         wait_for([&] { return desks.try_acquire(1, 1h); }),
                         wait_for([&] { return permits.acquire(); }),
                         wait_for([&] { return permits.try_acquire(1h); }),
                         wait_for([&] { return permits.try_acquire_many(1, 1h); }),
                         wait_for([&] { return permits.take(1min, 1h); }),
                         wait_for([&] { return locks.acquire(); }),
                         wait_for([&] { return locks.try_acquire(1h); })};
  EXPECT_TRUE(comes_true([&] { return waiters() == std::size(all); }));
  for (const Foreign& waiter : all) waiter.coroutine.destroy();
  EXPECT_TRUE(comes_true([&] { return waiters() == 0; }));
}

TEST_P(LifetimesContract, CO10_ADestroyedWaiterOfALimiterLeavesItsLineAndTakesNothing) {
  RateLimiter limiter{store(), name("limiter"), {.rate = 3, .interval = 1h}};
  const auto acquires = [&] {
    return std::array{wait_for([&] { return limiter.acquire(3); }),
                      wait_for([&] { return limiter.try_acquire(2, 2h); })};
  };
  for (const Foreign& early : acquires()) early.coroutine.destroy();
  if (has_second()) EXPECT_TRUE(comes_true([&] { return limiter.available().get() == 3; }));
  (void)limiter.try_acquire(3).get();
  for (const Foreign& waiter : acquires()) waiter.coroutine.destroy();
  for (const char* const key : {"", ":value", ":permits"})
    store().run({"DEL", *key == '\0' ? limiter.name() : limiter.name() + key}).get();
  EXPECT_TRUE(comes_true([&] { return limiter.try_acquire().get().has_value(); }))
      << "nobody stands before it";
}

TEST_P(LifetimesContract, CO10_ADestroyedWaiterOfALatchHearsNothing) {
  auto store_of_all = has_second() ? second() : open("embedded:");
  auto latch = std::make_unique<Latch>(*store_of_all, "latch " + std::to_string(::getpid()));
  const std::string channel = "redisson_countdownlatch__channel__{" + latch->name() + "}";
  latch->reset(1).get();
  const auto listens = [&] {
    return store_of_all->run({"PUBLISH", channel, "1"}).get().as_integer() != 0;
  };
  for (const bool at_once : {true, false}) {
    const Foreign waiters[] = {wait_for([&] { return latch->state(1h); }),
                               wait_for([&] { return latch->try_wait(1h); })};
    EXPECT_TRUE(at_once || comes_true(listens));
    for (const Foreign& waiter : waiters) waiter.coroutine.destroy();
  }
  EXPECT_TRUE(comes_true([&] { return !listens(); }));
  latch.reset();
  store_of_all.reset();
}

TEST_P(LifetimesContract, K21_ADestroyedWaiterMayLeaveItsSemaphoreBehind) {
  auto store_of_all = has_second() ? second() : open("embedded:");
  auto desks = std::make_unique<Semaphore>(*store_of_all, name("desks"));
  auto permits = std::make_unique<PermitSemaphore>(*store_of_all, name("permits"));
  desks->try_set_permits(1).get();
  permits->try_set_permits(1).get();
  for (const bool at_once : {true, false}) {
    auto desk = desks->try_acquire(1, 30s).get();
    auto permit = permits->try_acquire(30s).get();
    const Foreign both[] = {wait_for([&] { return desks->acquire(); }),
                            wait_for([&] { return permits->acquire(); })};
    EXPECT_TRUE(at_once || comes_true([&] {
                  return desks->info().get().waiters.size() == 1 &&
                         permits->info().get().waiters.size() == 1;
                }));
    for (const Foreign& waiter : both) waiter.coroutine.destroy();
  }
  desks.reset();
  permits.reset();
  store_of_all.reset();
}

TEST_P(LifetimesContract, LK04_ADestroyedWaiterMayLeaveLocksOfManyNamesAndNodesBehind) {
  auto here = has_second() ? second() : open("embedded:");
  Mutex elsewhere{has_second() ? store() : *here, name("lock")};
  for (const bool is_held : {true, false}) {
    for (const bool at_once : {true, false}) {
      const auto held = is_held ? elsewhere.try_acquire(30s).get() : std::nullopt;
      auto many = std::make_unique<MultiLock>(*here, std::vector{name("lock")});
      auto quorum = std::make_unique<QuorumLock>(std::vector{here.get()}, name("lock"));
      const Foreign all[] = {wait_for([&] { return many->acquire(); }),
                             wait_for([&] { return many->try_acquire(1h); }),
                             wait_for([&] { return quorum->acquire(); }),
                             wait_for([&] { return quorum->try_acquire(1h); })};
      if (!at_once) here->run({"PING"}).get();
      for (const Foreign& waiter : all) waiter.coroutine.destroy();
      many.reset();
      quorum.reset();
    }
  }
  EXPECT_TRUE(elsewhere.try_acquire(30s).get()) << "what came all the same was given back";
}

TEST_P(LifetimesContract, K20_AStaticDestroyedAfterMainLocksAndReleases) {
  const std::string lock = name("lock");
  const std::string where =
      GetParam() == test::StoreKind::embedded_folder ? "embedded:" : url();  // the folder is ours
  test::Process program{{test::built_path("tests/contract/static_lock"), where, lock}};
  EXPECT_EQ(program.wait(), 0);
  EXPECT_EQ(store().run({"EXISTS", lock}).get().as_integer(), 0);
}

TEST_P(LifetimesContract, K23_ScopedLockAcrossCoAwaitThrowsThere) {
  if (!has_second()) GTEST_SKIP() << "the engine answers at once: nothing suspends";
  Mutex mutex{store(), name("lock")};
  bool in = false;
  const Foreign worker = hold_and_ask(mutex, store(), in);
  ASSERT_TRUE(worker.coroutine.done());
  EXPECT_TRUE(in);
  EXPECT_EQ(errc_of([&] { std::rethrow_exception(worker.coroutine.promise().failure); }),
            Errc::bad_argument);
  worker.coroutine.destroy();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();

  std::promise<std::exception_ptr> failed;
  const auto work = [&]() -> Task<void> {
    const std::scoped_lock lock{mutex};
    auto asked = store().run({"PING"});
    co_await asked;
  };
  spawn(work(), [&](std::exception_ptr error) { failed.set_value(error); });
  EXPECT_EQ(errc_of([&] { std::rethrow_exception(failed.get_future().get()); }),
            Errc::bad_argument);
  EXPECT_NO_THROW(work().get()) << "get() goes on in the same thread";
}

TEST_P(LifetimesContract, K24_ANewThreadHasNotWhatOneWithItsIdHasLocked) {
  Mutex mutex{store(), name("lock")};
  std::thread::id first;
  std::thread{[&] {
    first = std::this_thread::get_id();
    mutex.lock();
  }}.join();
  bool met = false;
  for (int i = 0; i < 100 && !met; ++i)
    std::thread{[&] {
      met = std::this_thread::get_id() == first;
      EXPECT_EQ(errc_of([&] { mutex.unlock(); }), Errc::bad_argument);
    }}.join();
  EXPECT_TRUE(met) << "no thread had the id of the first";
}

#if !defined(SLUICE_THREAD_SANITIZER)
TEST_P(LifetimesContract, K03_K27_AChildHasNeitherTheStoreNorItsLocks) {
  const MutexOptions options{.lease = 5s};
  Mutex mutex{store(), name("lock"), options};
  FairMutex fair{store(), name("fair")};
  SharedMutex shared{store(), name("shared")};
  MultiLock multi{store(), {name("one"), name("two")}};
  Semaphore semaphore{store(), name("desks")};
  Latch latch{store(), name("latch")};
  RateLimiter limiter{store(), name("rate"), {.rate = 5}};
  semaphore.try_set_permits(2).get();
  Owner owner;
  auto held = mutex.acquire(owner).get();
  const std::scoped_lock inside{fair};
  auto both = multi.acquire().get();
  const int status = in_child([&] {
    both.on_lost([](LostCause) {});  // LK09
    both.on_risk([](Risk) {});
    if (both.valid() || both.lost().stop_possible()) return 13;
    if (held.valid() || held.entries() != 0 || held.lost().stop_possible()) return 1;
    if (!is_closed([&] { store().run({"PING"}).get(); })) return 2;
    if (!is_closed([&] { (void)mutex.acquire().get(); })) return 3;
    if (!is_closed([&] { (void)mutex.try_acquire(owner, 1s).get(); })) return 4;
    if (!is_closed([&] { mutex.force_release().get(); })) return 5;
    if (!is_closed([&] { (void)fair.acquire().get(); })) return 6;
    if (!is_closed([&] { shared.lock_shared(); })) return 7;
    if (!is_closed([&] { (void)multi.acquire().get(); })) return 8;
    if (!is_closed([&] { (void)semaphore.acquire().get(); })) return 9;
    if (!is_closed([&] { latch.wait().get(); })) return 10;
    if (!is_closed([&] { limiter.acquire().get(); })) return 11;
    if (!is_closed([&] { store().listen("c", [](const Message&) {}).get(); })) return 12;
    held = {};
    fair.unlock();  // as the guard would
    return 0;
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release().get().kind, ReleaseOutcome::Kind::released);
  EXPECT_EQ(store().run({"PING"}).get().as_text(), "PONG") << "the child left it alone";
}

/// A program may block a signal when the Store is there already, and wait for it.
TEST_P(LifetimesContract, ThreadsOfTheLibraryTakeNoSignals) {
  const test::TempDir folder;
  const std::string in_folder = "embedded:" + folder.path().string() + "?fsync=everysec";
  const int status = in_child([&] {
    const auto mine = open(has_second() ? url() : in_folder);
    mine->run({"SET", "k", "child"}).get();
    Mutex mutex{*mine, name("lock"), brief};
    auto held = mutex.acquire().get();
    std::promise<void> called;
    held.on_lost([&](LostCause) { called.set_value(); });
    mutex.force_release().get();
    called.get_future().wait();
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &term, nullptr);
    ::kill(::getpid(), SIGTERM);
    int came = 0;
    if (::sigwait(&term, &came) != 0 || came != SIGTERM) return 1;
    // For a moment, as it begins and ends, a thread blocks all signals.
    while (threads(true, SIGSEGV) != 0) std::this_thread::yield();
    return threads(false, SIGHUP) == 1 ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

TEST(Fork, K03_AChildNeitherWritesTheLogNorUnlocksTheFolder) {
  const test::TempDir folder;
  const std::string url = "embedded:" + folder.path().string();
  auto mine = open(url);
  mine->run({"SET", "k", "parent"}).get();
  const int status = in_child([&] {
    const bool closed = is_closed([&] { mine->run({"SET", "k", "child"}).get(); });
    mine.reset();
    return closed ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(errc_of([&] { open(url); }), Errc::in_use);
  mine->run({"SET", "after", "fork"}).get();
  mine.reset();
  mine = open(url);
  EXPECT_EQ(mine->run({"GET", "k"}).get().as_text(), "parent");
  EXPECT_EQ(mine->run({"GET", "after"}).get().as_text(), "fork");
}
#endif

}  // namespace
}  // namespace sluice
