// A caller's deadline is its own, whatever shares the connection: pairs of calls, of which one has
// little time and the other much.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "redis/at_server.hpp"
#include "support/comes_true.hpp"
#include "support/fault_proxy.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::comes_true;
using Steady = std::chrono::steady_clock;

/// A way to the server.
enum class Way { plain, batch, durable, blocking };
constexpr Way ways[] = {Way::plain, Way::batch, Way::durable, Way::blocking};
std::string_view name_of(Way way) {
  constexpr std::string_view names[] = {"plain", "batch", "durable", "blocking"};
  return names[static_cast<std::size_t>(way)];
}

/// What a call takes at a server that answers at once: a WAIT for a replica that there is not.
constexpr milliseconds server_time{10};

Task<void> count_up(Store& store, Way way, std::string key, CallOptions options) {
  if (way == Way::plain) {
    auto asked = store.run({"INCR", key}, options);
    co_await asked;
  } else if (way == Way::blocking) {
    // Blocks for no time at all, and yet has a connection of its own.
    auto asked = store.run({"BLMOVE", "elements", key, "LEFT", "RIGHT", "0.01"}, options);
    co_await asked;
  } else {
    Batch batch;
    batch.add({"INCR", key}).add({"INCR", key + "'"});
    if (way == Way::durable) batch.add({"WAIT", "1", "10"});
    auto asked = store.run(std::move(batch), options);
    const std::vector<Value> replies = co_await asked;
    EXPECT_EQ(replies.at(0), Value::integer(1)) << "sent twice";
  }
}

/// A call in a thread of its own.
class Caller {
 public:
  Caller(Store& store, Way way, std::string key, CallOptions options)
      : thread_([this, &store, way, key = std::move(key), options] {
          try {
            count_up(store, way, key, options).get();
          } catch (...) {
            failure_ = std::current_exception();
          }
        }) {}
  /// Empty: it has succeeded.
  std::string why_not() {
    thread_.join();
    try {
      if (failure_) std::rethrow_exception(failure_);
      return {};
    } catch (const std::exception& failure) {
      return failure.what();
    }
  }

 private:
  std::exception_ptr failure_;
  std::jthread thread_;
};

/// Calls that have `timeout` each, one after another, for `all` of the time.
struct Hasty {
  milliseconds shortest = milliseconds::max();
  milliseconds longest{0};

  Hasty(Store& store, Way way, milliseconds timeout, milliseconds all) {
    const auto begun = Steady::now();
    for (int i = 0; i < 3 || Steady::now() - begun < all; ++i) {
      const auto begin = Steady::now();
      const auto failure = test::failure_of(
          [&] { count_up(store, way, fmt::format("hasty{}", i), {.timeout = timeout}).get(); });
      const auto took = std::chrono::duration_cast<milliseconds>(Steady::now() - begin);
      EXPECT_NE(failure.effect(), Effect::done);
      shortest = std::min(shortest, took);
      longest = std::max(longest, took);
    }
  }
};

redis::RedisOptions hasty(const test::RedisServer& server) {
  auto options = test::at(server);
  options.command_timeout = 100ms;  // a connection that owes a reply for so long is silent
  return options;
}

/// Each way's connection is there.
void connect_all(Store& store) {
  for (const auto way : ways)
    count_up(store, way, std::string{name_of(way)}, {.timeout = 60s}).get();
}

/// The process may stand still in one call or the other, but not in all.
void expect_own_time(const Hasty& hasty, milliseconds timeout, const std::string& row) {
  EXPECT_LE(hasty.shortest, timeout + server_time + 150ms) << row;
  EXPECT_LE(hasty.longest, timeout + server_time + 10s) << row;
}

TEST(Deadlines, D08_D13_OfEachPairBothHaveTheirOwnAtAServerThatStandsStill) {
  test::RedisServer server;
  const auto store = redis::open_redis(hasty(server));
  connect_all(*store);
  for (const auto one : ways) {
    for (const auto other : ways) {
      for (const bool patient_first : {true, false}) {
        const auto row = fmt::format("{} beside {}, which comes {}", name_of(one), name_of(other),
                                     patient_first ? "first" : "second");
        server.stop();
        std::optional<Hasty> before;
        if (!patient_first) before.emplace(*store, one, 50ms, 60ms);
        Caller patient{*store, other, row, {.timeout = 60s}};
        const Hasty beside{*store, one, 50ms, 300ms};
        server.cont();
        EXPECT_EQ(patient.why_not(), "") << row;
        expect_own_time(beside, 50ms, row);
        if (before) expect_own_time(*before, 50ms, row);
      }
    }
  }
}

