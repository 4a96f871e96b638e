// The traps in which caches are caught, each by its number: C01 to C10 are those of the list that
// the project was made from; C11 and C12 were found on the way.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "cache/guards.hpp"

namespace sluice {
namespace {

using namespace test;

class Traps : public Guards {};

constexpr std::string_view lease = "sluice_cache_lease:{user:1}";

TEST_F(Traps, C01_OnlyItsOwnerGivesALeaseBack) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  Source slow;
  slow.hold();
  Get first{here.get("1", slow.loader())};
  slow.await_begun(1);
  line_.plan = stands_still;
  clock_.advance(6s);  // its lease is over
  source_.hold();
  Get second{there.get("1", source_.loader())};
  source_.await_begun(1);
  const Value owner = store_->run({"HGET", lease, "owner"}).get();

  slow.write("old");
  slow.let_go();
  EXPECT_EQ(first.get(), "one");  // its caller asked before the load
  EXPECT_EQ(store_->run({"HGET", lease, "owner"}).get(), owner);
  EXPECT_FALSE(exists("user:1"));
  source_.write("two");
  source_.let_go();
  second.get();
  EXPECT_TRUE(exists("user:1"));
}

TEST_F(Traps, C02_AWaiterIsToldAndReadsAndDoesNotPoll) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  source_.hold();
  Get first{here.get("1", source_.loader())};
  source_.await_begun(1);
  Get second{there.get("1", source_.loader())};
  EXPECT_FALSE(second.is_over());
  const auto looks = far_.executed("cache/look");
  clock_.advance(4s);  // nothing is asked meanwhile
  EXPECT_EQ(far_.executed("cache/look"), looks);

  source_.let_go();
  EXPECT_EQ(first.get(), "one");
  EXPECT_EQ(second.get(), "one");
  EXPECT_EQ(source_.loads(), 1);
  EXPECT_EQ(far_.executed("cache/look"), looks + 1);
}

TEST_F(Traps, C02_WhoeverGetsTheLeaseLooksFirstWhetherTheValueHasCome) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  bool once = false;
  far_.plan = [&](std::string_view call) {  // between its GET and its look another has loaded
    if (call == "cache/look" && !std::exchange(once, true)) here.get("1", source_.loader()).get();
    return Fault::none;
  };
  EXPECT_EQ(there.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(source_.loads(), 1);
}

TEST_F(Traps, C03_ASlowLoaderStoresNothingOverAnInvalidation) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  source_.hold();
  Get first{here.get("1", source_.loader())};
  source_.await_begun(1);
  source_.write("two");
  there.invalidate("1").get();
  source_.let_go();
  EXPECT_EQ(first.get(), "one");
  EXPECT_FALSE(exists("user:1"));
  EXPECT_EQ(here.get("1", source_.loader()).get(), "two");
}

TEST_F(Traps, C02_AProcessThatGoesOnAfterItsLeaseLengthensNobodyElses) {
  auto brief = plain();
  brief.longest_load = 0ms;
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", brief};
  Source slow;
  slow.hold();
  Get first{here.get("1", slow.loader())};
  slow.await_begun(1);
  line_.plan = stands_still;
  clock_.advance(6s);
  source_.hold();
  Get second{there.get("1", source_.loader())};
  source_.await_begun(1);
  line_.plan = [](std::string_view) { return Fault::none; };
  const auto renewed = line_.executed("cache/renew");
  clock_.advance(3s);
  EXPECT_GT(line_.executed("cache/renew"), renewed);
  EXPECT_EQ(ttl(lease), 2s);
  slow.let_go();
  source_.let_go();
  first.get();
  second.get();
}

TEST_F(Traps, C03_ARenewalTakesNoLeaseBackFromAnInvalidation) {
  auto options = plain();
  options.wait = 1min;
  Cache here{line_, "user", options};
  Cache there{far_, "user", plain()};
  source_.hold();
  Get first{here.get("1", source_.loader())};
  source_.await_begun(1);
  clock_.advance(8s);
  EXPECT_TRUE(exists(lease));
  there.invalidate("1").get();
  clock_.advance(8s);
  EXPECT_FALSE(exists(lease));
  source_.let_go();
  first.get();
  EXPECT_FALSE(exists("user:1"));
}

