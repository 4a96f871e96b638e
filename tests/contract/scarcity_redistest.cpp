// A machine that lacks descriptors, threads or memory for a moment: each request to the system
// fails once, in a process of its own. What was asked then fails with an Error or waits, and all
// goes on afterwards as if nothing had been: holds are renewed, losses told, waiters let in.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <latch>
#include <thread>
#include <type_traits>

#include "sluice/sluice.hpp"
#include "support/comes_true.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/scarcity.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

/// What the steps of a history share.
struct World {
  explicit World(std::string where) : url(std::move(where)) {}
  std::string name() { return "n" + std::to_string(++names) + ":" + std::to_string(::getpid()); }

  const std::string url;
  int names = 0;
  std::unique_ptr<Store> store{};
  std::unique_ptr<Store> other{};
};

struct Step {
  const char* name;
  /// Gives what is wrong; empty: nothing.
  std::function<std::string(World&)> run;
};

constexpr auto short_lease = 300ms;

/// Of one name: an acquire that fails leaves no hold behind that is renewed.
std::string keeps_a_hold(World& world) {
  Mutex mutex{*world.store, "hold:" + std::to_string(::getpid()), {.lease = short_lease}};
  const auto held = mutex.try_acquire(20 * short_lease).get();
  if (!held) return "a hold that nobody has is renewed";
  std::this_thread::sleep_for(3 * short_lease);
  return held->valid() ? "" : "the hold was not renewed";
}

std::string is_told_of_a_loss(World& world) {
  const auto name = world.name();
  Mutex mutex{*world.store, name, {.lease = short_lease}};
  auto held = mutex.acquire().get();
  std::atomic<bool> is_told{false};
  held.on_lost([&](LostCause) { is_told = true; });
  world.store->run({"DEL", name}).get();
  if (!test::comes_true([&] { return is_told.load(); })) return "nobody was told of a loss";
  return "";
}

/// A wait that no thread waits for. It may go on when the step that began it has failed.
class Waiting {
 public:
  /// `on`: what is waited on, which lives as long as the wait.
  template <class T>
  Waiting(std::shared_ptr<void> on, Task<T> wait) {
    spawn(end(state_, std::move(on), std::move(wait)), [state = state_](std::exception_ptr why) {
      state->failure = std::move(why);
      state->outcome = -1;
    });
  }
  /// What is wrong; empty: it was let in. Throws what the wait has thrown.
  std::string end() const {
    if (!test::comes_true([&] { return state_->outcome != 0; })) return "a waiter waits";
    if (state_->failure) std::rethrow_exception(state_->failure);
    return state_->outcome > 0 ? "" : "a waiter was not let in";
  }

 private:
  struct State {
    std::atomic<int> outcome{0};  // 1: it was let in, -1: it was not
    std::exception_ptr failure;
  };
  template <class T>
  static Task<void> end(std::shared_ptr<State> state, std::shared_ptr<void> /*on*/, Task<T> wait) {
    if constexpr (std::is_void_v<T>) {
      co_await wait;
      state->outcome = 1;
    } else {
      const auto got = co_await wait;
      state->outcome = got ? 1 : -1;
    }
  }

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

template <class Lock>
std::string lets_a_waiter_in(World& world) {
  const auto name = world.name();
  const auto mine = std::make_shared<Lock>(*world.store, name);
  Lock others{*world.other, name};
  auto held = others.acquire().get();
  const Waiting waiting{mine, mine->try_acquire(4s)};
  std::this_thread::sleep_for(20ms);
  held.release().get();
  return waiting.end();
}

std::string hears_a_channel(World& world) {
  std::atomic<int> heard{0};
  const auto channel = world.name();
  const auto listener = world.store->subscribe(channel, [&](const Message&) { ++heard; }).get();
  world.store->run({"PUBLISH", channel, "x"}).get();
  return test::comes_true([&] { return heard == 1; }) ? "" : "a message was not heard";
}

std::string opens_a_latch(World& world) {
  const auto latch = std::make_shared<Latch>(*world.store, world.name());
  latch->try_set_count(1).get();
  const Waiting waiting{latch, latch->wait()};
  latch->count_down().get();
  return waiting.end();
}

std::string counts(World& world) {
  Series series{*world.store, world.name(), {.zone = "Asia/Shanghai", .digits = 6}};
  const auto first = series.next().get();
  const auto second = series.next().get();
  return first && second && first->text < second->text ? "" : "numbers do not rise";
}

std::string loads(World& world) {
  CacheGuard<std::string> guard{*world.store, world.name(), {.ttl = 1h, .near_bytes = 1 << 16}};
  for (const char* const key : {"a", "b", "a"}) {
    const auto value = guard.get(key, [](const std::string& of) { return of + "!"; }).get();
    if (!value || *value != std::string{key} + "!") return "a cache gives another value";
  }
  return "";
}

std::string limits(World& world) {
  RateLimiter limiter{*world.store, world.name(), {.rate = 2, .interval = 1h}};
  const bool one = limiter.try_acquire().get().has_value();
  const bool two = limiter.try_acquire().get().has_value();
  return one && two && !limiter.try_acquire().get() ? "" : "another number of permits";
}

std::vector<Step> steps() {
  return {
      {"open", [](World& world) { return world.store = open(world.url), std::string{}; }},
      {"open another", [](World& world) { return world.other = open(world.url), std::string{}; }},
      {"a hold", keeps_a_hold},
      {"a loss", is_told_of_a_loss},
      {"a waiter of a Mutex", lets_a_waiter_in<Mutex>},
      {"a waiter of a FairMutex", lets_a_waiter_in<FairMutex>},
      {"a channel", hears_a_channel},
      {"a latch", opens_a_latch},
      {"a series", counts},
      {"a cache", loads},
      {"a limiter", limits},
  };
}

/// Shared with the process that plays a history.
struct Seen {
  std::size_t requests;
  std::size_t refused;
  std::array<char, 400> wrong;
};

class Play {
 public:
  Play(std::string url, test::Lack lack, Seen& seen)
      : world_(std::move(url)), lack_(lack), seen_(seen) {}

