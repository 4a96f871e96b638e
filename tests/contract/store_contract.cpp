// What every Store promises (store.hpp).
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "base/event.hpp"
#include "base/sha1.hpp"
#include "contract/stores.hpp"
#include "sluice/when_all.hpp"
#include "store/combiner.hpp"
#include "store/subscription.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 20s;

class StoreContract : public test::StoreContract {
 protected:
  SteadyTime soon() { return store().clock().steady() + patience; }
  /// So that both listen() and subscribe() hear it.
  void publish(const std::string& channel, const std::string& payload) {
    store().run({"PUBLISH", channel, payload}).get();
    if (store().is_sharded()) store().run({"SPUBLISH", channel, payload}).get();
  }
};
SLUICE_EVERY_STORE(StoreContract);
SLUICE_DISTANT_STORE(StoreContract);

template <class Body>
Error failure_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error{Errc::server, "nothing was thrown", Effect::done};
}

/// A script with the SHA-1 of its text.
class OwnScript {
 public:
  explicit OwnScript(std::string text) : text_(std::move(text)), sha1_(sha1_hex(text_)) {}
  Script get() const { return {"contract", text_, sha1_}; }

 private:
  std::string text_;
  std::string sha1_;
};

TEST_P(StoreContract, RepliesAreTyped) {
  EXPECT_EQ(store().run({"SET", "s", "text"}).get(), Value::simple_string("OK"));
  EXPECT_EQ(store().run({"GET", "s"}).get(), Value::bulk_string("text"));
  EXPECT_EQ(store().run({"INCR", "n"}).get(), Value::integer(1));
  EXPECT_TRUE(store().run({"GET", "none"}).get().is_null());
  EXPECT_TRUE(store().run({"SET", "s", "other", "NX"}).get().is_null());
  store().run({"HSET", "h", "f", "1"}).get();
  EXPECT_EQ(to_string(store().run({"HGETALL", "h"}).get()), R"(map["f", "1"])");
  store().run({"ZADD", "z", "1.5", "m"}).get();
  EXPECT_EQ(store().run({"ZSCORE", "z", "m"}).get(), Value::number(1.5));
  EXPECT_EQ(to_string(store().run({"LRANGE", "none", "0", "-1"}).get()), "[]");
}

TEST_P(StoreContract, WordsMayHoldAnyBytesAndBeLarge) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  const std::string name = bytes + std::string(100'000, '\0');
  const std::string value = std::string(1 << 20, '\r') + "\n$-1\r\n";
  store().run({"SET", name, value}).get();
  EXPECT_EQ(store().run({"GET", name}).get().as_text(), value);
  EXPECT_EQ(store().run({"EXISTS", bytes}).get().as_integer(), 0);
  EXPECT_EQ(store().run({"SET", "", "empty name"}).get().as_text(), "OK");
  EXPECT_EQ(store().run({"GET", ""}).get().as_text(), "empty name");
}

TEST_P(StoreContract, ArgumentsAreCopiedBeforeTheCallReturns) {
  std::string value = "before";
  auto call = store().run({"SET", "k", value});
  value = "after!";
  call.get();
  EXPECT_EQ(store().run({"GET", "k"}).get().as_text(), "before");
}

TEST_P(StoreContract, ErrorRepliesAreThrownAndTyped) {
  store().run({"SET", "text", "x"}).get();
  const auto wrong_type = failure_of([&] { store().run({"LPUSH", "text", "x"}).get(); });
  EXPECT_EQ(wrong_type.errc(), Errc::wrong_type);
  EXPECT_EQ(wrong_type.effect(), Effect::none);
  EXPECT_EQ(failure_of([&] { store().run({"INCR", "text"}).get(); }).errc(), Errc::server);
  EXPECT_EQ(failure_of([&] { store().run({"NO-SUCH-COMMAND", "x"}).get(); }).errc(), Errc::server);
  EXPECT_EQ(failure_of([&] { store().run({"GET"}).get(); }).errc(), Errc::server);
}

