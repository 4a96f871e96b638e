/// The wire of the fair lock, and Redisson's clients beside ours.
#include <deque>

#include "lock/fair/server_fair.hpp"
#include "support/java_peer.hpp"
#include "support/wire_dump.hpp"

namespace sluice {
namespace {

using test::JavaPeer;
using test::WireDump;

struct Step {
  std::string_view what;
  std::string_view golden;  ///< the server afterwards
};

/// What both leave on the server: without the messages, as ours go to inboxes, and without the
/// fencing counter, which RFairLock has not.
std::string state_of(const std::string& dump) {
  std::string state;
  for (std::size_t begin = 0; begin < dump.size();) {
    const auto end = dump.find('\n', begin) + 1;
    auto line = dump.substr(begin, end - begin);
    // what we wait in ends, long after the last deadline; Redisson's does not
    if (line.starts_with("redisson_lock_queue:") || line.starts_with("redisson_lock_timeout:"))
      line = line.substr(0, line.find_first_of(",\n")) + '\n';
    if (!line.starts_with("redisson_lock_token:") && !line.starts_with(">") &&
        line.find("unlock_latch") == std::string::npos)
      state += line;
    begin = end;
  }
  return state;
}

class FairWire : public ServerFair {
 protected:
  using Doings = std::vector<std::function<void()>>;

  void expect(std::string_view side, std::span<const Step> steps, const Doings& doings) {
    ASSERT_EQ(steps.size(), doings.size());
    side_.command({"FLUSHALL"});
    WireDump dump{server_.port(), WireDump::Show::redisson};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      doings[i]();
      EXPECT_EQ(state_of(dump.step()), steps[i].golden) << side << ", " << steps[i].what;
    }
  }
};

/// One of ours that waits in a thread.
class Waiter {
 public:
  explicit Waiter(FairMutex& mutex)
      : got_(std::async(std::launch::async, [this, &mutex] {
          return mutex.try_acquire(1h, stop_.get_token()).get();
        })) {}

  void give_up() {
    stop_.request_stop();
    EXPECT_FALSE(got_.get());
  }
  Held enter() {
    auto held = got_.get();
    return held ? std::move(*held) : Held{};
  }

 private:
  std::stop_source stop_;
  std::future<std::optional<Held>> got_;
};

#define QUEUE "redisson_lock_queue:{stock} list\n"
#define DEADLINES "redisson_lock_timeout:{stock} zset\n"

TEST_F(FairWire, C01_FairLock) {
  static constexpr Step steps[] = {
      {"A enters", "stock hash, ttl 30s\n  A = 1\n"},
      {"A enters again", "stock hash, ttl 30s\n  A = 2\n"},
      {"A leaves once", "stock hash, ttl 30s\n  A = 1\n"},
      {"another looks once", "stock hash, ttl 30s\n  A = 1\n"},
      {"B waits", QUEUE "  B\n" DEADLINES "  B at now+330s\nstock hash, ttl 30s\n  A = 1\n"},
      {"C waits", QUEUE "  B\n  C\n" DEADLINES
                        "  B at now+330s\n  C at now+630s\nstock hash, ttl 30s\n  A = 1\n"},
      {"D waits",
       QUEUE "  B\n  C\n  D\n" DEADLINES
             "  B at now+330s\n  C at now+630s\n  D at now+930s\nstock hash, ttl 30s\n  A = 1\n"},
      {"C gives up", QUEUE "  B\n  D\n" DEADLINES
                           "  B at now+330s\n  D at now+630s\nstock hash, ttl 30s\n  A = 1\n"},
      {"A leaves, B enters",
       QUEUE "  D\n" DEADLINES "  D at now+330s\nstock hash, ttl 30s\n  B = 1\n"},
      {"B is forced out, D enters", "stock hash, ttl 30s\n  D = 1\n"},
      {"D leaves", ""},
  };

  JavaPeer client_a{server_.port(), 1};
  JavaPeer client_b{server_.port(), 2};
  JavaPeer client_c{server_.port(), 3};
  JavaPeer client_d{server_.port(), 4};
  JavaPeer client_e{server_.port(), 5};
  const JavaPeer::FairLock a{client_a, "stock"};
  const JavaPeer::FairLock b{client_b, "stock"};
  const JavaPeer::FairLock c{client_c, "stock"};
  const JavaPeer::FairLock d{client_d, "stock"};
  const JavaPeer::FairLock e{client_e, "stock"};
  expect(
      "Redisson", steps,
      {[&] { a.acquire(); }, [&] { a.acquire(); }, [&] { a.release(); }, [&] { e.try_acquire(); },
       [&] { b.acquire(); }, [&] { c.acquire(); }, [&] { d.acquire(); }, [&] { c.give_up(); },
       [&] {
         a.release();
         b.acquire();
       },
       [&] {
         b.force();
         d.acquire();
       },
       [&] { d.release(); }});

  FairMutex mutex{*store_, "stock", {.watchdog = false}};  // a grant is a whole lease at once
  const Owner owner;
  std::vector<Held> held;
  std::deque<Waiter> waiters;
  const auto wait = [&](int many) {
    waiters.emplace_back(mutex);
    await_queue(many);
  };
  expect("ours", steps,
         {[&] { held.push_back(mutex.acquire(owner).get()); },
          [&] { held.push_back(mutex.acquire(owner).get()); },
          [&] {
            held.back().release().get();
            held.pop_back();
          },
          [&] { EXPECT_FALSE(mutex.try_acquire().get()); }, [&] { wait(1); }, [&] { wait(2); },
          [&] { wait(3); },
          [&] {
            waiters[1].give_up();
            await_queue(2);
          },
          [&] {
            held.back().release().get();
            held.back() = waiters[0].enter();
          },
          [&] {
            mutex.force_release().get();
            held.back() = waiters[2].enter();
          },
          [&] { held.back().release().get(); }});
}

TEST_F(FairWire, KeysOfOursBesideItsBeginWithSluice) {
  FairMutex mutex{*store_, "stock"};
  auto held = mutex.acquire().get();
  Waiter waiter{mutex};
  await_queue(1);
  const Value keys = side_.command({"KEYS", "*"});
  for (const Value& key : keys.as_items())
    EXPECT_TRUE(key.as_text() == "stock" || key.as_text().starts_with("sluice") ||
                key.as_text().starts_with("redisson_lock_"))
        << key.as_text();
  EXPECT_GT(side_.command({"TTL", queue_}).as_integer(), 0);
  EXPECT_LE(side_.command({"TTL", "sluice_lock_tickets:{stock}"}).as_integer(), 60);
  waiter.give_up();
  held.release().get();
  await_queue(0);
  const Value left = side_.command({"KEYS", "*"});
  ASSERT_EQ(left.as_items().size(), 1U);
  EXPECT_EQ(left.as_items()[0].as_text(), "redisson_lock_token:{stock}");
}

/// Redisson and ours take turns in one queue, and each is woken by the other.
class FairMixed : public ServerFair {
 protected:
  using Clock = std::chrono::steady_clock;

