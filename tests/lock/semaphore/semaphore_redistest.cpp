/// Semaphores of many processes, some of which are killed; and beside Java programs.
#include <algorithm>
#include <future>
#include <random>
#include <thread>

#include "lock/semaphore/server_semaphore.hpp"
#include "sluice/lock_info.hpp"
#include "support/history.hpp"
#include "support/thread_sanitized.hpp"

namespace sluice {
namespace {

using test::JavaPeer;

class SemaphoreProcesses : public ServerSemaphore {
 protected:
  std::int64_t calls(std::initializer_list<std::string_view> names) {
    const std::string info = side_.command({"INFO", "commandstats"}).as_text();
    std::int64_t sum = 0;
    for (const auto name : names) {
      const auto at = info.find("cmdstat_" + std::string{name} + ":calls=");
      if (at != std::string::npos) sum += std::stoll(info.substr(info.find('=', at) + 1));
    }
    return sum;
  }

  Semaphore desks_{*store_, "desks", {.lease = 1s}};
};

TEST_F(SemaphoreProcesses, S01_PermitsAreConservedWhenProcessesAreKilled) {
  desks_.try_set_permits(5).get();
  std::mt19937 dice{20260103};
  std::vector<test::Process> crew;
  for (int i = 0; i < 4; ++i) crew.push_back(semaphore_worker("rounds", "1000000"));
  for (int killed = 0; killed < 12; ++killed) {
    const auto before = std::filesystem::exists(record_) ? std::filesystem::file_size(record_) : 0;
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (!std::filesystem::exists(record_) ||
           std::filesystem::file_size(record_) < before + 2000) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "nobody gets on";
      std::this_thread::yield();
    }
    auto& victim = crew[dice() % crew.size()];
    victim.kill();
    EXPECT_EQ(books_of(*store_, "desks").total(), 5) << "after kill " << killed;
    victim = semaphore_worker("rounds", "1000000");
  }
  for (auto& process : crew) process.kill();
  const auto all = desks_.try_acquire(5, 30s).get();
  EXPECT_TRUE(all) << "some did not come back: " << desks_.available().get() << " are free";
  EXPECT_EQ(books_of(*store_, "desks").total(), 5);
  const auto verdict = test::check(test::read_history(record_), {.complete = false});
  EXPECT_GT(verdict.entries, 100U);
}

TEST_F(SemaphoreProcesses, NeverMoreThanThereAre) {
  desks_.try_set_permits(3).get();
  std::vector<test::Process> crew;
  for (int i = 0; i < 4; ++i) crew.push_back(semaphore_worker("rounds", "200"));
  for (auto& process : crew) EXPECT_EQ(process.wait(), 0);
  const auto verdict = test::check(test::read_history(record_), {.permits = 3});
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_EQ(verdict.entries, 800U);
  // What a process sent last before its end is on the way, or comes back with the lease.
  EXPECT_TRUE(desks_.try_acquire(3, 30s).get());
}

TEST_F(SemaphoreProcesses, W02_KilledHolderFreesWithinItsLease) {
#ifdef SLUICE_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer does not support what a child of a threaded process does";
#endif
  desks_.try_set_permits(2).get();
  auto waiter = std::make_unique<Semaphore>(*store_, "desks", SemaphoreOptions{.lease = 1s});
  test::Process holder{[url = server_.url()] {
    const auto store = open(url);
    Semaphore desks{*store, "desks", {.lease = 500ms}};
    const auto held = desks.acquire(2).get();
    store->run({"RPUSH", "entered", "1"}).get();
    for (;;) ::pause();
    return 0;
  }};
  entered();
  EXPECT_FALSE(waiter->try_acquire(1).get());
  holder.kill();
  EXPECT_TRUE(waiter->try_acquire(2, 10s).get());
}

TEST_F(SemaphoreProcesses, W03_HolderIsToldWhenTheServerComesBackEmpty) {
  Semaphore desks{*store_, "desks", {.lease = 30s}};
  desks.try_set_permits(2).get();
  auto held = desks.acquire().get();
  std::promise<LostCause> told;
  held.on_lost([&](LostCause cause) { told.set_value(cause); });
  server_.restart(false);
  auto cause = told.get_future();
  ASSERT_EQ(cause.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(cause.get(), LostCause::taken);
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_TRUE(desks.try_set_permits(1).get());
  EXPECT_TRUE(desks.try_acquire().get());
}

TEST_F(SemaphoreProcesses, P05_ManyWaitingProcessesCostFourCommandsARelease) {
  constexpr int many = 30;
  desks_.try_set_permits(1).get();
  auto held = Semaphore{*store_, "desks"}.acquire().get();  // for longer than they take to begin
  std::vector<test::Process> crew;
  for (int i = 0; i < many; ++i) crew.push_back(semaphore_worker("wait", "1"));
  await_tickets(many);
  const auto before = calls({"evalsha", "eval", "subscribe", "unsubscribe"});
  held.release().get();
  for (auto& process : crew) EXPECT_EQ(process.wait(), 0);
  const auto cost = calls({"evalsha", "eval", "subscribe", "unsubscribe"}) - before;
  constexpr int heard_late =
      many / 3;  // on a machine that is busy: such a grant is asked for again
  EXPECT_LE(cost, 4 * (many + 1) + heard_late);
  const auto verdict = test::check(test::read_history(record_), {.permits = 1});
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_EQ(verdict.entries, static_cast<std::size_t>(many));
}

// --- P06: beside Java ---

TEST_F(SemaphoreProcesses, P06_JavaAndWeWakeEachOther) {
  const JavaPeer::Semaphore java{peer_, "desks"};
  Semaphore desks{*store_, "desks"};
  desks.try_set_permits(1).get();
  Held held;
  EXPECT_TRUE(comes_within(100ms, [&] {
    held = Held{};
    EXPECT_TRUE(java.acquire_within(10s));
    auto waiting = std::async(std::launch::async, [&] {
      held = desks.acquire().get();
      return std::chrono::steady_clock::now();
    });
    await_tickets(1);
    const auto released = std::chrono::steady_clock::now();
    java.release();
    return waiting.get() - released;
  }));

  EXPECT_TRUE(comes_within(100ms, [&] {
    if (!held.valid()) held = desks.acquire().get();
    auto java_waits = std::async(std::launch::async, [&] {
      JavaPeer other{server_.port(), 2};
      EXPECT_TRUE(JavaPeer::Semaphore(other, "desks").acquire_within(60s));
      return std::chrono::steady_clock::now();
    });
    await_subscribers("redisson_sc:{desks}", 2);
    const auto released = std::chrono::steady_clock::now();
    held.release().get();
    const auto took = java_waits.get() - released;
    java.release();
    return took;
  }));
}

TEST_F(SemaphoreProcesses, P06_PermitsOfBothSides) {
  const JavaPeer::PermitSemaphore java{peer_, "keys"};
  PermitSemaphore keys{*store_, "keys"};
  keys.try_set_permits(1).get();
  std::optional<PermitId> ours;
  EXPECT_TRUE(comes_within(100ms, [&] {
    if (ours) keys.release(*ours).get();
    const auto theirs = java.acquire(60s);
    auto waiting = std::async(std::launch::async, [&] { return keys.take(60s, 60s).get(); });
    await_tickets(1, "sluice_permit_line:{keys}");
    const auto released = std::chrono::steady_clock::now();
    EXPECT_EQ(java.release(theirs.value()), Value::integer(1));
    ours = waiting.get();
    return std::chrono::steady_clock::now() - released;
  }));
  ASSERT_TRUE(ours);
  EXPECT_EQ(java.release({reinterpret_cast<const char*>(ours->bytes.data()), 16}),
            Value::integer(1))
      << "each may give back what the other took";
  EXPECT_FALSE(keys.release(*ours).get());
  PermitId id;
  const auto again = java.acquire(60s);
  std::ranges::copy(*again, id.bytes.begin());
  EXPECT_TRUE(keys.update_lease(id, 120s).get());
  EXPECT_TRUE(keys.release(id).get());
  EXPECT_EQ(java.release(*again), Value::integer(0));
  EXPECT_EQ(keys.available().get(), 1);
  EXPECT_TRUE(keys.info().get().holders.empty());
  EXPECT_EQ(side_.command({"EXISTS", "sluice_permit_people:{keys}"}), Value::integer(0))
      << "who held what Java gave back";
}

TEST_F(SemaphoreProcesses, P06_JavaReclaimsWhatOursLeftBehind) {
  const JavaPeer::PermitSemaphore java{peer_, "keys"};
  PermitSemaphore keys{*store_, "keys"};
  keys.try_set_permits(1).get();
  const auto ours = keys.take(50ms).get();
  ASSERT_TRUE(ours);
  EXPECT_TRUE(java.acquire_within(20s, 60s));
  EXPECT_FALSE(keys.release(*ours).get());
  EXPECT_EQ(keys.available().get(), 0);
}

}  // namespace
}  // namespace sluice
