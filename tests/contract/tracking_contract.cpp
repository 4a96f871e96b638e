// Changed keys: what every Store tells of them.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/event.hpp"
#include "contract/stores.hpp"
#include "sluice/store.hpp"
#include "support/told.hpp"

namespace sluice {
namespace {

using test::Told;
using Keys = std::vector<std::string>;

class TrackingContract : public test::StoreContract {
 protected:
  void SetUp() override {
    StoreContract::SetUp();
    if (GetParam() == test::StoreKind::proxied)
      GTEST_SKIP() << "a proxy's connections are shared: AProxySaysThatItCannotTell";
    listener_ = store().track("{t}:", told.handler());
    ASSERT_TRUE(told.wait_for(Message::Kind::gap));
    told.forget();
  }
  void TearDown() override {
    listener_ = {};
    StoreContract::TearDown();
  }

  Value run(std::initializer_list<std::string_view> command) { return store().run(command).get(); }
  /// Runs it, and gives the keys that are told of, each once, in the order of their names.
  Keys keys_after(std::initializer_list<std::string_view> command) {
    run(command);
    run({"SET", "{t}:last", std::to_string(++last_)});
    return keys_until_last();
  }
  Keys keys_until_last() {
    EXPECT_TRUE(told.hears("{t}:last"));
    std::set<std::string> keys;
    for (const auto& message : told.all()) {
      EXPECT_EQ(message.channel, "{t}:");
      keys.insert(message.kind == Message::Kind::gap ? "gap" : message.payload);
    }
    told.forget();
    keys.erase("{t}:last");
    return {keys.begin(), keys.end()};
  }

  Told told;

