#include "sluice/task.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/event.hpp"
#include "sluice/error.hpp"
#include "sluice/log.hpp"
#include "sluice/when_all.hpp"
#include "store/waiter.hpp"
#include "support/foreign.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Foreign;

Task<int> number(int value) { co_return value; }

Task<long> sum(int n) {
  long total = 0;
  for (int i = 1; i <= n; ++i) {
    auto next = number(i);
    total += co_await next;
  }
  co_return total;
}

Task<int> deep(int levels) {
  if (levels == 0) co_return 0;
  auto below = deep(levels - 1);
  co_return 1 + co_await below;
}

Task<void> fail(std::string what) {
  throw std::runtime_error{what};
  co_return;
}

Task<void> wait_for(Completion& completion) { co_await completion; }

TEST(Task, ReadyNeedsNoCoroutine) {
  EXPECT_EQ(Task<int>::ready(7).get(), 7);
  Task<void>::ready().get();
  const auto twice = [](Task<int> task) -> Task<int> { co_return 2 * co_await task; };
  EXPECT_EQ(twice(Task<int>::ready(21)).get(), 42);
}

TEST(Task, CarriesWhatCanOnlyBeMoved) {
  const auto make = []() -> Task<std::unique_ptr<int>> { co_return std::make_unique<int>(5); };
  EXPECT_EQ(*make().get(), 5);
  EXPECT_EQ(*Task<std::unique_ptr<int>>::ready(std::make_unique<int>(6)).get(), 6);
}

TEST(Task, IsLazy) {
  bool ran = false;
  const auto run = [](bool& flag) -> Task<void> {
    flag = true;
    co_return;
  };
  { auto dropped = run(ran); }
  EXPECT_FALSE(ran);
  run(ran).get();
  EXPECT_TRUE(ran);
}

TEST(Task, ADroppedTaskFreesItsArguments) {
  const auto held = std::make_shared<int>(1);
  const auto keep = [](std::shared_ptr<int> kept) -> Task<int> { co_return *kept; };
  {
    auto dropped = keep(held);
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Task, AwaitsOthersInALoopWithoutGrowingTheStack) {
  EXPECT_EQ(sum(200'000).get(), 20'000'100'000);
}

TEST(Task, Nests) { EXPECT_EQ(deep(1000).get(), 1000); }

TEST(Task, ThrowsWhatTheCoroutineThrew) {
  try {
    fail("broken").get();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "broken");
  }
}

TEST(Task, AnExceptionMayBeCaughtOnTheWayUp) {
  const auto mend = []() -> Task<std::string> {
    try {
      auto broken = fail("broken");
      co_await broken;
    } catch (const std::runtime_error& error) {
      co_return std::string{"mended "} + error.what();
    }
    co_return "whole";
  };
  EXPECT_EQ(mend().get(), "mended broken");
}

TEST(Task, MovesBeforeItIsStarted) {
  auto first = number(1);
  auto second = number(2);
  first = std::move(second);
  EXPECT_EQ(first.get(), 2);
}

TEST(Completion, CountsOnceAndTellsWhoWasFirst) {
  Completion completion;
  EXPECT_FALSE(completion.is_complete());
  EXPECT_TRUE(completion.complete());
  EXPECT_FALSE(completion.complete());
  wait_for(completion).get();  // complete before it is awaited
}

TEST(Completion, ResumesOnTheSpotACoroutineThatNobodyWaitsFor) {
  Completion completion;
  bool done = false;
  const auto run = [](Completion& awaited, bool& flag) -> Task<void> {
    co_await awaited;
    flag = true;
  };
  spawn(run(completion, done));
  EXPECT_FALSE(done);
  completion.complete();
  EXPECT_TRUE(done);
}

TEST(Spawn, HandsAFailureToItsHandler) {
  std::string heard;
  spawn(fail("broken"), [&](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& failure) {
      heard = failure.what();
    }
  });
  EXPECT_EQ(heard, "broken");
}

