/// A server that stands still for a while: nobody loses a place, and nobody sleeps beside a free
/// lock.
#include <algorithm>
#include <any>
#include <functional>
#include <list>
#include <mutex>

#include "lock/server_lock.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"

namespace sluice {
namespace {

struct Queued {
  std::string name;
  std::any (*enter)(Store& store, const std::string& name);
  std::vector<std::string> length;  ///< how to ask for that of its queue
  std::any held{};
  std::vector<std::size_t> order{};  ///< in which they got in
};

template <class Synchronizer>
std::any enter(Store& store, const std::string& name) {
  Synchronizer synchronizer{store, name};
  auto held = synchronizer.acquire().get();
  return std::make_shared<decltype(held)>(std::move(held));
}

class PausedServer : public ServerLock,
                     public testing::WithParamInterface<std::chrono::milliseconds> {
 protected:
  void await_length(const Queued& queued, std::int64_t many) {
    const auto patience = std::chrono::steady_clock::now() + 60s;
    while (side_.command({queued.length[0], queued.length[1]}).as_integer() < many) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "nobody waits for " << queued.name;
      std::this_thread::yield();
    }
  }

  std::unique_ptr<Store> other_ = open_patiently(server_.url());
};

TEST_P(PausedServer, CO01_AllAreInSoonAfterItAndInTheirOrder) {
  Queued all[] = {
      {"fair", enter<FairMutex>, {"LLEN", "redisson_lock_queue:{fair}"}},
      {"shared", enter<SharedMutex>, {"ZCARD", "sluice_rw_write_line:{shared}"}},
      {"desks", enter<Semaphore>, {"ZCARD", "sluice_semaphore_line:{desks}"}},
      {"beds", enter<PermitSemaphore>, {"ZCARD", "sluice_permit_line:{beds}"}},
  };
  Semaphore{*store_, "desks"}.try_set_permits(1).get();
  PermitSemaphore{*store_, "beds"}.try_set_permits(1).get();
  std::mutex mutex;
  std::list<std::jthread> waiting;
  for (Queued& queued : all) {
    queued.held = queued.enter(*store_, queued.name);
    for (std::size_t i = 0; i < 30; ++i) {
      waiting.emplace_back([&, i] {
        const std::any in = queued.enter(i % 2 == 0 ? *store_ : *other_, queued.name);
        const std::lock_guard lock{mutex};
        queued.order.push_back(i);
      });
      await_length(queued, static_cast<std::int64_t>(i) + 1);
    }
  }
  server_.stop();
  std::this_thread::sleep_for(GetParam());
  server_.cont();
  const auto began = std::chrono::steady_clock::now();
  for (Queued& queued : all) queued.held.reset();
  waiting.clear();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "it was 14 s, two waiters a second";
  for (const Queued& queued : all)
    EXPECT_TRUE(std::ranges::is_sorted(queued.order))
        << queued.name << testing::PrintToString(queued.order);
}

INSTANTIATE_TEST_SUITE_P(Pauses, PausedServer, testing::Values(2500ms, 4000ms),
                         [](const auto& test) { return std::to_string(test.param.count()); });

}  // namespace
}  // namespace sluice
