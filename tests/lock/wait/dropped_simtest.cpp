/// Waits whose Task is dropped: of each primitive, at each call on its way there and back, and at
/// rest. The wait leaves its line and takes nothing, and the primitive may be gone by then.
#include <array>

#include "lock/virtual_lock.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/latch.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/quorum_lock.hpp"
#include "sluice/rate_limiter.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"
#include "support/foreign.hpp"

namespace sluice {
namespace {

using test::Foreign;

/// Something to wait for, as one process has it.
class Gate {
 public:
  virtual ~Gate() = default;
  /// Waits, and keeps nothing.
  virtual Foreign wait(bool without_end) = 0;
  /// Takes all of it, at once. False: something of it is taken, or a waiter stands in line.
  virtual bool shut() = 0;
  virtual void open(VirtualClock& clock) = 0;
};

template <class Task>
Foreign await(Task task) {
  [[maybe_unused]] const auto got = co_await task;
}
Foreign await(Task<void> task) { co_await task; }

template <class Lock>
class LockGate : public Gate {
 public:
  template <class... Args>
  explicit LockGate(Args&&... args) : lock_(std::forward<Args>(args)...) {}
  Foreign wait(bool without_end) override {
    return without_end ? await(lock_.acquire()) : await(lock_.try_acquire(1h));
  }
  bool shut() override {
    held_ = lock_.try_acquire().get();
    return held_.has_value();
  }
  void open(VirtualClock&) override { held_.reset(); }

 protected:
  Lock lock_;

 private:
  decltype(lock_.try_acquire().get()) held_;
};

class ReadersGate final : public LockGate<SharedMutex> {
 public:
  using LockGate::LockGate;
  Foreign wait(bool without_end) override {
    return without_end ? await(lock_.acquire_shared()) : await(lock_.try_acquire_shared(1h));
  }
};

class DesksGate final : public Gate {
 public:
  explicit DesksGate(Store& store) : desks_(store, "stock") { desks_.try_set_permits(2).get(); }
  Foreign wait(bool without_end) override {
    return without_end ? await(desks_.acquire(2)) : await(desks_.try_acquire(1, 1h));
  }
  bool shut() override {
    held_ = desks_.try_acquire(2).get();
    return held_.has_value();
  }
  void open(VirtualClock&) override { held_.reset(); }

 private:
  Semaphore desks_;
  std::optional<Held> held_;
};

template <bool by_id>
class PermitsGate final : public Gate {
 public:
  explicit PermitsGate(Store& store) : permits_(store, "stock") {
    permits_.try_set_permits(2).get();
  }
  Foreign wait(bool without_end) override {
    if (by_id) return await(permits_.take(unlimited_lease, 1h));
    return without_end ? await(permits_.acquire()) : await(permits_.try_acquire_many(2, 1h));
  }
  bool shut() override {
    held_ = permits_.try_acquire_many(2).get();
    return !held_.empty();
  }
  void open(VirtualClock&) override { held_.clear(); }

 private:
  PermitSemaphore permits_;
  std::vector<HeldPermit> held_;
};

class RateGate final : public Gate {
 public:
  explicit RateGate(Store& store) : limiter_(store, "stock", {.rate = 3, .interval = 2min}) {}
  Foreign wait(bool without_end) override {
    return without_end ? await(limiter_.acquire(1)) : await(limiter_.try_acquire(3, 1h));
  }
  bool shut() override { return limiter_.try_acquire(3).get().has_value(); }
  void open(VirtualClock& clock) override { clock.advance(2min); }

 private:
  RateLimiter limiter_;
};

class LatchGate final : public Gate {
 public:
  explicit LatchGate(Store& store) : store_(store), latch_(store, "stock") {}
  Foreign wait(bool without_end) override {
    return without_end ? await(latch_.wait()) : await(latch_.try_wait(1h));
  }
  /// Nobody takes anything of a latch: nobody listens.
  bool shut() override {
    const std::string_view channel = "redisson_countdownlatch__channel__{stock}";
    return latch_.try_set_count(1).get() &&
           store_.run({"PUBLISH", channel, "1"}).get().as_integer() == 0;
  }
  void open(VirtualClock&) override { latch_.reset(0).get(); }

