/// A lock of five nodes that fail, forget and set their clocks, in virtual time.
#include <random>

#include "lock/quorum/virtual_quorum.hpp"
#include "sluice/mutex.hpp"
#include "sluice/store.hpp"
#include "support/history.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Fault;
using test::QuorumVisitor;
using Kind = ReleaseOutcome::Kind;

class Quorum : public testing::Test {
 protected:
  bool has(std::size_t node, const Held& held) {
    const auto value = nodes_.nodes[node].store->run({"HGET", "stock", held.owner().text}).get();
    return !value.is_null();
  }

  test::VirtualNodes nodes_{5};
  QuorumLock lock_{nodes_.stores(), "stock"};
  QuorumLock other_{test::VirtualNodes::stores(nodes_.add_client()), "stock"};
};

TEST_F(Quorum, FreeLockTakesOneRound) {
  auto held = lock_.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(nodes_.holders("stock"), 5U);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(nodes_.line(i).executed("lock/mutex/acquire"), 1U);
  EXPECT_FALSE(other_.try_acquire().get());
  EXPECT_EQ(held->release().get().kind, Kind::released);
  EXPECT_EQ(nodes_.holders("stock"), 0U);
  EXPECT_TRUE(other_.try_acquire().get());
}

TEST_F(Quorum, HoldIsCertainForTheLeaseLessTheAskingAndTheDrift) {
  QuorumLock lock{nodes_.stores(), "stock", {.lease = 1s, .node_timeout = 900ms}};
  for (std::size_t i = 2; i < 5; ++i)
    nodes_.line(i).plan = [](std::string_view call) {
      return call == "lock/mutex/acquire" ? Fault::reply_late : Fault::none;
    };
  QuorumVisitor visitor{lock, 0ms};
  nodes_.advance(400ms);
  EXPECT_TRUE(visitor.waits());
  nodes_.line(2).let_go();
  ASSERT_TRUE(visitor.in());
  EXPECT_EQ(visitor.held->valid_for(), 1s - 400ms - 12ms) << "drift: a hundredth and 2 ms";
}

TEST_F(Quorum, GrantWithoutAnyCertainTimeLeftIsGivenBack) {
  QuorumLock lock{nodes_.stores(), "stock", {.lease = 100ms, .node_timeout = 99ms}};
  for (std::size_t i = 0; i < 5; ++i)
    nodes_.line(i).plan = [](std::string_view call) {
      return call == "lock/mutex/acquire" ? Fault::reply_late : Fault::none;
    };
  QuorumVisitor visitor{lock, 0ms};
  nodes_.advance(97ms);  // the lease less a drift of 3 ms
  for (std::size_t i = 0; i < 5; ++i) nodes_.line(i).let_go();
  EXPECT_TRUE(visitor.failed());
  EXPECT_EQ(nodes_.holders("stock"), 0U);
}

TEST_F(Quorum, MinorityIsReleasedAtOnce) {
  for (std::size_t i = 0; i < 3; ++i)
    nodes_.nodes[i]
        .store->run({"HSET", "stock", "6a7661a0-0000-4000-8000-000000000000:1", "1"})
        .get();
  EXPECT_FALSE(lock_.try_acquire().get());
  EXPECT_FALSE(nodes_.nodes[3].exists("stock"));
  EXPECT_FALSE(nodes_.nodes[4].exists("stock"));
}

