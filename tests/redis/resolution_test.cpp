// Names are resolved off the connection's thread.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "redis/at_server.hpp"
#include "redis/fake_server.hpp"
#include "support/slow_names.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr const char* slow = "slow.test";

/// The name service is the test's.
class Resolution : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::SlowNames::are_there) GTEST_SKIP();
  }

  test::SlowNames names;
};

redis::RedisOptions by_name(const test::FakeServer& server) {
  auto options = server.options();
  options.endpoint.host = slow;
  return options;
}

void serve_pings(test::FakeServer::Peer& peer) {
  if (!peer.greet()) return;
  while (!peer.command().empty()) peer.send("+PONG\r\n");
}

TEST_F(Resolution, K11_ASlowNameServiceHoldsUpNoDeadline) {
  std::latch name_service_stopped{1};
  test::FakeServer server{[&](test::FakeServer::Peer& peer, int number) {
    if (number > 0) return serve_pings(peer);
    peer.greet();
    name_service_stopped.wait();  // the name must be asked for again only after that
  }};
  auto options = by_name(server);
  options.command_timeout = 200ms;
  options.connect_timeout = 60s;
  const auto store = redis::open_redis(options);
  names.hold(slow);
  name_service_stopped.count_down();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i)  // the first may meet the end of the connection
    EXPECT_EQ(test::failure_of([&] { store->run({"PING"}).get(); }).errc(), Errc::connection);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  names.answer(slow);
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (std::chrono::steady_clock::now() < deadline) {
    try {
      EXPECT_EQ(store->run({"PING"}).get().as_text(), "PONG");
      return;
    } catch (const Error&) {
    }
  }
  ADD_FAILURE() << "the name service answers, and the store is not connected";
}

TEST_F(Resolution, K11_OpenEndsByItsTimeAndAsksOnce) {
  test::FakeServer server{[](test::FakeServer::Peer& peer, int) { serve_pings(peer); }};
  auto options = by_name(server);
  options.connect_timeout = 100ms;
  names.hold(slow);
  const auto failure = test::failure_of([&] { redis::open_redis(options); });
  EXPECT_EQ(failure.errc(), Errc::timeout);
  EXPECT_NE(failure.message().find("name service"), std::string::npos) << failure.message();
  names.answer(slow);
}

/// Where a second connection is needed: a blocking command, a subscription, a batch with WAIT.
TEST_F(Resolution, E10_ASlowNameServiceHoldsUpNoOtherConnection) {
  test::FakeServer server{[](test::FakeServer::Peer& peer, int) { serve_pings(peer); },
                          test::FakeServer::Serves::at_once};
  auto options = by_name(server);
  options.command_timeout = 200ms;
  options.connect_timeout = 60s;
  const auto store = redis::open_redis(options);
  names.hold(slow);
  const int asked = names.asked(slow);
  const auto expect_in_time = [](const char* what, auto call) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(test::failure_of(call).effect(), Effect::none) << what;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s) << what;
  };
  expect_in_time("BLPOP", [&] { store->run({"BLPOP", "q", "0.01"}).get(); });
  expect_in_time("listen", [&] { store->listen("c", [](const Message&) {}).get(); });
  expect_in_time("WAIT", [&] {
    Batch batch;
    batch.add({"SET", "k", "v"}).add({"WAIT", "1", "10"});
    store->run(std::move(batch)).get();
  });
  EXPECT_EQ(store->run({"PING"}).get().as_text(), "PONG") << "the first connection goes on";
  std::vector<std::jthread> many;
  for (int i = 0; i < 16; ++i)
    many.emplace_back([&] {
      expect_in_time("BLPOP", [&] { store->run({"BLPOP", "q", "0.01"}).get(); });
    });
  many.clear();
  EXPECT_EQ(names.asked(slow), asked + 1) << "one question for all connections";
  names.answer(slow);
}

}  // namespace
}  // namespace sluice
