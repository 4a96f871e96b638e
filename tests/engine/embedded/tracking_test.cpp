// Changed keys of the embedded engine, where it differs from a server.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/event.hpp"
#include "engine/embedded_store.hpp"
#include "support/temp_dir.hpp"

namespace sluice::engine {
namespace {

using namespace std::chrono_literals;
using Heard = std::vector<std::string>;

/// What a tracker of all keys hears. Handlers run before the call returns.
class EmbeddedTracking : public testing::Test {
 protected:
  Listener track(Store& on, std::string prefix = "") {
    return on.track(std::move(prefix), [this](const Message& message) {
      heard_.push_back(message.kind == Message::Kind::gap ? "gap" : message.payload);
    });
  }
  Heard take() { return std::exchange(heard_, {}); }
  Heard after(Store& on, std::initializer_list<std::string_view> command) {
    on.run(command).get();
    return take();
  }

 private:
  Heard heard_;
};

TEST_F(EmbeddedTracking, BeginsWithAGapOfItsOwn) {
  const auto store = open_embedded();
  const auto listener = track(*store);
  EXPECT_EQ(take(), Heard{"gap"});
  Heard other;
  const auto second =
      store->track("", [&](const Message& message) { other.push_back(message.payload); });
  EXPECT_EQ(take(), Heard{});
  EXPECT_EQ(other, Heard{""});
}

TEST_F(EmbeddedTracking, AScriptThatIsEndedHasChangedNothing) {
  const auto store = open_embedded({.scripts = {.steps = 100'000}});
  const auto listener = track(*store);
  take();
  auto ended =
      store->run({"EVAL", "redis.call('SET', KEYS[1], 1) while true do end", "1", "undone"});
  EXPECT_THROW(ended.get(), Error);
  EXPECT_EQ(take(), Heard{});
  auto failed = store->run({"EVAL", "redis.call('SET', KEYS[1], 1) error('no')", "1", "stays"});
  EXPECT_THROW(failed.get(), Error);
  EXPECT_EQ(take(), Heard{"stays"});
}

TEST_F(EmbeddedTracking, WhatExpiresIsToldWithoutACall) {
  VirtualClock clock;
  const auto store = open_embedded({.clock = &clock});
  store->run({"SET", "before", "1", "PX", "1000"}).get();
  const auto listener = track(*store);
  take();
  EXPECT_EQ(after(*store, {"SET", "after", "1", "PX", "1000"}), Heard{"after"});
  clock.advance(2s);
  auto expired = take();
  std::ranges::sort(expired);
  EXPECT_EQ(expired, (Heard{"after", "before"}));
}

TEST_F(EmbeddedTracking, WhatACallFindsExpiredIsToldBeforeWhatItWrites) {
  VirtualClock clock;
  const auto store = open_embedded({.clock = &clock});
  const auto listener = track(*store);
  store->run({"SET", "k", "1", "PX", "10"}).get();
  take();
  clock.advance(11ms);
  EXPECT_EQ(after(*store, {"GET", "k"}), Heard{"k"});
}

TEST_F(EmbeddedTracking, AllKeysMayHaveChanged) {
  const auto store = open_embedded();
  const auto listener = track(*store, "k:");
  take();
  store->run({"SET", "other", "1"}).get();
  EXPECT_EQ(after(*store, {"SWAPDB", "0", "1"}), Heard{"gap"});
  store->run({"SET", "other", "1"}).get();
  EXPECT_EQ(after(*store, {"FLUSHDB"}), Heard{"gap"});
}

TEST_F(EmbeddedTracking, ALibraryOfFunctionsChangesNoKey) {
  const auto store = open_embedded();
  const auto listener = track(*store, "k:");
  take();
  EXPECT_EQ(after(*store, {"FUNCTION", "LOAD",
                           "#!lua name=a\nredis.register_function('f', function() end)"}),
            Heard{});
  EXPECT_EQ(after(*store, {"function", "flush"}), Heard{});
}

TEST_F(EmbeddedTracking, AClockThatWasSetChangesNoValue) {
  VirtualClock clock;
  const auto store = open_embedded({.clock = &clock});
  const auto listener = track(*store);
  for (int i = 0; i < 3000; ++i)
    store->run({"SET", "k" + std::to_string(i), "1", "EX", "1000000"}).get();
  take();
  clock.jump_wall(1h);
  store->run({"PING"}).get();
  clock.advance(2min);
  store->run({"PING"}).get();
  EXPECT_EQ(take(), Heard{});
  EXPECT_EQ(store->run({"DBSIZE"}).get().as_integer(), 3000);
}

TEST_F(EmbeddedTracking, OfAFolderTellsTheSame) {
  const sluice::test::TempDir folder;
  const auto path = (folder / "data").string();
  {
    const auto store = open_embedded({.path = path});
    const auto listener = track(*store, "k:");
    take();
    EXPECT_EQ(after(*store, {"MSET", "k:1", "v", "x", "v", "k:2", "v"}), (Heard{"k:1", "k:2"}));
  }
  const auto store = open_embedded({.path = path});
  const auto listener = track(*store, "k:");
  take();
  EXPECT_EQ(after(*store, {"DEL", "k:1"}), Heard{"k:1"}) << "a log that was read again";
}

TEST_F(EmbeddedTracking, AHandlerMayUseTheStore) {
  const auto store = open_embedded();
  const auto listener = store->track("k:", [&](const Message& message) {
    if (message.kind == Message::Kind::published) store->run({"INCR", "changes"}).get();
  });
  store->run({"SET", "k:1", "v"}).get();
  store->run({"SET", "k:2", "v"}).get();
  EXPECT_EQ(store->run({"GET", "changes"}).get().as_text(), "2");
}

TEST_F(EmbeddedTracking, BehindAHandlerThatBlocksAFewMessagesStandForMany) {
  const auto store = open_embedded();
  Event blocks;
  Event go_on;
  std::atomic<std::size_t> heard{0};
  std::atomic<bool> had_gap{false};
  const auto listener = store->track("k:", [&](const Message& message) {
    if (message.kind == Message::Kind::gap && ++heard > 1) had_gap = true;
    if (message.kind != Message::Kind::published || ++heard > 2) return;
    blocks.set();
    go_on.wait();
  });
  std::jthread other{[&] { store->run({"SET", "k:", "v"}).get(); }};
  blocks.wait();
  std::vector<std::string> words{"MSET"};
  for (int i = 0; i < 60'000; ++i) {
    words.push_back("k:" + std::to_string(i));
    words.emplace_back("v");
  }
  const std::vector<std::string_view> views{words.begin(), words.end()};
  for (int i = 0; i < 2; ++i) store->run(Words{views}).get();
  go_on.set();
  other.join();
  EXPECT_TRUE(had_gap);
  EXPECT_LT(heard, 60'000U);
}

TEST_F(EmbeddedTracking, AListenerMayOutliveItsStore) {
  Listener outlives;
  {
    const auto store = open_embedded();
    outlives = track(*store);
  }
  outlives = {};
  EXPECT_EQ(take(), Heard{"gap"});
}

}  // namespace
}  // namespace sluice::engine
