/// What holds and waits cost while nothing happens.
#include <fmt/format.h>
#include <malloc.h>

#include <list>
#include <thread>
#include <vector>

#include "figures.hpp"
#include "sluice/metrics.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"

namespace sluice::bench {

Row commands_of_a_cycle(Store& store, int holds) {
  Row row{.figure = fmt::format("{} holds of one process, idle", holds),
          .unit = "commands/cycle",
          .goal = 100,
          .at_most = true};
  std::list<Mutex> mutexes;
  std::vector<Held> held;
  for (int i = 0; i < holds; ++i)
    held.push_back(mutexes.emplace_back(store, fmt::format("idle:{}", i)).acquire().get());
  const auto cycle = std::chrono::seconds{10};  // a third of the lease
  std::this_thread::sleep_for(cycle);           // the first one also asks who the server is
  const auto before = metrics().redis_commands.load();
  std::this_thread::sleep_for(cycle);
  row.values.push_back(static_cast<double>(metrics().redis_commands.load() - before));
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