TEST_P(StoreContract, ScriptsRunByTheirTextAndAfterThat) {
  const OwnScript add{"return redis.call('INCRBY', KEYS[1], ARGV[1])"};
  const auto key = name("n");
  EXPECT_EQ(store().run(add.get(), {key}, {"5"}).get().as_integer(), 5);
  EXPECT_EQ(store().run(add.get(), {key}, {"5"}).get().as_integer(), 10);
  store().run({"SCRIPT", "FLUSH"}).get();
  EXPECT_EQ(store().run(add.get(), {key}, {"5"}).get().as_integer(), 15);
}

TEST_P(StoreContract, ScriptsConvertAsRedisDoes) {
  const OwnScript all{
      "return {1, 'two', 3.9, true, false, {ok='fine'}, {err='ERR bad'}, {4, {}}, "
      "redis.call('GET', KEYS[1])}"};
  EXPECT_EQ(to_string(store().run(all.get(), {name("none")}, {}).get()),
            R"([(integer) 1, "two", (integer) 3, (integer) 1, (nil), fine, (error) ERR bad, )"
            R"([(integer) 4, []], (nil)])");
}

TEST_P(StoreContract, AScriptThatFailsSaysWhatItHasDone) {
  const OwnScript half{
      "redis.call('SET', KEYS[1], 'done') return redis.call('LPUSH', KEYS[1], 'x')"};
  const auto key = name("k");
  const auto error = failure_of([&] { store().run(half.get(), {key}, {}).get(); });
  EXPECT_EQ(error.effect(), Effect::unknown) << error.what();
  EXPECT_EQ(store().run({"GET", key}).get().as_text(), "done");
  const OwnScript raised{"error('my words')"};
  const auto raised_error = failure_of([&] { store().run(raised.get(), {}, {}).get(); });
  EXPECT_EQ(raised_error.errc(), Errc::script) << raised_error.what();
  EXPECT_NE(raised_error.message().find("my words"), std::string::npos) << raised_error.what();
  const OwnScript broken{"this is not Lua"};
  EXPECT_THROW(store().run(broken.get(), {}, {}).get(), Error);
}

TEST_P(StoreContract, BatchesKeepOrderAndErrorsStandInTheirPlace) {
  const OwnScript add{"return redis.call('INCRBY', KEYS[1], ARGV[1])"};
  const auto key = name("n");
  const std::string_view keys[] = {key};
  const std::string_view args[] = {"10"};
  const auto script = add.get();
  for (int round = 1; round <= 2; ++round) {
    Batch batch;
    batch.add({"SET", key, "1"})
        .add(script, keys, args)
        .add({"LPUSH", key, "x"})
        .add({"INCR", key})
        .add({"GET", "none"});
    const auto replies = store().run(batch).get();
    ASSERT_EQ(replies.size(), 5U);
    EXPECT_EQ(replies[0].as_text(), "OK");
    EXPECT_EQ(replies[1].as_integer(), 11);
    EXPECT_TRUE(replies[2].is_error());
    EXPECT_EQ(replies[3].as_integer(), 12);
    EXPECT_TRUE(replies[4].is_null());
    store().run({"SCRIPT", "FLUSH"}).get();
  }
  EXPECT_TRUE(store().run(Batch{}).get().empty());
}

