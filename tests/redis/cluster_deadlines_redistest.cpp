// A caller's deadline in a cluster: at the fence of a slot that has another master now, and at the
// end of the Store.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/hash_slot.hpp"
#include "redis/at_server.hpp"
#include "redis/fake_node.hpp"
#include "sluice/when_all.hpp"
#include "store/reply_error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::FakeNode;
using Steady = std::chrono::steady_clock;

template <class Body>
milliseconds time_of(Body body) {
  const auto begin = Steady::now();
  body();
  return std::chrono::duration_cast<milliseconds>(Steady::now() - begin);
}

/// Three nodes: one that has all slots but those of the second, until it says of "moved" that the
/// third has it. All tell the same.
class Moving {
  mutable std::mutex mutex_;
  std::vector<std::string> asked_;

 public:
  Moving() {
    tell("0-8191", "");
    options = before.options();
  }

  /// The old one stands still from now on, and the Store knows of the new one.
  void move(Store& store) {
    tell(fmt::format("0-{} {}-8191", slot - 1, slot + 1), std::to_string(slot));
    store.run({"INCR", key}, {.timeout = 60s}).get();
    before.stop();
  }

  /// The keys that the new one was asked for since then, one after another.
  void forget() {
    const std::lock_guard lock{mutex_};
    asked_.clear();
  }
  std::vector<std::string> asked() const {
    const std::lock_guard lock{mutex_};
    return asked_;
  }

  const std::string key = "{moved}";
  const std::string elsewhere = "{other}";
  const int slot = hash_slot(key);
  FakeNode next{[this](const auto& words) {
    const std::lock_guard lock{mutex_};
    asked_.push_back(words[1]);
    return reply(words);
  }};
  FakeNode other{[](const auto& words) { return reply(words); }};
  FakeNode before{[this](const auto& words) {
    return words[1].starts_with(key) ? moved_to_next() : reply(words);
  }};
  redis::ClusterStoreOptions options{.node = {}, .seeds = {}};

 private:
  static std::string reply(const FakeNode::Words& words) {
    return words[0] == "BLPOP" ? "_\r\n" : ":1\r\n";
  }
  std::string moved_to_next() const {
    return fmt::format("-MOVED {} 127.0.0.1:{}\r\n", slot, next.port());
  }
  void tell(const std::string& old_slots, const std::string& new_slots) {
    FakeNode* const all[] = {&before, &other, &next};
    for (auto* const asked : all)
      asked->tell(before.line('a', asked == &before, 1, old_slots) +
                  other.line('b', asked == &other, 1, "8192-16383") +
                  next.line('c', asked == &next, 1, new_slots));
  }
};

struct Fenced {
  std::string name;
  std::function<std::vector<Value>(Store&, const Moving&, CallOptions)> call;
};

std::vector<Fenced> fenced_calls() {
  const auto batch = [](Store& store, std::vector<std::string> keys, bool waits,
                        CallOptions options) {
    Batch all;
    for (const auto& key : keys) all.add({"INCR", key});
    if (waits) all.add({"WAIT", "1", "10"});
    auto replies = store.run(std::move(all), options).get();
    if (replies[0].is_error()) throw error_of_reply(replies[0].as_text());
    return replies;
  };
  return {
      {"plain",
       [](Store& store, const Moving& at, CallOptions options) {
         return std::vector{store.run({"INCR", at.key}, options).get()};
       }},
      {"blocking",
       [](Store& store, const Moving& at, CallOptions options) {
         return std::vector{store.run({"BLPOP", at.key, "0.01"}, options).get()};
       }},
      {"batch",
       [batch](Store& store, const Moving& at, CallOptions options) {
         return batch(store, {at.key, at.key}, false, options);
       }},
      {"batch of two nodes",
       [batch](Store& store, const Moving& at, CallOptions options) {
         return batch(store, {at.key, at.elsewhere}, false, options);
       }},
      {"durable batch",
       [batch](Store& store, const Moving& at, CallOptions options) {
         return batch(store, {at.key, at.elsewhere}, true, options);
       }},
  };
}

TEST(ClusterDeadlines, D15_AFenceEndsWithTheCallAndLetsNothingPassAfterIt) {
  for (const auto& fenced : fenced_calls()) {
    auto best = milliseconds::max();
    int held_up = 0;
    // On a slow machine the slot's new master may be known for too long: then there is no fence.
    for (int round = 0; round < 20 && held_up < 3; ++round) {
      Moving at;
      const auto store = redis::open_cluster(at.options);
      at.move(*store);
      const int calls = at.next.calls();
      std::optional<Error> failure;
      const auto took = time_of([&] {
        try {
          fenced.call(*store, at, {.timeout = 50ms});
        } catch (const Error& error) {
          failure = error;
        }
      });
      at.before.go_on();
      if (!failure || failure->effect() == Effect::unknown) continue;  // it came there in time
      ++held_up;
      best = std::min(best, took);
      EXPECT_EQ(at.next.calls(), calls) << fenced.name << ": it was sent all the same";
      EXPECT_NE(failure->message().find(std::to_string(at.before.port())), std::string::npos)
          << fenced.name << ": " << failure->message();
    }
    EXPECT_GE(held_up, 1) << fenced.name << " was sent after its time";
    EXPECT_LE(best, 150ms) << fenced.name;
  }
}

