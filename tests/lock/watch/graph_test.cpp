/// Who waits for whom, and in a circle, of values.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "lock/hold/owner.hpp"
#include "sluice/lock_watch.hpp"

namespace sluice {
namespace {

using Ids = std::set<std::string>;

HolderData thread_of(std::string host, std::int64_t pid, int thread) {
  return {
      .host = std::move(host), .pid = pid, .actor = "t" + std::to_string(thread), .label = "job"};
}

/// Owners who are no threads: known by their ids alone.
WatchedLock lock_of(std::string name, const std::vector<std::string>& holders,
                    const std::vector<std::string>& waiters, LockKind kind = LockKind::mutex) {
  WatchedLock lock{.name = std::move(name), .kind = kind, .info = {}};
  for (const auto& owner : holders)
    lock.info.holders.push_back({.owner = {owner}, .entries = 1, .data = {}});
  for (const auto& owner : waiters) lock.info.waiters.push_back({.owner = {owner}, .data = {}});
  return lock;
}

std::vector<Deadlock> deadlocks_of(const std::vector<WatchedLock>& locks) {
  return deadlocks_in(wait_graph(locks));
}

Ids actors_of(const Deadlock& deadlock) {
  Ids ids;
  for (const auto& step : deadlock.steps) ids.insert(step.actor.id);
  return ids;
}

TEST(WaitGraph, NobodyIsInACircleWhereEverybodyCanGoOn) {
  EXPECT_TRUE(deadlocks_of({}).empty());
  EXPECT_TRUE(deadlocks_of({lock_of("l1", {"a"}, {})}).empty());
  EXPECT_TRUE(deadlocks_of({lock_of("l1", {}, {"a"})}).empty());
  // A line: d waits for c, who waits for b, who waits for a.
  EXPECT_TRUE(deadlocks_of({lock_of("l1", {"a"}, {"b"}), lock_of("l2", {"b"}, {"c", "d"}),
                            lock_of("l3", {"c"}, {"d"})})
                  .empty());
}

TEST(WaitGraph, TwoThatLockCrosswiseAreACircle) {
  const auto found = deadlocks_of({lock_of("l1", {"a"}, {"b", "c"}), lock_of("l2", {"b"}, {"a"})});
  ASSERT_EQ(found.size(), 1U);
  const Deadlock expected{{{.actor = {"a", {}}, .holds = "l1", .waits_for = "l2"},
                           {.actor = {"b", {}}, .holds = "l2", .waits_for = "l1"}}};
  EXPECT_EQ(found[0], expected);
  EXPECT_EQ(to_string(found[0]),
            "a holds \"l1\" and waits for \"l2\", held by b; b holds \"l2\" and waits for \"l1\", "
            "held by a: deadlock");
}

TEST(WaitGraph, WhoeverWaitsForHimselfIsACircleOfOne) {
  const auto found = deadlocks_of({lock_of("l1", {"a"}, {"a"})});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(to_string(found[0]), "a holds \"l1\" and waits for \"l1\", held by itself: deadlock");
}

TEST(WaitGraph, LongCircleIsFoundBehindALineThatLeadsIntoIt) {
  std::vector<WatchedLock> locks{lock_of("before", {"guest"}, {"other guest"})};
  for (int i = 0; i < 1000; ++i) {
    const std::string next = std::to_string((i + 1) % 1000);
    locks.push_back(lock_of("l" + std::to_string(i), {std::to_string(i)}, {next}));
  }
  locks[1].info.waiters.push_back({.owner = {"guest"}, .data = {}});
  const auto found = deadlocks_of(locks);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].steps.size(), 1000U);
  EXPECT_FALSE(actors_of(found[0]).contains("guest"));
}

TEST(WaitGraph, EachCircleIsReported) {
  const auto found = deadlocks_of({lock_of("l1", {"a"}, {"b"}), lock_of("l2", {"b"}, {"a"}),
                                   lock_of("l3", {"c"}, {"d"}), lock_of("l4", {"d"}, {"c"}),
                                   lock_of("l5", {"e"}, {"a", "c"})});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(actors_of(found[0]), (Ids{"a", "b"}));
  EXPECT_EQ(actors_of(found[1]), (Ids{"c", "d"}));
}

TEST(WaitGraph, AWriterBehindManyReadersIsStoppedByOneOfThem) {
  const auto found = deadlocks_of({lock_of("prices", {"r1", "r2", "r3"}, {"w"}, LockKind::shared),
                                   lock_of("books", {"w"}, {"r2"})});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(actors_of(found[0]), (Ids{"w", "r2"}));
}

TEST(WaitGraph, PermitsProveNothing) {
  EXPECT_TRUE(deadlocks_of({lock_of("desks", {"a", "b"}, {"c"}, LockKind::semaphore),
                            lock_of("l1", {"c"}, {"a"})})
                  .empty());
}

