// Boost.Asio: a program whose work runs on Asio's threads holds a lock of Sluice.
//
// The Store runs callbacks in the pool, and each coroutine goes there before it does something that
// may block. Asio's own coroutines can wait for one of ours by its completion, as here by a future.
#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>

#include "sluice/mutex.hpp"
#include "sluice/open.hpp"

sluice::Task<void> write_page(sluice::Mutex& mutex, sluice::Executor executor, int page,
                              std::promise<void>& written) {
  auto held = co_await mutex.acquire();
  held.on_lost([](sluice::LostCause cause) {  // in the pool
    fmt::print(stderr, "lost the lock: {}\n", to_string(cause));
  });
  co_await sluice::resume_on(executor);
  fmt::print("page {} written with token {}\n", page, held.token().value);  // may block
  const auto outcome = co_await held.release();
  fmt::print("page {}: {}\n", page, to_string(outcome.kind));
  written.set_value();
}

int main(int count, char** words) {
  boost::asio::thread_pool pool{2};
  const sluice::Executor executor = [&pool](auto work) {
    boost::asio::post(pool, std::move(work));
  };
  {
    const auto store = sluice::open(count > 1 ? words[1] : "embedded:", {.executor = executor});
    sluice::Mutex mutex{*store, "book"};
    std::promise<void> written[3];
    for (int page = 0; page < 3; ++page)
      sluice::spawn(write_page(mutex, executor, page + 1, written[page]));
    for (auto& page : written) page.get_future().wait();
  }
  pool.join();
}
