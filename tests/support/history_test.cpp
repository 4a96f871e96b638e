/// A checker that finds nothing proves nothing: for each rule a history that breaks it, and one
/// that just does not.
#include "support/history.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using VK = Violation::Kind;
using Kinds = std::vector<VK>;
using namespace std::chrono_literals;

/// "a enter 1, b wait": times count up from 0 ns.
std::vector<Event> history(std::string_view text) {
  std::vector<Event> events;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find(", ", begin), text.size());
    std::string step{text.substr(begin, end - begin)};
    if (std::ranges::count(step, ' ') == 1) step += " 0";
    events.push_back(event_of(std::to_string(events.size()) + ' ' + step));
    begin = end + 2;
  }
  return events;
}

Kinds violations(std::string_view text, const Rules& rules = {}) {
  Kinds kinds;
  for (const auto& violation : check(history(text), rules).violations)
    kinds.push_back(violation.kind);
  return kinds;
}

TEST(History, NothingWrong) {
  const auto verdict = check(history("a enter 1, a leave, b enter 3, b leave"));
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_EQ(verdict.entries, 2U);
}

TEST(History, TwoExclusiveHolders) {
  EXPECT_EQ(violations("a enter 1, b enter 2, a leave, b leave"), Kinds{VK::two_exclusive_holders});
  EXPECT_EQ(violations("a enter 1, a enter 1, a leave, b enter 2, a leave, b leave"),
            Kinds{VK::two_exclusive_holders});
}

TEST(History, WhoEntersAgainIsNoSecondHolder) {
  EXPECT_EQ(violations("a enter 1, a enter 1, a leave, a leave, b enter 2, b leave"), Kinds{});
}

TEST(History, SharedBesideExclusive) {
  EXPECT_EQ(violations("a enter_shared, b enter 1, a leave_shared, b leave"),
            Kinds{VK::shared_beside_exclusive});
  EXPECT_EQ(violations("a enter 1, b enter_shared, b leave_shared, a leave"),
            Kinds{VK::shared_beside_exclusive});
}

TEST(History, ReadersShareAndAHolderMayReadToo) {
  EXPECT_EQ(violations("a enter_shared, b enter_shared, a leave_shared, b leave_shared"), Kinds{});
  EXPECT_EQ(violations("a enter 1, a enter_shared, a leave, b enter_shared, b leave_shared, "
                       "a leave_shared"),
            Kinds{});
}

TEST(History, TokenNotRising) {
  EXPECT_EQ(violations("a enter 2, a leave, b enter 1, b leave"), Kinds{VK::token_not_rising});
  EXPECT_EQ(violations("a enter 2, a leave, b enter 2, b leave"), Kinds{VK::token_not_rising});
  EXPECT_EQ(violations("a enter 2, a leave, b enter 1, b leave", {.tokens_rise = false}), Kinds{});
  EXPECT_EQ(violations("a enter 2, a leave, java enter, java leave"), Kinds{});
}

TEST(History, PermitsAboveTotal) {
  const Rules three{.permits = 3};
  EXPECT_EQ(violations("a acquire 2, b acquire 2, a release 2, b release 2", three),
            Kinds{VK::permits_above_total});
  EXPECT_EQ(violations("a acquire 2, b acquire 1, a release 2, b release 1", three), Kinds{});
}

TEST(History, LeaveWithoutEnter) {
  EXPECT_EQ(violations("a leave"), Kinds{VK::leave_without_enter});
  EXPECT_EQ(violations("a enter 1, a leave_shared, a leave"), Kinds{VK::leave_without_enter});
  EXPECT_EQ(violations("a acquire 1, a release 2"), Kinds{VK::leave_without_enter});
}

TEST(History, FifoViolated) {
  const std::string_view overtaken = "a wait, b wait, b enter, b leave, a enter, a leave";
  EXPECT_EQ(violations(overtaken, {.fifo = true}), Kinds{VK::fifo_violated});
  EXPECT_EQ(violations(overtaken), Kinds{});
  EXPECT_EQ(violations("a wait, b wait, a enter, a leave, b enter, b leave", {.fifo = true}),
            Kinds{});
  EXPECT_EQ(violations("a wait, b enter, b leave, a enter, a leave", {.fifo = true}),
            Kinds{VK::fifo_violated})
      << "came in without a wait";
  EXPECT_EQ(violations("a wait, b wait, a give_up, b enter, b leave", {.fifo = true}), Kinds{});
}

TEST(History, StarvedByOthers) {
  const std::string_view twice = "a wait, b enter, b leave, b enter, b leave, a enter, a leave";
  EXPECT_EQ(violations(twice, {.overtakes = 1}), Kinds{VK::starved});
  EXPECT_EQ(violations(twice, {.overtakes = 2}), Kinds{});
}

TEST(History, StarvedByTime) {
  const std::string_view three_ns = "a wait, b enter, b leave, a enter, a leave";
  EXPECT_EQ(violations(three_ns, {.longest_wait = 2ns}), Kinds{VK::starved});
  EXPECT_EQ(violations(three_ns, {.longest_wait = 3ns}), Kinds{});
}

TEST(History, NeverLeftAndForgotten) {
  EXPECT_EQ(violations("a enter 1"), Kinds{VK::never_left});
  EXPECT_EQ(violations("a wait"), Kinds{VK::forgotten});
  EXPECT_EQ(violations("a enter 1, b wait", {.complete = false}), Kinds{});
}

TEST(History, WhoIsGoneHoldsAndWaitsNoMore) {
  EXPECT_EQ(violations("a enter 1, a gone, b enter 2, b leave, c wait, c gone"), Kinds{});
  EXPECT_EQ(violations("a enter 1, a gone, a leave"), Kinds{VK::leave_without_enter});
}

TEST(History, SaysWhoAndWhere) {
  const auto verdict = check(history("a enter 1, b enter 2, a leave, b leave"));
  EXPECT_EQ(verdict.text(), "event 1: two exclusive holders: b entered beside a\n");
}

TEST(History, LinesAreReadAsTheyAreWritten) {
  const Event event{Event::Kind::enter, "worker-1", 17, 1204ns};
  EXPECT_EQ(to_line(event), "1204 worker-1 enter 17\n");
  EXPECT_EQ(event_of(to_line(event)), event);
  for (const auto* const broken : {"", "x worker enter 1", "1 worker", "1 worker dance 1",
                                   "1 worker enter", "1 worker enter 1 2", "1  enter 1"})
    EXPECT_THROW(event_of(broken), std::runtime_error) << broken;
}

TEST(History, ProcessesAndThreadsWriteOneRecord) {
  const TempDir folder;
  const auto path = folder / "record";
  const auto work = [&path](const std::string& name) {
    Recorder record{path, name};
    for (int i = 0; i < 100; ++i) {
      record.acquire(2);
      record.release(2);
    }
  };
  Process child{[&] {
    work("the child");
    return 0;
  }};
  std::thread thread{work, "a thread"};
  work("main");
  thread.join();
  EXPECT_EQ(child.wait(), 0);
  const auto verdict = check(read_history(path), {.permits = 6});
  EXPECT_TRUE(verdict.ok()) << verdict.text();
  EXPECT_EQ(verdict.entries, 300U);
}

TEST(History, AFileThatIsNotThereIsAnError) {
  EXPECT_THROW(read_history("/nowhere/record"), std::runtime_error);
  EXPECT_THROW(Recorder("/nowhere/record", "a"), std::system_error);
}

}  // namespace
}  // namespace sluice::test
