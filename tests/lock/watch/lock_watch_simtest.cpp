/// All locks of a server as an operator sees them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "lock/virtual_lock.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice {
namespace {

constexpr auto java = "8f14e45f-ceea-467f-9b5d-1c2b3a4d5e6f:42";

class Watch : public VirtualLock {
 protected:
  using Names = std::vector<std::string>;

  Names names(LockWatchOptions options = {}) {
    Names all;
    const LockList list = LockWatch{*store_, std::move(options)}.list().get();
    for (const auto& lock : list.locks)
      all.push_back(lock.name + ' ' + std::string{to_string(lock.kind)});
    return all;
  }
  std::optional<WatchedLock> look(std::string name) {
    return LockWatch{*store_}.look(std::move(name)).get();
  }
  void set_hash(std::string_view key, std::string_view field, std::string_view value) {
    store_->run({"HSET", key, field, value}).get();
  }
};

TEST_F(Watch, FindsWhatIsHeld) {
  EXPECT_EQ(names(), Names{});
  Mutex stock{line_, "stock", {.label = "shop"}};
  Mutex tagged{line_, "stock:{7}"};
  auto held = stock.acquire().get();
  const auto also_held = tagged.acquire().get();
  EXPECT_EQ(names(), (Names{"stock mutex", "stock:{7} mutex"}));
  const auto found = look("stock");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->info.holders.at(0).owner, held.owner());
  EXPECT_EQ(found->info.holders.at(0).data.label, "shop");
  EXPECT_EQ(found->info.token, held.token());
  held.release().get();
  EXPECT_EQ(names(), Names{"stock:{7} mutex"});
  EXPECT_FALSE(look("stock"));
}

TEST_F(Watch, FindsALockThatIsCalledAsAKeyBesideAnother) {
  std::vector<Held> holds;
  Names wanted;
  for (const auto* const prefix :
       {"sluice_lock_queue", "sluice_lock_tickets", "sluice_lock_waiters", "sluice_permit_people",
        "sluice_permit_line", "sluice_rw_read_line", "sluice_rw_write_line",
        "sluice_semaphore_holds", "sluice_semaphore_line"}) {
    const auto name = fmt::format("{}:x", prefix);
    holds.push_back(Mutex{line_, name}.acquire().get());
    wanted.push_back(name + " mutex");
  }
  std::ranges::sort(wanted);
  EXPECT_EQ(names(), wanted);
  set_hash("sluice_lock_tickets:{shop}", java, "1 30000 1 sluice:inbox:1 x");
  EXPECT_EQ(names(), wanted);
}

TEST_F(Watch, KnowsTheKinds) {
  FairMutex fair{line_, "fair"};
  FairMutex also_fair{far_, "fair"};
  SharedMutex shared{line_, "shared"};
  Semaphore desks{line_, "desks", {.label = "clerk"}};
  PermitSemaphore rooms{line_, "rooms"};
  MultiLock both{line_, {"account:1", "account:2"}};
  desks.try_set_permits(3).get();
  rooms.try_set_permits(3).get();
  const auto first = fair.acquire().get();
  const auto reads = shared.acquire_shared().get();
  const auto also_reads = shared.acquire_shared().get();
  const auto desk = desks.acquire(2).get();
  const auto room = rooms.acquire().get();
  const auto accounts = both.acquire().get();
  EXPECT_EQ(names(), (Names{"account:1 mutex", "account:2 mutex", "desks semaphore", "fair mutex",
                            "rooms permits", "shared shared"}));

  std::optional<Held> second;
  std::stop_source stop;
  const auto wait = [&]() -> Task<void> {
    auto acquiring = also_fair.try_acquire(1h, stop.get_token());
    second = co_await acquiring;
  };
  spawn(wait());
  EXPECT_EQ(look("fair")->kind, LockKind::fair) << "once somebody waits";
  EXPECT_EQ(look("fair")->info.waiters.size(), 1U);
  EXPECT_EQ(look("shared")->info.holders.size(), 2U);
  EXPECT_FALSE(look("shared")->info.holders[0].exclusive);
  EXPECT_EQ(look("desks")->info.holders.at(0).entries, 2U);
  EXPECT_EQ(look("desks")->info.holders[0].data.label, "clerk");
  EXPECT_EQ(look("rooms")->info.holders.at(0).owner.text, room.id().text());
  stop.request_stop();
}

