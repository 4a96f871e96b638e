// Tasks and completions across threads; worth most under ThreadSanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "base/event.hpp"
#include "sluice/task.hpp"
#include "sluice/when_all.hpp"
#include "store/waiter.hpp"

namespace sluice {
namespace {

Task<std::thread::id> thread_after(Completion& completion) {
  co_await completion;
  co_return std::this_thread::get_id();
}

TEST(TaskThreads, GetContinuesOnTheThreadThatWaits) {
  for (int i = 0; i < 200; ++i) {
    Completion completion;
    std::jthread other{[&] { completion.complete(); }};
    EXPECT_EQ(thread_after(completion).get(), std::this_thread::get_id());
  }
}

TEST(TaskThreads, NestedTasksContinueThereToo) {
  const auto outer = [](Completion& first, Completion& second) -> Task<bool> {
    const auto before = std::this_thread::get_id();
    auto one = thread_after(first);
    const auto middle = co_await one;
    auto two = thread_after(second);
    const auto after = co_await two;
    co_return before == middle&& middle == after&& after == std::this_thread::get_id();
  };
  for (int i = 0; i < 200; ++i) {
    Completion first;
    Completion second;
    std::jthread other{[&] {
      first.complete();
      second.complete();
    }};
    EXPECT_TRUE(outer(first, second).get());
  }
}

// Another thread has read both replies before the second is awaited.
TEST(TaskThreads, D07_WhatWasCompletedFirstGoesOnFirst) {
  Completion first, second;
  std::vector<int> order;
  const auto await = [](Completion& completion, std::vector<int>& went, int mine,
                        std::function<void()> begin) -> Task<void> {
    if (begin) begin();
    co_await InTurn{completion};
    went.push_back(mine);
  };
  std::vector<Task<void>> both;
  both.push_back(await(first, order, 1, {}));
  both.push_back(await(second, order, 2, [&] {
    std::jthread{[&] {
      first.complete();
      second.complete();
    }}.join();
  }));
  when_all(std::move(both)).get();
  EXPECT_EQ(order, (std::vector{1, 2}));
}

// The completion is made and awaited, completed by another thread, and gone: in every order that
// the threads meet in.
TEST(TaskThreads, CompleteRacesWithAwait) {
  constexpr int rounds = 20'000;
  std::atomic<Completion*> slot{nullptr};
  std::jthread completer{[&] {
    for (int i = 0; i < rounds; ++i) {
      Completion* completion = nullptr;
      while (!(completion = slot.exchange(nullptr))) std::this_thread::yield();
      EXPECT_TRUE(completion->complete());
    }
  }};
  const auto round = [](std::atomic<Completion*>& shown, int& plain) -> Task<void> {
    Completion completion;
    shown = &completion;
    co_await completion;
    ++plain;
  };
  int plain = 0;
  for (int i = 0; i < rounds; ++i) round(slot, plain).get();
  EXPECT_EQ(plain, rounds);
}

TEST(TaskThreads, OfManyThatCompleteOneIsFirst) {
  for (int i = 0; i < 200; ++i) {
    Completion completion;
    std::atomic<int> firsts{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 3; ++t) threads.emplace_back([&] { firsts += completion.complete(); });
    }
    thread_after(completion).get();
    EXPECT_EQ(firsts, 1);
  }
}

TEST(TaskThreads, WhenAllGathersFromManyThreads) {
  for (int i = 0; i < 100; ++i) {
    std::vector<Completion> completions(4);
    std::vector<Task<std::thread::id>> tasks;
    for (auto& completion : completions) tasks.push_back(thread_after(completion));
    std::vector<std::jthread> threads;
    for (auto& completion : completions) threads.emplace_back([&] { completion.complete(); });
    for (const auto id : when_all(std::move(tasks)).get())
      EXPECT_EQ(id, std::this_thread::get_id());
  }
}

// Coroutines that nobody waits for hop from thread to thread; what they wrote is seen by the thread
// that waits.
TEST(TaskThreads, ASpawnedTaskIsCompletedFromElsewhere) {
  for (int i = 0; i < 500; ++i) {
    Completion start;
    Completion done;
    int plain = 0;
    const auto hop = [](Completion& awaited, Completion& told, int& value) -> Task<void> {
      co_await awaited;
      ++value;
      told.complete();
    };
    spawn(hop(start, done, plain));
    std::jthread other{[&] { start.complete(); }};
    thread_after(done).get();
    EXPECT_EQ(plain, 1);
  }
}

// A root coroutine that is resumed by a stranger, without a Completion, ends on the stranger's
// thread, and get() must hear of it although nothing was posted.
TEST(TaskThreads, GetHearsOfAnEndOnAnotherThread) {
  struct Hop {
    std::jthread& stranger;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) {
      stranger = std::jthread{[coroutine] { coroutine.resume(); }};
    }
    void await_resume() const noexcept {}
  };
  const auto run = [](std::jthread& stranger) -> Task<std::thread::id> {
    auto hop = Hop{stranger};
    co_await hop;
    co_return std::this_thread::get_id();
  };
  for (int i = 0; i < 500; ++i) {
    std::jthread stranger;
    EXPECT_NE(run(stranger).get(), std::this_thread::get_id());
  }
}

// Waiters are handed from thread to thread; a late wake-up must meet a living one.
TEST(TaskThreads, ShortLivedThreadsReuseWaiters) {
  for (int i = 0; i < 300; ++i) {
    Completion completion;
    std::jthread waiting{[&] { thread_after(completion).get(); }};
    completion.complete();
  }
}

}  // namespace
}  // namespace sluice
