/// What attackers did to locks on a real server: bystanders, memory that is used up, processes that
/// are killed.
#include <atomic>
#include <filesystem>
#include <functional>
#include <future>

#include "lock/server_lock.hpp"
#include "sluice/latch.hpp"
#include "sluice/metrics.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"
#include "support/history.hpp"
#include "support/java_peer.hpp"

namespace sluice {
namespace {

class Attack : public ServerLock {
 protected:
  void push_dead(const char* queue, const std::string& ticket) {
    for (int i = 0; i < 3; ++i)
      side_.command({"RPUSH", queue, "dead" + std::to_string(i) + ticket});
  }
  /// A SharedMutex, a Semaphore and so on are all renewed from here on.
  static void await_renewals(std::uint64_t many) {
    const auto before = metrics().lock_renewals.load();
    const auto patience = std::chrono::steady_clock::now() + 30s;
    while (metrics().lock_renewals.load() < before + many) {
      std::this_thread::sleep_for(10ms);
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "not renewed";
    }
  }
  /// How long after `end` another process, the last of so many waiters, has the lock.
  std::chrono::nanoseconds time_until_next(int waiters, const std::function<void()>& end) {
    auto entering = std::async(std::launch::async, [&] {
      return Mutex{*other_, "stock"}.acquire().get();
    });
    await_waiters(waiters);
    const auto ended = std::chrono::steady_clock::now();
    end();
    (void)entering.get();
    return std::chrono::steady_clock::now() - ended;
  }