TEST(Spawn, LogsAFailureThatNobodyHandles) {
  std::vector<std::string> heard;
  set_log_sink([&](LogLevel level, std::string_view message) {
    EXPECT_EQ(level, LogLevel::error);
    heard.emplace_back(message);
  });
  const auto odd = []() -> Task<void> {
    throw 1;  // no std::exception
    co_return;
  };
  spawn(fail("broken"));
  spawn(odd());
  set_log_sink({});
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0], "a background task threw: broken");
  EXPECT_NE(heard[1].find("no std::exception"), std::string::npos);
}

TEST(Spawn, FreesWhatItRan) {
  const auto held = std::make_shared<int>(1);
  Completion completion;
  const auto keep = [](std::shared_ptr<int> kept, Completion& until) -> Task<void> {
    co_await until;
    ++*kept;
  };
  spawn(keep(held, completion));
  EXPECT_EQ(held.use_count(), 2);
  completion.complete();
  EXPECT_EQ(held.use_count(), 1);
  EXPECT_EQ(*held, 2);
}

TEST(WhenAll, KeepsTheOrderOfTheTasks) {
  std::vector<Task<int>> tasks;
  for (int i = 0; i < 10; ++i) tasks.push_back(number(i));
  EXPECT_EQ(when_all(std::move(tasks)).get(), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_TRUE(when_all(std::vector<Task<int>>{}).get().empty());
  when_all(std::vector<Task<void>>{}).get();
}

TEST(WhenAll, StartsAllBeforeAnyHasEnded) {
  Completion first;
  Completion second;
  const auto open = [](Completion& own, Completion& other) -> Task<void> {
    other.complete();
    co_await own;
  };
  std::vector<Task<void>> tasks;
  tasks.push_back(open(first, second));
  tasks.push_back(open(second, first));
  when_all(std::move(tasks)).get();  // hangs if one had to end before the other began
}

TEST(WhenAll, ThrowsTheFirstFailureAfterAllHaveEnded) {
  Completion gate;
  bool ended = false;
  const auto slow = [](Completion& until, bool& flag) -> Task<void> {
    co_await until;
    flag = true;
  };
  const auto opener = [](Completion& opened) -> Task<void> {
    opened.complete();
    throw std::runtime_error{"second"};
    co_return;
  };
  std::vector<Task<void>> tasks;
  tasks.push_back(slow(gate, ended));
  tasks.push_back(fail("first"));
  tasks.push_back(opener(gate));
  try {
    when_all(std::move(tasks)).get();
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "first");
  }
  EXPECT_TRUE(ended);
}

/// Completes what is waited for when the waiting thread drives it, and counts.
class CompletingDriver final : public Driver {
 public:
  void drive(Waiter& waiter) override {
    ++calls;
    if (calls < 3) return;  // "may return early"
    if (next) std::exchange(next, nullptr)->complete();
    EXPECT_TRUE(waiter.is_woken());
  }
  int calls = 0;
  Completion* next = nullptr;
};

TEST(Driver, IsCalledByTheThreadThatWaitsUntilItIsWoken) {
  CompletingDriver driver;
  Completion completion{&driver};
  driver.next = &completion;
  wait_for(completion).get();
  EXPECT_EQ(driver.calls, 3);
}

TEST(Driver, IsNotCalledForWhatIsThereAlready) {
  CompletingDriver driver;
  Completion completion{&driver};
  completion.complete();
  wait_for(completion).get();
  EXPECT_EQ(driver.calls, 0);
}

TEST(Driver, IsCalledForTheAwaitsOfNestedTasksAndOfWhenAll) {
  CompletingDriver driver;
  Completion completion{&driver};
  driver.next = &completion;
  std::vector<Task<void>> tasks;
  tasks.push_back(wait_for(completion));
  tasks.push_back(Task<void>::ready());
  when_all(std::move(tasks)).get();
  EXPECT_EQ(driver.calls, 3);
}

/// As a connection: who submits a call and would drive the connection brings it about himself, all
/// others leave it to a thread of the connection.
class Line final : public Driver {
 public:
  explicit Line(std::mt19937_64& random) : random_(random) {
    thread_ = std::jthread{[this](const std::stop_token& stop) { serve(stop); }};
  }

  Task<void> call() {
    Completion completion{this};
    {
      const std::lock_guard lock{mutex_};
      (Waiter::current()->would_drive(*this) ? driven_ : left_).push_back(&completion);
    }
    changed_.notify_all();
    co_await completion;
  }

  void drive(Waiter&) override {
    Completion* completion = nullptr;
    {
      const std::lock_guard lock{mutex_};
      ASSERT_FALSE(driven_.empty());
      const auto place = driven_.begin() + static_cast<std::ptrdiff_t>(random_() % driven_.size());
      completion = *place;
      driven_.erase(place);
    }
    completion->complete();
  }

  int forgotten = 0;  ///< calls that the waiting thread ought to have brought about

 private:
  void serve(const std::stop_token& stop) {
    std::unique_lock lock{mutex_};
    while (!stop.stop_requested()) {
      const bool has_work = changed_.wait_for(lock, stop, 5s, [&] { return !left_.empty(); });
      auto& calls = has_work ? left_ : driven_;
      if (stop.stop_requested() || calls.empty()) continue;
      if (!has_work) ++forgotten;
      Completion* const completion = calls.front();
      calls.pop_front();
      lock.unlock();
      completion->complete();
      lock.lock();
    }
  }

  std::mt19937_64& random_;  // of the thread that waits
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Completion*> driven_;
  std::deque<Completion*> left_;
  std::jthread thread_;
};

Task<void> call_in_turn(std::vector<Line*> lines) {
  for (Line* const line : lines) {
    auto calling = line->call();
    co_await calling;
  }
}

TEST(Driver, IsNotForgottenWhereManyCallsTakeTurnsAtSeveral) {
  std::mt19937_64 random{1};
  for (int round = 0; round < 300; ++round) {
    Line a{random};
    Line b{random};
    Line c{random};
    Line* const all[] = {&a, &b, &c};
    std::vector<Task<void>> tasks;
    for (int i = 0; i < 4; ++i) {
      std::vector<Line*> turns;
      for (int turn = 0; turn < 4; ++turn) turns.push_back(all[random() % std::size(all)]);
      tasks.push_back(call_in_turn(std::move(turns)));
    }
    when_all(std::move(tasks)).get();
    ASSERT_EQ(a.forgotten + b.forgotten + c.forgotten, 0) << "in round " << round;
  }
}

TEST(Waiter, IsNobodysOutsideOfGet) {
  EXPECT_EQ(Waiter::current(), nullptr);
  const auto current = []() -> Task<Waiter*> { co_return Waiter::current(); };
  EXPECT_EQ(current().get(), &Waiter::of_this_thread());
  Waiter* seen = &Waiter::of_this_thread();
  const auto note = [](Waiter*& slot) -> Task<void> {
    slot = Waiter::current();
    co_return;
  };
  spawn(note(seen));
  EXPECT_EQ(seen, nullptr);
  EXPECT_EQ(Waiter::current(), nullptr);
}

TEST(Frictions, U01_ATaskDroppedUnstartedIsToldOnceForEachPlace) {
  std::vector<std::string> said;
  set_log_sink([&](LogLevel level, std::string_view message) {
    EXPECT_EQ(level, LogLevel::warning);
    said.emplace_back(message);
  });
  const auto forget = []() -> Task<void> { co_return; };
  for (int i = 0; i < 3; ++i) auto dropped = forget();
  EXPECT_EQ(said.size(), 1U);
  const auto forget_too = []() -> Task<void> { co_return; };
  auto dropped = std::make_unique<Task<void>>(forget_too());
  dropped.reset();
  ASSERT_EQ(said.size(), 2U);
  EXPECT_NE(said[1].find("dropped before it was awaited"), std::string::npos) << said[1];
  number(1).get();  // neither one that has run, nor one that is ready
  { const auto ready = Task<int>::ready(1); }
  EXPECT_EQ(said.size(), 2U);
  set_log_sink({});
}

struct Kept {
  using must_be_kept = void;
};
static_assert(detail::must_be_kept<Kept> && detail::must_be_kept<std::optional<Kept>>);
static_assert(!detail::must_be_kept<int> && !detail::must_be_kept<std::optional<int>>);

