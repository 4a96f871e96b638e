// The client against servers that misbehave on the wire.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>

#include "base/event.hpp"
#include "redis/at_server.hpp"
#include "redis/fake_server.hpp"
#include "sluice/when_all.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::failure_of;
using test::FakeServer;

constexpr std::string_view nested = "*3\r\n$5\r\nhello\r\n:42\r\n%1\r\n+a\r\n,1.5\r\n";
constexpr std::string_view nested_text = R"(["hello", (integer) 42, map[a, (double) 1.5]])";

TEST(Wire, AReplyMayComeInPiecesOfOneByte) {
  FakeServer server{[](FakeServer::Peer& peer, int) {
    if (!peer.greet()) return;
    while (!peer.command().empty())
      for (const char byte : nested) peer.send({&byte, 1});
  }};
  const auto store = redis::open_redis(server.options());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(to_string(store->run({"GET", "k"}).get()), nested_text);
}

TEST(Wire, AFloodKeepsNoDeadlineFromBeingMet) {
  std::string flood;
  while (flood.size() < (1 << 20)) flood += ">3\r\n+message\r\n+c\r\n+m\r\n";
  std::atomic<bool> over{false};
  FakeServer server{[&](FakeServer::Peer& peer, int) {
    if (!peer.greet() || peer.command().empty()) return;
    while (!over) peer.send(flood);
  }};
  const auto store = redis::open_redis(server.options());
  Event failed;
  const auto ask = [](Store& from) -> Task<void> {
    auto asked = from.run({"GET", "k"}, {.timeout = 50ms});
    co_await asked;
  };
  spawn(ask(*store), [&](const std::exception_ptr&) { failed.set(); });
  EXPECT_TRUE(failed.wait_until(system_clock().steady() + 20s));
  over = true;
}

TEST(Wire, AReadIsRepeatedWhereverItsReplyWasCut) {
  // The nth connection sends n bytes of the reply and closes.
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet() || peer.command().empty()) return;
    peer.send(nested.substr(0, static_cast<std::size_t>(number)));
  }};
  const auto store = redis::open_redis(server.options());
  EXPECT_EQ(to_string(store->run({"GET", "k"}, {.timeout = 20s}).get()), nested_text);
}

TEST(Wire, AReplyBeforeTheEndIsHeardWhereALaterWriteIsRefused) {
  std::latch is_asked{1};
  std::latch is_reset{1};
  FakeServer server{[&](FakeServer::Peer& peer, int number) {
    if (!peer.greet()) return;
    if (number == 0) {
      peer.command();
      is_asked.wait();
      peer.send("$-1\r\n");
      peer.command();
      peer.send("+OK\r\n");
      peer.reset();
      is_reset.count_down();
    } else {
      while (!peer.command().empty()) peer.send("$-1\r\n");
    }
  }};
  const auto store = redis::open_redis(server.options());
  std::latch held{1};
  std::latch go_on{1};
  const auto hold_reader = [&]() -> Task<void> {
    auto asked = store->run({"GET", "k"}, {.timeout = 20s});
    co_await asked;
    held.count_down();
    go_on.wait();
  };
  const auto get = [&]() -> Task<void> {
    auto asked = store->run({"GET", "k"}, {.timeout = 20s});
    co_await asked;
  };
  std::string answer;
  Event ended;
  const auto set = [&]() -> Task<void> {
    auto asked = store->run({"SET", "k", "v"}, {.timeout = 20s});
    try {
      answer = (co_await asked).as_text();
    } catch (const Error& error) {
      answer = error.what();
    }
    ended.set();
  };
  spawn(hold_reader());
  is_asked.count_down();  // it waits: the reader's thread goes on with it
  held.wait();
  spawn(set());
  is_reset.wait();
  spawn(get());  // its write is refused
  go_on.count_down();
  ended.wait();
  EXPECT_EQ(answer, "OK");
  EXPECT_TRUE(
      store->run({"GET", "k"}, {.timeout = 20s}).get().is_null());  // by the next connection
}

