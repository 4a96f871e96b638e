/// Many threads: on one lock, on many, on one engine.
#include <fmt/format.h>

#include <list>
#include <random>
#include <thread>
#include <vector>

#include "figures.hpp"
#include "sluice/mutex.hpp"
#include "sluice/open.hpp"

namespace sluice::bench {
namespace {

std::size_t enter_and_leave(Mutex& mutex) {
  const auto held = mutex.acquire().get();
  return 1;
}

std::size_t enter_and_leave_awaited(Mutex& mutex) {
  auto held = mutex.acquire().get();
  held.release().get();
  return 1;
}

/// Critical sections a second of `threads` threads that take `rounds` locks at random each.
double random_locks(std::list<Mutex>& locks, int threads, int rounds) {
  const std::vector<Mutex*> all = [&] {
    std::vector<Mutex*> pointers;
    for (Mutex& mutex : locks) pointers.push_back(&mutex);
    return pointers;
  }();
  const auto begin = system_clock().steady();
  {
    std::vector<std::jthread> crew;
    for (int thread = 0; thread < threads; ++thread)
      crew.emplace_back([&all, thread, rounds] {
        std::minstd_rand dice{static_cast<unsigned>(thread) + 1};
        for (int i = 0; i < rounds; ++i) enter_and_leave_awaited(*all[dice() % all.size()]);
      });
  }
  const std::chrono::duration<double> took = system_clock().steady() - begin;
  return threads * rounds / took.count();
}

}  // namespace

Row one_lock_of_many_threads(Store& store, const Options& options) {
  constexpr int threads = 16;
  Row row{.figure = "16 threads of one process on one lock, redis",
          .unit = "sections/s",
          .peer = "acquire + release by one thread",
          .goal = 8};
  Mutex shared{store, "bench:crowd"};
  Mutex alone{store, "bench:alone"};
  for (int round = 0; round < options.rounds; ++round) {
    row.peer_values.push_back(rate(options.each, [&] { return enter_and_leave_awaited(alone); }));
    row.values.push_back(rate(options.each, threads, [&](int) { return enter_and_leave(shared); }));
  }
  return row;
}

Row many_locks_of_many_threads(Store& store, const Options& options) {
  Row row{.figure = "32 threads x 10,000 random locks of 1000, redis",
          .unit = "sections/s",
          .peer = "one thread",
          .goal = 4};
  std::list<Mutex> locks;
  for (int i = 0; i < 1000; ++i) locks.emplace_back(store, fmt::format("bench:{}", i));
  for (int round = 0; round < options.rounds; ++round) {
    row.peer_values.push_back(random_locks(locks, 1, 5'000));
    row.values.push_back(random_locks(locks, 32, 10'000));
  }
  return row;
}

Row locks_of_one_engine(const Options& options) {
  constexpr int threads = 4;
  Row row{.figure = "4 threads on 4 locks, embedded in memory",
          .unit = "pairs/s",
          .peer = "one thread",
          .goal = 1.0};
  const auto store = open("embedded:");
  std::list<Mutex> locks;
  std::vector<Mutex*> of_thread;
  for (int i = 0; i < threads; ++i)
    of_thread.push_back(&locks.emplace_back(*store, fmt::format("bench:{}", i)));
  for (int round = 0; round < options.rounds; ++round) {
    row.peer_values.push_back(
        rate(options.each, 1, [&](int) { return enter_and_leave_awaited(*of_thread[0]); }));
    row.values.push_back(rate(options.each, threads, [&](int thread) {
      return enter_and_leave_awaited(*of_thread[static_cast<std::size_t>(thread)]);
    }));
  }
  return row;
}

}  // namespace sluice::bench