 private:
  Store& store_;
  Latch latch_;
};

struct Primitive {
  const char* name;
  std::unique_ptr<Gate> (*make)(Store& store);
};

template <class Made, class... Args>
std::unique_ptr<Gate> make(Store& store) {
  return std::make_unique<Made>(store, Args{}...);
}
struct Name {
  operator std::string() const { return "stock"; }  // NOLINT(google-explicit-constructor)
};

const std::array kinds{
    Primitive{"Mutex", make<LockGate<Mutex>, Name>},
    Primitive{"FairMutex", make<LockGate<FairMutex>, Name>},
    Primitive{"SharedMutex", make<LockGate<SharedMutex>, Name>},
    Primitive{"readers", make<ReadersGate, Name>},
    Primitive{"MultiLock",
              [](Store& store) -> std::unique_ptr<Gate> {
                return std::make_unique<LockGate<MultiLock>>(store,
                                                             std::vector<std::string>{"stock"});
              }},
    Primitive{"QuorumLock",
              [](Store& store) -> std::unique_ptr<Gate> {
                return std::make_unique<LockGate<QuorumLock>>(std::vector{&store}, "stock");
              }},
    Primitive{"Semaphore", make<DesksGate>},
    Primitive{"PermitSemaphore", make<PermitsGate<false>>},
    Primitive{"permits by id", make<PermitsGate<true>>},
    Primitive{"RateLimiter", make<RateGate>},
    Primitive{"Latch", make<LatchGate>},
};

struct Case {
  const Primitive& kind;
  bool without_end;
  bool is_shut;
  Fault fault;
  int call;  ///< number of the call that is late; from 0
};

std::string to_text(const Case& one) {
  return std::string{one.kind.name} + (one.without_end ? ", without end" : ", for an hour") +
         (one.is_shut ? ", shut" : ", free") +
         (one.fault == Fault::none           ? ", at rest "
          : one.fault == Fault::request_late ? ", request "
                                             : ", reply ") +
         std::to_string(one.call);
}

/// What is wrong; empty: nothing. `reached`: whether there was such a call.
std::string drop_at(const Case& one, bool& reached) {
  VirtualClock clock;
  const auto store = engine::open_embedded({.clock = &clock});
  test::FaultyStore line{*store};
  test::FaultyStore far{*store};
  const auto other = one.kind.make(far);
  auto mine = one.kind.make(line);
  if (one.is_shut && !other->shut()) return "it is not free at the beginning";
  int calls = 0;
  reached = one.fault == Fault::none;
  line.plan = [&](std::string_view) {
    if (reached || calls++ != one.call) return Fault::none;
    reached = true;
    return one.fault;
  };
  const auto timers = clock.pending_timers();
  const Foreign waiter = mine->wait(one.without_end);
  bool is_shut = one.is_shut;
  if (!reached && is_shut) {
    other->open(clock);
    is_shut = false;
    if (!reached) clock.advance(35s);
  }
  const bool got = waiter.coroutine.done() && !waiter.coroutine.promise().failure;
  waiter.coroutine.destroy();
  mine.reset();
  line.plan = [](std::string_view) { return Fault::none; };
  line.let_go();
  if (got) return "";
  clock.advance(3s);
  if (is_shut && clock.pending_timers() > timers) return "it waits on";
  if (is_shut) other->open(clock);
  if (other->shut()) return "";
  return "it is not free at the end";
}

TEST(DroppedWait, CO10_LeavesItsLineAndTakesNothing) {
  int drops = 0;
  for (const Primitive& kind : kinds)
    for (const bool without_end : {true, false})
      for (const bool is_shut : {true, false})
        for (const Fault fault : {Fault::none, Fault::request_late, Fault::reply_late}) {
          bool reached = true;
          for (int call = 0; reached && call < 12; ++call) {
            const Case one{kind, without_end, is_shut, fault, call};
            const std::string wrong = drop_at(one, reached);
            drops += reached ? 1 : 0;
            EXPECT_EQ(wrong, "") << to_text(one) << ", drop " << drops;
            if (fault == Fault::none) break;
          }
        }
  EXPECT_GT(drops, 100);
}

}  // namespace
}  // namespace sluice