TEST_F(Quorum, MinorityIsReleasedBeforeTheAttemptReturns) {
  QuorumLock lock{nodes_.stores(), "stock", {.node_timeout = 200ms}};
  for (std::size_t i = 0; i < 3; ++i)
    nodes_.nodes[i]
        .store->run({"HSET", "stock", "6a7661a0-0000-4000-8000-000000000000:1", "1"})
        .get();
  for (const std::size_t node : {3U, 4U})
    nodes_.line(node).plan = [](std::string_view call) {
      return call == "lock/mutex/release" ? Fault::request_late : Fault::none;
    };
  QuorumVisitor refused{lock, 0ms};
  nodes_.advance(100ms);
  EXPECT_TRUE(refused.waits()) << "its program may exit as soon as it returns";
  nodes_.line(3).let_go();
  EXPECT_FALSE(nodes_.nodes[3].exists("stock"));
  EXPECT_TRUE(refused.waits());
  nodes_.line(4).let_go();
  EXPECT_FALSE(refused.waits());
  EXPECT_FALSE(nodes_.nodes[4].exists("stock"));

  QuorumVisitor unlucky{lock, 0ms};
  nodes_.advance(199ms);
  EXPECT_TRUE(unlucky.waits());
  nodes_.advance(1ms);
  EXPECT_FALSE(unlucky.waits()) << "no longer than for any answer";
  EXPECT_FALSE(unlucky.failed());
}

TEST_F(Quorum, FailureSaysWhatIsKnownOfEachNode) {
  nodes_.take_down(0);
  nodes_.take_down(1);
  nodes_.take_down(2);
  nodes_.line(3).plan = [](std::string_view) { return Fault::request_late; };
  QuorumLock lock{nodes_.stores(), "stock", {.node_timeout = 200ms}};
  std::string said;
  spawn([](QuorumLock& wanted) -> Task<void> { const Held none = co_await wanted.acquire(); }(lock),
        [&said](const std::exception_ptr& failure) {
          try {
            std::rethrow_exception(failure);
          } catch (const Error& error) {
            EXPECT_EQ(error.errc(), Errc::connection);
            said = error.message();
          }
        });
  nodes_.advance(1s);
  EXPECT_NE(said.find("of 5 nodes 3 failed and 1 did not answer yet, and 3 have to"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find(": has not answered yet; "), std::string::npos) << said;
  EXPECT_NE(said.find(": granted"), std::string::npos) << said;
}

TEST_F(Quorum, GrantThatComesAfterTheRefusalIsReleased) {
  for (std::size_t i = 0; i < 3; ++i)
    nodes_.nodes[i]
        .store->run({"HSET", "stock", "6a7661a0-0000-4000-8000-000000000000:1", "1"})
        .get();
  nodes_.line(4).plan = [](std::string_view call) {
    return call == "lock/mutex/acquire" ? Fault::request_late : Fault::none;
  };
  EXPECT_FALSE(lock_.try_acquire().get());
  nodes_.line(4).let_go();
  EXPECT_EQ(nodes_.line(4).executed("lock/mutex/acquire"), 1U);
  EXPECT_FALSE(nodes_.nodes[4].exists("stock"));
}

TEST_F(Quorum, GrantThatComesAfterTheReleaseIsReleased) {
  nodes_.line(4).plan = [](std::string_view call) {
    return call == "lock/mutex/acquire" ? Fault::request_late : Fault::none;
  };
  auto held = lock_.try_acquire().get();
  ASSERT_TRUE(held);
  held->release().get();
  nodes_.line(4).let_go();
  EXPECT_EQ(nodes_.holders("stock"), 0U);
}

TEST_F(Quorum, Q04_TwoDownOfFiveIsFine) {
  nodes_.take_down(0);
  nodes_.take_down(3);
  auto held = lock_.try_acquire().get();
  ASSERT_TRUE(held);
  nodes_.advance(5min);
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(held->release().get().kind, Kind::released);
}

TEST_F(Quorum, Q04_ThreeDownOfFiveFailsFastAndSaysWhich) {
  for (const std::size_t node : {0U, 1U, 2U}) nodes_.take_down(node);
  for (const auto wait : {0ms, 60'000ms}) {
    try {
      (void)lock_.try_acquire(wait).get();
      FAIL() << "acquired by a minority";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.errc(), Errc::connection);
      EXPECT_NE(failure.message().find("of 5 nodes 3 failed"), std::string::npos)
          << failure.message();
      EXPECT_NE(failure.message().find("the test refused"), std::string::npos) << failure.message();
    }
    EXPECT_EQ(nodes_.holders("stock"), 0U) << "what the minority granted is taken back";
  }
}

TEST_F(Quorum, SilentNodesAreWaitedForNoLongerThanTheirTimeout) {
  QuorumLock lock{nodes_.stores(), "stock", {.node_timeout = 200ms}};
  for (std::size_t i = 0; i < 3; ++i)
    nodes_.line(i).plan = [](std::string_view) { return Fault::request_late; };
  QuorumVisitor visitor{lock, 1h};
  nodes_.advance(199ms);
  EXPECT_TRUE(visitor.waits());
  nodes_.advance(1ms);
  EXPECT_TRUE(visitor.failed());
  for (std::size_t i = 0; i < 3; ++i) nodes_.line(i).let_go();
  for (std::size_t i = 0; i < 3; ++i) nodes_.line(i).let_go();  // and what took the grants back
  EXPECT_EQ(nodes_.holders("stock"), 0U);
}

TEST_F(Quorum, KeyOfAnotherKindIsSaid) {
  for (auto& node : nodes_.nodes) node.store->run({"SET", "stock", "text"}).get();
  try {
    (void)lock_.try_acquire().get();
    FAIL() << "acquired a string";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::wrong_type) << failure.message();
  }
}