  std::future<Clock::time_point> java_enters(JavaPeer::FairLock& lock) {
    return std::async(std::launch::async, [&lock] {
      EXPECT_TRUE(lock.acquire_within(20s));
      return Clock::now();
    });
  }

  JavaPeer peer_{server_.port(), 42};
  JavaPeer::FairLock java_{peer_, "stock"};
  FairMutex mutex_{*store_, "stock"};
};

TEST_F(FairMixed, P06_EachWakesTheOtherAtOnce) {
  int ours_woke = 0;
  int java_woke = 0;
  for (int round = 0; round < 5; ++round) {
    auto held = mutex_.acquire().get();
    auto java = java_enters(java_);
    await_queue(1);
    auto ours = enter_and_leave(mutex_);
    await_queue(2);
    await_subscribers(java_.channel(), 1);
    auto released = Clock::now();
    held.release().get();
    java_woke += java.get() - released < 1s;
    EXPECT_FALSE(mutex_.try_acquire().get());
    const std::string owner = side_.command({"LINDEX", queue_, "0"}).as_text();
    await_subscribers("redisson_lock__channel:{stock}:" + owner, 1);
    released = Clock::now();
    java_.release();
    ours_woke += ours.get() - released < 1s;
  }
  EXPECT_GE(java_woke, 3) << "of 5; the machine may be busy";
  EXPECT_GE(ours_woke, 3);
}

TEST_F(FairMixed, P06_ManyOfBothEnterInTheOrderOfArrival) {
  auto held = mutex_.acquire().get();
  std::deque<JavaPeer> peers;
  std::deque<JavaPeer::FairLock> locks;
  std::deque<std::future<void>> visits;
  std::mutex mutex;
  std::vector<int> order;
  const auto note = [&](int number) {
    const std::lock_guard lock{mutex};
    order.push_back(number);
  };
  for (int number = 0; number < 8; ++number) {
    if (number % 3 == 1) {
      auto& peer = peers.emplace_back(server_.port(), 100 + number);
      auto& lock = locks.emplace_back(peer, "stock");
      visits.push_back(std::async(std::launch::async, [&note, &lock, number] {
        EXPECT_TRUE(lock.acquire_within(30s));
        note(number);
        lock.release();
      }));
    } else {
      visits.push_back(std::async(std::launch::async, [&, number] {
        const auto mine = mutex_.acquire().get();
        note(number);
      }));
    }
    await_queue(number + 1);
  }
  held.release().get();
  for (auto& visit : visits) visit.get();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(FairMixed, DeadClientOfRedissonCostsTwoSeconds) {
  auto held = mutex_.acquire().get();
  EXPECT_FALSE(java_.acquire().is_null());  // and nobody listens for it
  auto ours = enter_and_leave(mutex_);
  await_queue(2);
  const int before = scripts_run();
  const auto released = Clock::now();
  held.release().get();
  EXPECT_LT(ours.get() - released, 10s);
  EXPECT_LE(scripts_run() - before, 30);
}

TEST_F(FairMixed, ReentryOfRedissonAndOursAreCountedInTheSameField) {
  EXPECT_TRUE(java_.acquire().is_null());
  EXPECT_TRUE(java_.acquire().is_null());
  EXPECT_FALSE(mutex_.try_acquire().get());
  EXPECT_EQ(java_.release(), Value::integer(0));
  EXPECT_FALSE(mutex_.try_acquire().get());
  EXPECT_EQ(java_.release(), Value::integer(1));
  EXPECT_TRUE(mutex_.try_acquire().get());
}

}  // namespace
}  // namespace sluice