TEST_F(Traps, C03_NorOverAPut) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  source_.hold();
  Get first{here.get("1", source_.loader())};
  source_.await_begun(1);
  there.put("1", "put").get();
  source_.let_go();
  first.get();
  EXPECT_EQ(here.get("1", source_.loader()).get(), "put");
  EXPECT_EQ(source_.loads(), 1);
}

TEST_F(Traps, C04_EachValueHasAnEndAndAnAbsenceIsNotStoredOverAValue) {
  Cache here{line_, "user", {.ttl = 1min, .jitter = 0, .stale = 30s, .early = 0}};
  source_.hold();
  source_.write(std::nullopt);
  Get absent{here.get("1", source_.loader())};
  source_.await_begun(1);
  here.put("1", "put").get();
  source_.let_go();
  EXPECT_EQ(absent.get(), std::nullopt);
  EXPECT_EQ(here.get("1", source_.loader()).get(), "put");
  EXPECT_EQ(ttl("user:1"), 90s);
  clock_.advance(91s);
  EXPECT_FALSE(exists("user:1"));
}

TEST_F(Traps, C05_ALeaseIsMeasuredByTheStoreAndEndsThere) {
  Cache here{line_, "user", plain()};
  source_.hold();
  Get first{here.get("1", source_.loader())};
  source_.await_begun(1);
  EXPECT_EQ(ttl(lease), 5s);
  clock_.jump_wall(-1h);
  EXPECT_EQ(ttl(lease), 5s);
  source_.let_go();
  first.get();
  EXPECT_FALSE(exists(lease));
}

TEST_F(Traps, C06_ALoadGoesOnWithoutTheCallerThatBeganIt) {
  Cache here{line_, "user", plain()};
  source_.hold();
  Get impatient{here.get("1", source_.loader(), {.wait = 100ms})};
  source_.await_begun(1);
  Get patient{here.get("1", source_.loader())};
  clock_.advance(200ms);
  try {
    impatient.get();
    FAIL() << "it waits longer than it was told";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.errc(), Errc::timeout);
  }
  EXPECT_FALSE(patient.is_over());
  source_.let_go();
  EXPECT_EQ(patient.get(), "one");
  EXPECT_EQ(source_.loads(), 1);
}

TEST_F(Traps, C06_ADroppedCallTakesNothingFromTheOthers) {
  Cache here{line_, "user", plain()};
  source_.hold();
  std::optional<Get> patient;
  {
    auto start = [](Task<std::optional<std::string>> task) -> Task<void> { co_await task; };
    auto outer = std::make_optional(start(here.get("1", source_.loader())));
    auto awaiter = outer->operator co_await();
    EXPECT_TRUE(awaiter.await_suspend(std::noop_coroutine()));
    source_.await_begun(1);
    patient.emplace(here.get("1", source_.loader()));
    outer.reset();
  }
  source_.let_go();
  EXPECT_EQ(patient->get(), "one");
  EXPECT_EQ(source_.loads(), 1);
}

TEST_F(Traps, C06_AFailureIsToldToAllThatWaitedForItAndTheNextCallLoadsAnew) {
  Cache here{line_, "user", plain()};
  source_.hold();
  const auto failing = [&]() -> std::optional<std::string> {
    source_.read();
    throw std::domain_error{"no such table"};
  };
  Get first{here.get("1", failing)};
  Get second{here.get("1", failing)};
  source_.await_begun(1);
  source_.let_go();
  EXPECT_THROW(first.get(), std::domain_error);
  EXPECT_THROW(second.get(), std::domain_error);
  EXPECT_EQ(source_.loads(), 1);
  EXPECT_FALSE(exists(lease));
  EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
}