TEST(Wire, AWriteWhoseReplyWasCutHasAnUnknownEffectAtEveryByte) {
  for (std::size_t bytes = 0; bytes < nested.size(); ++bytes) {
    FakeServer server{[bytes](FakeServer::Peer& peer, int) {
      if (!peer.greet() || peer.command().empty()) return;
      peer.send(nested.substr(0, bytes));
    }};
    const auto store = redis::open_redis(server.options());
    const auto error = failure_of([&] { store->run({"SET", "k", "v"}).get(); });
    EXPECT_EQ(error.errc(), Errc::connection) << bytes;
    EXPECT_EQ(error.effect(), Effect::unknown) << bytes;
  }
}

TEST(Wire, AWriteThatMayBeRepeatedIs) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet() || peer.command().empty()) return;
    if (number < 3) return;
    peer.send("+OK\r\n");
    peer.wait_for_end();
  }};
  const auto store = redis::open_redis(server.options());
  const CallOptions repeatable{.repeatable = true};
  EXPECT_EQ(store->run({"SET", "k", "v"}, repeatable).get().as_text(), "OK");
}

TEST(Wire, ARefusalOfAWriteThatWasSentAgainSaysNothingOfTheFirst) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet() || peer.command().empty() || number == 0) return;
    peer.send("-OOM command not allowed\r\n");
    peer.wait_for_end();
  }};
  const auto store = redis::open_redis(server.options());
  const auto error = failure_of([&] { store->run({"SET", "k", "v"}, {.repeatable = true}).get(); });
  EXPECT_EQ(error.errc(), Errc::out_of_space);
  EXPECT_EQ(error.effect(), Effect::unknown);
}

TEST(Wire, ABatchOfWhichOnlyAPartWasAnsweredIsUnknownOrRepeatedAsAWhole) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet() || peer.command().empty()) return;
    peer.send(":1\r\n");
    if (peer.command().empty()) return;
    if (number == 0) return;
    peer.send(":2\r\n");
    peer.wait_for_end();
  }};
  const auto store = redis::open_redis(server.options());
  Batch reads;
  reads.add({"GET", "a"}).add({"GET", "b"});
  const auto replies = store->run(reads).get();
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies[0].as_integer(), 1);
  EXPECT_EQ(replies[1].as_integer(), 2);

  FakeServer again{[](FakeServer::Peer& peer, int) {
    if (!peer.greet() || peer.command().empty()) return;
    peer.send(":1\r\n");
  }};
  const auto other = redis::open_redis(again.options());
  Batch writes;
  writes.add({"INCR", "a"}).add({"INCR", "b"});
  EXPECT_EQ(failure_of([&] { other->run(writes).get(); }).effect(), Effect::unknown);
}

TEST(Wire, NonsenseEndsTheConnectionAndTheNextOneWorks) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet() || peer.command().empty()) return;
    peer.send(number == 0 ? "HTTP/1.1 400 Bad Request\r\n" : "+fine\r\n");
    peer.wait_for_end();
  }};
  const auto store = redis::open_redis(server.options());
  const auto error = failure_of([&] { store->run({"SET", "k", "v"}).get(); });
  EXPECT_EQ(error.effect(), Effect::unknown);
  EXPECT_NE(error.message().find("not RESP"), std::string::npos) << error.what();
  EXPECT_EQ(store->run({"SET", "k", "v"}).get().as_text(), "fine");
}

TEST(Wire, AReplyThatNobodyAskedForEndsTheConnection) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet()) return;
    if (number == 0) peer.send("+surprise\r\n");
    while (!peer.command().empty()) peer.send(":7\r\n");
  }};
  const auto store = redis::open_redis(server.options());
  // Whether the surprise was read before the call or is taken for its reply, the connection after
  // it is in order.
  EXPECT_NO_THROW(store->run({"GET", "k"}).get());
  EXPECT_EQ(to_string(store->run({"GET", "k"}).get()), "(integer) 7");
}

TEST(Wire, PushesOfUnknownKindsAreIgnored) {
  FakeServer server{[](FakeServer::Peer& peer, int) {
    if (!peer.greet()) return;
    while (!peer.command().empty())
      peer.send(
          ">2\r\n+invalidate\r\n*1\r\n+k\r\n>1\r\n+unsubscribe\r\n+real\r\n>3\r\n+message\r\n+"
          "c\r\n+m\r\n");
  }};
  const auto store = redis::open_redis(server.options());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store->run({"GET", "k"}).get().as_text(), "real");
}