  std::unique_ptr<Store> other_ = open_patiently(server_.url());
};

TEST_F(Attack, K07_APatternSubscriberDelaysNobody) {
  test::PlainClient bystander{server_.port()};
  bystander.command({"PSUBSCRIBE", "*"});
  EXPECT_TRUE(comes_within(1s, [&] {
    auto held = Mutex{*store_, "stock"}.acquire().get();
    push_dead("sluice_lock_queue:{stock}",
              " 30000 1500 sluice:inbox:of-nobody dead:1 host 1 t1 dead");
    return time_until_next(4, [&] { held.release().get(); });
  })) << "the dead are not taken for living";
}

TEST_F(Attack, K04_RenewalNeedsNoMemory) {
  SharedMutex shared{*store_, "shared", {.lease = 4s}};
  Semaphore desks{*store_, "desks", {.lease = 4s}};
  PermitSemaphore permits{*store_, "permits", {.lease = 4s}};
  MultiLock many{*store_, {"{s}a", "{s}b"}, {.lease = 4s}};
  SharedMutex read{*store_, "read", {.lease = 4s}};
  desks.try_set_permits(1).get();
  permits.try_set_permits(1).get();
  Mutex mutex{*store_, "stock", {.lease = 4s}};
  FairMutex fair{*store_, "fair", {.lease = 4s}};
  const Owner owner;
  const auto one = mutex.acquire(owner).get();
  const auto two = fair.acquire().get();
  const auto three = shared.acquire().get();
  const auto four = read.acquire_shared().get();
  const auto five = desks.acquire().get();
  const auto six = permits.acquire().get();
  auto seven = many.acquire().get();
  side_.command({"CONFIG", "SET", "maxmemory", "1"});
  await_renewals(2 * 7);
  EXPECT_TRUE(one.valid());
  EXPECT_TRUE(two.valid());
  EXPECT_TRUE(three.valid());
  EXPECT_TRUE(four.valid());
  EXPECT_TRUE(five.valid());
  EXPECT_TRUE(six.valid());
  EXPECT_TRUE(seven.valid());
  EXPECT_EQ(seven.release().get().kind, Kind::released);
  side_.command({"CONFIG", "SET", "maxmemory", "0"});
}

TEST_F(Attack, K04_ReleaseHandsOverWithoutMemory) {
  EXPECT_TRUE(comes_within(1s, [&] {
    side_.command({"CONFIG", "SET", "maxmemory", "0"});
    auto held = Mutex{*store_, "stock"}.acquire().get();
    return time_until_next(1, [&] {
      side_.command({"CONFIG", "SET", "maxmemory", "1"});
      EXPECT_EQ(held.release().get().kind, Kind::released);
    });
  }));
  side_.command({"CONFIG", "SET", "maxmemory", "0"});
}

/// After a SUBSCRIBE a connection falls under the limits of listeners.
TEST_F(Attack, K18_PayloadOnTheSameStoreDoesNotCutAWaiter) {
  side_.command({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 1mb 1"});
  side_.command({"SETRANGE", "large", "40000000", "x"});
  auto holder = worker("hold", "30000", gate());
  (void)entered();
  auto entering = std::async(std::launch::async, [&] {
    return Mutex{*store_, "stock"}.acquire().get();
  });
  await_waiters(1);
  const auto before = metrics().redis_reconnects.load();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(store_->run({"GET", "large"}, {.timeout = 60s}).get().as_text().size(), 40'000'001U);
  Mutex{*other_, "stock"}.force_release().get();
  EXPECT_TRUE(entering.get().valid());
  EXPECT_EQ(metrics().redis_reconnects.load(), before);
}

TEST_F(Attack, K34_JavaGetsThePermitOfADeadProcessWhenOneOfOursLooks) {
  Semaphore desks{*store_, "desks", {.lease = 500ms, .watchdog = false}};
  desks.try_set_permits(1).get();
  const auto dead = desks.acquire().get();
  test::JavaPeer peer{server_.port()};
  test::JavaPeer::Semaphore java{peer, "desks"};
  while (dead.valid()) std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(java.acquire_within(500ms)) << "as docs/semaphore.md says";
  auto waiting = std::async(std::launch::async, [&] { return java.acquire_within(30s); });
  EXPECT_TRUE(desks.available().get() >= 0);
  EXPECT_TRUE(waiting.get());
}

TEST_F(Attack, K29_FlushAllIsNoticedByWaitersOfOtherProcesses) {
  EXPECT_TRUE(comes_within(2s, [&] {
    auto held = Mutex{*store_, "stock"}.acquire().get();
    return time_until_next(1, [&] { side_.command({"FLUSHALL"}); });
  }));
}

TEST_F(Attack, AServerThatTakesNoMoreClientsHoldsUpNoDeadline) {
  Semaphore here{*store_, "desks"};
  here.try_set_permits(1).get();
  const auto desk = here.acquire().get();
  const auto lock = FairMutex{*store_, "fair"}.acquire().get();
  const auto prices = SharedMutex{*store_, "prices"}.acquire().get();
  const auto stock = Mutex{*store_, "stock"}.acquire().get();
  Latch{*store_, "import"}.try_set_count(1).get();
  side_.command({"CONFIG", "SET", "maxclients", "1"});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_FALSE((FairMutex{*other_, "fair"}.try_acquire(50ms).get()));
  EXPECT_FALSE((SharedMutex{*other_, "prices"}.try_acquire(50ms).get()));
  EXPECT_FALSE((Semaphore{*other_, "desks"}.try_acquire(1, 50ms).get()));
  EXPECT_FALSE((MultiLock{*other_, {"stock", "till"}}.try_acquire(50ms).get()));
  EXPECT_FALSE((Latch{*other_, "import"}.try_wait(50ms).get()));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 25s) << "each took command_timeout: 30 s";
  try {
    (void)open(server_.url());
    ADD_FAILURE() << "one client too many";
  } catch (const Error& error) {
    EXPECT_EQ(error.message().find("RESP3"), std::string::npos) << error.message();
  }
  side_.command({"CONFIG", "SET", "maxclients", "1000"});
}

/// Waiters whose time ends while their process asks the server for them; a race, so it is run
/// often.
TEST_F(Attack, AStoreThatClosesLeavesNoHoldWithoutAHolder) {
  for (int i = 0; i < 40; ++i) {
    auto store = open(server_.url());
    {
      Mutex mutex{*store, "stock"};
      auto held = mutex.acquire().get();
      std::vector<std::jthread> waiters;
      for (int waiter = 0; waiter < 4; ++waiter)
        waiters.emplace_back([&] { (void)mutex.try_acquire(20ms).get(); });
      std::this_thread::sleep_for(std::chrono::milliseconds{i % 25});
      held = Held{};
    }
    const auto closing = std::chrono::steady_clock::now();
    store.reset();
    if (std::chrono::steady_clock::now() - closing > 400ms) {  // it waits no longer for a server
      Mutex{*store_, "stock"}.force_release().get();
      continue;
    }
    // A slow server may hear of the release a little later; the lease is 30 s.
    const auto soon = std::chrono::steady_clock::now() + 20s;
    const auto is_held = [&] { return side_.command({"EXISTS", "stock"}).as_integer() == 1; };
    while (is_held() && std::chrono::steady_clock::now() < soon) std::this_thread::sleep_for(10ms);
    ASSERT_FALSE(is_held());
  }
}

/// How often four threads of a Java program are in, and one of ours that never rests, in a while.
class Shares : public Attack {
 protected:
  using Section = std::function<void(const std::function<void()>& inside)>;

  using Java = std::function<Section(test::JavaPeer&)>;

  static Section java_mutex(test::JavaPeer& peer) {
    return [lock = test::JavaPeer::Lock{peer, "stock"}](const auto& inside) {
      if (!lock.acquire_within(5s)) return;
      inside();
      lock.release();
    };
  }

  /// `meanwhile` sees how often Java has been in.
  void play_java(const Java& java, const std::function<void(const std::atomic<int>&)>& meanwhile) {
    std::atomic<bool> over{false};
    std::atomic<int> theirs{0};
    std::vector<std::jthread> crew;
    for (unsigned i = 1; i <= 4; ++i)
      crew.emplace_back([&, i] {
        test::JavaPeer peer{server_.port(), i};
        peer.reaction = 2ms;
        const Section section = java(peer);
        while (!over) {
          section([&] { ++theirs, std::this_thread::sleep_for(10ms); });
          std::this_thread::sleep_for(20ms);
        }
      });
    meanwhile(theirs);
    over = true;
  }

  /// One in four sections or more is Java's, and it does not starve us. While a process stood still
  /// it was otherwise: that evens out.
  static bool is_fair(int theirs, int ours) {
    return ours >= 5 && theirs >= 5 && 3 * theirs >= ours;
  }

  void play(const Java& java, const Section& ours) {
    int sections = 0;
    bool fair = false;
    play_java(java, [&](const std::atomic<int>& theirs) {
      const auto patience = std::chrono::steady_clock::now() + 30s;
      while (!fair && std::chrono::steady_clock::now() < patience) {
        ours([&] { ++sections, std::this_thread::sleep_for(10ms); });
        fair = sections >= 40 && is_fair(theirs, sections);
      }
    });
    EXPECT_TRUE(fair);
  }
};

TEST_F(Shares, K31_OfAMutex) {
  Mutex mutex{*store_, "stock"};
  play(java_mutex, [&](const auto& inside) {
    const auto held = mutex.acquire().get();
    inside();
  });
}

TEST_F(Shares, K31_OfAMutexBesideThreeHotProcesses) {
  const auto record = folder_ / "record";
  std::vector<test::Process> crew;
  for (int i = 0; i < 3; ++i) crew.push_back(worker("busy", "10", record));
  const auto sections = [&] {
    return std::filesystem::exists(record) ? test::read_history(record).size() / 2 : 0;
  };
  const auto await_sections = [&](std::size_t many) {
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (sections() < many && std::chrono::steady_clock::now() < patience)
      std::this_thread::sleep_for(10ms);
  };
  await_sections(6);
  bool fair = false;
  play_java(java_mutex, [&](const std::atomic<int>& theirs) {
    const auto before = sections();
    const auto patience = std::chrono::steady_clock::now() + 30s;
    while (!fair && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(50ms);
      const auto ours = static_cast<int>(sections() - before);
      fair = ours >= 40 && is_fair(theirs, ours);
    }
  });
  for (auto& process : crew) process.kill();
  EXPECT_TRUE(fair);
}

TEST_F(Shares, K31_OfASemaphore) {
  Semaphore desks{*store_, "desks"};
  desks.try_set_permits(1).get();
  play(
      [](test::JavaPeer& peer) -> Section {
        return [lock = test::JavaPeer::Semaphore{peer, "desks"}](const auto& inside) {
          if (!lock.acquire_within(5s)) return;
          inside();
          lock.release();
        };
      },
      [&](const auto& inside) {
        const auto held = desks.acquire().get();
        inside();
      });
}

}  // namespace
}  // namespace sluice