 private:
  Listener listener_;
  int last_ = 0;
};
SLUICE_EVERY_STORE(TrackingContract);
SLUICE_DISTANT_STORE(TrackingContract);

TEST_P(TrackingContract, TellsOfWhatIsWrittenBelowThePrefix) {
  EXPECT_EQ(keys_after({"SET", "{t}:a", "1"}), (Keys{"{t}:a"}));
  EXPECT_EQ(keys_after({"SET", "{T}:a", "1"}), Keys{});
  EXPECT_EQ(keys_after({"SET", "{t}", "1"}), Keys{});
  EXPECT_EQ(keys_after({"APPEND", "{t}:a", "1"}), (Keys{"{t}:a"}));
  EXPECT_EQ(keys_after({"HSET", "{t}:h", "f", "v"}), (Keys{"{t}:h"}));
  EXPECT_EQ(keys_after({"ZADD", "{t}:z", "1", "m"}), (Keys{"{t}:z"}));
  EXPECT_EQ(keys_after({"XADD", "{t}:x", "*", "f", "v"}), (Keys{"{t}:x"}));
  EXPECT_EQ(keys_after({"PEXPIRE", "{t}:a", "100000"}), (Keys{"{t}:a"}));
  EXPECT_EQ(keys_after({"DEL", "{t}:h"}), (Keys{"{t}:h"}));
  EXPECT_EQ(keys_after({"RENAME", "{t}:a", "{t}:b"}), (Keys{"{t}:a", "{t}:b"}));
  EXPECT_EQ(keys_after({"GET", "{t}:b"}), Keys{});
  EXPECT_EQ(keys_after({"DEL", "{t}:nothing"}), Keys{});
}

TEST_P(TrackingContract, TellsOfWhatScriptsAndBatchesWrite) {
  EXPECT_EQ(keys_after({"EVAL", "redis.call('SET', KEYS[1], 1) redis.call('DEL', KEYS[2])", "3",
                        "{t}:a", "{t}:none", "{t}:unused"}),
            (Keys{"{t}:a"}));
  EXPECT_EQ(keys_after({"EVAL", "redis.call('SET', KEYS[1], 1) redis.pcall('HGET', KEYS[1], 'f')",
                        "1", "{t}:b"}),
            (Keys{"{t}:b"}));
  Batch batch;
  for (int i = 0; i < 5; ++i) batch.add({"INCR", "{t}:" + std::to_string(i)});
  store().run(std::move(batch)).get();
  EXPECT_EQ(keys_after({"PING"}), (Keys{"{t}:0", "{t}:1", "{t}:2", "{t}:3", "{t}:4"}));
}

TEST_P(TrackingContract, TellsOfWhatExpires) {
  run({"SET", "{t}:by itself", "1", "PX", "300"});  // not before forget(), also on a busy machine
  run({"SET", "{t}:found", "1", "PX", "1"});
  told.forget();
  while (run({"EXISTS", "{t}:found"}).as_integer() == 1) {
  }
  EXPECT_TRUE(told.hears("{t}:found"));
  EXPECT_TRUE(told.hears("{t}:by itself"));
}

/// Also where one expires much later: it had a timer before.
TEST_P(TrackingContract, TellsOfEachThatExpires) {
  run({"SET", "{t}:much later", "1", "PX", "600000"});
  for (const auto* const key : {"{t}:one", "{t}:two", "{t}:three"}) {
    run({"SET", key, "1", "PX", "150"});
    const auto is_set = [&](const Message& message) { return message.payload == key; };
    ASSERT_TRUE(told.wait_until(is_set));
    told.forget();
    EXPECT_TRUE(told.hears(key));
  }
}

TEST_P(TrackingContract, TellsOfAllThatIsFlushed) {
  run({"SET", "{t}:a", "1"});
  for (const auto* const flush : {"FLUSHALL", "FLUSHDB"}) {
    told.forget();
    run({flush});
    EXPECT_TRUE(told.wait_for(Message::Kind::gap)) << flush;
  }
}

TEST_P(TrackingContract, TellsOfTenThousandKeysAtOnce) {
  constexpr int count = 10'000;
  std::vector<std::string> words{"MSET"};
  for (int i = 0; i < count; ++i) {
    words.push_back("{t}:" + std::to_string(i));
    words.emplace_back("v");
  }
  const std::vector<std::string_view> views{words.begin(), words.end()};
  store().run(Words{views}).get();
  EXPECT_EQ(keys_after({"PING"}).size(), std::size_t{count});
}

TEST_P(TrackingContract, EachTrackerHearsItsOwn) {
  Told inner;
  Told outer;
  Told twin;
  auto innermost = store().track("{t}:a:", inner.handler());
  const auto all = store().track("{", outer.handler());
  const auto same = store().track("{t}:a:", twin.handler());
  for (const auto* const one : {&inner, &outer, &twin}) {
    ASSERT_TRUE(one->wait_for(Message::Kind::gap));
    EXPECT_EQ(one->all().front().kind, Message::Kind::gap);
  }
  const Keys keys{"{u}:1", "{t}:b:1", "{t}:a:1"};
  for (const auto& key : keys) run({"SET", key, "v"});
  for (const auto* const one : {&inner, &outer, &twin}) EXPECT_TRUE(one->hears("{t}:a:1"));
  EXPECT_EQ(outer.keys(), keys);
  EXPECT_EQ(inner.keys(), Keys{"{t}:a:1"});

  innermost = {};
  run({"SET", "{t}:a:2", "v"});
  EXPECT_TRUE(twin.hears("{t}:a:2"));
  EXPECT_EQ(inner.keys(), Keys{"{t}:a:1"});
}

TEST_P(TrackingContract, AHandlerThatBlocksOrThrowsHarmsNobody) {
  std::atomic<int> failures{0};
  const auto bad = store().track("{t}:", [&](const Message&) {
    ++failures;
    if (has_second()) store().run({"PING"}).get();  // throws: this thread reads the reply
    throw std::runtime_error{"handler's fault"};
  });
  EXPECT_EQ(keys_after({"SET", "{t}:a", "1"}).back(), "{t}:a");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (failures == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_GT(failures, 0);
  EXPECT_EQ(keys_after({"SET", "{t}:b", "1"}).back(), "{t}:b");
}

TEST_P(TrackingContract, AHandlerMayEndItsOwnTracking) {
  Event ended;
  Listener own;
  Event is_set;
  own = store().track("{t}:", [&](const Message& message) {
    if (message.kind != Message::Kind::published) return;
    is_set.wait();
    own = {};
    ended.set();
  });
  is_set.set();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  for (int i = 0; !ended.is_set() && std::chrono::steady_clock::now() < end; ++i)
    run({"SET", "{t}:a", std::to_string(i)});
  EXPECT_TRUE(ended.is_set());
}

TEST_P(TrackingContract, NoChangeIsMissedWhileTrackersComeAndGo) {
  std::jthread others{[&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Told briefly;
      const auto same = store().track("{t}:", briefly.handler());
      const auto within = store().track("{t}:a", briefly.handler());
      EXPECT_TRUE(briefly.wait_for(Message::Kind::gap));
    }
  }};
  for (int i = 0; i < 50; ++i) {
    const auto key = "{t}:" + std::to_string(i);
    run({"SET", key, "v"});
    ASSERT_TRUE(told.hears(key)) << i;
  }
  EXPECT_EQ(told.all().size(), 50U) << "covered prefixes cost the others no gap";
}

class UntrackedContract : public test::StoreContract {};
INSTANTIATE_TEST_SUITE_P(EveryStore, UntrackedContract, testing::Values(test::StoreKind::proxied),
                         [](const auto& kind) { return test::to_string(kind.param); });

TEST_P(UntrackedContract, AProxySaysThatItCannotTell) {
  Told told;
  const auto listener = store().track("{t}:", told.handler());
  const auto why = told.wait_for(Message::Kind::lost);
  ASSERT_TRUE(why);
  EXPECT_NE(why->payload.find("CLIENT TRACKING cannot be served by a proxy"), std::string::npos)
      << why->payload;
  EXPECT_EQ(store().run({"PING"}).get().as_text(), "PONG");
}

}  // namespace
}  // namespace sluice