TEST_P(StoreContract, ALargeBatchIsOneCall) {
  Batch batch;
  for (int i = 0; i < 10'000; ++i) batch.add({"INCR", "n"});
  const auto replies = store().run(std::move(batch)).get();
  ASSERT_EQ(replies.size(), 10'000U);
  for (std::size_t i = 0; i < replies.size(); ++i)
    ASSERT_EQ(replies[i].as_integer(), static_cast<std::int64_t>(i) + 1);
}

TEST_P(StoreContract, EachOfManyThreadsGetsItsOwnReplies) {
  constexpr int threads = 16;
  constexpr int calls = 200;
  std::latch go{threads};
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < threads; ++t)
      crowd.emplace_back([&, t] {
        go.arrive_and_wait();
        for (int i = 0; i < calls; ++i) {
          const auto key = std::to_string(t) + ":" + std::to_string(i);
          store().run({"SET", key, key}).get();
          if (store().run({"GET", key}).get().as_text() != key) ++wrong;
        }
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store().run({"DBSIZE"}).get().as_integer(), threads * calls);
}

TEST_P(StoreContract, CoroutinesThatRunAtOnceGetTheirOwnReplies) {
  const auto ask = [](Store& from, int number) -> Task<std::int64_t> {
    const auto key = "k" + std::to_string(number);
    const auto value = std::to_string(number);
    auto set = from.run({"SET", key, value});
    co_await set;
    auto got = from.run({"GET", key});
    const Value reply = co_await got;
    co_return reply.as_integer();
  };
  std::vector<Task<std::int64_t>> tasks;
  for (int i = 0; i < 500; ++i) tasks.push_back(ask(store(), i));
  const auto numbers = when_all(std::move(tasks)).get();
  for (int i = 0; i < 500; ++i) EXPECT_EQ(numbers[static_cast<std::size_t>(i)], i);
}

TEST_P(StoreContract, CallsOfOneThreadKeepTheirOrderAlsoWhenNotAwaited) {
  const auto append = [](Store& to, std::string word) -> Task<void> {
    auto appended = to.run({"APPEND", "k", word});
    co_await appended;
  };
  std::string expected;
  for (int i = 0; i < 500; ++i) {
    const auto word = std::to_string(i) + ",";
    expected += word;
    spawn(append(store(), word));
    if (i % 50 == 0) {
      ASSERT_EQ(store().run({"GET", "k"}).get().as_text(), expected);
    }
  }
  EXPECT_EQ(store().run({"GET", "k"}).get().as_text(), expected);
}

TEST_P(StoreContract, CallsThatNobodyAwaitsEndByThemselves) {
  Event done;
  std::atomic<int> left{100};
  const auto step = [](Store& on, std::atomic<int>& count, Event& all) -> Task<void> {
    auto first = on.run({"INCR", "n"});
    co_await first;
    auto second = on.run({"INCR", "n"});
    co_await second;
    if (--count == 0) all.set();
  };
  for (int i = 0; i < 100; ++i) spawn(step(store(), left, done));
  ASSERT_TRUE(done.wait_until(std::chrono::steady_clock::now() + patience));
  EXPECT_EQ(store().run({"GET", "n"}).get().as_integer(), 200);
}

TEST_P(StoreContract, CallersAreCombined) {
  constexpr int threads = 8;
  constexpr int calls = 100;
  Combiner<int, std::int64_t> counter{
      store().driver(), 1000, [this](std::vector<int> asked) {
        return [](Store& on, std::size_t by) -> Task<std::vector<std::int64_t>> {
          const auto count = std::to_string(by);
          auto called = on.run({"INCRBY", "n", count});
          const Value reply = co_await called;
          std::vector<std::int64_t> numbers(by);
          for (std::size_t i = 0; i < by; ++i)
            numbers[i] = reply.as_integer() - static_cast<std::int64_t>(by - i) + 1;
          co_return numbers;
        }(store(), asked.size());
      }};
  std::atomic<std::int64_t> sum{0};
  {
    std::vector<std::jthread> crowd;
    for (int t = 0; t < threads; ++t)
      crowd.emplace_back([&] {
        for (int i = 0; i < calls; ++i) sum += counter.call(1).get();
      });
  }
  constexpr std::int64_t all = threads * calls;
  EXPECT_EQ(sum, all * (all + 1) / 2);
}

TEST_P(StoreContract, ListenersHearWhatIsPublishedAfterwardsInOrder) {
  const auto channel = name("channel");
  auto subscription = Subscription::open(store(), channel).get();
  auto other = Subscription::open(store(), name("other")).get();
  for (int i = 0; i < 100; ++i) publish(channel, std::to_string(i));
  for (int i = 0; i < 100; ++i) {
    const auto message = subscription.next(soon()).get();
    ASSERT_TRUE(message);
    EXPECT_EQ(message->kind, Message::Kind::published);
    EXPECT_EQ(message->channel, channel);
    EXPECT_EQ(message->payload, std::to_string(i));
  }
  EXPECT_FALSE(other.next(store().clock().steady()).get());
}

TEST_P(StoreContract, AScriptPublishes) {
  const OwnScript classic{"return redis.call('PUBLISH', KEYS[1], ARGV[1])"};
  const OwnScript shard{"return redis.call('SPUBLISH', KEYS[1], ARGV[1])"};
  const Script sharded = shard.get();
  Script script = classic.get();
  script.sharded = &sharded;
  const auto channel = name("channel");
  auto subscription = Subscription::open(store(), channel).get();
  EXPECT_EQ(store().run(script, {channel}, {"released"}).get().as_integer(), 1);
  const auto message = subscription.next(soon()).get();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, "released");
}

TEST_P(StoreContract, AListenerThatHasEndedHearsNothing) {
  const auto channel = name("channel");
  std::atomic<int> heard{0};
  auto listener = store().listen(channel, [&](const Message&) { ++heard; }).get();
  publish(channel, "1");
  auto stays = Subscription::open(store(), channel).get();
  listener = {};
  const int before = heard;
  publish(channel, "2");
  ASSERT_TRUE(stays.next(soon()).get());
  EXPECT_EQ(heard, before);
}

TEST_P(StoreContract, AWaitingThreadIsWokenByAnothersMessage) {
  const auto channel = name("channel");
  auto subscription = Subscription::open(store(), channel).get();
  std::jthread publisher{[&] { publish(channel, "hello"); }};
  const auto message = subscription.next(soon()).get();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, "hello");
}