TEST_F(Traps, C06_WhenALoadFailsTheNextWaiterOfAnotherProcessLeads) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  Source broken;
  broken.hold();
  Get first{here.get("1", [&]() -> std::string {
    broken.read();
    throw std::domain_error{"no such table"};
  })};
  broken.await_begun(1);
  Get second{there.get("1", source_.loader())};
  broken.let_go();
  EXPECT_THROW(first.get(), std::domain_error);
  EXPECT_EQ(second.get(), "one");
}

TEST_F(Traps, C06_ALeaderThatStandsStillHoldsTheOthersUpForItsLeaseAlone) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  Source stuck;
  stuck.hold();
  Get first{here.get("1", stuck.loader())};
  stuck.await_begun(1);
  line_.plan = stands_still;
  Get second{there.get("1", source_.loader())};
  EXPECT_EQ(source_.loads(), 0);
  clock_.advance(5100ms);
  EXPECT_EQ(second.get(), "one");
  stuck.let_go();
  first.get();
}

TEST_F(Traps, C06_ALoadThatHangsHoldsTheOthersUpForItsLongestLoadAndLeaseAlone) {
  auto options = plain();
  options.longest_load = 12s;
  options.wait = 1min;
  Cache here{line_, "user", options};
  Cache there{far_, "user", options};
  Source stuck;
  stuck.hold();
  Get first{here.get("1", stuck.loader())};
  stuck.await_begun(1);
  Get second{there.get("1", source_.loader())};
  clock_.advance(11s);
  EXPECT_EQ(source_.loads(), 0);
  clock_.advance(6100ms);
  EXPECT_EQ(second.get(), "one");
  stuck.let_go();
  first.get();
}

TEST_F(Traps, C06_AFailureIsRememberedForAWhileWhereThatIsChosen) {
  auto options = plain();
  options.failure_ttl = 1s;
  Cache here{line_, "user", options};
  Cache there{far_, "user", options};
  int loads = 0;
  const auto failing = [&]() -> std::string {
    ++loads;
    throw std::domain_error{"no such table"};
  };
  for (int i = 0; i < 3; ++i) EXPECT_THROW(here.get("1", failing).get(), std::domain_error);
  EXPECT_EQ(loads, 1);
  EXPECT_EQ(there.get("2", source_.loader()).get(), "one") << "another key";
  clock_.advance(1100ms);
  EXPECT_THROW(here.get("1", failing).get(), std::domain_error);
  EXPECT_EQ(loads, 2);
  there.put("1", "put").get();
  EXPECT_EQ(here.get("1", failing).get(), "put") << "a value counts for more";
  there.invalidate("1").get();
  EXPECT_THROW(here.get("1", failing).get(), std::domain_error);
  EXPECT_EQ(loads, 2);
  here.invalidate("1").get();
  EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
}

TEST_F(Traps, C06_AFailureThatAnInvalidationOvertookIsNotRemembered) {
  auto options = plain();
  options.failure_ttl = 1s;
  Cache cache{line_, "user", options};
  source_.hold();
  Get first{cache.get("1", [&]() -> std::string {
    source_.read();
    throw std::domain_error{"the row is broken"};
  })};
  source_.await_begun(1);
  cache.invalidate("1").get();  // it is mended
  source_.let_go();
  EXPECT_THROW(first.get(), std::domain_error);
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
}

TEST_F(Traps, C07_ANearValueGoesWithTheWordOfItsChange) {
  auto options = plain();
  options.near_bytes = 1 << 20;
  Cache here{line_, "user", options};
  Cache there{far_, "user", plain()};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
  const auto asked = line_.executed("GET");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(line_.executed("GET"), asked);

  source_.write("two");
  there.invalidate("1").get();
  EXPECT_EQ(here.get("1", source_.loader()).get(), "two");
  here.get("1", source_.loader()).get();
  source_.write("three");
  line_.hold_messages();  // its own change it need not be told
  here.invalidate("1").get();
  EXPECT_EQ(here.get("1", source_.loader()).get(), "three");
}

