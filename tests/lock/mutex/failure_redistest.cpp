/// Processes that stop or die, servers that forget, connections that break.
#include <fcntl.h>
#include <unistd.h>

#include <future>

#include "lock/server_lock.hpp"
#include "support/comes_true.hpp"
#include "support/server_pair.hpp"

namespace sluice {
namespace {

using LockFailure = ServerLock;

TEST_F(LockFailure, W06_StoppedHolderFindsOutWithoutIo) {
  const std::string path = gate();
  auto holder = worker("hold", "300", path);
  const auto token = entered();
  const int opened =
      ::open(path.c_str(), O_WRONLY | O_CLOEXEC);  // both ends are open: the holder waits in read()
  holder.stop();

  Mutex mutex{*store_, "stock"};
  const auto next = mutex.acquire().get();
  EXPECT_GT(next.token().value, token)
      << "whatever the lock protects refuses the stopped holder by its token";
  server_.stop();  // nobody answers any more
  ASSERT_EQ(::write(opened, "!", 1), 1);
  holder.cont();
  EXPECT_EQ(holder.wait(), 0) << "1: it believes that it holds; 3: it asked";
  server_.cont();
  ::close(opened);
}

TEST_F(LockFailure, W02_KilledHolderFreesWithinItsLease) {
  auto holder = worker("hold", "500", gate());
  entered();
  Mutex mutex{*store_, "stock"};
  EXPECT_FALSE(mutex.try_acquire().get());
  holder.kill();
  EXPECT_TRUE(mutex.try_acquire(30s).get());
}

TEST_F(LockFailure, W03_HolderIsToldWhenTheServerComesBackEmpty) {
  Mutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  std::promise<LostCause> told;
  held.on_lost([&](LostCause cause) { told.set_value(cause); });
  server_.restart(false);
  auto cause = told.get_future();
  ASSERT_EQ(cause.wait_for(20s), std::future_status::ready);
  EXPECT_EQ(cause.get(), LostCause::taken);
  EXPECT_TRUE(held.lost().stop_requested());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_TRUE(mutex.try_acquire().get());
}

/// What a renewal at the new server cannot know: docs/decisions/0025.
TEST(ALockThatWasForcedFree, IsItsFirstHoldersAgainWhereTheFailoverHasLostThat) {
  test::ServerPair servers;
  const auto here = open(servers.url());
  const auto there = open(servers.url());
  Mutex first{*here, "stock", {.lease = 120s}};
  Mutex second{*there, "stock", {.lease = 120s}};
  auto held = first.acquire().get();
  servers.wait_for_copy_of("stock");
  servers.cut_off();
  EXPECT_TRUE(second.force_release().get());
  auto lost = second.acquire().get();
  servers.replace_primary();
  EXPECT_TRUE(test::comes_true([&] { return !lost.valid(); })) << "its renewal finds another's";
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release().get().kind, ReleaseOutcome::Kind::released);
}

TEST_F(LockFailure, HolderSurvivesARestartThatKeepsData) {
  Mutex mutex{*store_, "stock", {.lease = 30s}};
  auto held = mutex.acquire().get();
  server_.restart(true);
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

TEST_F(LockFailure, P03_ReleaseThatWasMissedWhileDisconnectedIsSeenAtOnce) {
  side_.command({"HSET", "stock", "dead0000-0000-4000-8000-000000000000:1", "1"});
  side_.command({"PEXPIRE", "stock", "60000"});
  Mutex mutex{*store_, "stock"};
  auto waiting =
      std::async(std::launch::async, [&] { return mutex.try_acquire(30s).get().has_value(); });
  await_subscribers(channel_, 1);
  const std::string_view steps[][4] = {
      {"MULTI"}, {"CLIENT", "KILL", "TYPE", "pubsub"}, {"DEL", "stock"}, {"EXEC"}};
  for (const auto& step : steps) {
    std::vector<std::string_view> words;
    for (const auto word : step)
      if (!word.empty()) words.push_back(word);
    side_.command(std::span<const std::string_view>{words});
  }
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready)
      << "the waiter sleeps until the lease ends";
  EXPECT_TRUE(waiting.get());
}

TEST_F(LockFailure, L07_DestructorWithTheServerDownNeverThrows) {
  Mutex mutex{*store_, "stock", {.lease = 1s}};
  auto held = std::make_unique<Held>(mutex.acquire().get());
  server_.kill();
  held.reset();
}

TEST_F(LockFailure, StoreMayCloseWhileAReleaseIsUnderWay) {
  {
    Mutex mutex{*store_, "stock"};
    const auto held = mutex.acquire().get();
    server_.stop();
  }
  store_.reset();
  server_.cont();
}

TEST_F(LockFailure, ForkedChildHoldsNothing) {
  Mutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  const auto uuid = [](const Owner& owner) { return owner.id().text.substr(0, 36); };
  const std::string ours = uuid(Owner{});
  test::Process child{[&] {
    if (held.valid() || held.valid_for() > 0ns) return 1;
    if (uuid(Owner{}) == ours) return 2;  // requests of parent and child would be taken for one
    return held.release().get().kind == Kind::not_held ? 0 : 3;
  }};
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

TEST_F(LockFailure, WaiterInOneProcessIsWokenByAnother) {
  const auto other = open_patiently(server_.url());
  Mutex here{*store_, "stock"};
  Mutex there{*other, "stock"};
  EXPECT_TRUE(comes_within(200ms, [&] {
    auto held = here.acquire().get();
    auto waiting = std::async(std::launch::async, [&] {
      const auto entered = there.acquire().get();
      return std::chrono::steady_clock::now();
    });
    await_waiters(1);
    const auto released = std::chrono::steady_clock::now();
    held.release().get();
    return waiting.get() - released;
  }));
}

}  // namespace
}  // namespace sluice
