// Names are resolved off the connection's thread. getaddrinfo here is the test's: it takes the
// place of libc's in this program, and answers when the test says so.
#include <gtest/gtest.h>
#include <netdb.h>

#include <condition_variable>
#include <cstring>
#include <latch>
#include <mutex>
#include <thread>

#include "redis/at_server.hpp"
#include "redis/fake_server.hpp"
#include "support/thread_sanitized.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(SLUICE_THREAD_SANITIZER)
namespace {

struct NameService {
  std::mutex mutex;
  std::condition_variable changed;
  int asked = 0;
  bool answers = true;

  void wait() {
    std::unique_lock lock{mutex};
    ++asked;
    changed.notify_all();
    changed.wait(lock, [this] { return answers; });
  }
  int times_asked() {
    const std::lock_guard lock{mutex};
    return asked;
  }
  void set(bool now) {
    const std::lock_guard lock{mutex};
    answers = now;
    changed.notify_all();
  }
};

NameService& name_service() {
  static auto* const one = new NameService;
  return *one;
}

}  // namespace

/// Knows one host, 127.0.0.1, and numbers.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo*, addrinfo** found) {
  if (std::strcmp(host, "slow.test") == 0) name_service().wait();
  auto* const address = new sockaddr_in{};
  address->sin_family = AF_INET;
  address->sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  *found = new addrinfo{};
  (*found)->ai_family = AF_INET;
  (*found)->ai_addr = reinterpret_cast<sockaddr*>(address);
  (*found)->ai_addrlen = sizeof *address;
  return 0;
}
extern "C" void freeaddrinfo(addrinfo* found) {
  delete reinterpret_cast<sockaddr_in*>(found->ai_addr);
  delete found;
}

namespace sluice {
namespace {

using namespace std::chrono_literals;

redis::RedisOptions by_name(const test::FakeServer& server) {
  auto options = server.options();
  options.endpoint.host = "slow.test";
  return options;
}

void serve_pings(test::FakeServer::Peer& peer) {
  if (!peer.greet()) return;
  while (!peer.command().empty()) peer.send("+PONG\r\n");
}

TEST(Resolution, K11_ASlowNameServiceHoldsUpNoDeadline) {
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
  name_service().set(false);
  name_service_stopped.count_down();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i)  // the first may meet the end of the connection
    EXPECT_EQ(test::failure_of([&] { store->run({"PING"}).get(); }).errc(), Errc::connection);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  name_service().set(true);
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

TEST(Resolution, K11_OpenEndsByItsTimeAndAsksOnce) {
  test::FakeServer server{[](test::FakeServer::Peer& peer, int) { serve_pings(peer); }};
  auto options = by_name(server);
  options.connect_timeout = 100ms;
  name_service().set(false);
  const auto failure = test::failure_of([&] { redis::open_redis(options); });
  EXPECT_EQ(failure.errc(), Errc::timeout);
  EXPECT_NE(failure.message().find("name service"), std::string::npos) << failure.message();
  name_service().set(true);
}

/// Where a second connection is needed: a blocking command, a subscription, a batch with WAIT.
TEST(Resolution, E10_ASlowNameServiceHoldsUpNoOtherConnection) {
  test::FakeServer server{[](test::FakeServer::Peer& peer, int) { serve_pings(peer); },
                          test::FakeServer::Serves::at_once};
  auto options = by_name(server);
  options.command_timeout = 200ms;
  options.connect_timeout = 60s;
  const auto store = redis::open_redis(options);
  name_service().set(false);
  const int asked = name_service().times_asked();
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
  EXPECT_EQ(name_service().times_asked(), asked + 1) << "one question for all connections";
  name_service().set(true);
}

}  // namespace
}  // namespace sluice
#endif