TEST_P(StoreContract, ADeadlineEndsAWaitForAMessage) {
  auto subscription = Subscription::open(store(), name("channel")).get();
  const auto deadline = store().clock().steady() + 20ms;
  EXPECT_FALSE(subscription.next(deadline).get());
  EXPECT_GE(store().clock().steady(), deadline);
}

TEST_P(StoreContract, BlockingCommandsHoldUpNobody) {
  const auto queue = name("queue");
  std::vector<std::string> taken(3);
  std::vector<std::jthread> crowd;
  for (auto& one : taken)
    crowd.emplace_back([&] {
      one = store()
                .run({"BLPOP", queue, "0"}, {.timeout = patience})
                .get()
                .as_items()
                .at(1)
                .as_text();
    });
  for (const auto* const work : {"a", "b", "c"}) store().run({"RPUSH", queue, work}).get();
  crowd.clear();
  std::sort(taken.begin(), taken.end());
  EXPECT_EQ(taken, (std::vector<std::string>{"a", "b", "c"}));
}

TEST_P(StoreContract, CO12_ABlockingCommandIsRefusedInABatchBeforeAnythingIsDone) {
  const std::string list = name("list"), full = name("full"), stream = name("stream");
  store().run({"RPUSH", full, "a"}).get();
  store().run({"XGROUP", "CREATE", stream, "g", "$", "MKSTREAM"}).get();
  const std::vector<std::vector<std::string_view>> all{
      {"BLPOP", list, "0"},
      {"brpop", full, "0"},  // even where it need not wait
      {"BLMOVE", list, list, "LEFT", "RIGHT", "0.1"},
      {"BRPOPLPUSH", list, list, "1"},
      {"BLMPOP", "0", "1", list, "LEFT"},
      {"BZPOPMIN", list, "0"},
      {"BZPOPMAX", list, "not a time"},
      {"BZMPOP", "0", "1", list, "MIN"},
      {"XREAD", "BLOCK", "0", "STREAMS", stream, "$"},
      {"XREADGROUP", "GROUP", "g", "c", "BLOCK", "9", "STREAMS", stream, ">"}};
  for (const auto& words : all) {
    Batch batch;
    batch.add({"SET", list, "1"});
    batch.add(Words{words});
    try {
      (void)store().run(std::move(batch)).get();
      ADD_FAILURE() << words[0];
    } catch (const Error& refused) {
      EXPECT_EQ(refused.errc(), Errc::bad_argument);
      EXPECT_EQ(refused.effect(), Effect::none);
      EXPECT_NE(
          refused.message().find("a blocking command would hold up its batch; run it alone: " +
                                 std::string{words[0]}),
          std::string::npos)
          << refused.message();
    }
    EXPECT_EQ(store().run({"EXISTS", list}).get().as_integer(), 0) << words[0];
  }
  Batch waits_for_nothing;
  waits_for_nothing.add({"XREAD", "STREAMS", stream, "0"});
  EXPECT_EQ(store().run(std::move(waits_for_nothing)).get().size(), 1U);
}

