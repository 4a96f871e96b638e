// The embedded Store in memory: replies, errors, batches, messages, waiting calls, expiry, many
// threads.
#include "engine/embedded_store.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <clocale>
#include <cstdlib>
#include <thread>

#include "store/subscription.hpp"
#include "support/temp_dir.hpp"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<EmbeddedStore> memory(Clock* clock = nullptr) {
  return open_embedded({.clock = clock});
}

TEST(EmbeddedStore, RunsCommands) {
  const auto store = memory();
  EXPECT_EQ(store->run({"SET", "k", "v"}).get(), Value::simple_string("OK"));
  EXPECT_EQ(store->run({"GET", "k"}).get(), Value::bulk_string("v"));
  EXPECT_TRUE(store->run({"GET", "none"}).get().is_null());
  EXPECT_EQ(store->describe(), "embedded:");
}

TEST(EmbeddedStore, Attack_ALocaleWithADecimalCommaChangesNoNumber) {
  const test::TempDir folder;
  const std::string make = "localedef -i de_DE -f UTF-8 " + folder.path().string() + "/de_DE.UTF-8";
  ::setenv("LOCPATH", folder.path().string().c_str(), 1);
  if (std::system(make.c_str()) != 0 || !std::setlocale(LC_ALL, "de_DE.UTF-8"))
    GTEST_SKIP() << "no sources of locales on this machine";
  const auto store = memory();
  const auto number = store->run({"INCRBYFLOAT", "n", "1.5"}).get().as_text();
  const auto text =
      store->run({"EVAL", "return string.format('%.1f', 0.5) .. tostring(tonumber('2.5'))", "0"})
          .get()
          .as_text();
  EXPECT_STREQ(std::localeconv()->decimal_point, ",") << "the caller's locale is as it was";
  std::setlocale(LC_ALL, "C");
  ::unsetenv("LOCPATH");
  EXPECT_EQ(number, "1.5");
  EXPECT_EQ(text, "0.52.5");
}

TEST(EmbeddedStore, ThrowsAnErrorReplyFromTheTaskAndNotFromTheCall) {
  const auto store = memory();
  store->run({"SET", "k", "v"}).get();
  auto asked = store->run({"LPUSH", "k", "x"});
  try {
    asked.get();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::wrong_type);
    EXPECT_EQ(error.effect(), Effect::none);
  }
}

TEST(EmbeddedStore, RefusesCommandsThatChangeAConnection) {
  const auto store = memory();
  for (const auto* const name : {"MULTI", "multi", "SUBSCRIBE", "SELECT"}) {
    auto asked = store->run({name, "1"});
    try {
      asked.get();
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::bad_argument) << name;
    }
  }
  EXPECT_THROW(store->run(Words{}).get(), Error);
}

TEST(EmbeddedStore, E13_RefusesNoCommandThatItNames) {
  const auto store = memory();
  const Value names = store->run({"COMMAND", "LIST"}).get();
  EXPECT_GT(names.as_items().size(), 100U);
  for (const auto& name : names.as_items()) {
    const auto& text = name.as_text();
    const auto bar = text.find('|');
    std::vector<std::string_view> words{std::string_view{text}.substr(0, bar)};
    if (bar != text.npos) words.push_back(std::string_view{text}.substr(bar + 1));
    try {
      store->run(words).get();
    } catch (const Error& error) {  // of its arguments
      EXPECT_NE(error.errc(), Errc::bad_argument) << text << ": " << error.message();
      EXPECT_EQ(error.message().find("unknown"), std::string::npos) << error.message();
    }
  }
}

TEST(EmbeddedStore, KeepsErrorsOfABatchInTheirPlace) {
  const auto store = memory();
  Batch batch;
  batch.add({"SET", "k", "1"}).add({"LPUSH", "k", "x"}).add({"INCR", "k"});
  const auto replies = store->run(std::move(batch)).get();
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_TRUE(replies[1].is_error());
  EXPECT_EQ(replies[2], Value::integer(2));
}

TEST(EmbeddedStore, CO12_RefusesABlockingCommandInABatchBeforeAnythingIsDone) {
  const auto store = memory();
  Batch batch;
  batch.add({"SET", "before", "1"}).add({"BLPOP", "list", "0"}).add({"SET", "after", "1"});
  try {
    (void)store->run(std::move(batch)).get();
    ADD_FAILURE() << "it was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument) << error.message();
    EXPECT_EQ(error.effect(), Effect::none);
  }
  EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(0));
}