TEST_F(Quorum, NodeThatForgotIsHealedWhileTheMajorityHolds) {
  auto held = lock_.acquire().get();
  for (const std::size_t node : {0U, 1U}) nodes_.empty(node);
  EXPECT_EQ(nodes_.holders("stock"), 3U);
  nodes_.advance(10s);
  EXPECT_EQ(nodes_.holders("stock"), 5U);
  EXPECT_TRUE(has(0, held));
  for (const std::size_t node : {2U, 3U}) nodes_.take_down(node);
  nodes_.advance(5min);
  EXPECT_TRUE(held.valid()) << "by the healed nodes and one more";
  EXPECT_FALSE(other_.try_acquire().get());
  auto& counter = *nodes_.nodes[0].store;
  EXPECT_GE(static_cast<std::uint64_t>(
                counter.run({"GET", "redisson_lock_token:{stock}"}).get().as_integer()),
            held.token().value);
}

TEST_F(Quorum, LK10_ACounterThatIsNoneStopsNoRenewal) {
  QuorumLock beside{nodes_.stores(), "beside"};
  auto held = lock_.acquire().get();
  auto other = beside.acquire().get();
  for (const std::size_t node : {0U, 1U}) {
    nodes_.empty(node);
    nodes_.nodes[node].store->run({"HSET", "redisson_lock_token:{stock}", "no", "counter"}).get();
  }
  nodes_.advance(5min);
  EXPECT_TRUE(held.valid()) << "by the other three";
  EXPECT_TRUE(other.valid());
  EXPECT_FALSE(nodes_.nodes[0].exists("stock")) << "no hold without a token";
  EXPECT_TRUE(nodes_.nodes[0].exists("beside"));
}

TEST_F(Quorum, NodeThatDidNotGrantIsAskedAgainSoon) {
  nodes_.take_down(4);
  auto held = lock_.acquire().get();
  nodes_.bring_back(4);
  EXPECT_FALSE(has(4, held));
  nodes_.advance(1s);
  EXPECT_TRUE(has(4, held)) << "long before a third of the lease";
}

TEST_F(Quorum, MajorityThatIsAnothersIsALoss) {
  auto held = lock_.acquire().get();
  std::optional<LostCause> told;
  held.on_lost([&](LostCause cause) { told = cause; });
  for (std::size_t i = 0; i < 3; ++i) {
    nodes_.empty(i);
    nodes_.nodes[i]
        .store->run({"HSET", "stock", "6a7661a0-0000-4000-8000-000000000000:1", "1"})
        .get();
  }
  nodes_.advance(10s);
  EXPECT_EQ(told, LostCause::taken);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
}