  void run(std::size_t from, std::size_t count) {
    const auto all = steps();
    {
      const test::Scarcity scarcity{lack_, from, count};
      for (const auto& step : all)
        if (seen_.wrong[0] == 0) disturbed(step, scarcity);
      seen_.requests = scarcity.requests();
      seen_.refused = scarcity.refused();
    }
    for (const auto& step : all)
      if (seen_.wrong[0] == 0) undisturbed(step, "afterwards");
  }

 private:
  void disturbed(const Step& step, const test::Scarcity& scarcity) {
    std::string why;
    for (int turn = 0; turn < 3 + static_cast<int>(scarcity.refused()); ++turn) {
      const auto refused = scarcity.refused();
      try {
        why = step.run(world_);
      } catch (const Error& error) {
        why = error.message();
      } catch (const std::bad_alloc&) {
        why = "no memory";
      } catch (const std::exception& error) {
        return tell(step, "the exception is no Error", error.what());
      }
      if (why.empty()) return;
      if (turn > 1 && scarcity.refused() == refused) break;
    }
    tell(step, "again", why);
  }
  /// A scar stays; a machine that stands still for a lease does not.
  void undisturbed(const Step& step, const char* when) {
    std::string why;
    for (int turn = 0; turn < 3; ++turn) {
      try {
        why = step.run(world_);
      } catch (const std::exception& error) {
        why = error.what();
      }
      if (why.empty()) return;
    }
    tell(step, when, why);
  }
  void tell(const Step& step, const char* when, const std::string& why) {
    if (seen_.wrong[0] == 0)
      std::snprintf(seen_.wrong.data(), seen_.wrong.size(), "%s, %s: %s", step.name, when,
                    why.c_str());
  }

  World world_;
  const test::Lack lack_;
  Seen& seen_;
};

/// Plays one history in a process of its own; what it saw is in `seen`.
class Player {
 public:
  Player(std::string url, test::Lack lack, std::size_t from, std::size_t count)
      : from_(from),
        seen_(new (::mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                          -1, 0)) Seen{}),
        process_([this, url = std::move(url), lack, from, count] {
          Play{url, lack, *seen_}.run(from, count);
          return 0;
        }) {}

  /// What was wrong; empty: nothing.
  std::string end() {
    const auto status = process_.wait_for(60s);
    if (!status) return "it does not end";
    if (*status != 0)
      return "it ended with " + std::to_string(*status) + ": " + seen_->wrong.data();
    return seen_->wrong.data();
  }
  const Seen& seen() const { return *seen_; }
  std::size_t from() const { return from_; }

 private:
  std::size_t from_;
  Seen* const seen_;
  test::Process process_;
};

struct Scarce {
  test::Lack lack;
  std::size_t count;
  std::size_t stride;  // of the requests that are tried
};

class Scarcely : public testing::TestWithParam<Scarce> {};

TEST_P(Scarcely, CO04_AFaultOfTheSystemLeavesNoScar) {
  const auto [lack, count, stride] = GetParam();
  const test::RedisServer server;
  Player undisturbed{server.url(), lack, 1'000'000'000, 1};
  ASSERT_EQ(undisturbed.end(), "");
  const std::size_t all = undisturbed.seen().requests;
  ASSERT_GT(all, 0U);
  std::deque<Player> players;
  std::size_t refused = 0;
  std::size_t scars = 0;
  const auto end_one = [&] {
    auto& player = players.front();
    const auto wrong = player.end();
    refused += player.seen().refused;
    if (!wrong.empty() && ++scars <= 10)
      ADD_FAILURE() << "request " << player.from() << ": " << wrong;
    players.pop_front();
  };
  for (std::size_t from = 0; from < all; from += stride) {
    players.emplace_back(server.url(), lack, from, count);
    if (players.size() >= 8) end_one();
  }
  while (!players.empty()) end_one();
  std::printf("%zu requests, %zu refused, %zu scars\n", all, refused, scars);
  EXPECT_EQ(scars, 0U);
}

/// Of memory, of which 700 requests are made, some are tried; all of them with SLUICE_ALL_POINTS=1.
std::vector<Scarce> all_that_may_be_lacked() {
  return {{test::Lack::descriptors, 1, 1},
          {test::Lack::descriptors, 4, 1},
          {test::Lack::threads, 1, 1},
          {test::Lack::threads, 3, 1},
          {test::Lack::memory, 1, std::getenv("SLUICE_ALL_POINTS") ? 1U : 23U}};
}

INSTANTIATE_TEST_SUITE_P(, Scarcely, testing::ValuesIn(all_that_may_be_lacked()));

}  // namespace
}  // namespace sluice
