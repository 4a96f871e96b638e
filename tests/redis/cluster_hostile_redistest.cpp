// A Store of a cluster among nodes that lie, and under users who leave in the middle.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "redis/at_cluster.hpp"
#include "redis/fake_node.hpp"
#include "store/reply_error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::comes_true;
using test::failure_of;
using test::FakeNode;

std::string bulk(const std::string& text) {
  return fmt::format("${}\r\n{}\r\n", text.size(), text);
}

/// On a slow machine the time may be over while a question is on its way.
template <class Body>
Error refusal_by_deadline(Body body) {
  auto failure = failure_of(body);
  for (int tries = 0; failure.effect() == Effect::unknown && tries < 20; ++tries)
    failure = failure_of(body);
  return failure;
}

TEST(ClusterHostile, RedirectionsToNowhereAreErrorsWithoutEffect) {
  for (const std::string redirection :
       {"MOVED", "MOVED 1", "MOVED  ", "MOVED 1 ", "MOVED 99999 127.0.0.1:7001", "MOVED -1 a:1",
        "MOVED 1 :0", "MOVED 1 ?:7002", "MOVED 1 127.0.0.1:65536", "MOVED 1 127.0.0.1:99999999999",
        "MOVED 1 a b:1", "MOVED 1 [::1]:7001", "ASK 1 @:7001", "ASK 16384 127.0.0.1:1",
        "ASK 1 127.0.0.1", "ASK x 127.0.0.1:1"}) {
    const FakeNode node{[&](const auto& words) {
      return words[0] == "SET" ? "-" + redirection + "\r\n" : bulk("fine");
    }};
    const auto store = redis::open_cluster(node.options());
    const auto refused = refusal_by_deadline([&] {
      store->run({"SET", "a", "1"}, {.timeout = 30ms}).get();
    });
    EXPECT_EQ(refused.effect(), Effect::none) << redirection << ": " << refused.message();
    EXPECT_EQ(store->run({"GET", "a"}).get().as_text(), "fine") << redirection;

    Batch batch;
    batch.add({"INCR", "a"}).add({"SET", "b", "1"}).add({"INCR", "c"});
    std::vector<Value> replies;
    const auto item = refusal_by_deadline([&] {
      replies = store->run(batch, {.timeout = 100ms}).get();
      if (replies.at(1).is_error()) throw error_of_reply(replies[1].as_text());
    });
    EXPECT_EQ(item.effect(), Effect::none) << redirection << ": " << item.message();
    EXPECT_EQ(replies.at(0).as_text(), "fine") << redirection;
    EXPECT_EQ(replies.at(2).as_text(), "fine") << redirection;
  }
}

TEST(ClusterHostile, AskInACircleEndsByTheDeadlineAndWithoutHaste) {
  const FakeNode node{[&](const auto& words) {
    return words[0] == "ASKING" ? std::string{"+OK\r\n"}
                                : fmt::format("-ASK 1 127.0.0.1:{}\r\n", node.port());
  }};
  const auto store = redis::open_cluster(node.options());
  const auto refused = refusal_by_deadline([&] {
    store->run({"INCR", "a"}, {.timeout = 100ms}).get();
  });
  EXPECT_EQ(refused.effect(), Effect::none) << refused.message();
  EXPECT_LE(node.calls(), 2000) << "it would be ten thousands without pauses";
}

TEST(ClusterHostile, ANodeThatRedirectsToEverythingFindsAnEnd) {
  std::atomic<int> port{1};
  const FakeNode node{[&](const auto& words) {
    return words[0] == "SET"
               ? fmt::format("-MOVED {} 127.0.0.1:{}\r\n", port % 16384, port % 9 + ++port)
               : bulk("fine");
  }};
  const auto store = redis::open_cluster(node.options());
  std::vector<std::jthread> crowd;
  for (int i = 0; i < 4; ++i)
    crowd.emplace_back([&, i] {
      for (int j = 0; j < 20; ++j) try {
          store->run({"SET", fmt::format("{}-{}", i, j), "1"}, {.timeout = 50ms}).get();
        } catch (const Error& error) {
          EXPECT_NE(error.effect(), Effect::done) << error.message();
        }
    });
  crowd.clear();
}