TEST_F(Quorum, W07_LostAtTheDeadlineWhenTheMajorityIsNotRenewed) {
  auto held = lock_.acquire().get();
  std::vector<Risk> risks;
  std::optional<LostCause> told;
  held.on_risk([&](Risk risk) { risks.push_back(risk); });
  held.on_lost([&](LostCause cause) { told = cause; });
  for (const std::size_t node : {0U, 1U, 2U}) nodes_.take_down(node);
  const auto left = held.valid_for();
  nodes_.advance(left - 1ms);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(risks, std::vector{Risk::unanswered});
  EXPECT_FALSE(told);
  nodes_.advance(1ms);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(told, LostCause::unreachable);
}

TEST_F(Quorum, MajorityThatComesBackInTimeKeepsTheHold) {
  auto held = lock_.acquire().get();
  for (const std::size_t node : {0U, 1U, 2U}) nodes_.take_down(node);
  nodes_.advance(25s);
  nodes_.bring_back(1);
  nodes_.advance(5min);
  EXPECT_TRUE(held.valid());
}

TEST_F(Quorum, OneHoldThatNobodyCanTellOfDoesNotDragOthersAlong) {
  QuorumLock sibling{nodes_.stores(), "sibling"};
  auto held = lock_.acquire().get();
  auto other = sibling.acquire().get();
  for (const std::size_t node : {0U, 1U}) nodes_.take_down(node);
  nodes_.nodes[2].store->run({"DEL", "stock"}).get();
  nodes_.nodes[2]
      .store->run({"HSET", "stock", "6a7661a0-0000-4000-8000-000000000000:1", "1"})
      .get();
  nodes_.advance(40s);
  EXPECT_FALSE(held.valid()) << "two of five";
  EXPECT_TRUE(other.valid());
}

TEST_F(Quorum, RenewalsOfManyHoldsTravelTogether) {
  std::deque<QuorumLock> locks;
  std::vector<Held> holds;
  for (int i = 0; i < 100; ++i) {
    locks.emplace_back(nodes_.stores(), "lock " + std::to_string(i));
    holds.push_back(locks.back().acquire().get());
  }
  nodes_.advance(30s);
  EXPECT_LE(nodes_.line(0).executed("lock/quorum/renew"), 4U);
  for (const auto& held : holds) EXPECT_TRUE(held.valid());
}

TEST_F(Quorum, WaiterHearsTheReleaseLongBeforeItsPauseIsOver) {
  QuorumLock patient{nodes_.stores(), "stock", {.first_pause = 20s, .longest_pause = 20s}};
  auto held = other_.acquire().get();
  QuorumVisitor visitor{patient, 1h};
  nodes_.advance(1s);
  EXPECT_TRUE(visitor.waits());
  held.release().get();
  nodes_.advance(5s);  // it does not run at once: others might
  ASSERT_TRUE(visitor.in());
  EXPECT_GT(visitor.held->token(), held.token());
}

TEST_F(Quorum, WaiterThatHearsNothingFindsTheReleaseAllTheSame) {
  auto held = other_.acquire().get();
  for (std::size_t i = 0; i < 5; ++i) nodes_.line(i).lose_messages();
  QuorumVisitor visitor{lock_, 1h};
  nodes_.advance(10s);
  held.release().get();
  nodes_.advance(700ms);
  EXPECT_TRUE(visitor.in());
}

TEST_F(Quorum, PatienceAndStopEndTheWait) {
  auto held = other_.acquire().get();
  QuorumVisitor visitor{lock_, 3s};
  std::stop_source stop;
  QuorumVisitor stopped{lock_, 1h, stop.get_token()};
  stop.request_stop();
  nodes_.advance(500ms);
  EXPECT_FALSE(stopped.waits());
  EXPECT_FALSE(stopped.in());
  EXPECT_TRUE(visitor.waits());
  nodes_.advance(3s);
  EXPECT_FALSE(visitor.waits());
  EXPECT_FALSE(visitor.in());
  held.release().get();
  EXPECT_EQ(nodes_.holders("stock"), 0U);
}