TEST(Deadlines, D08_ADurableCallOf200msBesideOneOf8s) {
  test::RedisServer server;
  const auto store = redis::open_redis(test::at(server));
  connect_all(*store);
  server.stop();
  Caller patient{*store, Way::durable, "patient", {.timeout = 8s}};
  const Hasty beside{*store, Way::durable, 200ms, 500ms};
  server.cont();
  EXPECT_EQ(patient.why_not(), "");
  EXPECT_LE(beside.shortest, 350ms);
}

/// As a renewal beside a call whose caller is patient: the server lives, one connection does not.
TEST(Deadlines, D08_APatientCallDoesNotKeepAHalfOpenConnection) {
  const test::RedisServer server;
  for (const auto one : {Way::plain, Way::batch, Way::durable}) {
    test::FaultProxy proxy{server.port()};
    auto options = hasty(server);
    options.endpoint.port = proxy.port();
    const auto store = redis::open_redis(options);
    store->run({"FLUSHALL"}, {.timeout = 60s}).get();
    connect_all(*store);
    const auto lost = proxy.on(test::request_of("INCR"), {test::LineFault::swallow});
    Caller patient{*store, one, "patient", {.timeout = 300s, .repeatable = true}};
    ASSERT_TRUE(proxy.await_hits(lost));
    const auto begin = Steady::now();
    int renewals = 0;
    EXPECT_TRUE(comes_true([&] {
      try {
        count_up(*store, one, fmt::format("renewal{}", ++renewals), {.timeout = 100ms}).get();
        return true;
      } catch (const Error&) {
        return false;
      }
    })) << name_of(one);
    EXPECT_LE(Steady::now() - begin, 20s) << name_of(one);
    EXPECT_EQ(patient.why_not(), "") << name_of(one);
  }
}

/// What was not sent is known not to have happened.
TEST(Deadlines, D08_ADurableCallThatWaitedForItsTurnInVainHasNoEffect) {
  test::RedisServer server;
  const auto store = redis::open_redis(test::at(server));
  connect_all(*store);
  server.stop();
  Caller patient{*store, Way::durable, "patient", {.timeout = 60s}};
  const auto failed = [&] {
    return test::failure_of(
        [&] { count_up(*store, Way::durable, "hasty", {.timeout = 50ms}).get(); });
  };
  // The first may come before the patient one, and is sent then.
  failed();
  EXPECT_TRUE(comes_true([&] { return failed().effect() == Effect::none; }));
  server.cont();
  EXPECT_EQ(patient.why_not(), "");
}

TEST(Deadlines, BlockingCommandsWaitForAConnectionWithinTheirTime) {
  test::RedisServer server;
  auto options = test::at(server);
  options.most_blocking = 1;
  const auto store = redis::open_redis(options);
  connect_all(*store);
  server.stop();
  Caller patient{*store, Way::blocking, "patient", {.timeout = 60s}};
  const Hasty beside{*store, Way::blocking, 50ms, 200ms};
  server.cont();
  EXPECT_EQ(patient.why_not(), "");
  expect_own_time(beside, 50ms, "blocking");
}

/// CallOptions::until, of all ways.
TEST(Deadlines, UntilEndsACallThatHasMoreTime) {
  test::RedisServer server;
  const auto store = redis::open_redis(test::at(server));
  connect_all(*store);
  server.stop();
  for (const auto way : ways) {
    const auto begin = Steady::now();
    const CallOptions options{.timeout = 60s, .until = store->clock().steady() + 50ms};
    EXPECT_EQ(test::failure_of([&] { count_up(*store, way, "k", options).get(); }).errc(),
              Errc::timeout)
        << name_of(way);
    EXPECT_LE(Steady::now() - begin, 20s) << name_of(way);
  }
  server.cont();
}

}  // namespace
}  // namespace sluice