TEST(ClusterHostile, ASlowNodeKeepsNobodyBeyondHisTime) {
  std::atomic<bool> over{false};
  const FakeNode node{[&](const auto&) {
    while (!over) std::this_thread::sleep_for(1ms);
    return bulk("late");
  }};
  const auto store = redis::open_cluster(node.options());
  const auto late = failure_of([&] { store->run({"INCR", "a"}, {.timeout = 50ms}).get(); });
  EXPECT_EQ(late.errc(), Errc::timeout);
  Batch batch;
  batch.add({"INCR", "a"}).add({"WAIT", "1", "10"});
  EXPECT_NE(failure_of([&] { store->run(batch, {.timeout = 50ms}).get(); }).effect(), Effect::done);
  EXPECT_NE(failure_of([&] { store->run({"FLUSHALL"}, {.timeout = 50ms}).get(); }).effect(),
            Effect::done);
  EXPECT_NE(failure_of([&] {
              store->run({"BLPOP", "a", "0.01"}, {.timeout = 50ms}).get();
            }).effect(),
            Effect::done);
  over = true;
}

/// Two nodes, each with half of the slots; `one` has "b" and `other` has "a".
std::string halves(std::uint16_t one, std::uint16_t other, bool of_one) {
  const auto line = [](char id, std::uint16_t port, bool self, std::string_view slots) {
    return fmt::format("{} 127.0.0.1:{}@1 {}master - 0 0 1 connected {}\n", std::string(40, id),
                       port, self ? "myself," : "", slots);
  };
  return line('a', one, of_one, "0-8191") + line('b', other, !of_one, "8192-16383");
}

TEST(ClusterHostile, D01_AnErrorOfWaitAtOneNodeIsThatOfAll) {
  for (const std::string error :
       {"NOPERM User default has no permissions to run the 'wait' command", "ERR no",
        "UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
        "replica?)"})
    for (const bool at_first : {true, false}) {
      const auto answer = [&](bool refuses) {
        return [=](const auto& words) {
          return words[0] != "WAIT" ? "+OK\r\n" : refuses ? '-' + error + "\r\n" : ":1\r\n";
        };
      };
      FakeNode one{answer(at_first)};
      FakeNode other{answer(!at_first)};
      one.tell(halves(one.port(), other.port(), true));
      other.tell(halves(one.port(), other.port(), false));
      const auto store = redis::open_cluster(one.options());
      Batch batch;
      batch.add({"SET", "a", "1"}).add({"SET", "b", "1"}).add({"WAIT", "1", "50"});
      const auto replies = store->run(batch).get();
      ASSERT_EQ(replies.size(), 3U);
      EXPECT_EQ(replies[0], Value::simple_string("OK"));
      EXPECT_EQ(replies[1], Value::simple_string("OK"));
      EXPECT_EQ(replies[2], Value::error(error)) << at_first;
    }
}

class ClusterLeft : public test::AtCluster {};

TEST_F(ClusterLeft, AStoreMayGoInTheMiddleOfEverything) {
  for (int turn = 0; turn < 60; ++turn) {
    auto left = redis::open_cluster(test::at(rig()));
    const auto one = [](Store& store, int i) -> Task<void> {
      try {
        const auto key = std::to_string(i);
        Batch batch;
        batch.add({"INCR", key}).add({"INCR", key + "x"});
        if (i % 3 == 0) batch.add({"WAIT", "1", "100"});
        auto calling = store.run(batch);
        co_await calling;
        auto popping = store.run({"BLPOP", "none", "1"});
        co_await popping;
      } catch (const Error&) {
      }
    };
    for (int i = 0; i < turn; ++i) {
      spawn(one(*left, i));
      if (i % 4 == 0) {
        const auto dropped = left->run({"INCR", "dropped"});
      }
    }
    Listener listener;
    if (turn % 2 == 0) {
      auto listening = left->subscribe(std::to_string(turn), [](const Message&) {});
      if (turn % 4 == 0) listener = listening.get();
    }
    if (turn % 3 == 0) left->run({"PING"}).get();
    left.reset();
  }
}

TEST_F(ClusterLeft, ManyChannelsSurviveAFailover) {
  constexpr int channels = 2'000;
  std::atomic<int> gaps{0};
  std::vector<Listener> listeners;
  for (int i = 0; i < channels; ++i)
    listeners.push_back(
        store
            ->subscribe("c" + std::to_string(i),
                        [&](const Message& one) { gaps += one.kind == Message::Kind::gap; })
            .get());
  rig().fail_over(master_of("c1"));
  EXPECT_TRUE(comes_true([&] { return gaps > channels / 4; }));
  EXPECT_TRUE(comes_true([&] {
    return store->run({"SPUBLISH", "c1", "x"}).get().as_integer() == 1;
  }));
}

}  // namespace
}  // namespace sluice