TEST_F(Quorum, DroppedHoldIsReleasedAtAllNodes) {
  { const auto held = lock_.acquire().get(); }
  EXPECT_EQ(nodes_.holders("stock"), 0U);
}

TEST_F(Quorum, LostRepliesLeaveNothing) {
  for (std::size_t i = 0; i < 5; ++i)
    nodes_.line(i).plan = [](std::string_view call) {
      return call == "lock/mutex/acquire" ? Fault::cut_off : Fault::none;
    };
  EXPECT_THROW((void)lock_.try_acquire().get(), Error);
  EXPECT_EQ(nodes_.holders("stock"), 0U);
}

TEST_F(Quorum, TokensRiseThoughMajoritiesChange) {
  FencingToken last;
  for (std::size_t round = 0; round < 20; ++round) {
    const std::size_t down[] = {round % 5, (round * 2 + 1) % 5};
    for (const std::size_t node : down) nodes_.take_down(node);
    auto held = lock_.acquire().get();
    EXPECT_GT(held.token(), last) << round;
    last = held.token();
    held.release().get();
    for (const std::size_t node : down) nodes_.bring_back(node);
  }
}

TEST_F(Quorum, TokensRiseThoughOneCounterIsFarAhead) {
  nodes_.nodes[0].store->run({"SET", "redisson_lock_token:{stock}", "8000000000000000"}).get();
  auto first = lock_.acquire().get();
  EXPECT_GT(first.token().value, 8'000'000'000'000'000U);
  first.release().get();
  nodes_.take_down(0);  // the one that gave it
  EXPECT_GT(lock_.acquire().get().token(), first.token());
}

TEST_F(Quorum, WithoutFencingNothingIsRaised) {
  QuorumLock plain{nodes_.stores(), "stock", {.fenced = false}};
  nodes_.nodes[0].store->run({"SET", "redisson_lock_token:{stock}", "8000000000000000"}).get();
  auto held = plain.acquire().get();
  EXPECT_EQ(nodes_.line(1).executed("lock/quorum/raise"), 0U);
}

TEST_F(Quorum, MutexAtOneNodeIsOneVote) {
  Mutex mutex{*nodes_.nodes[0].store, "stock"};
  auto in_the_way = mutex.acquire().get();
  auto held = lock_.acquire().get();
  EXPECT_EQ(nodes_.holders("stock"), 5U);
  EXPECT_FALSE(has(0, held));
  in_the_way.release().get();
  nodes_.advance(10s);
  EXPECT_TRUE(has(0, held)) << "taken up by the renewal";
}

TEST_F(Quorum, OneNodeIsAQuorumToo) {
  QuorumLock single{{nodes_.stores().front()}, "single"};
  auto held = single.acquire().get();
  EXPECT_EQ(nodes_.holders("single"), 1U);
  EXPECT_EQ(held.release().get().kind, Kind::released);
}

TEST_F(Quorum, WrongNodesAreSaid) {
  auto stores = nodes_.stores();
  EXPECT_THROW(QuorumLock({}, "stock"), Error);
  EXPECT_THROW(QuorumLock({stores[0], nullptr}, "stock"), Error);
  EXPECT_THROW(QuorumLock({stores[0], stores[1], stores[0]}, "stock"), Error);
  EXPECT_THROW(QuorumLock(stores, ""), Error);
  EXPECT_THROW(QuorumLock(stores, "stock", {.lease = 1s, .node_timeout = 1s}), Error);
  EXPECT_THROW(QuorumLock(stores, "stock", {.first_pause = 2s, .longest_pause = 1s}), Error);
}

/// Clients that come and go: two are never certain at once, and tokens rise; though they lose,
/// double and delay what they say, or though the clock of one node of five goes ahead again and
/// again, and all leases there with it, as on a redis-server. (Not both: a hold of three nodes
/// cannot spare one that forgets it.)
class Storm {
 public:
  enum class Weather { faults, clock_jumps };

  explicit Storm(unsigned seed, Weather weather)
      : random_(seed), clock_jumps_(weather == Weather::clock_jumps), faults_(!clock_jumps_) {
    for (int i = 0; i < 3; ++i) {
      auto& lines = nodes_.add_client();
      for (auto& line : lines) line.plan = [this](std::string_view) { return fault(); };
      locks_.emplace_back(test::VirtualNodes::stores(lines), "stock",
                          QuorumLockOptions{.lease = 600ms, .node_timeout = 60ms});
    }
    visits_.resize(locks_.size());
  }

  /// What went wrong; empty: nothing.
  std::string run() {
    for (int step = 0; step < 400; ++step) {
      nodes_.advance(std::chrono::milliseconds{5 * below(8)});
      if (clock_jumps_ && below(20) == 0)
        nodes_.nodes[2].clock.advance(std::chrono::milliseconds{below(2000)});
      let_go();
      for (std::size_t i = 0; i < locks_.size(); ++i) act(i);
      if (const auto wrong = look(); !wrong.empty()) return wrong;
    }
    return entries_ > 0 ? "" : "nobody was ever in";
  }

  /// Whoever waits comes to an end.
  ~Storm() {
    faults_ = false;
    for (int round = 0; round < 20; ++round) {
      for (auto& lines : nodes_.clients)
        for (auto& line : lines) line.let_go();
      nodes_.advance(50ms);
    }
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;

 private:
  unsigned below(unsigned bound) { return static_cast<unsigned>(random_() % bound); }

  Fault fault() {
    if (!faults_ || below(100) >= 25) return Fault::none;
    constexpr Fault all[] = {Fault::refused, Fault::request_lost, Fault::reply_lost, Fault::cut_off,
                             Fault::doubled, Fault::request_late, Fault::reply_late};
    return all[below(std::size(all))];
  }
  void let_go() {
    for (auto& lines : nodes_.clients)
      for (auto& line : lines)
        if (below(3) == 0) line.let_go();
  }
  void act(std::size_t who) {
    auto& visit = visits_[who];
    if (!visit) {
      if (below(3) == 0) visit = std::make_unique<QuorumVisitor>(locks_[who], 300ms);
    } else if (visit->failed() || (!visit->waits() && !visit->in())) {
      visit.reset();
    } else if (visit->in() && below(6) == 0) {
      visit.reset();
    }
  }
  std::string look() {
    std::size_t certain = 0;
    for (std::size_t i = 0; i < visits_.size(); ++i) {
      const auto& visit = visits_[i];
      if (!visit || !visit->in() || !visit->held->valid()) continue;
      ++certain;
      const FencingToken token = visit->held->token();
      if (token == last_) continue;
      if (token < last_) return "a token fell";
      last_ = token;
      ++entries_;
    }
    return certain > 1 ? "two are certain at once" : "";
  }

  std::mt19937 random_;
  const bool clock_jumps_;
  bool faults_;
  test::VirtualNodes nodes_{5};
  std::deque<QuorumLock> locks_;
  std::vector<std::unique_ptr<QuorumVisitor>> visits_;
  FencingToken last_;
  std::size_t entries_ = 0;
};

TEST(QuorumStorm, ExclusionOverRandomFaults) {
  for (unsigned seed = 1; seed <= test::rounds(40U); ++seed) {
    Storm storm{seed, Storm::Weather::faults};
    EXPECT_EQ(storm.run(), "") << "seed " << seed;
  }
}

TEST(QuorumStorm, Q05_ForwardClockJumpOnOneNodeOfFive) {
  for (unsigned seed = 1; seed <= test::rounds(40U); ++seed) {
    Storm storm{seed, Storm::Weather::clock_jumps};
    EXPECT_EQ(storm.run(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice
