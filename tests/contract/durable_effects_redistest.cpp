/// What a durable call says when one of its replies is an error: each class of error at each item
/// of each call that is composed of several. "Effect none" is a promise that nothing was changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "lock/fair/fair_mutex.lua.hpp"
#include "lock/multi/multi.lua.hpp"
#include "lock/mutex/mutex.lua.hpp"
#include "lock/shared/release.lua.hpp"
#include "sluice/cache_guard.hpp"
#include "sluice/fair_mutex.hpp"
#include "sluice/multi_lock.hpp"
#include "sluice/mutex.hpp"
#include "sluice/number.hpp"
#include "sluice/open.hpp"
#include "sluice/permit_semaphore.hpp"
#include "sluice/sale.hpp"
#include "sluice/semaphore.hpp"
#include "sluice/shared_mutex.hpp"
#include "support/comes_true.hpp"
#include "support/fault_proxy.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

/// Nobody replicates, so a call that is answered well is wrong.
constexpr Durability two_copies{.replicas = 1, .within = 20ms};

struct ComposedCall {
  std::string name;
  std::function<void(Store&)> run;
  std::string written;  ///< a key that is there if and only if it was done
};

std::vector<ComposedCall> composed_calls() {
  return {
      {"Mutex",
       [](Store& store) {
         Mutex mutex{store, "m", {.durability = two_copies}};
         (void)mutex.try_acquire().get();
       },
       "m"},
      {"FairMutex",
       [](Store& store) {
         FairMutex mutex{store, "f", {.durability = two_copies}};
         (void)mutex.try_acquire().get();
       },
       "f"},
      {"SharedMutex",
       [](Store& store) {
         SharedMutex mutex{store, "s", {.durability = two_copies}};
         (void)mutex.try_acquire().get();
       },
       "s"},
      {"MultiLock",
       [](Store& store) {
         MultiLock locks{store, {"a", "b"}, {.durability = two_copies}};
         (void)locks.try_acquire().get();
       },
       "a"},
      {"Series",
       [](Store& store) {
         Series series{store, "n", {.durability = two_copies}};
         (void)series.next().get();
       },
       "sluice:number:{n}"},
      {"CacheGuard::invalidate",
       [](Store& store) {
         CacheGuard<std::string> guard{store, "c", {.durability = two_copies}};
         guard.invalidate("1").get();
       },
       "-"},
      {"CacheGuard::invalidate_all",
       [](Store& store) {
         CacheGuard<std::string> guard{store, "c", {.durability = two_copies}};
         guard.invalidate_all({"1", "2", "3"}).get();
       },
       "-"},
      {"CacheGuard::invalidate_twice",
       [](Store& store) {
         CacheGuard<std::string> guard{store, "c", {.durability = two_copies}};
         guard.invalidate_twice("1", 10s).get();
       },
       "-"},
  };
}

/// In the words of servers, one of each class.
const std::vector<std::string>& errors_of_wait() {
  static const std::vector<std::string> errors{
      "NOPERM User default has no permissions to run the 'wait' command",
      "NOAUTH Authentication required.",
      "ERR unknown command 'WAIT', with args beginning with: '1' '20' ",
      "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a "
      "replica is configured to be writable (which is not the default) writes to replicas are "
      "just local and are not propagated.",
      "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
      "replica?)",
      "UNBLOCKED client unblocked via CLIENT UNBLOCK",
      "LOADING Redis is loading the dataset in memory",
      "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
      "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
      "READONLY You can't write against a read only replica.",
      "OOM command not allowed when used memory > 'maxmemory'.",
      "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
      "NOREPLICAS Not enough good replicas to write.",
      "EXECABORT Transaction discarded because of previous errors.",
      "TRYAGAIN Multiple keys request during rehashing of slot",
  };
  return errors;
}

class DurableEffects : public testing::Test {
 protected:
  /// All keys with their values, but for those that count and are never taken back.
  std::string holds() {
    std::string text;
    for (const auto& key : side_.command({"KEYS", "*"}).as_items())
      if (key.as_text().find("token") == std::string::npos)
        text += key.as_text() + '=' + side_.command({"DUMP", key.as_text()}).as_text() + '\n';
    return text;
  }
  /// Whether nothing is left, at once or when what was given back has gone.
  bool comes_to_nothing() {
    return comes_true([&] { return holds().empty(); });
  }

  RedisServer server_;
  PlainClient side_{server_.port()};
};

TEST_F(DurableEffects, D02_NoErrorOfWaitIsToldAsThatOfTheCall) {
  for (const auto& call : composed_calls())
    for (const auto& error : errors_of_wait()) {
      side_.command({"FLUSHALL"});
      FaultProxy proxy{server_.port()};
      const auto is_wait = [](const Passing& passing) {
        return passing.kind == Passing::Kind::reply && passing.words.size() == 3 &&
               passing.words[0] == "WAIT" && passing.words[1] != "0";
      };
      const auto lied =
          proxy.on(is_wait, {.fault = LineFault::lie, .times = Deed::always, .error = error});
      const auto store = open(proxy.url());
      try {
        call.run(*store);
        ADD_FAILURE() << call.name << " counts as durable after: " << error;
      } catch (const Error& failure) {
        EXPECT_GT(proxy.hits(lied), 0U) << call.name;
        if (failure.effect() == Effect::none)
          EXPECT_TRUE(comes_to_nothing()) << call.name << ", " << error << ": " << holds();
        else
          EXPECT_NE(failure.message(), "") << call.name;
        EXPECT_EQ(failure.errc(), Errc::unsynced)
            << call.name << ", " << error << ": " << failure.message();
      }
    }
}

/// An error of one item of a batch says nothing of the others.
TEST_F(DurableEffects, D02_AScriptThatFailedBesideOneThatWroteIsNotNothing) {
  const auto store = open(fmt::format("redis://127.0.0.1:{}", server_.port()));
  CacheGuard<std::string> guard{*store, "c", {}};
  guard.invalidate_twice("1", 10s).get();
  for (const auto& key : side_.command({"KEYS", "*"}).as_items()) {
    side_.command({"DEL", key.as_text()});
    side_.command({"SET", key.as_text(), "foreign"});
  }
  side_.command({"SET", "watched", "1"});
  try {
    guard.invalidate_twice("1", 10s).get();
    FAIL() << "the plan of second invalidations is a string";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.effect(), Effect::unknown) << failure.message();
  }
}

/// The type of its numbers is entered, and then what the user may not write is refused.
TEST_F(DurableEffects, F7_ASaleThatIsRefusedBehindItsTypeIsNotNothing) {
  side_.command({"ACL", "SETUSER", "half", "on", ">word", "+@all", "&*", "%R~*"});
  const auto store = open(fmt::format("redis://half:word@127.0.0.1:{}", server_.port()));
  for (const auto* const writes : {"%RW~nothing", "%RW~sluice:sales:*"}) {
    side_.command({"ACL", "SETUSER", "half", writes});
    try {
      Sale::create(*store, {.name = "s", .stock = 1, .number_type = "MT"}).get();
      ADD_FAILURE() << "it may not write";
    } catch (const Error& failure) {
      const bool has_written = side_.command({"DBSIZE"}) != Value::integer(0);
      EXPECT_EQ(failure.effect(), has_written ? Effect::unknown : Effect::none)
          << writes << ": " << failure.message();
    }
  }
  EXPECT_EQ(side_.command({"DBSIZE"}), Value::integer(1)) << "the types alone";
}

/// A hold ends, and its release is slow; the thread asks for the lock again.
template <class Lock, class... Names>
void end_and_begin(FaultProxy& proxy, Store& store, const Script& release, Names... names) {
  constexpr Durability a_copy{.replicas = 1, .within = 10s};
  Lock lock{store, names..., {.durability = a_copy}};
  auto held = lock.try_acquire().get();
  ASSERT_TRUE(held) << release.name;
  const auto slow = proxy.on(request_of(release), {LineFault::hold});
  held.reset();
  const std::jthread network{[&] {
    EXPECT_TRUE(proxy.await_hits(slow));
    std::this_thread::sleep_for(50ms);  // an acquire by another way would be answered by then
    proxy.let_go();
  }};
  EXPECT_TRUE(lock.try_acquire().get()) << release.name;
}

TEST(DurableOrder, F1_AThreadsNextAcquireComesAfterItsRelease) {
  const RedisServer server;
  const RedisServer replica{{fmt::format("replicaof 127.0.0.1 {}", server.port())}};
  FaultProxy proxy{server.port()};
  const auto store = open(proxy.url());
  end_and_begin<Mutex>(proxy, *store, scripts::lock_mutex_release, "m");
  end_and_begin<FairMutex>(proxy, *store, scripts::lock_fair_release, "f");
  end_and_begin<SharedMutex>(proxy, *store, scripts::lock_shared_release, "s");
  end_and_begin<MultiLock>(proxy, *store, scripts::lock_multi_release,
                           std::vector<std::string>{"a", "b"});
}

/// Who may not ask for replicas is told before anything is done: no number is burnt.
TEST_F(DurableEffects, CO03_WhoMayNotWaitIsToldBeforeAnythingIsDone) {
  side_.command({"ACL", "SETUSER", "careful", "on", ">word", "~*", "&*", "+@all", "-wait"});
  const auto store = open(fmt::format("redis://careful:word@127.0.0.1:{}", server_.port()));
  for (const auto& call : composed_calls()) {
    side_.command({"FLUSHALL"});
    try {
      call.run(*store);
      ADD_FAILURE() << call.name << " counts as durable";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.effect(), Effect::none) << call.name << ": " << failure.message();
      EXPECT_NE(failure.message().find("does not count replicas"), std::string::npos)
          << call.name << ": " << failure.message();
    }
    EXPECT_EQ(side_.command({"DBSIZE"}), Value::integer(0)) << call.name << ": " << holds();
  }
}

}  // namespace
}  // namespace sluice::test