// --- messages ---

TEST(EmbeddedStore, DeliversMessagesInOrderBeforeThePublisherGoesOn) {
  const auto store = memory();
  std::vector<std::string> seen;
  const auto listener =
      store->subscribe("c", [&](const Message& message) { seen.push_back(message.payload); }).get();
  EXPECT_EQ(store->run({"PUBLISH", "c", "1"}).get(), Value::integer(1));
  EXPECT_EQ(store->run({"PUBLISH", "other", "x"}).get(), Value::integer(0));
  store->run({"PUBLISH", "c", "2"}).get();
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "2"}));
}

TEST(EmbeddedStore, LetsAHandlerUseTheStoreAndPublishAgain) {
  const auto store = memory();
  std::vector<std::string> seen;
  const auto listener = store
                            ->subscribe("c",
                                        [&](const Message& message) {
                                          seen.push_back("begin " + message.payload);
                                          if (message.payload == "1")
                                            store->run({"PUBLISH", "c", "2"}).get();
                                          seen.push_back("end " + message.payload);
                                        })
                            .get();
  store->run({"PUBLISH", "c", "1"}).get();
  EXPECT_EQ(seen, (std::vector<std::string>{"begin 1", "end 1", "begin 2", "end 2"}));
}

TEST(EmbeddedStore, LetsAHandlerDestroyItsOwnListenerAndOthers) {
  const auto store = memory();
  int calls = 0;
  Listener first;
  Listener second;
  first = store
              ->subscribe("c",
                          [&](const Message&) {
                            ++calls;
                            first = {};
                            second = {};
                          })
              .get();
  second = store->subscribe("c", [&](const Message&) { ++calls; }).get();
  store->run({"PUBLISH", "c", "1"}).get();
  store->run({"PUBLISH", "c", "2"}).get();
  EXPECT_EQ(calls, 1);
}

TEST(EmbeddedStore, WaitsForARunningHandlerWhenItsListenerIsDestroyed) {
  const auto store = memory();
  std::atomic<bool> inside{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> ended{false};
  auto listener = store
                      ->subscribe("c",
                                  [&](const Message&) {
                                    inside = true;
                                    while (!may_end) std::this_thread::yield();
                                    ended = true;
                                  })
                      .get();
  std::thread publisher{[&] { store->run({"PUBLISH", "c", "1"}).get(); }};
  while (!inside) std::this_thread::yield();
  std::thread opener{[&] { may_end = true; }};
  listener = {};
  EXPECT_TRUE(ended);
  opener.join();
  publisher.join();
}

TEST(EmbeddedStore, LetsAListenerOutliveIt) {
  auto store = memory();
  const auto listener = store->subscribe("c", [](const Message&) {}).get();
  store.reset();
}

TEST(EmbeddedStore, LosesNoMessageOfManyPublishers) {
  const auto store = memory();
  std::atomic<int> received{0};
  std::atomic<int> inside{0};
  bool twice_at_once = false;
  const auto listener = store
                            ->subscribe("c",
                                        [&](const Message&) {
                                          if (++inside > 1) twice_at_once = true;
                                          ++received;
                                          --inside;
                                        })
                            .get();
  std::vector<std::thread> publishers;
  for (int i = 0; i < 4; ++i)
    publishers.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) store->run({"PUBLISH", "c", "x"}).get();
    });
  for (auto& publisher : publishers) publisher.join();
  EXPECT_EQ(received, 4000);
  EXPECT_FALSE(twice_at_once);
}

TEST(EmbeddedStore, FeedsASubscriptionThatWaits) {
  const auto store = memory();
  auto subscription = Subscription::open(*store, "c").get();
  std::thread publisher{[&] { store->run({"PUBLISH", "c", "hello"}).get(); }};
  const auto message = subscription.next(store->clock().steady() + 10s).get();
  publisher.join();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->payload, "hello");
}

// --- calls that wait ---

TEST(EmbeddedStore, ServesWaitingCallsInTheirOrder) {
  const auto store = memory();
  std::vector<std::string> served;
  const auto wait = [&](std::string name) -> Task<void> {
    auto asked = store->run({"BLPOP", "list", "0"});
    const Value reply = co_await asked;
    served.push_back(name + "=" + reply.as_items().at(1).as_text());
  };
  for (const auto* const name : {"first", "second", "third"}) spawn(wait(name));
  store->run({"RPUSH", "list", "a", "b"}).get();
  EXPECT_EQ(served, (std::vector<std::string>{"first=a", "second=b"}));
  store->run({"RPUSH", "list", "c"}).get();
  EXPECT_EQ(served.back(), "third=c");
  EXPECT_EQ(store->run({"EXISTS", "list"}).get(), Value::integer(0));
}