TEST_F(Watch, OtherHashesAreNoLocks) {
  set_hash("user:1", "name", "x");
  set_hash("user:2", "name", "x");
  set_hash("user:2", "mode", "dark");
  set_hash("one", "a field of 36 characters, but no uuid:7", "1");
  store_->run({"SET", "sluice_lock_queue", "x"}).get();
  store_->run({"SET", "sluice_lock_queue:{text}", "x"}).get();
  set_hash("sluice_lock_waiters:{nobody}", "request", "1 1 inbox owner h 7 t8 label");
  EXPECT_EQ(names(), Names{});
  EXPECT_FALSE(look("user:1"));
  EXPECT_FALSE(look("absent"));
}

TEST_F(Watch, FindsWhatRedissonHolds) {
  set_hash("books", java, "2");
  store_->run({"PEXPIRE", "books", "30000"}).get();
  EXPECT_EQ(names(), Names{"books foreign"});
  const auto found = look("books");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->info.holders.at(0).owner.text, java);
  EXPECT_EQ(found->info.holders.at(0).entries, 2U);
  EXPECT_EQ(found->info.holders.at(0).left, 30s);
}

TEST_F(Watch, FindsOneThatIsWaitedForOnly) {
  Mutex stock{line_, "stock"};
  Mutex theirs{far_, "stock"};
  const auto held = theirs.acquire().get();
  std::stop_source stop;
  const Visitor waiter{stock, 1h, stop.get_token()};
  store_->run({"DEL", "stock"}).get();
  EXPECT_EQ(names(), Names{"stock mutex"});
  const auto found = look("stock");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->info.holders.empty());
  EXPECT_EQ(found->info.waiters.size(), 1U);
  stop.request_stop();
}

TEST_F(Watch, ShowsThoseAskedFor) {
  for (const char* const name : {"books", "stock:1", "stock:2"}) set_hash(name, java, "1");
  Mutex ours{line_, "stock:3"};
  const auto held = ours.acquire().get();
  EXPECT_EQ(names({.pattern = "stock:*"}),
            (Names{"stock:1 foreign", "stock:2 foreign", "stock:3 mutex"}));
  EXPECT_EQ(names({.pattern = "stock:[13]"}), (Names{"stock:1 foreign", "stock:3 mutex"}));
  const std::string here = ours.info().get().holders.at(0).data.host;
  EXPECT_EQ(names({.host = here}), Names{"stock:3 mutex"});
  EXPECT_EQ(names({.host = "elsewhere"}), Names{});
}

TEST_F(Watch, ManyAreFoundInStepsUpToTheMost) {
  for (int i = 0; i < 300; ++i) {
    set_hash("lock:" + std::to_string(i), java, "1");
    set_hash("user:" + std::to_string(i), "name", "x");
  }
  std::size_t steps = 0;
  LockWatch watch{line_, {.step = 50}};
  const LockList all = watch
                           .list([&steps](const LockSearch& search) {
                             ++steps;
                             EXPECT_LE(search.looked_at, search.of);
                           })
                           .get();
  EXPECT_EQ(all.locks.size(), 300U);
  EXPECT_TRUE(all.complete);
  EXPECT_GE(steps, 20U);
  EXPECT_EQ(line_.executed("KEYS"), 0U);
  const LockList some = LockWatch{*store_, {.most = 10}}.list().get();
  EXPECT_EQ(some.locks.size(), 10U);
  EXPECT_FALSE(some.complete);
  EXPECT_THROW((LockWatch{*store_, {.most = 0}}), Error);
}

TEST_F(Watch, U16_SaysForHowLongALockIsHeldBeforeItsFirstRenewal) {
  Mutex mutex{line_, "mutex"};
  FairMutex fair{line_, "fair"};
  SharedMutex shared{line_, "shared"};
  MultiLock both{line_, {"account:1", "account:2"}};
  const auto held = mutex.acquire().get();
  const auto also_held = fair.acquire().get();
  const auto reads = shared.acquire_shared().get();
  const auto accounts = both.acquire().get();
  clock_.advance(500ms);
  const auto found = LockWatch{*store_}.list().get();
  ASSERT_EQ(found.locks.size(), 5U);
  for (const auto& lock : found.locks) EXPECT_EQ(lock.info.holders.at(0).held, 500ms) << lock.name;
}