TEST(WaitGraph, AThreadIsOneActorWhateverItsOwners) {
  // Each acquire without an Owner is somebody new; the thread tells that they are one.
  WatchedLock first = lock_of("l1", {"owner1"}, {"owner4"});
  WatchedLock second = lock_of("l2", {"owner3"}, {"owner2"});
  first.info.holders[0].data = second.info.waiters[0].data = thread_of("h", 7, 8);
  first.info.waiters[0].data = second.info.holders[0].data = thread_of("h", 7, 9);
  const auto found = deadlocks_of({first, second});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].steps[0].actor.id, "h:7:t8");
  EXPECT_EQ(to_string(found[0].steps[0].actor), "job@h (pid 7, t8)");
  // The same number on another host is somebody else.
  second.info.holders[0].data.host = "other";
  EXPECT_TRUE(deadlocks_of({first, second}).empty());
}

TEST(WaitGraph, AnOwnerIsNoThread) {
  WatchedLock lock = lock_of("l1", {"owner1"}, {"owner2"});
  lock.info.holders[0].data = lock.info.waiters[0].data =
      HolderData{.host = "h", .pid = 7, .actor = "-", .label = "job"};
  EXPECT_TRUE(deadlocks_of({lock}).empty());
  EXPECT_EQ(to_string(wait_graph({lock}).actors[0]), "job@h (pid 7, owner owner1)");
}

// --- U16: `sluice lock l1 -- sluice lock l2 -- CMD`: a process that holds waits for its child ---

/// A process with one thread, whose number is the process id.
HolderData process(std::int64_t pid, std::string ancestors = {}) {
  HolderData data = thread_of("h", pid, static_cast<int>(pid));
  data.ancestors = std::move(ancestors);
  return data;
}

WatchedLock held_by(std::string name, HolderData holder) {
  WatchedLock lock{.name = std::move(name), .kind = LockKind::mutex, .info = {}};
  lock.info.holders.push_back({.owner = {"owner"}, .entries = 1, .data = std::move(holder)});
  return lock;
}

TEST(Frictions, U16_ProcessesThatWaitForTheirChildrenCrosswiseAreADeadlock) {
  WatchedLock first = held_by("l1", process(10));
  WatchedLock second = held_by("l2", process(20));
  second.info.waiters.push_back({.owner = {"o1"}, .data = process(11, "10:t10")});
  first.info.waiters.push_back({.owner = {"o2"}, .data = process(21, "20:t20")});
  const WaitGraph graph = wait_graph({first, second});
  EXPECT_EQ(graph.children.size(), 2U);
  const auto found = deadlocks_in(graph);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].steps.size(), 2U);
  for (const auto& step : found[0].steps) {
    ASSERT_TRUE(step.child);
    EXPECT_EQ(step.child->data.pid, step.actor.data.pid + 1);
  }
  const std::string text = to_string(found[0]);
  EXPECT_NE(text.find("job@h (pid 10, t10) holds \"l1\" and waits through its child job@h (pid 11, "
                      "t11) for \"l2\", held by job@h (pid 20, t20)"),
            text.npos)
      << text;
}

TEST(Frictions, U16_AGrandchildOfTheHolderIsADeadlockToo) {
  WatchedLock lock = held_by("l1", process(10));
  lock.info.waiters.push_back({.owner = {"o1"}, .data = process(12, "11:t11<10:t10")});
  const auto found = deadlocks_of({lock});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].steps.size(), 1U);
}

TEST(Frictions, U16_ChildrenThatWaitForEachOtherAreNone) {
  // The shell below `sluice lock l1` starts two jobs; one of them has l2, the other waits for it.
  WatchedLock first = held_by("l1", process(10));
  WatchedLock second = held_by("l2", process(11, "10:t10"));
  second.info.waiters.push_back({.owner = {"o1"}, .data = process(12, "10:t10")});
  EXPECT_TRUE(deadlocks_of({first, second}).empty());
  // A process of that number on another host is no ancestor.
  first.info.holders[0].data.host = "other";
  first.info.waiters.push_back({.owner = {"o2"}, .data = process(12, "10:t10")});
  EXPECT_TRUE(deadlocks_of({first, second}).empty());
}

TEST(Frictions, U16_AChildNamesItsAncestors) {
  std::string mine;
  std::string of_child;
  std::string of_owner;
  std::thread{[&] { mine = ancestors_of_child(); }}.join();
  ASSERT_EQ(mine.find('<'), mine.npos) << mine;
  ::setenv(ancestors_variable, mine.c_str(), 1);
  std::thread{[&] {
    of_child = lock::holder_text(false, "job");
    of_owner = lock::holder_text(true, "job");
    EXPECT_TRUE(ancestors_of_child().ends_with('<' + mine)) << ancestors_of_child();
  }}.join();
  const HolderData data = lock::holder_data(of_child);
  EXPECT_EQ(data.ancestors, mine);
  EXPECT_EQ(data.actor.front(), 't');
  EXPECT_EQ(data.label, "job");
  EXPECT_EQ(lock::holder_data(of_owner).actor, "-");
  EXPECT_EQ(lock::holder_data(of_owner).ancestors, mine);
  ::setenv(ancestors_variable, "no ancestors", 1);
  std::thread{[&] { of_child = lock::holder_text(false, "job"); }}.join();
  EXPECT_EQ(lock::holder_data(of_child).ancestors, "");
  EXPECT_EQ(lock::holder_data(of_child).label, "job");
  ::unsetenv(ancestors_variable);
}

}  // namespace
}  // namespace sluice