TEST(EmbeddedStore, PassesAnElementOnFromOneWaitingCallToTheNext) {
  const auto store = memory();
  std::string got;
  const auto move = [&]() -> Task<void> {
    auto asked = store->run({"BLMOVE", "a", "b", "LEFT", "RIGHT", "0"});
    co_await asked;
  };
  const auto pop = [&]() -> Task<void> {
    auto asked = store->run({"BLPOP", "b", "0"});
    const Value reply = co_await asked;
    got = reply.as_items().at(1).as_text();
  };
  spawn(move());
  spawn(pop());
  store->run({"RPUSH", "a", "x"}).get();
  EXPECT_EQ(got, "x");
}

TEST(EmbeddedStore, EndsAWaitWhenItsTimeIsUp) {
  VirtualClock clock;
  const auto store = memory(&clock);
  std::optional<Value> reply;
  const auto wait = [&]() -> Task<void> {
    auto asked = store->run({"BLPOP", "list", "5"});
    reply = co_await asked;
  };
  spawn(wait());
  clock.advance(4999ms);
  EXPECT_FALSE(reply);
  clock.advance(1ms);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->is_null());
  store->run({"RPUSH", "list", "a"}).get();
  EXPECT_EQ(store->run({"LLEN", "list"}).get(), Value::integer(1)) << "nobody waits any more";
  EXPECT_EQ(clock.pending_timers(), 0U);
}

TEST(EmbeddedStore, WaitsOnAThreadOfItsOwn) {
  const auto store = memory();
  std::thread pusher{[&] { store->run({"RPUSH", "list", "a"}).get(); }};
  const auto reply = store->run({"BLPOP", "list", "0"}).get();
  pusher.join();
  EXPECT_EQ(reply.as_items().at(1), Value::bulk_string("a"));
}

// --- time ---

TEST(EmbeddedStore, GivesMemoryBackWhenKeysEndThoughNobodyAsks) {
  VirtualClock clock;
  const auto store = memory(&clock);
  for (int i = 0; i < 5000; ++i) {
    const auto key = "k" + std::to_string(i);
    store->run({"SET", key, "v", "PX", "1000"}).get();
  }
  EXPECT_LE(clock.pending_timers(), 2U) << "one timer for all";
  clock.advance(2s);
  EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(0));
  EXPECT_EQ(clock.pending_timers(), 0U) << "no timer without work";
}

TEST(EmbeddedStore, SetsAnEarlierTimerForAnEarlierEnd) {
  VirtualClock clock;
  const auto store = memory(&clock);
  store->run({"SET", "late", "v", "EX", "3600"}).get();
  store->run({"SET", "soon", "v", "PX", "500"}).get();
  clock.advance(700ms);
  EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(1));
  store->run({"DEL", "late"}).get();
  clock.advance(2h);
  EXPECT_EQ(clock.pending_timers(), 0U);
}

TEST(EmbeddedStore, LetsNoTimeGoBack) {
  VirtualClock clock;
  const auto store = memory(&clock);
  store->run({"SET", "k", "v", "PX", "1000"}).get();
  const auto before = store->time().get();
  clock.jump_wall(-1h);
  EXPECT_GE(store->time().get(), before);
  EXPECT_EQ(store->run({"EXISTS", "k"}).get(), Value::integer(1));
}

TEST(EmbeddedStore, TellsWhatIsSettledAndDoesNotPretendToChangeIt) {
  const auto store = memory();
  const Value found = store->run({"CONFIG", "GET", "appendonly"}).get();
  ASSERT_EQ(found.as_items().size(), 2U);
  EXPECT_EQ(found.as_items()[1].as_text(), "no");
  EXPECT_THROW(store->run({"CONFIG", "SET", "appendonly", "yes"}).get(), Error);
  EXPECT_NO_THROW(store->run({"CONFIG", "SET", "appendonly", "no"}).get());
}

// --- threads ---

TEST(EmbeddedStore, CountsRightUnderManyThreads) {
  const auto store = memory();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 5000; ++k) store->run({"INCR", "n"}).get();
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store->run({"GET", "n"}).get(), Value::bulk_string("20000"));
}

}  // namespace
}  // namespace sluice::engine