TEST_F(Traps, C07_AWordThatIsLostDoesHarmForTheNearTtlAlone) {
  auto options = plain();
  options.near_bytes = 1 << 20;
  options.near_ttl = 5s;
  Cache here{line_, "user", options};
  Cache there{far_, "user", plain()};
  for (int i = 0; i < 3; ++i) here.get("1", source_.loader()).get();
  line_.lose_messages();
  source_.write("two");
  there.invalidate("1").get();
  EXPECT_EQ(here.get("1", source_.loader()).get(), "one");
  clock_.advance(6s);
  EXPECT_EQ(here.get("1", source_.loader()).get(), "two");
}

TEST_F(Traps, C08_AGateThatThrowsIsOpenAndOneThatSaysNoAsksNobody) {
  auto options = plain();
  options.may_exist = [](std::string_view key) {
    if (key == "broken") throw std::runtime_error{"being rebuilt"};
    return key != "none";
  };
  Cache cache{line_, "user", options};
  EXPECT_EQ(cache.get("none", source_.loader()).get(), std::nullopt);
  EXPECT_EQ(line_.executed("GET"), 0U);
  EXPECT_EQ(source_.loads(), 0);
  EXPECT_EQ(cache.get("broken", source_.loader()).get(), "one");
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(source_.loads(), 2);
}

TEST_F(Traps, C09_RandomKeysStoreNoMoreAbsencesThanTheBudget) {
  auto options = plain();
  options.absent_budget = 20;
  Cache here{line_, "user", options};
  Cache there{far_, "user", options};
  source_.write(std::nullopt);
  std::size_t most = 0;
  for (int i = 0; i < 400; ++i) {
    auto& cache = i % 2 == 0 ? here : there;
    EXPECT_EQ(cache.get("random" + std::to_string(i), source_.loader()).get(), std::nullopt);
    most = std::max(most, keys());
    clock_.advance(150ms);  // a minute in all: two of their lives
  }
  EXPECT_LE(most, 21U);  // and the count of them
  EXPECT_GE(most, 14U);
  clock_.advance(1min);
  EXPECT_EQ(keys(), 0U);
}

TEST_F(Traps, C09_NorDoGuardsThatKeepAbsencesForAnotherTime) {  // as while one is deployed anew
  auto options = plain();
  options.absent_budget = 20;
  Cache old{line_, "user", options};
  options.absent_ttl = 7s;
  Cache anew{far_, "user", options};
  source_.write(std::nullopt);
  std::size_t most = 0;
  for (int i = 0; i < 800; ++i) {
    auto& cache = i < 600 && i % 2 == 0 ? old : anew;  // at the end the new one is alone
    EXPECT_EQ(cache.get("random" + std::to_string(i), source_.loader()).get(), std::nullopt);
    most = std::max(most, keys());
    clock_.advance(150ms);
  }
  EXPECT_LE(most, 21U);  // and the count of them
  EXPECT_GE(most, 14U);
  clock_.advance(7s);
  EXPECT_EQ(keys(), 0U);
}

TEST_F(Traps, C09_AnAbsenceIsKnownWithoutALoad) {
  Cache cache{line_, "user", plain()};
  source_.write(std::nullopt);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(cache.get("1", source_.loader()).get(), std::nullopt);
  EXPECT_EQ(source_.loads(), 1);
  EXPECT_LE(ttl("user:1"), 30s);
  cache.invalidate("1").get();  // as after an INSERT
  source_.write("new");
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "new");
}

TEST_F(Traps, C10_WhileTheStoreIsDownACallFails) {
  Cache cache{line_, "user", plain()};
  line_.plan = [](std::string_view) { return Fault::refused; };
  EXPECT_EQ(error_of(cache.get("1", source_.loader())), Errc::connection);
  EXPECT_EQ(source_.loads(), 0);
  const auto asked = line_.executed("GET");
  EXPECT_EQ(error_of(cache.get("1", source_.loader())), Errc::connection);
  EXPECT_EQ(line_.executed("GET"), asked) << "it is known to be down";
  line_.plan = [](std::string_view) { return Fault::none; };
  clock_.advance(1s);
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
}

