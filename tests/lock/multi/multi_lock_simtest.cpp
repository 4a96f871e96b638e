/// All or none, beside single locks of the same names; holders that die, replies that are lost.
#include "lock/virtual_lock.hpp"
#include "sluice/multi_lock.hpp"

namespace sluice {
namespace {

/// Acquires in the background.
class MultiVisitor {
 public:
  MultiVisitor(MultiLock& lock, std::chrono::milliseconds wait, std::stop_token stop = {}) {
    spawn(visit(lock, wait, std::move(stop)),
          [this](std::exception_ptr error) { error_ = std::move(error); });
  }
  MultiVisitor(const MultiVisitor&) = delete;
  MultiVisitor& operator=(const MultiVisitor&) = delete;

  bool waits() const { return !done_ && !error_; }
  bool in() const { return held.has_value(); }

  std::optional<MultiHeld> held;

 private:
  Task<void> visit(MultiLock& lock, std::chrono::milliseconds wait, std::stop_token stop) {
    auto acquiring = lock.try_acquire(wait, std::move(stop));
    held = co_await acquiring;
    done_ = true;
  }

  bool done_ = false;
  std::exception_ptr error_;
};

/// The names share a slot, and so are waited for in the order of the alphabet.
class MultiLocks : public VirtualLock {
 protected:
  bool is_clean() {
    for (const char* key : {"{s}a", "{s}b", "{s}c", "sluice_lock_queue:{s}a",
                            "sluice_lock_queue:{s}b", "sluice_lock_queue:{s}c"})
      if (exists(key)) return false;
    return true;
  }

