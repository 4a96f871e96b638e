/// What holds and waits cost while nothing happens.
#include <fmt/format.h>
#include <malloc.h>

#include <deque>
#include <thread>
#include <vector>

#include "figures.hpp"
#include "sluice/metrics.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"
#include "sluice/when_all.hpp"

namespace sluice::bench {

namespace {

Task<void> take(Mutex& mutex, Held& held) { held = co_await mutex.acquire(); }

/// Locks of distinct names, all held.
class ManyHolds {
 public:
  ManyHolds() = default;
  ManyHolds(const ManyHolds&) = delete;
  ManyHolds& operator=(const ManyHolds&) = delete;
  ~ManyHolds() {
    while (!holds_.empty()) holds_.back().release().get(), holds_.pop_back();
  }

  void add(Store& store, int many) {
    constexpr int at_once = 1000;
    while (many > 0) {
      std::vector<Task<void>> tasks;
      for (int i = 0; i < std::min(many, at_once); ++i) {
        const auto number = locks_.size();
        auto& lock = locks_.emplace_back(store, fmt::format("idle:{}", number));
        tasks.push_back(take(lock, holds_.emplace_back()));
      }
      when_all(std::move(tasks)).get();
      many -= at_once;
    }
  }

 private:
  std::deque<Mutex> locks_;
  std::deque<Held> holds_;
};

std::size_t memory_in_use() {
  const auto memory = ::mallinfo2();
  return memory.uordblks + memory.hblkhd;
}

}  // namespace

std::vector<Row> many_holds(Store& store) {
  const int many = 100'000;
  const auto row = [many](std::string_view what, std::string_view unit, double goal) {
    return Row{.figure = fmt::format("{} Mutexes held by one process, {}", many, what),
               .unit = std::string{unit},
               .goal = goal,
               .at_most = true};
  };
  Row memory = row("a hold", "bytes", 700);
  Row renewal = row("a renewal", "commands/100", 1);
  ManyHolds all;
  const auto before = memory_in_use();
  all.add(store, many);
  memory.values.push_back(static_cast<double>(memory_in_use() - before) / many);
  const auto cycle = std::chrono::milliseconds{7500};  // a quarter of the lease
  std::this_thread::sleep_for(cycle);                  // the first one also asks who the server is
  const auto sent = metrics().redis_commands.load();
  std::this_thread::sleep_for(2 * cycle);
  renewal.values.push_back(static_cast<double>(metrics().redis_commands.load() - sent) / 2 / many *
                           100);
  return {memory, renewal};
}

Row time_of_a_new_name() {
  constexpr int known = 90'000;
  constexpr int fresh = 10'000;
  Row row{.figure = fmt::format("Mutex of a new name beside {}, more than of a known one", known),
          .unit = "us",
          .goal = 5,
          .at_most = true};
  const auto store = open("embedded:");
  ManyHolds others;
  others.add(*store, known);
  std::deque<Mutex> locks;
  const auto seconds = [](const auto& work) {
    const auto began = system_clock().steady();
    for (int i = 0; i < fresh; ++i) work(i);
    return std::chrono::duration<double>(system_clock().steady() - began).count();
  };
  const double first = seconds([&](int i) {
    locks.emplace_back(*store, fmt::format("new:{}", i)).acquire().get().release().get();
  });
  const double again =
      seconds([&](int i) { locks[static_cast<std::size_t>(i)].acquire().get().release().get(); });
  row.values.push_back((first - again) / fresh * 1e6);
  return row;
}

Row memory_of_a_waiting_task() {
  constexpr int many = 20'000;
  Row row{.figure = "memory of a waiting Task", .unit = "bytes", .goal = 2048, .at_most = true};
  const auto store = open("embedded:");
  Mutex mutex{*store, "bench:patience", {.hand_off = {.within_process = 100'000}}};
  const auto visit = [](Mutex& lock) -> Task<void> {
    auto acquiring = lock.acquire();
    const auto held = co_await acquiring;
  };
  auto held = mutex.acquire().get();
  const auto before = ::mallinfo2().uordblks;
  for (int i = 0; i < many; ++i) spawn(visit(mutex));
  row.values.push_back(static_cast<double>(::mallinfo2().uordblks - before) / many);
  held.release().get();  // and all of them have their turn
  return row;
}

}  // namespace sluice::bench