TEST(ClusterDeadlines, D15_AnItemBehindAFenceHoldsUpNoOtherOfItsBatch) {
  int answered = 0;
  for (int round = 0; round < 20 && answered == 0; ++round) {
    Moving at;
    const auto store = redis::open_cluster(at.options);
    at.move(*store);
    Batch batch;
    batch.add({"INCR", at.key}).add({"INCR", at.elsewhere});
    try {
      const auto replies = store->run(std::move(batch), {.timeout = 50ms}).get();
      answered += replies[0].is_error() && replies[1] == Value::integer(1);
    } catch (const Error&) {  // the machine was too slow for both
    }
  }
  EXPECT_GE(answered, 1);
}

/// A call of one of many in a thread: by its form, of a key of its own.
struct Timed {
  std::string form;
  std::string key;
  milliseconds time;
  milliseconds took{};
  std::optional<Error> failure{};
};

Task<void> run_timed(Store& store, Timed& timed) {
  const auto begin = Steady::now();
  try {
    if (timed.form == "batch") {
      Batch batch;
      batch.add({"INCR", timed.key});
      auto asked = store.run(std::move(batch), {.timeout = timed.time});
      co_await asked;
    } else if (timed.form == "blocking") {
      auto asked = store.run({"BLPOP", timed.key, "0.01"}, {.timeout = timed.time});
      co_await asked;
    } else {
      auto asked = store.run({"INCR", timed.key}, {.timeout = timed.time});
      co_await asked;
    }
  } catch (const Error& error) {
    timed.failure = error;
  }
  timed.took = std::chrono::duration_cast<milliseconds>(Steady::now() - begin);
}

/// The second of three has little time. The others come to the new node all the same, in order.
void expect_own_times(const std::array<std::string, 3>& forms) {
  const auto name = fmt::format("{}", fmt::join(forms, ", "));
  auto best = milliseconds::max();
  for (int round = 0; round < 20 && best > 150ms; ++round) {
    Moving at;
    const auto store = redis::open_cluster(at.options);
    at.move(*store);
    at.forget();
    std::array<Timed, 3> line{{{forms[0], at.key + "1", 60s},
                               {forms[1], at.key + "2", 50ms},
                               {forms[2], at.key + "3", 60s}}};
    std::vector<Task<void>> calls;
    for (auto& timed : line) calls.push_back(run_timed(*store, timed));
    when_all(std::move(calls)).get();
    at.before.go_on();
    EXPECT_FALSE(line[0].failure || line[2].failure) << name;
    if (!line[1].failure || line[1].failure->effect() == Effect::unknown) continue;
    best = std::min(best, line[1].took);
    auto asked = at.asked();
    // A blocking command has a connection of its own.
    if (forms[0] == "blocking" || forms[2] == "blocking") std::ranges::sort(asked);
    EXPECT_EQ(asked, (std::vector{line[0].key, line[2].key})) << name;
  }
  EXPECT_LE(best, 150ms) << name;
}

TEST(ClusterDeadlines, D15_ACallThatWaitsForItsTurnEndsInItsOwnTime) {
  const std::array<std::string, 3> forms{"plain", "blocking", "batch"};
  for (const auto& first : forms)
    for (const auto& second : forms) {
      std::vector<std::jthread> rows;
      for (const auto& last : forms)
        rows.emplace_back([&, last] { expect_own_times({first, second, last}); });
    }
}

TEST(ClusterDeadlines, D18_TheEndOfAStoreWaitsForAllSilentNodesAtTheSameTime) {
  constexpr int many = 8;
  constexpr int part = 16384 / many;
  std::vector<std::unique_ptr<FakeNode>> nodes;
  for (int i = 0; i < many; ++i)
    nodes.push_back(std::make_unique<FakeNode>([](const auto&) { return std::string{":1\r\n"}; }));
  for (int asked = 0; asked < many; ++asked) {
    std::string map;
    for (int i = 0; i < many; ++i)
      map += nodes[i]->line(static_cast<char>('a' + i), i == asked, 1,
                            fmt::format("{}-{}", i * part, (i + 1) * part - 1));
    nodes[asked]->tell(map);
  }
  auto best = milliseconds::max();
  for (int round = 0; round < 3; ++round) {
    auto store = redis::open_cluster(nodes[0]->options());
    std::vector<std::string> keys(many);
    for (int i = 0, found = 0; found < many; ++i) {
      const auto key = std::to_string(i);
      auto& one = keys[hash_slot(key) / part];
      if (one.empty()) ++found;
      one = key;
    }
    for (const auto& key : keys) store->run({"INCR", key}, {.timeout = 60s}).get();
    for (const auto& node : nodes) node->stop();
    for (const auto& key : keys)
      EXPECT_EQ(test::failure_of([&] {
                  store->run({"INCR", key}, {.timeout = 20ms}).get();
                }).errc(),
                Errc::timeout);
    best = std::min(best, time_of([&] { store.reset(); }));
    for (const auto& node : nodes) node->go_on();
  }
  EXPECT_LE(best, 1500ms) << "one after another: 8 times half a second";
}

}  // namespace
}  // namespace sluice