TEST(Wire, AServerThatNeverGreetsIsGivenUpInTime) {
  FakeServer server{[](FakeServer::Peer& peer, int) { peer.wait_for_end(); }};
  auto options = server.options();
  options.connect_timeout = 50ms;
  const auto error = failure_of([&] { redis::open_redis(options); });
  EXPECT_EQ(error.errc(), Errc::timeout);
  EXPECT_EQ(error.effect(), Effect::none);
}

TEST(Wire, AServerWithoutResp3IsToldApart) {
  FakeServer server{[](FakeServer::Peer& peer, int) {
    while (!peer.command().empty())
      peer.send("-ERR unknown command `HELLO`, with args beginning with: `3`,\r\n");
  }};
  const auto error = failure_of([&] { redis::open_redis(server.options()); });
  EXPECT_EQ(error.errc(), Errc::server);
  EXPECT_NE(error.message().find("Redis 6"), std::string::npos) << error.what();
}

TEST(Wire, ACallThatIsNeverAnsweredTimesOutAndTheSilentConnectionIsReplaced) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
                      if (!peer.greet()) return;
                      if (number == 0) return peer.wait_for_end();
                      while (!peer.command().empty()) peer.send("+second\r\n");
                    },
                    FakeServer::Serves::at_once};
  auto options = server.options();
  options.command_timeout = 40ms;
  const auto store = redis::open_redis(options);
  const auto error = failure_of([&] { store->run({"SET", "k", "v"}).get(); });
  EXPECT_EQ(error.errc(), Errc::timeout);
  EXPECT_EQ(error.effect(), Effect::unknown);
  EXPECT_EQ(store->run({"GET", "k"}, {.timeout = 10s}).get().as_text(), "second");
}

TEST(Wire, D13_AReplyThatTakesLongOnTheWayIsNoSilence) {
  constexpr int pieces = 12;
  std::atomic<int> failed{0};
  Event asked;
  FakeServer server{[&](FakeServer::Peer& peer, int) {
                      if (!peer.greet() || peer.command().empty()) return;
                      asked.set();
                      peer.send("$" + std::to_string(pieces) + "\r\n");
                      // A piece comes whenever another call has given up.
                      for (int i = 0; i < pieces; ++i) {
                        for (int seen = failed; seen <= i; seen = failed) failed.wait(seen);
                        peer.send("x");
                      }
                      peer.send("\r\n");
                      while (!peer.command().empty()) peer.send("+late\r\n");
                    },
                    FakeServer::Serves::at_once};
  auto options = server.options();
  options.command_timeout = 50ms;
  const auto store = redis::open_redis(options);
  std::string large;
  std::jthread patient{[&] {
    try {
      large = store->run({"GETDEL", "k"}, {.timeout = 60s}).get().as_text();
    } catch (const Error& failure) {
      large = failure.message();
    }
  }};
  asked.wait();
  for (int i = 0; i < pieces; ++i) {
    try {
      store->run({"INCR", "k"}, {.timeout = 60ms}).get();
    } catch (const Error&) {
    }
    ++failed;
    failed.notify_all();
  }
  patient.join();
  EXPECT_EQ(large, std::string(pieces, 'x'));
}

TEST(Wire, AReplyThatComesTooLateIsNotTakenForAnotherCalls) {
  Event answer;
  FakeServer server{[&](FakeServer::Peer& peer, int number) {
    if (!peer.greet() || number > 0) return;
    const auto first = peer.command();
    answer.wait();
    const auto second = peer.command();
    peer.send("$" + std::to_string(first[1].size()) + "\r\n" + first[1] + "\r\n");
    peer.send("$" + std::to_string(second[1].size()) + "\r\n" + second[1] + "\r\n");
    peer.wait_for_end();
  }};
  const auto store = redis::open_redis(server.options());
  EXPECT_EQ(failure_of([&] {
              store->run({"ECHO", "early"}, {.timeout = 20ms}).get();
            }).errc(),
            Errc::timeout);
  answer.set();
  EXPECT_EQ(store->run({"ECHO", "late"}).get().as_text(), "late");
}

