// Changed keys: what the client asks for them, and servers that answer oddly.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "redis/cluster.hpp"
#include "redis/fake_server.hpp"
#include "redis/trackers.hpp"
#include "support/told.hpp"

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using test::Told;
using Commands = std::vector<std::vector<std::string>>;

const std::vector<std::string> off{"CLIENT", "TRACKING", "OFF"};

/// Trackers without a connection: the test is the server.
class TrackedPrefixes : public testing::Test {
 protected:
  TrackedPrefixes() {
    trackers.on_stale = [this] { ++asked; };
  }

  std::shared_ptr<Trackers::Tracker> add(const std::string& prefix) {
    auto tracker =
        std::make_shared<Trackers::Tracker>(prefix, [this, prefix](const Message& message) {
          using Kind = Message::Kind;
          const auto* const kind = message.kind == Kind::gap    ? " gap"
                                   : message.kind == Kind::lost ? " lost "
                                                                : " ";
          heard.push_back(prefix + kind + message.payload);
        });
    trackers.add(tracker);
    return tracker;
  }
  /// Answers what is asked until nothing is.
  std::vector<Commands> answer(const std::string& refusal = {}) {
    std::vector<Commands> questions;
    while (auto question = trackers.next()) {
      trackers.take(*question, refusal);
      questions.push_back(question->commands);
    }
    return questions;
  }
  void push(std::vector<std::string> keys) {
    Value::Items names;
    for (auto& key : keys) names.push_back(Value::bulk_string(std::move(key)));
    trackers.deliver(
        {Value::bulk_string("invalidate"), Value::aggregate(Value::Type::array, std::move(names))});
  }
  std::vector<std::string> take_heard() { return std::exchange(heard, {}); }

  Trackers trackers;
  int asked = 0;
  std::vector<std::string> heard;
};

using Heard = std::vector<std::string>;