TEST_P(StoreContract, ABlockingCommandEndsAfterItsOwnTime) {
  EXPECT_TRUE(store().run({"BLPOP", name("queue"), "0.05"}).get().is_null());
  const auto stream = name("stream");
  store().run({"XGROUP", "CREATE", stream, "g", "$", "MKSTREAM"}).get();
  EXPECT_TRUE(store()
                  .run({"XREADGROUP", "GROUP", "g", "c", "BLOCK", "30", "STREAMS", stream, ">"})
                  .get()
                  .is_null());
}

TEST_P(StoreContract, AStreamIsReadByAGroupThatWaits) {
  const auto stream = name("stream");
  store().run({"XGROUP", "CREATE", stream, "g", "$", "MKSTREAM"}).get();
  std::jthread writer{[&] { store().run({"XADD", stream, "*", "f", "v"}).get(); }};
  const auto reply =
      store()
          .run({"XREADGROUP", "GROUP", "g", "c", "BLOCK", "20000", "STREAMS", stream, ">"})
          .get();
  EXPECT_NE(to_string(reply).find(R"(["f", "v"])"), std::string::npos) << to_string(reply);
}

TEST_P(StoreContract, CommandsOfOneConnectionAreRefused) {
  for (const auto* const command : {"MULTI", "SUBSCRIBE", "WATCH", "SELECT", "HELLO"}) {
    const auto error = failure_of([&] { store().run({command, "1"}).get(); });
    EXPECT_EQ(error.effect(), Effect::none) << command;
  }
  EXPECT_EQ(store().run({"PING"}).get().as_text(), "PONG");
}

TEST_P(StoreContract, TimeIsNearTheMachinesAndTellsItAgain) {
  const auto first = store().time().get();
  const auto second = store().time().get();
  EXPECT_LE(first, second);
  EXPECT_LT(std::chrono::abs(first - std::chrono::floor<std::chrono::microseconds>(
                                         std::chrono::system_clock::now())),
            5s);
}

TEST_P(StoreContract, KeysExpire) {
  store().run({"SET", "k", "v", "EX", "100"}).get();
  EXPECT_GT(store().run({"PTTL", "k"}).get().as_integer(), 0);
  store().run({"PEXPIRE", "k", "30"}).get();
  const auto limit = soon();
  while (!store().run({"GET", "k"}).get().is_null()) ASSERT_LT(store().clock().steady(), limit);
  EXPECT_EQ(store().run({"PTTL", "k"}).get().as_integer(), -2);
}

TEST_P(StoreContract, DescribesItselfByItsUrl) {
  const auto where = url().substr(0, url().find('?'));
  EXPECT_TRUE(store().describe().starts_with(where)) << store().describe() << " is not " << where;
}

TEST_P(StoreContract, TwoStoresOfOneServerShareTheirData) {
  if (!has_second()) GTEST_SKIP() << "an embedded store is alone";
  const auto other = second();
  store().run({"SET", "k", "v"}).get();
  EXPECT_EQ(other->run({"GET", "k"}).get().as_text(), "v");
  auto subscription = Subscription::open(store(), name("channel")).get();
  const std::string publish = store().is_sharded() ? "SPUBLISH" : "PUBLISH";
  EXPECT_EQ(other->run({publish, name("channel"), "m"}).get().as_integer(), 1);
  EXPECT_TRUE(subscription.next(soon()).get());
}

}  // namespace
}  // namespace sluice
