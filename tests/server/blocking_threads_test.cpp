#include "server/blocking_threads.hpp"

#include <gtest/gtest.h>

#include <latch>

#include "sluice/error.hpp"
#include "support/comes_true.hpp"

namespace sluice::server {
namespace {

using enum BlockingThreads::Accepted;
using namespace std::chrono_literals;

void never(const std::exception& failure) { FAIL() << failure.what(); }

// One who asks for much holds up no one else: two threads, one buyer with four wishes.
TEST(BlockingThreads, OfOneSubjectOnePieceIsDoneAtATime) {
  BlockingThreads threads{"sqlite::memory:", {.threads = 2, .waiting = 10, .waiting_of_one = 3}};
  std::latch go{1};
  std::atomic<int> done{0};
  std::atomic<bool> begun{false};
  const auto wait = [&](OrderStore&) {
    begun = true;
    go.wait();
    ++done;
  };
  EXPECT_EQ(threads.run("ann", wait, never), yes);
  ASSERT_TRUE(test::comes_true([&] { return begun.load(); }));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(threads.run("ann", wait, never), yes);
  EXPECT_EQ(threads.run("ann", wait, never), subject_has_too_many);
  std::atomic<bool> bob{false};
  EXPECT_EQ(threads.run(
                "bob", [&](OrderStore&) { bob = true; }, never),
            yes);
  EXPECT_TRUE(test::comes_true([&] { return bob.load(); }));
  EXPECT_EQ(done, 0);
  go.count_down();
  EXPECT_TRUE(test::comes_true([&] { return done == 4; }));
}

TEST(BlockingThreads, AFailureIsToldAndTheNextPieceIsDone) {
  BlockingThreads threads{"sqlite::memory:", {.threads = 1}};
  std::atomic<int> failed{0};
  const auto fail = [](OrderStore&) { throw Error{Errc::database, "locked"}; };
  EXPECT_EQ(threads.run("ann", fail, [&](const std::exception&) { ++failed; }), yes);
  std::atomic<bool> done{false};
  EXPECT_EQ(threads.run(
                "ann", [&](OrderStore&) { done = true; }, never),
            yes);
  EXPECT_TRUE(test::comes_true([&] { return done.load(); }));
  EXPECT_EQ(failed, 1);
}

TEST(BlockingThreads, SV06_WorkThatTakesTooLongIsAnsweredAllTheSame) {
  BlockingThreads threads{"sqlite::memory:", {.threads = 1, .waiting = 2}};
  std::latch go{1};
  std::atomic<int> none{0};
  std::atomic<int> unknown{0};
  const auto failed = [&](const std::exception& failure) {
    const auto& error = dynamic_cast<const Error&>(failure);
    ++(error.effect() == Effect::none ? none : unknown);
  };
  const auto ask = [&](const std::string& subject) {
    return threads.run_lazily(
        subject, [&](const BlockingThreads::Orders&) { go.wait(); }, failed, {}, {}, 20ms);
  };
  EXPECT_EQ(ask("ann"), yes);
  EXPECT_TRUE(test::comes_true([&] { return unknown == 1; })) << "it had begun";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask("ann"), yes) << "there is room again";
    EXPECT_EQ(ask("bob"), yes);
    EXPECT_TRUE(test::comes_true([&] { return none == 2 * (i + 1); })) << "they had not begun";
  }
  go.count_down();
  std::atomic<bool> done{false};
  const auto note = [&](const BlockingThreads::Orders&) { done = true; };
  EXPECT_EQ(threads.run_lazily("ann", note, never, {}, {}, 10s), yes);
  EXPECT_TRUE(test::comes_true([&] { return done.load(); }));
  EXPECT_EQ(unknown + none, 7);
}

TEST(BlockingThreads, WhatHasNotBegunIsDroppedAtTheStop) {
  std::latch go{1};
  std::atomic<bool> begun{false};
  const auto kept = std::make_shared<int>(1);
  BlockingThreads threads{"sqlite::memory:", {.threads = 1, .waiting = 2}};
  EXPECT_EQ(threads.run(
                "ann",
                [&](OrderStore&) {
                  begun = true;
                  go.wait();
                },
                never),
            yes);
  ASSERT_TRUE(test::comes_true([&] { return begun.load(); }));
  EXPECT_EQ(threads.run(
                "bob", [kept](OrderStore&) { FAIL(); }, never),
            yes);
  EXPECT_EQ(threads.run(
                "cid", [kept](OrderStore&) { FAIL(); }, never),
            yes);
  EXPECT_EQ(threads.run(
                "dan", [](OrderStore&) {}, never),
            full);
  EXPECT_EQ(kept.use_count(), 3);
  threads.stop();
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(threads.run(
                "eve", [](OrderStore&) {}, never),
            stopping);
  go.count_down();
}

// Somebody has locked the rows of one sale: what is asked of another is answered.
TEST(BlockingThreads, OneSaleNeverHasAllThreads) {
  BlockingThreads threads{"sqlite::memory:", {.threads = 3, .threads_of_a_sale = 2}};
  std::latch go{1};
  std::atomic<int> begun{0};
  std::atomic<int> done{0};
  const auto wait = [&](OrderStore&) {
    ++begun;
    go.wait();
    ++done;
  };
  for (const auto* const buyer : {"ann", "bob", "cid", "dan"})
    EXPECT_EQ(threads.run(buyer, wait, never, "tea"), yes);
  ASSERT_TRUE(test::comes_true([&] { return begun == 2; }));
  std::atomic<bool> eve{false};
  EXPECT_EQ(threads.run(
                "eve", [&](OrderStore&) { eve = true; }, never, "nut"),
            yes);
  EXPECT_TRUE(test::comes_true([&] { return eve.load(); }));
  EXPECT_EQ(begun, 2);
  go.count_down();
  EXPECT_TRUE(test::comes_true([&] { return done == 4; }));
}

}  // namespace
}  // namespace sluice::server