TEST_F(TrackedPrefixes, AreAskedForOnceAndEndWithTheLast) {
  const auto one = add("a:");
  const auto on = std::vector<std::string>{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a:"};
  EXPECT_EQ(answer(), (std::vector<Commands>{{off, on}}));
  EXPECT_EQ(take_heard(), (Heard{"a: gap"}));
  const auto other = add("a:");
  const auto covered = add("a:b:");
  EXPECT_EQ(answer(), (std::vector<Commands>{{{"PING"}}}));
  EXPECT_EQ(take_heard(), (Heard{"a: gap", "a:b: gap"})) << "the first has missed nothing";
  push({"a:b:1", "a:2", "x"});
  EXPECT_EQ(take_heard(), (Heard{"a: a:b:1", "a: a:2", "a: a:b:1", "a: a:2", "a:b: a:b:1"}));
  trackers.remove(*one);
  trackers.remove(*other);
  EXPECT_EQ(answer(), std::vector<Commands>{});
  trackers.remove(*covered);
  EXPECT_EQ(answer(), (std::vector<Commands>{{off}}));
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(trackers.any());
}

TEST_F(TrackedPrefixes, ThatOverlapAreCoveredByTheShortest) {
  const std::vector<std::string> prefixes{"user:1:", "user:", "shop:", "user", "shop:a:", "z"};
  for (const auto& prefix : prefixes) add(prefix);
  const std::vector<std::string> on{"CLIENT", "TRACKING", "ON",   "BCAST",  "PREFIX",
                                    "shop:",  "PREFIX",   "user", "PREFIX", "z"};
  EXPECT_EQ(answer(), (std::vector<Commands>{{off, on}}));
  EXPECT_EQ(take_heard().size(), prefixes.size());
  add("");
  EXPECT_EQ(answer(),
            (std::vector<Commands>{{off, {"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", ""}}}));
  EXPECT_EQ(take_heard().size(), prefixes.size() + 1) << "between OFF and ON nothing was told";
}

TEST_F(TrackedPrefixes, ThatNobodyNeedsGoWithTheNextQuestion) {
  const auto left = add("left:");
  add("stays:");
  answer();
  trackers.remove(*left);
  EXPECT_EQ(answer(), std::vector<Commands>{}) << "the one that stays would miss something";
  add("new:");
  EXPECT_EQ(answer().front().back(),
            (std::vector<std::string>{"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX",
                                      "new:", "PREFIX", "stays:"}));
}

TEST_F(TrackedPrefixes, AreToldOfALossOnceAndAskedForAnew) {
  add("a:");
  trackers.lost("not connected yet");
  EXPECT_EQ(take_heard(), Heard{}) << "it was told of nothing yet";
  answer();
  take_heard();
  trackers.lost("gone");
  trackers.lost("still gone");
  push({"a:1"});
  EXPECT_EQ(take_heard(), (Heard{"a: lost gone"}));
  trackers.connected();
  EXPECT_EQ(answer().front().size(), 2U);
  EXPECT_EQ(take_heard(), (Heard{"a: gap"}));
}

TEST_F(TrackedPrefixes, AnAnswerOfAConnectionBeforeIsNone) {
  add("a:");
  const auto question = trackers.next();
  trackers.lost("gone");
  trackers.connected();
  trackers.take(*question, "");
  EXPECT_EQ(heard, Heard{});
  EXPECT_EQ(answer().size(), 1U);
  EXPECT_EQ(take_heard(), (Heard{"a: gap"}));
}

TEST_F(TrackedPrefixes, AddedWhileAQuestionIsUnderWayAreInTheNext) {
  add("a:");
  const auto question = trackers.next();
  add("b:");
  EXPECT_EQ(asked, 1) << "one question is under way at a time";
  trackers.take(*question, "");
  EXPECT_EQ(take_heard(), (Heard{"a: gap"}));
  answer();
  EXPECT_EQ(take_heard(), (Heard{"a: gap", "b: gap"}));
}

TEST_F(TrackedPrefixes, AreToldWhyTheServerRefuses) {
  add("a:");
  EXPECT_EQ(answer("NOPERM").size(), 1U) << "it is not asked again and again";
  EXPECT_EQ(take_heard(), (Heard{"a: lost NOPERM"}));
  push({"a:1"});
  EXPECT_EQ(take_heard(), Heard{});
  trackers.lost("gone");
  trackers.connected();
  answer();
  EXPECT_EQ(take_heard(), (Heard{"a: gap"}));
}

TEST_F(TrackedPrefixes, WhatIsNoListOfKeysMayBeAny) {
  add("a:");
  answer();
  take_heard();
  const auto word = Value::bulk_string("invalidate");
  const auto number = Value::aggregate(Value::Type::array, {Value::integer(7)});
  for (const auto& push : std::vector<Value::Items>{
           {word}, {word, Value{}}, {word, Value::integer(7)}, {word, number}, {word, word, word}})
    trackers.deliver(push);
  EXPECT_EQ(take_heard(), Heard(5, "a: gap"));
}

// --- the nodes of a cluster ---

/// Nodes without connections: the test is the servers.
class TrackedNodes : public testing::Test {
 protected:
  TrackedNodes() {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      auto node = std::make_shared<Node>();
      node->endpoint = {"node", static_cast<std::uint16_t>(i + 1)};
      node->hearer = std::make_shared<NodeHearer>(std::weak_ptr<Cluster>{}, node->endpoint);
      node->client = std::make_shared<Client>(
          RedisOptions{}, Client::Company{std::make_shared<Reactor>(),
                                          std::make_shared<Callbacks>(nullptr), node->hearer});
      node->client->trackers().on_stale = [] {};
      nodes[i] = node;
    }
    all.add(tracker, {});
  }
  ~TrackedNodes() override { all.remove(tracker); }

  void tell(const NodePtr& node) {
    Trackers& trackers = node->client->trackers();
    while (const auto question = trackers.next()) trackers.take(*question, "");
  }
  /// Some of them, in no order; the last is never among the masters.
  std::vector<NodePtr> some_masters() {
    std::vector<NodePtr> some{nodes.begin(), nodes.end() - 1};
    std::ranges::shuffle(some, random);
    some.resize(1 + random() % some.size());
    return some;
  }

  std::mt19937_64 random{1};
  std::array<NodePtr, 4> nodes;
  bool is_open = false;
  int flushes = 0;
  std::shared_ptr<ClusterTrackers::Tracker> tracker =
      std::make_shared<ClusterTrackers::Tracker>("a:", [this](const Message& message) {
        if (message.kind == Message::Kind::published) return;
        is_open = message.kind == Message::Kind::gap;
        flushes += is_open;
      });
  ClusterTrackers all;
};

TEST_F(TrackedNodes, D17_AreTrustedWhileAllOfThemTellAndForgottenWhenOneLeaves) {
  std::set<NodePtr> followed, telling;
  for (int step = 0; step < 20'000; ++step) {
    const auto before = flushes;
    const auto node = nodes[random() % nodes.size()];
    bool was_read = false;
    switch (random() % 4) {
      case 0: {
        const auto masters = some_masters();
        std::erase_if(followed, [&](const NodePtr& one) {
          const bool stays = std::ranges::find(masters, one) != masters.end();
          was_read |= !stays && telling.erase(one) > 0;
          return !stays;
        });
        followed.insert(masters.begin(), masters.end());
        all.follow(masters);
        break;
      }
      case 1:
        all.follow_too(node);
        followed.insert(node);
        break;
      case 2:
        tell(node);
        if (followed.contains(node)) telling.insert(node);
        break;
      default:
        node->client->trackers().lost("gone");
        node->client->trackers().connected();
        telling.erase(node);
    }
    ASSERT_EQ(is_open, !followed.empty() && telling == followed) << "after step " << step;
    ASSERT_TRUE(!was_read || !is_open || flushes > before) << "after step " << step;
  }
}