  MultiLock here_{line_, {"{s}b", "{s}a"}};
  MultiLock there_{far_, {"{s}c", "{s}b"}};
  Mutex a_{far_, "{s}a"};
  Mutex b_{far_, "{s}b"};
  Mutex c_{far_, "{s}c"};
};

TEST_F(MultiLocks, AllFreeNamesAreTakenByOneScript) {
  auto held = here_.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(line_.executed("lock/multi/acquire"), 1U);
  EXPECT_EQ(field("{s}a", held->owner().text), "1");
  EXPECT_EQ(field("{s}b", held->owner().text), "1");
  const auto tokens = held->tokens();
  ASSERT_EQ(tokens.size(), 2U);
  EXPECT_EQ(tokens[0], (MultiHeld::Token{"{s}b", held->token("{s}b")})) << "in the order given";
  EXPECT_EQ(tokens[1], (MultiHeld::Token{"{s}a", held->token("{s}a")}));
  EXPECT_GT(held->token("{s}a").value, 0U);
  EXPECT_EQ(held->token("{s}c").value, 0U);
  EXPECT_EQ(held->release().get().kind, Kind::released);
  EXPECT_EQ(line_.executed("lock/multi/release"), 1U);
  EXPECT_EQ(held->release().get().kind, Kind::not_held);
  EXPECT_TRUE(is_clean());
}

TEST_F(MultiLocks, RefusedTakesNone) {
  auto in_the_way = b_.acquire().get();
  EXPECT_FALSE(here_.try_acquire().get());
  EXPECT_FALSE(exists("{s}a"));
  EXPECT_FALSE(here_.try_acquire(0ms).get());
}

TEST_F(MultiLocks, ExcludesSingleLocksOfTheSameNames) {
  auto held = here_.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_FALSE(a_.try_acquire().get());
  EXPECT_FALSE(b_.try_acquire().get());
  EXPECT_FALSE(there_.try_acquire().get());
  EXPECT_TRUE(c_.try_acquire().get());
}

TEST_F(MultiLocks, ReleaseOfASingleLockWakesIt) {
  auto in_the_way = b_.acquire().get();
  MultiVisitor visitor{here_, 1h};
  EXPECT_TRUE(visitor.waits());
  EXPECT_FALSE(exists("{s}a")) << "nothing is held at the first wait";
  in_the_way.release().get();
  ASSERT_TRUE(visitor.in());
  EXPECT_GT(visitor.held->token("{s}b"), in_the_way.token());
  EXPECT_GT(visitor.held->valid_for(), 29s) << "a lease for all of them";
  visitor.held->release().get();
  EXPECT_TRUE(is_clean());
}

TEST_F(MultiLocks, ItsReleaseWakesSingleLocks) {
  auto held = here_.acquire().get();
  Visitor at_a{a_, 1h};
  Visitor at_b{b_, 1h};
  held.release().get();
  EXPECT_TRUE(at_a.in());
  EXPECT_TRUE(at_b.in());
}

TEST_F(MultiLocks, KeepsWhatComesBeforeFromTheSecondRefusalOn) {
  MultiLock all{line_, {"{s}a", "{s}b", "{s}c"}};
  auto at_b = b_.acquire().get();
  auto at_c = c_.acquire().get();
  MultiVisitor visitor{all, 1h};
  EXPECT_FALSE(exists("{s}a"));
  at_b.release().get();
  EXPECT_TRUE(visitor.waits());
  EXPECT_FALSE(a_.try_acquire().get()) << "kept";
  EXPECT_FALSE(b_.try_acquire().get()) << "kept";
  clock_.advance(10min);
  EXPECT_TRUE(at_c.valid());
  EXPECT_FALSE(a_.try_acquire().get()) << "and prolonged";
  at_c.release().get();
  ASSERT_TRUE(visitor.in());
  visitor.held->release().get();
  EXPECT_TRUE(is_clean());
}

TEST_F(MultiLocks, WaitsForNothingThatComesBeforeWhatItHolds) {
  MultiLock all{line_, {"{s}a", "{s}b", "{s}c"}};
  auto at_b = b_.acquire().get();
  MultiVisitor visitor{all, 1h};
  auto at_a = a_.acquire().get();
  at_b.release().get();
  EXPECT_TRUE(visitor.waits());
  EXPECT_TRUE(b_.try_acquire().get()) << "handed over to it, and handed on: a comes before b";
  at_a.release().get();
  EXPECT_TRUE(visitor.in());
}

TEST_F(MultiLocks, PatienceEndsWithNothingHeld) {
  MultiLock all{line_, {"{s}a", "{s}b", "{s}c"}};
  auto at_b = b_.acquire().get();
  auto at_c = c_.acquire().get();
  MultiVisitor visitor{all, 5s};
  at_b.release().get();
  EXPECT_TRUE(exists("{s}a"));
  clock_.advance(5s);
  EXPECT_FALSE(visitor.waits());
  EXPECT_FALSE(visitor.in());
  EXPECT_FALSE(exists("{s}a"));
  EXPECT_FALSE(exists("{s}b"));
  at_c.release().get();
  EXPECT_TRUE(is_clean());
}

TEST_F(MultiLocks, StopEndsTheWait) {
  auto in_the_way = a_.acquire().get();
  std::stop_source stop;
  MultiVisitor visitor{here_, 1h, stop.get_token()};
  EXPECT_TRUE(exists("sluice_lock_queue:{s}a"));
  stop.request_stop();
  EXPECT_FALSE(visitor.waits());
  EXPECT_FALSE(visitor.in());
  EXPECT_FALSE(exists("sluice_lock_queue:{s}a"));
}

TEST_F(MultiLocks, DeadHolderOfOneNameCostsItsLease) {
  MultiLock with_dead{line_, {"{s}a", "{s}b"}};
  test::FaultyStore dying{*store_};
  Mutex mutex{dying, "{s}b", {.lease = 5s, .watchdog = false}};
  auto of_the_dead = mutex.acquire().get();
  dying.plan = [](std::string_view) { return Fault::refused; };
  MultiVisitor visitor{with_dead, 1h};
  clock_.advance(4900ms);
  EXPECT_TRUE(visitor.waits());
  clock_.advance(200ms);
  EXPECT_TRUE(visitor.in());
}

TEST_F(MultiLocks, LossOfOneIsTheLossOfAll) {
  auto held = here_.acquire().get();
  std::vector<LostCause> told;
  held.on_lost([&](LostCause cause) { told.push_back(cause); });
  const auto lost = held.lost();
  EXPECT_TRUE(b_.force_release().get());
  clock_.advance(10s);
  EXPECT_FALSE(held.valid());
  EXPECT_TRUE(lost.stop_requested());
  EXPECT_EQ(told, std::vector{LostCause::taken});
  EXPECT_TRUE(exists("{s}a")) << "what is left stays until the release";
  EXPECT_EQ(held.release().get().kind, Kind::not_held);
  EXPECT_EQ(told.size(), 1U);
  EXPECT_TRUE(is_clean());
}

TEST_F(MultiLocks, LostAtTheDeadlineWhenTheServerIsGone) {
  auto held = here_.acquire().get();
  std::vector<Risk> risks;
  std::optional<LostCause> told;
  held.on_risk([&](Risk risk) { risks.push_back(risk); });
  held.on_lost([&](LostCause cause) { told = cause; });
  fail_all("lock/mutex/renew", Fault::refused);
  const auto left = held.valid_for();
  clock_.advance(left - 1ms);
  EXPECT_TRUE(held.valid());
  EXPECT_EQ(risks.size(), 2U) << "one for each name";
  clock_.advance(1ms);
  EXPECT_FALSE(held.valid());
  EXPECT_EQ(told, LostCause::unreachable);
}

TEST_F(MultiLocks, RenewalsOfAllNamesTravelTogether) {
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back("name " + std::to_string(i));
  MultiLock many{line_, names};
  auto held = many.acquire().get();
  clock_.advance(10min);
  EXPECT_TRUE(held.valid());
  EXPECT_LE(line_.executed("lock/mutex/renew"), 81U);
}

TEST_F(MultiLocks, AcrossStoresAllOrNone) {
  const auto other = engine::open_embedded({.clock = &clock_});
  test::FaultyStore other_line{*other};
  MultiLock both{{{line_, "x"}, {other_line, "x"}}};
  Mutex there{*other, "x"};
  Mutex here{far_, "x"};
  {
    auto in_the_way = there.acquire().get();
    EXPECT_FALSE(both.try_acquire().get());
    EXPECT_FALSE(exists("x"));
    MultiVisitor visitor{both, 1h};
    EXPECT_TRUE(visitor.waits());
    clock_.advance(5min);
    in_the_way.release().get();
    EXPECT_TRUE(visitor.in());
    EXPECT_FALSE(here.try_acquire().get());
    EXPECT_FALSE(there.try_acquire().get());
    EXPECT_EQ(visitor.held->release().get().kind, Kind::released);
  }
  EXPECT_TRUE(here.try_acquire().get());
  EXPECT_TRUE(there.try_acquire().get());
}

TEST_F(MultiLocks, UnreachableSecondStoreGivesTheFirstBack) {
  const auto other = engine::open_embedded({.clock = &clock_});
  test::FaultyStore broken{*other};
  broken.plan = [](std::string_view) { return Fault::refused; };
  MultiLock both{{{line_, "x"}, {broken, "x"}}};
  EXPECT_THROW((void)both.try_acquire().get(), Error);
  EXPECT_FALSE(exists("x"));
  const MultiVisitor visitor{both, 1s};
  EXPECT_TRUE(visitor.waits());
  clock_.advance(2s);
  EXPECT_FALSE(visitor.waits() || visitor.in());
  EXPECT_FALSE(exists("x"));
}

TEST_F(MultiLocks, LeaseLostWhileWaitingForAnotherStoreIsTakenAnew) {
  const auto other = engine::open_embedded({.clock = &clock_});
  MultiLock both{{{line_, "x"}, {*other, "x"}}, {.lease = 2s, .watchdog = false}};
  Mutex here{*store_, "x"};
  Mutex there{*other, "x"};
  auto at_x = here.acquire().get();
  auto also = there.acquire().get();
  MultiVisitor visitor{both, 1h};
  at_x.release().get();
  also.release().get();
  EXPECT_TRUE(visitor.in());
  visitor.held->release().get();
  auto again = there.acquire().get();
  MultiVisitor late{both, 1h};
  clock_.advance(10s);
  again.release().get();
  ASSERT_TRUE(late.in());
  EXPECT_TRUE(late.held->valid());
}

TEST_F(MultiLocks, SlotBySlotExcludesAllTheSame) {
  MultiLock together{far_, {"c", "b"}};
  MultiLock slots{line_, {"a", "b", "{a}:1"}, {.slot_by_slot = true}};
  auto held = slots.acquire().get();
  EXPECT_EQ(line_.executed("lock/multi/acquire"), 2U) << "a and {a}:1 share a slot";
  EXPECT_FALSE(together.try_acquire().get());
  EXPECT_EQ(held.release().get().kind, Kind::released);
  EXPECT_EQ(line_.executed("lock/multi/release"), 2U);
  EXPECT_TRUE(together.try_acquire().get());
}

TEST_F(MultiLocks, WrongNamesAreSaid) {
  EXPECT_THROW(MultiLock(line_, {}), Error);
  EXPECT_THROW(MultiLock(line_, {"{s}a", "{s}a"}), Error);
  EXPECT_THROW(MultiLock(line_, {"{s}a", ""}), Error);
  EXPECT_THROW(MultiLock(line_, std::vector<std::string>(1001, "{s}a")), Error);
}

TEST_F(MultiLocks, KeyOfAnotherKindTakesNothing) {
  store_->run({"SET", "{s}b", "text"}).get();
  EXPECT_THROW((void)here_.try_acquire().get(), Error);
  EXPECT_THROW((void)here_.try_acquire(1s).get(), Error);
  EXPECT_FALSE(exists("{s}a"));
}

TEST_F(MultiLocks, T01_AcquireAskedAgainLeavesNoOrphan) {
  fail_next("lock/multi/acquire", Fault::reply_lost);
  auto held = here_.try_acquire().get();
  ASSERT_TRUE(held);
  EXPECT_EQ(line_.executed("lock/multi/acquire"), 2U);
  const auto token = held->token("{s}a").value;
  EXPECT_EQ(held->release().get().kind, Kind::released);
  EXPECT_TRUE(is_clean());
  EXPECT_EQ(here_.try_acquire().get()->token("{s}a").value, token + 1);
}

TEST_F(MultiLocks, T01_AcquireWithoutAnyAnswerIsTakenBack) {
  fail_next("lock/multi/acquire", Fault::cut_off);
  EXPECT_THROW((void)here_.try_acquire().get(), Error);
  EXPECT_TRUE(is_clean());
  fail_next("lock/multi/acquire", Fault::cut_off);
  MultiVisitor patient{here_, 1s};
  EXPECT_TRUE(is_clean());
  clock_.advance(100ms);
  ASSERT_TRUE(patient.in());
  patient.held.reset();
  EXPECT_TRUE(is_clean());
}

TEST_F(MultiLocks, T02_ReleaseAskedAgainSucceedsOnce) {
  auto held = here_.acquire().get();
  fail_next("lock/multi/release", Fault::reply_lost);
  EXPECT_EQ(held.release().get().kind, Kind::released);
  EXPECT_EQ(line_.executed("lock/multi/release"), 2U);
  EXPECT_TRUE(is_clean());
}

TEST_F(MultiLocks, T03_LateReleaseDoesNotTouchANewerHold) {
  fail_next("lock/multi/release", Fault::request_late);
  { const auto held = here_.acquire().get(); }  // its release is on the way
  EXPECT_TRUE(a_.force_release().get());
  EXPECT_TRUE(b_.force_release().get());
  auto newer = here_.acquire().get();
  line_.let_go();
  EXPECT_EQ(field("{s}a", newer.owner().text), "1");
  EXPECT_EQ(newer.release().get().kind, Kind::released);
}

TEST_F(MultiLocks, GrantThatTookAsLongAsItsLeaseIsGivenBack) {
  MultiLock quick{line_, {"{s}a", "{s}b"}, {.lease = 1s}};
  fail_next("lock/multi/acquire", Fault::reply_late);
  MultiVisitor visitor{quick, 0ms};
  clock_.advance(999ms);
  line_.let_go();
  EXPECT_FALSE(visitor.waits());
  EXPECT_FALSE(visitor.in());
  EXPECT_TRUE(is_clean());
}

TEST_F(MultiLocks, MovedFromAndEmptyHoldNothing) {
  MultiHeld none;
  EXPECT_FALSE(none.valid());
  EXPECT_TRUE(none.tokens().empty());
  EXPECT_EQ(none.release().get().kind, Kind::not_held);
  auto held = here_.acquire().get();
  none = std::move(held);
  EXPECT_TRUE(none.valid());
  none = MultiHeld{};
  EXPECT_TRUE(is_clean()) << "given up, and so released";
}

TEST_F(MultiLocks, U03_AHashThatIsNoLockIsRefusedAndLeftAsItIs) {
  for (const auto& value :
       {std::vector<std::string_view>{"HSET", "{s}b", "name", "tea"}, {"SET", "{s}b", "tea"}}) {
    SCOPED_TRACE(value.front());
    store_->run({"DEL", "{s}b"}).get();
    store_->run(Words{value}).get();
    const std::string before = contents("{s}b");
    EXPECT_EQ(error_of(here_.try_acquire()), Errc::wrong_type);
    EXPECT_EQ(error_of(here_.try_acquire(1h)), Errc::wrong_type) << "at once";
    EXPECT_EQ(contents("{s}b"), before);
    EXPECT_FALSE(exists("{s}a")) << "all or none";
  }
}

}  // namespace
}  // namespace sluice