TEST_F(Traps, C10_OrGetsTheCopyOfTheProcess) {
  auto options = plain();
  options.when_down = CacheWhenDown::copy;
  Cache cache{line_, "user", options};
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(cache.get("2", source_.loader()).get(), "one");
  cache.invalidate("2").get();
  line_.plan = [](std::string_view) { return Fault::refused; };
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "one");
  EXPECT_EQ(error_of(cache.get("2", source_.loader())), Errc::connection);
  EXPECT_EQ(source_.loads(), 2);
}

TEST_F(Traps, C10_OrLoadsWithinTheBulkhead) {
  auto options = plain();
  options.when_down = CacheWhenDown::load;
  options.max_loads = 2;
  options.max_waiting_loads = 1;
  Cache cache{line_, "user", options};
  line_.plan = [](std::string_view) { return Fault::refused; };
  source_.hold();
  Get one{cache.get("1", source_.loader())};
  Get two{cache.get("2", source_.loader())};
  source_.await_begun(2);
  Get three{cache.get("3", source_.loader())};
  EXPECT_EQ(error_of(cache.get("4", source_.loader())), Errc::overloaded);
  EXPECT_EQ(source_.loads(), 2);
  source_.let_go();
  for (auto* const call : {&one, &two, &three}) EXPECT_EQ(call->get(), "one");
  EXPECT_EQ(keys(), 0U);
}

// A call that shares the load of an earlier one (single flight) must not get what that load has
// read before an invalidation that was acknowledged before the call.
TEST_F(Traps, C11_ACallThatJoinsALoadIsNotGivenWhatWasReadBeforeItsInvalidation) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  for (Cache* const other : {&here, &there}) {
    Source source;
    source.hold();
    Get first{here.get("1", source.loader())};
    source.await_begun(1);
    source.write("two");
    other->invalidate("1").get();
    Get joined{here.get("1", source.loader())};
    source.let_go();
    first.get();
    EXPECT_EQ(joined.get(), "two");
    here.invalidate("1").get();
  }
}

// Nor one in whose process the word of another process's load has not come yet.
TEST_F(Traps, C11_NorWhatAnotherProcessHasStoredAndInvalidatedSince) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  source_.hold();
  Get loading{here.get("1", source_.loader())};
  source_.await_begun(1);
  Get waiting{there.get("1", source_.loader())};
  far_.hold_messages();
  source_.let_go();
  EXPECT_EQ(loading.get(), "one");
  source_.write("two");
  here.invalidate("1").get();
  Get late{there.get("1", source_.loader())};
  far_.let_messages_go();
  EXPECT_EQ(late.get(), "two");
  EXPECT_EQ(waiting.get(), "two");
}

// Whoever has invalidated it and wherever, a call after that has the new value as soon as it can be
// loaded, though a load that was overtaken still runs: of 64 histories of 1 to 3 invalidations.
TEST_F(Traps, BC06_ACallDoesNotWaitForALoadThatWasOvertaken) {
  Cache here{line_, "user", plain()};
  Cache there{far_, "user", plain()};
  for (unsigned history = 0; history < 64; ++history) {
    Source stuck;
    stuck.hold();
    Get first{here.get("1", stuck.loader())};
    stuck.await_begun(1);
    source_.write("new" + std::to_string(history));
    auto& by = (history & 1) != 0 ? here : there;
    if ((history & 2) != 0)
      by.put("1", "put").get();
    else
      by.invalidate("1").get();
    if ((history & 4) != 0) there.invalidate("1").get();
    if ((history & 2) != 0) by.invalidate("1").get();
    auto& asks = (history & 8) != 0 ? there : here;
    Get second{asks.get("1", source_.loader(), {.wait = 1s})};
    Get third{here.get("1", source_.loader(), {.wait = 1s})};
    await([&] { return second.is_over() && third.is_over(); });
    EXPECT_EQ(second.get(), "new" + std::to_string(history)) << history;
    EXPECT_EQ(third.get(), "new" + std::to_string(history)) << history;
    stuck.let_go();
    EXPECT_EQ(first.get(), "one");
    EXPECT_EQ(here.get("1", stuck.loader()).get(), "new" + std::to_string(history));
    here.invalidate("1").get();
  }
}

