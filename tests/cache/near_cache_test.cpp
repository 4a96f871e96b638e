// Values in the process: what is given, what is not any more, and what goes when the room is used
// up.
#include "cache/near_cache.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/sanitized.hpp"

namespace sluice::cache {
namespace {

using namespace std::chrono_literals;

constexpr SteadyTime start{1h};
constexpr auto for_ever = SteadyTime::max();

NearValue value_of(int number) { return {std::make_shared<const int>(number)}; }

int number_in(const std::optional<NearValue>& value) {
  return value && value->object ? *static_cast<const int*>(value->object.get()) : -1;
}

class NearCaches : public testing::Test {
 protected:
  NearCaches() { cache.open(); }

  bool put(std::string_view key, int number, SteadyTime until = for_ever) {
    return cache.fill(cache.begin_fill(key, now), key, value_of(number), sizeof number, until);
  }
  int get(std::string_view key) { return number_in(cache.find(key, now)); }

  SteadyTime now = start;
  NearCache cache{{.bytes = 1 << 20, .max_ttl = 10s}};
};

TEST_F(NearCaches, GiveWhatWasFilled) {
  EXPECT_FALSE(cache.find("k", now));
  EXPECT_TRUE(put("k", 1));
  EXPECT_EQ(get("k"), 1);
  EXPECT_TRUE(put("k", 2));
  EXPECT_EQ(get("k"), 2);
  EXPECT_EQ(cache.stats().entries, 1U);
  EXPECT_FALSE(cache.find("K", now));
  EXPECT_FALSE(cache.find("", now));
}

TEST_F(NearCaches, GiveAnAbsenceToo) {
  const auto fill = cache.begin_fill("k", now);
  EXPECT_TRUE(cache.fill(fill, "k", {}, 0, for_ever));
  const auto found = cache.find("k", now);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->object);
}

TEST_F(NearCaches, GiveNothingThatWasInvalidated) {
  put("k", 1);
  put("other", 2);
  cache.invalidate("k");
  EXPECT_FALSE(cache.find("k", now));
  EXPECT_FALSE(cache.find_stale("k"));
  EXPECT_EQ(get("other"), 2);
}

// C7: the value was read, then it changed, and the message was here before the reply.
TEST_F(NearCaches, KeepNoFillThatAnInvalidationOvertook) {
  const auto fill = cache.begin_fill("k", now);
  cache.invalidate("k");
  EXPECT_FALSE(cache.fill(fill, "k", value_of(1), 4, for_ever));
  EXPECT_FALSE(cache.find_stale("k"));
  EXPECT_TRUE(put("k", 2)) << "the next read is after the change";
  EXPECT_EQ(get("k"), 2);
}

TEST_F(NearCaches, KeepNoFillThatAFlushOvertook) {
  const auto flushed = cache.begin_fill("k", now);
  cache.flush();
  EXPECT_FALSE(cache.fill(flushed, "k", value_of(1), 4, for_ever));
  const auto reopened = cache.begin_fill("k", now);
  cache.close();
  cache.open();
  EXPECT_FALSE(cache.fill(reopened, "k", value_of(1), 4, for_ever));
  EXPECT_FALSE(cache.find_stale("k"));
}

TEST_F(NearCaches, EndWithTheirTimeOrTheCachesWhicheverIsFirst) {
  put("brief", 1, now + 1s);
  put("long", 2);
  now += 999ms;
  EXPECT_EQ(get("brief"), 1);
  now += 1ms;
  EXPECT_EQ(get("brief"), -1);
  EXPECT_EQ(number_in(cache.find_stale("brief")), 1) << "for a caller whose store is down";
  EXPECT_EQ(get("long"), 2);
  now += 9s;
  EXPECT_EQ(get("long"), -1);
}

TEST_F(NearCaches, CountTheirTimeFromBeforeTheRead) {
  const auto fill = cache.begin_fill("k", now);
  now += 9s;
  EXPECT_TRUE(cache.fill(fill, "k", value_of(1), 4, for_ever));
  EXPECT_EQ(get("k"), 1);
  now += 1s;
  EXPECT_EQ(get("k"), -1);
}

TEST_F(NearCaches, GiveOnlyOldCopiesWhileTheyAreClosed) {
  put("k", 1);
  cache.close();
  EXPECT_FALSE(cache.find("k", now));
  EXPECT_FALSE(put("other", 2));
  EXPECT_EQ(number_in(cache.find_stale("k")), 1);
  cache.open();
  EXPECT_FALSE(cache.find_stale("k"));
}

TEST_F(NearCaches, AreClosedUntilTheyAreOpened) {
  NearCache fresh;
  EXPECT_FALSE(fresh.is_open());
  EXPECT_FALSE(fresh.fill(fresh.begin_fill("k", now), "k", value_of(1), 4, for_ever));
}

TEST_F(NearCaches, HoldNoMoreThanTheirBytes) {
  for (int i = 0; i < test::rounds(50'000); ++i) {
    const auto key = std::to_string(i);
    cache.fill(cache.begin_fill(key, now), key, value_of(i), static_cast<std::size_t>(i % 5000),
               for_ever);
    if (i % 1000 == 0) {
      ASSERT_LE(cache.stats().bytes, std::size_t{1} << 20);
    }
  }
  EXPECT_GT(cache.stats().bytes, std::size_t{1} << 19);
  EXPECT_GT(cache.stats().evictions, 0U);
}

TEST_F(NearCaches, RefuseWhatIsTooLargeAndKeepTheRest) {
  put("k", 1);
  for (const auto bytes : {std::size_t{1} << 20, std::size_t{10'000'000}, std::string::npos})
    EXPECT_FALSE(cache.fill(cache.begin_fill("big", now), "big", value_of(2), bytes, for_ever));
  const std::string key(10'000'000, 'k');
  EXPECT_FALSE(put(key, 3));
  EXPECT_FALSE(cache.find(key, now));
  EXPECT_EQ(get("k"), 1);
  NearCache none{{.bytes = 0}};
  none.open();
  EXPECT_FALSE(none.fill(none.begin_fill("k", now), "k", value_of(1), 0, for_ever));
}

TEST_F(NearCaches, KeepWhatIsUsedWhileManyKeysComeOnce) {
  constexpr int hot = 500;
  const auto name = [](int i) { return "hot" + std::to_string(i); };
  int misses = 0;
  for (int i = 0; i < test::rounds(200'000); ++i) {
    const auto key = std::to_string(i);
    put(key, i);
    const auto used = name(i % hot);
    if (get(used) == -1) {
      ++misses;
      put(used, i);
    }
  }
  EXPECT_LE(misses, 2 * hot) << "nearly all of them are read once";
}

TEST_F(NearCaches, FreeWhatWasFlushed) {
  for (int i = 0; i < 2000; ++i) put(std::to_string(i), i);
  EXPECT_EQ(cache.stats().entries, 2000U);
  cache.flush();
  for (int i = 0; i < 2000; ++i) EXPECT_FALSE(cache.find_stale(std::to_string(i)));
  for (int i = 0; i < 1000; ++i) put("new" + std::to_string(i), i);
  EXPECT_EQ(cache.stats().entries, 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(get("new" + std::to_string(i)), i);
}

// The end of a value may call the cache again: it runs outside of the locks.
TEST_F(NearCaches, AreCalledByTheEndOfAValue) {
  int ended = 0;
  const auto put_caller = [&](const std::string& key) {
    NearValue value{std::shared_ptr<const int>(new int{1}, [&, key](const int* number) {
      delete number;
      ++ended;
      cache.invalidate(key);
      EXPECT_FALSE(cache.find_stale(key));
    })};
    cache.fill(cache.begin_fill(key, now), key, std::move(value), 200'000, for_ever);
  };
  put_caller("k");
  put("k", 1);
  EXPECT_EQ(ended, 1);
  put_caller("k");
  cache.invalidate("k");
  EXPECT_EQ(ended, 2);
  for (int i = 0; i < 100; ++i) put_caller(std::to_string(i));
  EXPECT_GT(ended, 50) << "each pushed out another";
  for (int i = 0; i < 100; ++i) cache.invalidate(std::to_string(i));
  EXPECT_EQ(ended, 102);
}

TEST_F(NearCaches, AreEmptyInAChild) {
  put("k", 1);
  const pid_t child = ::fork();
  if (child == 0) {
    cache.invalidate("k");
    cache.open();
    const bool is_empty = !cache.find("k", now) && !cache.find_stale("k") && !put("k", 2);
    ::_exit(is_empty ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(get("k"), 1);
}

/// A store whose messages are late, and the cache before it.
struct Model {
  struct Read {
    std::string key;
    NearCache::Fill fill;
    int version;
  };

  NearCache cache{{.bytes = 64 << 10, .max_ttl = 10s}};
  SteadyTime now = start;
  std::map<std::string, int> store;                     // versions
  std::map<std::string, int> told;                      // that the cache knows to be the least
  std::vector<std::pair<std::string, int>> messages{};  // under way, in order
  std::vector<Read> reads{};                            // whose replies are under way

  void begin_read(const std::string& key) {
    reads.push_back({key, cache.begin_fill(key, now), store[key]});
  }
  void end_read(std::size_t which) {
    if (reads.empty()) return;
    const auto read = reads.begin() + static_cast<std::ptrdiff_t>(which % reads.size());
    cache.fill(read->fill, read->key, value_of(read->version), which % 3000, now + 20s);
    reads.erase(read);
  }
  void change(const std::string& key) { messages.emplace_back(key, ++store[key]); }
  void tell() {
    if (messages.empty()) return;
    const auto [key, version] = messages.front();
    messages.erase(messages.begin());
    cache.invalidate(key);
    told[key] = version;
  }
  void lose_connection() {
    cache.close();
    messages.clear();
  }
  void connect() {
    cache.open();
    told = store;
  }
  void check(const std::string& key) {
    const auto found = cache.find(key, now);
    if (!found) return;
    ++hits;
    RC_ASSERT(cache.is_open());
    RC_ASSERT(number_in(found) >= told[key]);
    RC_ASSERT(number_in(found) <= store[key]);
  }

  int hits = 0;
};

TEST(NearCacheProperty, NoValueIsOlderThanItsLastMessage) {
  int hits = 0;
  EXPECT_TRUE(rc::check("whatever overtakes what", [&hits] {
    Model model;
    model.connect();
    const auto steps =
        *rc::gen::resize(1000, rc::gen::container<std::vector<unsigned>>(
                                   rc::gen::resize(100, rc::gen::inRange(0U, 1U << 16))));
    for (const auto step : steps) {
      const auto key = "key " + std::to_string(step / 16 % 7);
      switch (step % 16) {
        case 0:
        case 1:
        case 2:
        case 3: model.begin_read(key); break;
        case 4:
        case 5:
        case 6:
        case 7: model.end_read(step); break;
        case 8:
        case 9: model.change(key); break;
        case 10:
        case 11:
        case 12: model.tell(); break;
        case 13: model.lose_connection(); break;
        case 14: model.connect(); break;
        default: model.now += std::chrono::seconds{step % 5};
      }
      for (int i = 0; i < 7; ++i) model.check("key " + std::to_string(i));
      RC_ASSERT(model.cache.stats().bytes <= std::size_t{64} << 10);
    }
    hits += model.hits;
  }));
  EXPECT_GT(hits, 100);
}

// What one thread writes and invalidates, the others never find older than it was then.
TEST(NearCacheThreads, NoReaderFindsWhatWasInvalidatedBeforeItAsked) {
  constexpr int keys = 2;
  NearCache cache{{.bytes = 256 << 10}};
  cache.open();
  std::array<std::atomic<int>, keys> store{};
  std::array<std::atomic<int>, keys> told{};
  std::atomic<int> older{0};
  std::atomic<int> hits{0};
  std::atomic<bool> over{false};
  const auto read = [&](unsigned seed) {
    std::minstd_rand random{seed};
    while (!over) {
      const auto i = random() % keys;
      const auto key = "key " + std::to_string(i);
      const int least = told[i];
      if (const auto found = cache.find(key, start)) {
        ++hits;
        if (number_in(found) < least) ++older;
        continue;
      }
      const auto fill = cache.begin_fill(key, start);
      const int read_version = store[i];
      std::this_thread::yield();  // the reply is on its way
      cache.fill(fill, key, value_of(read_version), 8, for_ever);
    }
  };
  {
    std::vector<std::jthread> readers;
    for (unsigned t = 1; t <= 3; ++t) readers.emplace_back(read, t);
    for (int version = 1; version <= 300 || hits < 10; ++version) {
      const auto i = static_cast<std::size_t>(version) % keys;
      store[i] = version;
      if (version % 1000 == 0) {
        cache.close();
        cache.open();
      } else {
        cache.invalidate("key " + std::to_string(i));
      }
      told[i] = version;
      std::this_thread::yield();
    }
    over = true;
  }
  EXPECT_EQ(older, 0);
}

}  // namespace
}  // namespace sluice::cache