TEST(Wire, AServerThatIsLoadingIsWaitedFor) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (number == 0 || number > 3) {
      if (!peer.greet()) return;
      if (number == 0) return;
      while (!peer.command().empty()) peer.send("+loaded\r\n");
      return;
    }
    while (!peer.command().empty())
      peer.send("-LOADING Redis is loading the dataset in memory\r\n");
  }};
  const auto store = redis::open_redis(server.options());
  EXPECT_EQ(store->run({"GET", "k"}).get().as_text(), "loaded");
}

void expect_left_after(std::string_view reply_of_a_replica) {
  FakeServer server{[&](FakeServer::Peer& peer, int number) {
    if (!peer.greet()) return;
    while (!peer.command().empty()) peer.send(number == 0 ? reply_of_a_replica : "+master\r\n");
  }};
  auto options = server.options();
  options.backoff_max = 1ms;
  const auto store = redis::open_redis(options);
  Error error{Errc::server, ""};
  Value reply;
  for (int i = 0; i < 1000 && reply.is_null(); ++i) {
    try {
      reply = store->run({"SET", "k", "v"}).get();
    } catch (const Error& refused) {
      error = refused;
    }
  }
  EXPECT_EQ(error.errc(), Errc::read_only);
  EXPECT_EQ(error.effect(), Effect::none);
  EXPECT_EQ(to_string(reply), "master");
}

TEST(Wire, AServerThatHasBecomeAReplicaIsLeft) {
  expect_left_after("-READONLY You can't write against a read only replica.\r\n");
}

TEST(Wire, K26_AReplicaThatSaysSoInAScriptsErrorIsLeft) {  // as Redis 6 does
  expect_left_after(
      "-ERR Error running script (call to f_7f923f79fe76194c868d7e1d0820de36700eb649): "
      "@user_script:1: @user_script: 1: -READONLY You can't write against a read only "
      "replica.\r\n");
}

TEST(Wire, CallsBeyondTheLimitAreRefusedWithoutAnEffect) {
  FakeServer server{[](FakeServer::Peer& peer, int) {
    if (peer.greet()) peer.wait_for_end();
  }};
  auto options = server.options();
  options.most_calls = 2;
  const auto store = redis::open_redis(options);
  std::atomic<int> refused{0};
  std::vector<Task<void>> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back([](Store& to, std::atomic<int>& count) -> Task<void> {
      try {
        auto asked = to.run({"SET", "k", "v"}, {.timeout = 50ms});
        co_await asked;
      } catch (const Error& error) {
        if (error.errc() == Errc::connection && error.effect() == Effect::none) ++count;
      }
    }(*store, refused));
  }
  when_all(std::move(calls)).get();
  EXPECT_EQ(refused, 1);
}

TEST(Wire, ManyCallsAreAnsweredInOrderAcrossABrokenConnection) {
  // Every connection answers 50 calls with their own words and breaks in the middle of the next
  // reply.
  FakeServer server{[](FakeServer::Peer& peer, int) {
    if (!peer.greet()) return;
    for (int i = 0; i <= 50; ++i) {
      const auto words = peer.command();
      if (words.empty()) return;
      const auto reply = "$" + std::to_string(words[1].size()) + "\r\n" + words[1] + "\r\n";
      peer.send(i < 50 ? std::string_view{reply}
                       : std::string_view{reply}.substr(0, reply.size() / 2));
    }
  }};
  const auto store = redis::open_redis(server.options());
  std::atomic<int> wrong{0};
  std::vector<std::jthread> crowd;
  for (int t = 0; t < 8; ++t)
    crowd.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const auto key = std::to_string(t) + ":" + std::to_string(i);
        if (store->run({"GET", key}, {.timeout = 30s}).get().as_text() != key) ++wrong;
      }
    });
  crowd.clear();
  EXPECT_EQ(wrong, 0);
}

TEST(Frictions, U19_APortThatExpectsTlsIsGuessedAt) {
  for (const auto* const alert : {"", "\x15\x03\x01\x01\x02\x02\x46"}) {
    test::FakeServer server{[&](test::FakeServer::Peer& peer, int) {
      peer.command();
      peer.send({alert, *alert ? std::size_t{7} : 0});
    }};
    const auto failure = test::failure_of([&] { redis::open_redis(server.options()); });
    EXPECT_NE(failure.message().find("perhaps this port expects TLS"), std::string::npos)
        << failure.message();
  }
}