TEST_F(Traps, BC06_NoMoreThanTwoLoadsOfAKeyRunInAProcessThatItIsInvalidatedInAgainAndAgain) {
  Cache cache{line_, "user", plain()};
  source_.hold();
  std::vector<Get> calls;
  for (int i = 0; i < 8; ++i) {
    calls.emplace_back(cache.get("1", source_.loader()));
    source_.await_begun(std::min(i + 1, 2));
    cache.invalidate("1").get();
  }
  EXPECT_EQ(source_.loads(), 2);
  source_.write("two");
  source_.let_go();
  for (auto& call : calls) call.get();
  EXPECT_EQ(cache.get("1", source_.loader()).get(), "two");
  EXPECT_FALSE(exists(lease));
}

TEST_F(Traps, BC06_ACallThatJoinsALoadWhichIsNotOvertakenSharesIt) {
  Cache cache{line_, "user", plain()};
  source_.hold();
  std::vector<Get> calls;
  for (int i = 0; i < 8; ++i) calls.emplace_back(cache.get("1", source_.loader()));
  source_.await_begun(1);
  source_.let_go();
  for (auto& call : calls) EXPECT_EQ(call.get(), "one");
  EXPECT_EQ(source_.loads(), 1);
}

// Where encoding or the way to the store take longer than the lease.
TEST_F(Traps, BC11_StoringKeepsTheLease) {
  Cache cache{line_, "user", plain()};
  std::atomic<bool> is_storing{false};
  line_.plan = [&](std::string_view call) {
    return call == "cache/store" && !is_storing.exchange(true) ? Fault::request_late : Fault::none;
  };
  Get first{cache.get("1", source_.loader())};
  await([&] { return is_storing.load(); });
  for (int i = 0; i < 8; ++i) clock_.advance(1s);  // more than a lease
  line_.let_go();
  EXPECT_EQ(first.get(), "one");
  EXPECT_TRUE(exists("user:1"));
  EXPECT_FALSE(exists(lease));
}

// The process that is to invalidate again is killed.
TEST_F(Traps, C12_ASecondInvalidationOutlivesItsCaller) {
  Cache other{far_, "user", plain()};
  other.get("2", source_.loader()).get();  // it is in use
  {
    Cache cache{line_, "user", plain()};
    cache.invalidate_twice("1", 1s).get();
  }
  other.put("1", "read from a replica that lags").get();
  clock_.advance(11s);  // it looks after those of others every ten seconds
  EXPECT_FALSE(exists("user:1"));
  EXPECT_FALSE(exists("sluice_cache_again:{user}"));
}

TEST_F(Traps, C12_AndIsTriedAgainUntilItSucceeds) {
  Cache cache{line_, "user", plain()};
  line_.plan = [failures = 2](std::string_view call) mutable {
    return call == "cache/invalidate" && failures-- > 0 ? Fault::refused : Fault::none;
  };
  cache.invalidate_twice("1", 1s).get();
  cache.put("1", "read from a replica that lags").get();
  clock_.advance(2s);
  EXPECT_TRUE(exists("user:1"));
  for (int i = 0; i < 3; ++i) clock_.advance(11s);
  EXPECT_FALSE(exists("user:1"));
  EXPECT_FALSE(exists("sluice_cache_again:{user}"));
}

TEST_F(Traps, C12_AForeignKeyHoldsUpNoOther) {
  Cache cache{line_, "user", plain()};
  for (const char* const key : {"1", "2"}) cache.invalidate_twice(key, 1s).get();
  store_->run({"SET", "user:1", "theirs"}).get();
  cache.put("2", "read from a replica that lags").get();
  clock_.advance(2s);
  EXPECT_FALSE(exists("user:2"));
  EXPECT_TRUE(exists("user:1"));
  EXPECT_FALSE(exists("sluice_cache_again:{user}"));
}

}  // namespace
}  // namespace sluice