TEST(Frictions, U02_BlockingWhereOthersDependOnTheThreadIsThrownBeforeAnythingStarts) {
  bool started = false;
  const auto work = [&]() -> Task<void> {
    started = true;
    co_return;
  };
  auto task = work();
  {
    const NoBlocking duty{"answers the phone"};
    try {
      task.get();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument);
      EXPECT_EQ(error.effect(), Effect::none);
      EXPECT_NE(error.message().find("answers the phone"), std::string::npos) << error.message();
    }
    EXPECT_EQ(Task<int>::ready(7).get(), 7) << "what is ready blocks nobody";
  }
  EXPECT_FALSE(started);
  task.get();
  EXPECT_TRUE(started);
}

TEST(Frictions, U02_ResumeOnContinuesWhereTheExecutorRunsIt) {
  std::function<void()> kept;
  int steps = 0;
  const auto work = [&]() -> Task<void> {
    ++steps;
    co_await resume_on([&](auto rest) { kept = std::move(rest); });
    ++steps;
  };
  spawn(work());
  EXPECT_EQ(steps, 1);
  std::exchange(kept, nullptr)();
  EXPECT_EQ(steps, 2);
}

TEST(ResumeOn, ThrowsWhereTheExecutorDropsTheWork) {
  std::function<void()> kept;
  std::vector<Errc> failures;
  const auto go = [&](Executor executor) -> Task<void> {
    try {
      co_await resume_on(executor);
    } catch (const Error& error) {
      failures.push_back(error.errc());
    }
  };
  spawn(go([](auto) {}));
  EXPECT_EQ(failures.size(), 1U) << "dropped at once";
  spawn(go([&](auto work) { kept = std::move(work); }));
  EXPECT_EQ(failures.size(), 1U);
  kept = nullptr;
  EXPECT_EQ(failures, (std::vector{Errc::closed, Errc::closed}));
}

TEST(ResumeOn, ThrowsWhatTheExecutorThrows) {
  int caught = 0;
  const auto go = [&]() -> Task<void> {
    try {
      co_await resume_on([](auto) { throw 7; });
    } catch (int number) {
      caught = number;
    }
  };
  go().get();
  EXPECT_EQ(caught, 7);
}

TEST(ResumeOn, ADestroyedCoroutineIsNotResumed) {
  std::function<void()> kept;
  int steps = 0;
  const auto go = [&]() -> Foreign {
    co_await resume_on([&](auto work) { kept = std::move(work); });
    ++steps;
  };
  go().coroutine.destroy();
  kept();
  EXPECT_EQ(steps, 0);
}

TEST(Drop, ATaskThatRunsGoesOnAlone) {
  Completion reply;
  int steps = 0;
  bool told = false;
  const auto work = [&]() -> Task<std::unique_ptr<int>> {
    OnDrop on_drop{[&] { told = true; }};
    co_await on_drop;
    auto waiting = wait_for(reply);
    co_await waiting;
    ++steps;
    co_return std::make_unique<int>(1);
  };
  const auto wait = [&]() -> Foreign {
    auto result = co_await work();
    ++steps;
  };
  const Foreign waiter = wait();
  waiter.coroutine.destroy();
  EXPECT_TRUE(told);
  EXPECT_EQ(steps, 0);
  reply.complete();
  EXPECT_EQ(steps, 1) << "the coroutine that waited is gone";
}

TEST(Drop, OfAnEndedTaskTellsNobody) {
  bool told = false;
  {
    const auto work = [&]() -> Task<void> {
      OnDrop on_drop{[&] { told = true; }};
      co_await on_drop;
    };
    work().get();
  }
  EXPECT_FALSE(told);
}

TEST(NoThread, GetThrowsInACoroutineThatNoThreadWaitsFor) {
  Completion reply;
  std::optional<Errc> failure;
  const auto nothing = []() -> Task<void> { co_return; };
  const auto work = [&]() -> Task<void> {
    nothing().get();  // still the caller's thread
    auto waiting = wait_for(reply);
    co_await waiting;
    try {
      nothing().get();
    } catch (const Error& error) {
      failure = error.errc();
    }
  };
  spawn(work());
  reply.complete();
  EXPECT_EQ(failure, Errc::bad_argument);
}

}  // namespace
}  // namespace sluice