TEST_F(Watch, U16_SaysForHowLongALockThatWasHandedOverIsHeld) {
  Mutex mutex{line_, "mutex"};
  Mutex theirs{far_, "mutex"};
  auto held = mutex.acquire().get();
  const Visitor visitor{theirs, 1h};
  clock_.advance(1s);
  held.release().get();
  ASSERT_TRUE(visitor.in());
  clock_.advance(100ms);
  EXPECT_EQ(look("mutex")->info.holders.at(0).held, 100ms);
}

/// Owners, since a test has one thread: anna takes l1 then l2, bert takes l2 then l1.
class Crosswise : public Watch {
 protected:
  Task<void> take(Mutex& mutex, const Owner& owner, std::chrono::milliseconds wait,
                  std::optional<Held>& held) {
    auto acquiring = mutex.try_acquire(owner, wait, stop_.get_token());
    held = co_await acquiring;
  }
  void cross(std::chrono::milliseconds patience) {
    spawn(take(l1_, anna_, 1h, held_[0]));
    spawn(take(far_l2_, bert_, 1h, held_[1]));
    spawn(take(l2_, anna_, 1h, held_[2]));
    spawn(take(far_l1_, bert_, patience, held_[3]));
  }
  Task<void> ask(std::optional<LockReport>& report) {
    auto asking = watch_.report();
    report = co_await asking;
  }
  /// For which time goes by.
  LockReport report() {
    std::optional<LockReport> report;
    spawn(ask(report));
    for (int second = 0; !report && second < 10; ++second) clock_.advance(1s);
    return std::move(report).value();
  }

  void TearDown() override { stop_.request_stop(); }

  std::stop_source stop_;
  LockWatch watch_{*store_};
  Mutex l1_{line_, "l1", {.label = "anna"}};
  Mutex l2_{line_, "l2", {.label = "anna"}};
  Mutex far_l1_{far_, "l1", {.label = "bert"}};
  Mutex far_l2_{far_, "l2", {.label = "bert"}};
  Owner anna_;
  Owner bert_;
  std::array<std::optional<Held>, 4> held_;
};

TEST_F(Crosswise, IsReported) {
  cross(1h);
  const LockReport found = report();
  ASSERT_EQ(found.deadlocks.size(), 1U);
  const auto& steps = found.deadlocks[0].steps;
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_NE(steps[0].actor, steps[1].actor);
  const std::string text = to_string(found.deadlocks[0]);
  EXPECT_NE(text.find("anna@"), std::string::npos) << text;
  EXPECT_NE(text.find("bert@"), std::string::npos) << text;
}

TEST_F(Crosswise, BehindTheHolderOfTheirOwnProcessIsReported) {
  spawn(take(l1_, anna_, 1h, held_[0]));
  spawn(take(l2_, bert_, 1h, held_[1]));
  spawn(take(l2_, anna_, 1h, held_[2]));
  spawn(take(l1_, bert_, 1h, held_[3]));
  clock_.advance(2s);
  EXPECT_EQ(report().deadlocks.size(), 1U);
}

TEST_F(Crosswise, ThatIsOverByTheSecondLookIsNot) {
  cross(1s);
  EXPECT_EQ(deadlocks_in(wait_graph(watch_.list().get().locks)).size(), 1U) << "at the first look";
  const LockReport found = report();
  EXPECT_TRUE(found.deadlocks.empty());
  EXPECT_EQ(found.graph.locks.size(), 2U);
}

TEST_F(Crosswise, WhereNobodyDoesIsAnsweredAtOnce) {
  spawn(take(l1_, anna_, 1h, held_[0]));
  spawn(take(far_l1_, bert_, 1h, held_[1]));
  const LockReport found = watch_.report().get();
  EXPECT_TRUE(found.deadlocks.empty());
  EXPECT_EQ(found.graph.actors.size(), 2U);
  EXPECT_EQ(found.graph.waits.size(), 1U);
}

}  // namespace
}  // namespace sluice