/// While a gap is told, one node is lost and tells again, and then another one is lost: the second
/// gap was right when its thread looked, and is not when it comes to tell it.
TEST_F(TrackedNodes, AGapIsNotToldBehindTheLossOfAnotherNode) {
  std::atomic<int> heard = 0;
  bool trusts = false;
  std::jthread tells_again;
  const auto lose_both = [&] {
    nodes[0]->client->trackers().lost("gone");
    tells_again = std::jthread{[&] {
      nodes[0]->client->trackers().connected();
      tell(nodes[0]);
    }};
    const Value::Items push{Value::bulk_string("invalidate"),
                            Value::aggregate(Value::Type::array, {Value::bulk_string("b:1")})};
    // Whether that thread has decided shows in whether changes are told again.
    for (int i = 0; i < 100 && heard == 0; ++i) {
      std::this_thread::sleep_for(1ms);
      nodes[1]->client->trackers().deliver(push);
    }
    nodes[1]->client->trackers().lost("gone, too");
  };
  int gaps = 0;
  const auto other = std::make_shared<ClusterTrackers::Tracker>("b:", [&](const Message& message) {
    if (message.kind == Message::Kind::published) return void(++heard);
    trusts = message.kind == Message::Kind::gap;
    if (trusts && ++gaps == 2) lose_both();
  });
  all.add(other, {nodes[0], nodes[1], nodes[2]});
  for (const auto& node : nodes) tell(node);
  ASSERT_TRUE(trusts);
  all.follow({nodes[0], nodes[1]});
  tells_again.join();
  EXPECT_EQ(gaps, 2);
  EXPECT_FALSE(trusts) << "the other node does not tell";
  all.remove(other);
}

// --- servers ---

TEST(OddTracking, AServerThatKnowsNoTrackingSaysSoAndServesOn) {
  test::FakeServer server{
      [](test::FakeServer::Peer& peer, int) {
        if (!peer.greet()) return;
        for (auto words = peer.command(); !words.empty(); words = peer.command())
          peer.send(words[0] == "CLIENT" ? "-ERR unknown subcommand 'TRACKING'\r\n"
                                         : "$2\r\nok\r\n");
      },
      test::FakeServer::Serves::at_once};
  const auto store = open_redis(server.options());
  Told told;
  const auto listener = store->track("a:", told.handler());
  const auto why = told.wait_for(Message::Kind::lost);
  ASSERT_TRUE(why);
  EXPECT_EQ(why->payload, "ERR unknown subcommand 'TRACKING'");
  EXPECT_EQ(store->run({"GET", "k"}).get().as_text(), "ok");
}

TEST(OddTracking, AServerThatEndsTheConnectionInTheMiddleIsAskedAgain) {
  constexpr int ended = 5;
  test::FakeServer server{
      [](test::FakeServer::Peer& peer, int number) {
        if (!peer.greet()) return;
        int answers = 0;
        for (auto words = peer.command(); !words.empty(); words = peer.command()) {
          if (words[0] == "SUBSCRIBE")
            peer.send(">3\r\n$9\r\nsubscribe\r\n$15\r\nsluice:tracking\r\n:1\r\n");
          if (words[0] != "CLIENT") continue;
          if (number < ended && ++answers > number % 3) return;
          peer.send("+OK\r\n");
          if (words[2] == "ON") peer.send(">2\r\n$10\r\ninvalidate\r\n*1\r\n$3\r\na:1\r\n");
        }
      },
      test::FakeServer::Serves::at_once};
  const auto store = open_redis(server.options());
  Told told;
  const auto listener = store->track("a:", told.handler());
  const auto key = told.wait_for(Message::Kind::published);
  ASSERT_TRUE(key);
  EXPECT_EQ(key->payload, "a:1");
  EXPECT_EQ(told.all().front().kind, Message::Kind::gap);
}

TEST(OddTracking, AStoreEndsWhileItAsks) {
  for (int i = 0; i < 20; ++i) {
    test::FakeServer server{[](test::FakeServer::Peer& peer, int) {
                              if (peer.greet()) peer.wait_for_end();
                            },
                            test::FakeServer::Serves::at_once};
    Told told;
    Listener outlives;
    {
      const auto store = open_redis(server.options());
      outlives = store->track("a:", told.handler());
    }
    EXPECT_TRUE(told.all().empty());
  }
}

}  // namespace
}  // namespace sluice::redis