std::string nest(std::size_t depth) {
  std::string bytes;
  for (std::size_t i = 0; i < depth; ++i) bytes += "*1\r\n";
  return bytes + ":1\r\n";
}

/// Calls that are made together, so that one connection carries them.
class Together {
 public:
  explicit Together(Store& store) : store_(store) {}

  void add(std::vector<std::string> words, CallOptions options = {}) {
    answers_.push_back(std::make_unique<Answer>());
    calls_.push_back(call(store_, std::move(words), options, *answers_.back()));
  }
  void run() { when_all(std::move(calls_)).get(); }
  const Value& reply(std::size_t i) const { return answers_[i]->reply; }
  Error error(std::size_t i) const {
    return failure_of([&] {
      if (answers_[i]->failure) std::rethrow_exception(answers_[i]->failure);
    });
  }

 private:
  struct Answer {
    Value reply;
    std::exception_ptr failure;
  };
  static Task<void> call(Store& store, std::vector<std::string> words, CallOptions options,
                         Answer& answer) {
    const std::vector<std::string_view> views{words.begin(), words.end()};
    try {
      auto asked = store.run(views, options);
      answer.reply = co_await asked;
    } catch (const Error&) {
      answer.failure = std::current_exception();
    }
  }

  Store& store_;
  std::vector<std::unique_ptr<Answer>> answers_;
  std::vector<Task<void>> calls_;
};

TEST(Wire, E12_AReplyNestedTooDeepCostsItsCallAloneAndNoConnection) {
  std::atomic<int> connections{0};
  FakeServer server{[&](FakeServer::Peer& peer, int) {
    ++connections;
    if (!peer.greet()) return;
    for (auto words = peer.command(); !words.empty(); words = peer.command())
      peer.send(words[1] == "deep" ? nest(20'000) : "+" + words[1] + "\r\n");
  }};
  const auto store = redis::open_redis(server.options());
  Together calls{*store};
  calls.add({"SET", "a", "1"});
  calls.add({"SET", "deep", "1"});
  calls.add({"SET", "b", "1"});
  calls.run();
  EXPECT_EQ(calls.reply(0).as_text(), "a");
  EXPECT_EQ(calls.reply(2).as_text(), "b");
  const auto error = calls.error(1);
  EXPECT_EQ(error.errc(), Errc::protocol);
  EXPECT_EQ(error.effect(), Effect::done);
  EXPECT_NE(error.message().find("SET of 'deep'"), std::string::npos) << error.message();
  EXPECT_NE(error.message().find("nested deeper than 10000"), std::string::npos) << error.message();
  EXPECT_EQ(connections, 1);
}

TEST(Wire, E12_NeighboursOfAReplyThatIsNotRespAreRepeatedOrToldWhy) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet()) return;
    for (int i = 0; number == 0 && i < 4; ++i)
      if (peer.command().empty()) return;
    if (number == 0) peer.send("?!\r\n");
    for (auto words = peer.command(); !words.empty(); words = peer.command())
      peer.send("+" + words[1] + "\r\n");
  }};
  const auto store = redis::open_redis(server.options());
  Together calls{*store};
  calls.add({"SET", "odd", "1"});
  calls.add({"GET", "a"});
  calls.add({"SET", "b", "1"}, {.repeatable = true});
  calls.add({"SET", "c", "1"});
  calls.run();
  const auto odd = calls.error(0);
  EXPECT_EQ(odd.errc(), Errc::protocol);
  EXPECT_EQ(odd.effect(), Effect::unknown);
  EXPECT_NE(odd.message().find("SET of 'odd' is not RESP"), std::string::npos) << odd.message();
  EXPECT_EQ(calls.reply(1).as_text(), "a");
  EXPECT_EQ(calls.reply(2).as_text(), "b");
  const auto neighbour = calls.error(3);
  EXPECT_EQ(neighbour.errc(), Errc::connection);
  EXPECT_EQ(neighbour.effect(), Effect::unknown);
  EXPECT_NE(neighbour.message().find("its reply to SET of 'odd' is not RESP"), std::string::npos)
      << neighbour.message();
}

