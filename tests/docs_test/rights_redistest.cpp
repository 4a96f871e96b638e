// The rows of permissions in docs/operations.md are what a program needs: each verb of each
// primitive works for a user who has exactly the rights of its row, and is refused to one who has
// those of a connection alone. The server's ACL LOG tells what was refused without a word.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "docs_test/documents.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/fencing.hpp"
#include "sluice/id.hpp"
#include "sluice/latch.hpp"
#include "sluice/lock_watch.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/number.hpp"
#include "sluice/open.hpp"
#include "sluice/order_store.hpp"
#include "sluice/order_worker.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/quorum_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/sale.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_bloom_filter.hpp"
#include "sluice/shared_mutex.hpp"
#include "sluice/waiting_room.hpp"
#include "support/paths.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::docs {
namespace {

using namespace std::chrono_literals;
using Rights = std::set<std::string>;

/// Of the row whose first cell has `primitive` in it: words of capitals are commands.
Rights rights_of(std::string_view primitive) {
  for (const auto& line : read_lines(test::source_path("docs/operations.md"))) {
    const auto cells = cells_of(line);
    if (cells.size() != 2 || !cells.front().contains(primitive)) continue;
    auto words = quoted_words(cells[1]);
    std::erase_if(words, [](const std::string& word) {
      return !std::ranges::all_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
    });
    if (!words.empty()) return words;
  }
  ADD_FAILURE() << "docs/operations.md has no row of " << primitive;
  return {};
}

void expect(bool is_right, const char* what) {
  if (!is_right) throw Error{Errc::server, what};
}

/// While another holds it, somebody waits, and gets it.
template <class Acquire>
void wait_behind(Acquire acquire) {
  auto first = acquire(0ms);
  expect(first.has_value(), "the lock is not free");
  auto waits = std::async(std::launch::async, [&] { return acquire(30s).has_value(); });
  expect(!acquire(150ms).has_value(), "two hold it");
  first.reset();
  expect(waits.get(), "the one who waits does not get it");
}

struct Verb {
  std::string_view row;
  std::string_view name;
  std::function<void(Store&, const std::string&)> run;
};

const MutexOptions brisk{.lease = 300ms};

/// Time in which something is to happen, and nothing is known to wait for.
void pass(std::chrono::milliseconds time) { std::promise<void>{}.get_future().wait_for(time); }

std::vector<Verb> verbs_of_locks() {
  return {
      {"`Mutex`", "acquire, enter again, info, release",
       [](Store& store, const std::string& name) {
         Mutex mutex{store, name};
         const Owner owner;
         auto held = mutex.acquire(owner).get();
         auto again = mutex.acquire(owner).get();
         expect(mutex.info().get().holders.size() == 1, "no holder is shown");
         again.release().get();
         held.release().get();
       }},
      {"`Mutex`", "wait, hand over",
       [](Store& store, const std::string& name) {
         Mutex mutex{store, name};
         wait_behind([&](auto wait) { return mutex.try_acquire(wait).get(); });
       }},
      {"`Mutex`", "renew",
       [](Store& store, const std::string& name) {
         Mutex mutex{store, name, brisk};
         const auto held = mutex.acquire().get();
         pass(1s);
         expect(held.valid(), "the hold was not renewed");
       }},
      {"`Mutex`", "force_release",
       [](Store& store, const std::string& name) {
         Mutex mutex{store, name};
         const auto held = mutex.acquire().get();
         expect(mutex.force_release().get(), "it was free");
       }},
      {"`MultiLock`", "acquire, release",
       [](Store& store, const std::string& name) {
         MultiLock both{store, {name + "1", name + "2"}};
         wait_behind([&](auto wait) { return both.try_acquire(wait).get(); });
       }},
      {"`QuorumLock`", "acquire, release",
       [](Store& store, const std::string& name) {
         QuorumLock lock{{&store}, name};
         wait_behind([&](auto wait) { return lock.try_acquire(wait).get(); });
       }},
      {"`FairMutex`", "acquire, enter again, info, release",
       [](Store& store, const std::string& name) {
         FairMutex mutex{store, name};
         const Owner owner;
         auto held = mutex.acquire(owner).get();
         auto again = mutex.acquire(owner).get();
         expect(mutex.info().get().holders.size() == 1, "no holder is shown");
       }},
      {"`FairMutex`", "wait, hand over, force_release",
       [](Store& store, const std::string& name) {
         FairMutex mutex{store, name};
         wait_behind([&](auto wait) { return mutex.try_acquire(wait).get(); });
         const auto held = mutex.acquire().get();
         expect(mutex.force_release().get(), "it was free");
       }},
      {"`SharedMutex`", "write: wait, hand over",
       [](Store& store, const std::string& name) {
         SharedMutex mutex{store, name};
         wait_behind([&](auto wait) { return mutex.try_acquire(wait).get(); });
       }},
      {"`SharedMutex`", "read, enter again, info, release",
       [](Store& store, const std::string& name) {
         SharedMutex mutex{store, name};
         const Owner owner;
         auto one = mutex.acquire_shared(owner).get();
         auto again = mutex.acquire_shared(owner).get();
         auto two = mutex.acquire_shared().get();
         expect(mutex.info().get().holders.size() == 2, "two readers are not shown");
         expect(!mutex.try_acquire(150ms).get(), "a writer is in");
         expect(mutex.force_release().get(), "it was free");
       }},
      {"`SharedMutex`", "readers wait for a writer",
       [](Store& store, const std::string& name) {
         SharedMutex mutex{store, name};
         auto writing = mutex.acquire().get();
         auto reads = std::async(std::launch::async,
                                 [&] { const auto held = mutex.acquire_shared().get(); });
         expect(!mutex.try_acquire_shared(150ms).get(), "a reader is in");
         writing.release().get();
         reads.get();
       }},
      {"`Semaphore`", "set, acquire, wait, info, release",
       [](Store& store, const std::string& name) {
         Semaphore desks{store, name};
         expect(desks.try_set_permits(1).get(), "permits are set already");
         desks.ensure_permits(1).get();
         wait_behind([&](auto wait) { return desks.try_acquire(1, wait).get(); });
         desks.add_permits(2).get();
         expect(desks.available().get() == 3, "other permits are free");
         desks.info().get();
         desks.drain().get();
         desks.release_unowned(2).get();
       }},
      {"`PermitSemaphore`", "set, take, release, wait",
       [](Store& store, const std::string& name) {
         PermitSemaphore desks{store, name};
         desks.set_permits(2).get();
         const auto permit = desks.take(1h).get();
         expect(desks.update_lease(*permit, 2h).get(), "the permit is over");
         wait_behind([&](auto wait) { return desks.try_acquire(wait).get(); });
         expect(desks.try_acquire_many(1).get().size() == 1, "none is free");
         expect(desks.release(*permit).get(), "the permit is over");
         desks.info().get();
       }},
      {"`Latch`", "all",
       [](Store& store, const std::string& name) {
         Latch latch{store, name};
         expect(latch.try_set_count(3).get(), "it is set already");
         auto waits = std::async(std::launch::async, [&] { latch.wait().get(); });
         latch.count_down().get();
         latch.count_down_once("part").get();
         expect(latch.count().get() == 1, "another count");
         latch.state().get();
         latch.reset(1).get();
         latch.count_down().get();
         waits.get();
       }},
      {"`RateLimiter`", "all",
       [](Store& store, const std::string& name) {
         RateLimiter limiter{store, name, {.rate = 2, .interval = 200ms}};
         expect(limiter.try_set_rate().get(), "another rate");
         for (int i = 0; i < 4; ++i) limiter.acquire().get();
         limiter.available().get();
         limiter.set_rate(5, 1s).get();
       }},
      {"`Fence`", "admit, run",
       [](Store& store, const std::string& name) {
         Fence fence{store, name};
         expect(fence.admit(FencingToken{5}).get().has_value(), "a token is refused");
         const auto key = "{" + name + "}:v";
         expect(fence
                    .run(FencingToken{6}, std::array<std::string_view, 1>{key},
                         std::array<std::string_view, 3>{"SET", key, "1"})
                    .get()
                    .has_value(),
                "a token is refused");
       }},
      {"`LockWatch`", "list, look, report",
       [](Store& store, const std::string& name) {
         Mutex mutex{store, name};
         const auto held = mutex.acquire().get();
         LockWatch watch{store, {.pattern = name}};
         expect(watch.list().get().locks.size() == 1, "the lock is not found");
         expect(watch.look(name).get().has_value(), "the lock is not found");
         watch.report().get();
       }},
  };
}

std::vector<Verb> verbs_of_numbers() {
  return {
      {"`Series`", "next, next_of, repair, list",
       [](Store& store, const std::string& name) {
         Series series{store, name};
         expect(series.next().get().has_value(), "it is full");
         expect(series.next_of("wish", 3).get()->size() == 3, "other numbers");
         Series::repair(store, name, {.why = "a test"}).get();
         Series::list(store).get();
       }},
      {"`IdWorker`", "next",
       [](Store& store, const std::string& name) {
         IdWorker{store, name}.next().get();
       }},
  };
}

void fill_bloom_filter(Store& store, const std::string& name) {
  SharedBloomFilter filter{store, name};
  expect(filter.try_create({.expected = 1000, .error_rate = 0.01}).get(), "there is one");
  filter.ensure_created({.expected = 1000, .error_rate = 0.01}).get();
  expect(filter.add("anna").get() && filter.contains("anna").get(), "a key is lost");
}

std::vector<Verb> verbs_of_filters_and_caches() {
  return {
      {"`SharedBloomFilter`", "create, add, contains, info, exists", fill_bloom_filter},
      {"`SharedBloomFilter`", "merge, expire, persist, rename, remove",
       [](Store& store, const std::string& name) {
         const auto other = "{" + name + "}other";
         fill_bloom_filter(store, "{" + name + "}one");
         fill_bloom_filter(store, other);
         SharedBloomFilter filter{store, "{" + name + "}one"};
         filter.merge({other}).get();
         expect(filter.expire(1h).get() && filter.persist().get(), "there is none");
         filter.info().get();
         expect(filter.exists().get(), "there is none");
         expect(filter.rename("{" + name + "}two").get(), "there is none");
         expect(SharedBloomFilter{store, "{" + name + "}two"}.remove().get(), "there is none");
       }},
      {"`SharedBloomFilter`", "rebuild, save, load",
       [](Store& store, const std::string& name) {
         const test::TempDir folder;
         fill_bloom_filter(store, name);
         SharedBloomFilter filter{store, name};
         auto rebuild = filter.try_rebuild({.expected = 2000, .error_rate = 0.01}).get();
         rebuild->add(std::array<std::string_view, 1>{"bert"}).get();
         rebuild->finish().get();
         filter.save((folder / "filter").string()).get();
         filter.load((folder / "filter").string()).get();
         expect(filter.contains("bert").get(), "a key is lost");
       }},
      {"`SharedBloomFilter`", "local_copy",
       [](Store& store, const std::string& name) {
         fill_bloom_filter(store, name);
         const auto copy = SharedBloomFilter{store, name}.local_copy().get();
         expect(copy.contains("anna"), "a key is lost");
       }},
      {"`CacheGuard`", "get, put, invalidate: what was loaded is kept",
       [](Store& store, const std::string& name) {
         CacheGuard<std::string> cache{store, name};
         int loads = 0;
         const auto load = [&](std::string_view) -> std::optional<std::string> {
           ++loads;
           return "value";
         };
         for (int i = 0; i < 5; ++i) expect(cache.get("k", load).get() == "value", "no value");
         expect(loads == 1, "nothing is cached");
         const auto absent = [](std::string_view) { return std::optional<std::string>{}; };
         expect(!cache.get("none", absent).get(), "a value of nothing");
         cache.put("k", "another").get();
         expect(cache.get("k", load).get() == "another", "what was put is lost");
         cache.invalidate("k").get();
         cache.invalidate_twice("k", 10ms).get();
         expect(cache.get("k", load).get() == "value" && loads == 2, "it is not invalidated");
         expect(cache.clear().get() == 2, "the value and the absence are there");
         expect(cache.get("k", load).get() == "value" && loads == 3, "it is not cleared");
       }},
      {"`CacheGuard`", "one process waits for the load of another",
       [](Store& store, const std::string& name) {
         CacheGuard<std::string> one{store, name};
         CacheGuard<std::string> other{store, name};
         std::promise<void> begun;
         auto first = std::async(std::launch::async, [&] {
           return one
               .get("k",
                    [&](std::string_view) -> std::optional<std::string> {
                      begun.set_value();
                      pass(500ms);
                      return "value";
                    })
               .get();
         });
         const auto loads = begun.get_future();
         while (loads.wait_for(1ms) == std::future_status::timeout)
           if (first.wait_for(0ms) == std::future_status::ready) first.get();  // it was refused
         const auto none = [](std::string_view) { return std::optional<std::string>{}; };
         expect(other.get("k", none).get() == "value", "it did not wait");
         expect(first.get() == "value", "no value");
       }},
      {"`CacheGuard`", "near",
       [](Store& store, const std::string& name) {
         CacheGuard<std::string> cache{store, name, {.near_bytes = 1 << 20}};
         const auto load = [](std::string_view) { return std::optional<std::string>{"value"}; };
         for (int i = 0; i < 5; ++i) expect(cache.get("k", load).get() == "value", "no value");
       }},
  };
}

void sell(Store& store, const std::string& name) {
  const test::TempDir folder;
  const auto orders = open_order_store("sqlite:" + (folder / "orders.db").string());
  const SaleDefinition definition{.name = name, .stock = 10, .number_type = "T"};
  Sale::check(store, definition).get();
  auto sale = Sale::create(store, definition, *orders);
  for (const auto* const buyer : {"ann", "bob", "cid"})
    expect(sale.buy({buyer}, {buyer}).get().has_order(), "not admitted");
  expect(sale.find({"ann"}, {"ann"}).get().has_value(), "no order");
  expect(sale.latest({"ann"}).get().has_value(), "no order");
  OrderWorker{store, sale, *orders}.drain();
  expect(orders->page(name, 0, 10).size() == 3, "orders did not come");
  sale.status().get();
  sale.flow().get();
  sale.recorded_up_to().get();
  expect(sale.cancel(*orders, {"ann"}, {"ann"}, "").now, "not cancelled");
  expect(sale.change_stock(*orders, 20), "the stock did not change");
  sale.settle(*orders);
  sale.dead_letters().get();
  expect(!Sale::names(store).get().empty(), "no sale is listed");
  sale.close(*orders);
  expect(sale.archive(*orders, {.file = (folder / "archive").string()}), "not archived");
}

std::vector<Verb> verbs_of_sales() {
  return {
      {"`WaitingRoom`", "enter, state, leave, operate, remove",
       [](Store& store, const std::string& name) {
         auto room = WaitingRoom::create(store, TokenKeys{{{"k1", std::string(32, 'k')}}},
                                         {.name = name, .rate = 1000, .inside = 1})
                         .get();
         const auto ann = room.enter("ann").get();
         const auto bob = room.enter("bob").get();
         room.state(bob.ticket, "bob").get();
         room.leave(ann.ticket, "ann").get();
         room.set_rate(500, 1s).get();
         room.set_inside(5).get();
         room.set_units_left(7).get();
         room.pause().get();
         room.resume().get();
         room.status().get();
         room.draw().get();
         room.verify().get();
         room.close().get();
         expect(room.remove().get(), "there is none");
       }},
      {"`Sale`", "create, buy, work, cancel, archive", sell},
  };
}

std::vector<Verb> all_verbs() {
  std::vector<Verb> all;
  for (auto& some :
       {verbs_of_locks(), verbs_of_numbers(), verbs_of_filters_and_caches(), verbs_of_sales()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

bool is_lock(const Verb& verb) {
  static const std::set<std::string_view> others{
      "`Series`", "`IdWorker`", "`SharedBloomFilter`", "`CacheGuard`", "`WaitingRoom`", "`Sale`"};
  return !others.contains(verb.row);
}

class Permissions : public testing::Test {
 protected:
  /// A Store of a user with these rights; ACL LOG begins anew.
  std::unique_ptr<Store> store_of(const std::vector<std::string>& rights) {
    std::vector<std::string> words{"ACL", "SETUSER", "u", "reset", "on", ">p"};
    words.insert(words.end(), rights.begin(), rights.end());
    EXPECT_EQ(admin_.command(words).as_text(), "OK");
    auto store = open(fmt::format("redis://u:p@127.0.0.1:{}", server_.port()));
    admin_.command({"ACL", "LOG", "RESET"});
    return store;
  }
  std::unique_ptr<Store> store_with(const Rights& commands) {
    std::vector<std::string> words{"~*", "&*", "-@all"};
    for (const auto& command : commands) words.push_back("+" + command);
    return store_of(words);
  }
  /// What was refused since then, in scripts, too.
  std::string refused() {
    Rights all;
    const auto log = admin_.command({"ACL", "LOG"});
    for (const auto& entry : log.as_items()) {
      std::string reason;
      std::string object;
      const auto& items = entry.as_items();
      for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        if (items[i].as_text() == "reason") reason = items[i + 1].as_text();
        if (items[i].as_text() == "object") object = items[i + 1].as_text();
      }
      all.insert(reason + ' ' + object);
    }
    std::string text;
    for (const auto& one : all) text += one + "; ";
    return text;
  }
  static std::string tried(const Verb& verb, Store& store, const std::string& name) {
    try {
      verb.run(store, name);
      return {};
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  test::RedisServer server_;
  test::PlainClient admin_{server_.port()};
};

TEST_F(Permissions, D16_EachRowIsEnough) {
  const auto connection = rights_of("each connection");
  const auto lock = rights_of("each lock, semaphore and latch");
  int number = 0;
  for (const auto& verb : all_verbs()) {
    auto rights = rights_of(verb.row);
    rights.insert(connection.begin(), connection.end());
    if (is_lock(verb)) rights.insert(lock.begin(), lock.end());
    const auto store = store_with(rights);
    EXPECT_EQ(tried(verb, *store, fmt::format("n{}", ++number)), "") << verb.row << verb.name;
    EXPECT_EQ(refused(), "") << verb.row << verb.name;
  }
}

TEST_F(Permissions, D16_WithoutItsRowEachVerbIsRefused) {
  const auto connection = rights_of("each connection");
  int number = 0;
  for (const auto& verb : all_verbs()) {
    const auto store = store_with(connection);
    const auto name = fmt::format("n{}", ++number);
    EXPECT_NE(tried(verb, *store, name) + refused(), "") << verb.row << verb.name;
    EXPECT_NE(refused(), "") << verb.row << verb.name;
  }
}

/// The user of the page, whose programs have names that begin with "app:".
TEST_F(Permissions, D16_TheUserOfThePageMayDoAllOfIt) {
  std::string line;
  for (const auto& one : read_lines(test::source_path("docs/operations.md")))
    if (one.starts_with("ACL SETUSER app ")) line = one;
  constexpr std::string_view beginning = "ACL SETUSER app on >secret ";
  ASSERT_TRUE(line.starts_with(beginning)) << line;
  std::vector<std::string> rights;
  for (std::size_t at = beginning.size(); at < line.size();) {
    const auto end = std::min(line.find(' ', at), line.size());
    rights.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  int number = 0;
  for (const auto& verb : all_verbs()) {
    const auto store = store_of(rights);
    const auto name = fmt::format("app:n{}", ++number);
    EXPECT_EQ(tried(verb, *store, name), "") << verb.row << verb.name;
    EXPECT_EQ(refused(), "") << verb.row << verb.name;
  }
  const auto store = store_of(rights);
  EXPECT_THROW(store->run({"SET", "other", "1"}).get(), Error);
}

}  // namespace
}  // namespace sluice::docs
