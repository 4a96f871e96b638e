// Coroutines that hold a lock and then do something that blocks.
//
// What follows a co_await runs on the thread that brought the reply; all replies of the Store come
// through it, so it must not block: Task::get() throws there. resume_on() goes on in a pool of
// threads, here a small one of our own; asio_threads.cpp does the same with Asio's.
#include <fmt/format.h>

#include <condition_variable>
#include <latch>
#include <mutex>
#include <queue>
#include <thread>

#include "sluice/mutex.hpp"
#include "sluice/open.hpp"

class Pool {
 public:
  void post(std::function<void()> work) {
    const std::lock_guard lock{mutex_};
    work_.push(std::move(work));
    there_is_work_.notify_one();
  }

 private:
  void run(std::stop_token stop) {
    for (std::unique_lock lock{mutex_};;) {
      if (!there_is_work_.wait(lock, stop, [&] { return !work_.empty(); })) return;
      const auto work = std::move(work_.front());
      work_.pop();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any there_is_work_;
  std::queue<std::function<void()>> work_;
  std::jthread threads_[2] = {std::jthread{[this](std::stop_token stop) { run(stop); }},
                              std::jthread{[this](std::stop_token stop) { run(stop); }}};
};

sluice::Task<void> write_report(sluice::Mutex& mutex, Pool& pool, std::string name,
                                std::latch& done) {
  const auto held = co_await mutex.acquire();
  co_await sluice::resume_on([&pool](auto work) { pool.post(std::move(work)); });
  fmt::print("{} writes with token {}\n", name, held.token().value);  // may block
  done.count_down();
}

int main(int count, char** words) {
  const auto store = sluice::open(count > 1 ? words[1] : "embedded:");
  sluice::Mutex mutex{*store, "report"};
  std::latch done{3};
  Pool pool;
  for (const char* const name : {"ann", "bob", "cid"})
    sluice::spawn(write_report(mutex, pool, name, done));
  done.wait();
}