TEST(Wire, E12_AReadWhoseReplyIsNeverRespEndsTwoConnectionsAtMost) {
  std::atomic<int> asked{0};
  FakeServer server{[&](FakeServer::Peer& peer, int) {
    if (!peer.greet() || peer.command().empty()) return;
    ++asked;
    peer.send("?!\r\n");
    peer.wait_for_end();
  }};
  const auto store = redis::open_redis(server.options());
  const auto error = failure_of([&] { store->run({"GET", "k"}).get(); });
  EXPECT_EQ(error.errc(), Errc::protocol);
  EXPECT_EQ(asked, 2);
}

TEST(Wire, ACommandOfWhichTheServerHasOnlyAPartIsSentAgain) {
  Event waiting;
  FakeServer server{[&](FakeServer::Peer& peer, int number) {
    if (!peer.greet()) return;
    if (number == 0) return waiting.wait();  // closed with much of the command unread
    while (!peer.command().empty()) peer.send("+OK\r\n");
  }};
  const auto store = redis::open_redis(server.options());
  const std::string much(64 << 20, 'x');
  auto asked = store->run({"SET", "k", much});
  std::jthread later{[&] {
    const auto before = metrics().redis_writes.load();
    while (metrics().redis_writes.load() < before + 2) std::this_thread::yield();
    waiting.set();
  }};
  EXPECT_EQ(asked.get().as_text(), "OK");
}

TEST(Wire, WhatComesWhileNothingIsAskedIsNoReplyToTheNextCall) {
  Event speak;
  Event spoken;
  FakeServer server{[&](FakeServer::Peer& peer, int number) {
    if (!peer.greet()) return;
    if (number == 0) {
      speak.wait();
      peer.send("+surprise\r\n");
      spoken.set();
    }
    while (!peer.command().empty()) peer.send(":7\r\n");
  }};
  const auto store = redis::open_redis(server.options());
  const auto quiet_until = std::chrono::steady_clock::now() + 5ms;
  speak.set();
  spoken.wait();
  while (std::chrono::steady_clock::now() < quiet_until) std::this_thread::yield();
  EXPECT_EQ(store->run({"INCR", "k"}).get().as_integer(), 7);
}

TEST(Wire, AReplyThatWasLostDoesNotShiftTheOthersForEver) {
  FakeServer server{[](FakeServer::Peer& peer, int number) {
    if (!peer.greet()) return;
    if (number == 0 && peer.command().empty()) return;  // not answered
    for (auto words = peer.command(); !words.empty(); words = peer.command())
      peer.send("+" + words[1] + "\r\n");
  }};
  auto options = server.options();
  options.command_timeout = 50ms;
  const auto store = redis::open_redis(options);
  std::string answer;
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  for (int i = 0; answer.empty() && std::chrono::steady_clock::now() < deadline; ++i) {
    const auto key = "k" + std::to_string(i);
    try {
      answer = store->run({"SET", key, "v"}).get().as_text();
      EXPECT_EQ(answer, key);
    } catch (const Error&) {
    }
  }
  EXPECT_NE(answer, "");
}

TEST(Wire, PushesThatAreNoMessagesHarmNothing) {
  FakeServer server{
      [](FakeServer::Peer& peer, int) {
        if (!peer.greet()) return;
        for (auto words = peer.command(); !words.empty(); words = peer.command()) {
          peer.send(">3\r\n+message\r\n:1\r\n:2\r\n>0\r\n>1\r\n_\r\n");
          peer.send(words[0] == "SUBSCRIBE"
                        ? ">3\r\n+subscribe\r\n:1\r\n:1\r\n>3\r\n+message\r\n:1\r\n_\r\n"
                        : "+OK\r\n");
        }
      },
      FakeServer::Serves::at_once};
  const auto store = redis::open_redis(server.options());
  const auto listener = store->listen("c", [](const Message&) {}).get();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store->run({"GET", "k"}).get().as_text(), "OK");
}

TEST(Wire, AServerThatIsOneReplyBehindIsNotTrusted) {
  for (const char* const surprise : {"+OK\r\n", "%1\r\n+a\r\n+b\r\n"}) {
    FakeServer server{[&](FakeServer::Peer& peer, int) {
      peer.send(surprise);
      if (peer.greet()) peer.wait_for_end();
    }};
    const auto error = failure_of([&] { redis::open_redis(server.options()); });
    EXPECT_EQ(error.errc(), Errc::protocol) << error.message();
    EXPECT_NE(error.message().find("does not greet as a Redis server does"), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace sluice
