// Servers that are killed, stopped, slow, cut off or talk nonsense, under load: no reply to another
// request, errors counted, and all well again afterwards.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <optional>

#include "net/server_socket.hpp"
#include "proxy/flow/random_load.hpp"
#include "proxy/support/asking.hpp"
#include "proxy/support/memcached.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "resp/writer.hpp"
#include "support/fault_proxy.hpp"
#include "support/free_port.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

/// A server of either kind.
class Peer {
 public:
  explicit Peer(Language language) {
    if (language == Language::redis)
      redis_.emplace();
    else
      memcached_.emplace();
  }

  std::uint16_t port() const { return redis_ ? redis_->port() : memcached_->port(); }
  void kill() { redis_ ? redis_->kill() : memcached_->kill(); }
  void start() { redis_ ? redis_->start() : memcached_->start(); }
  void stop() { redis_ ? redis_->stop() : memcached_->stop(); }
  void cont() { redis_ ? redis_->cont() : memcached_->cont(); }

 private:
  std::optional<RedisServer> redis_;
  std::optional<Memcached> memcached_;
};

using Servers = std::vector<std::unique_ptr<Peer>>;

Servers servers(std::size_t count, Language language) {
  Servers made;
  for (; count > 0; --count) made.push_back(std::make_unique<Peer>(language));
  return made;
}

PoolLines pool(const std::vector<std::uint16_t>& ports, std::vector<std::string> lines,
               Language language = Language::redis) {
  if (language == Language::redis) lines.insert(lines.begin(), "redis: true");
  lines.emplace_back("servers:");
  for (std::size_t i = 0; i < ports.size(); ++i)
    lines.push_back(fmt::format(" - 127.0.0.1:{}:1 s{}", ports[i], i + 1));
  return {std::move(lines)};
}

std::vector<std::uint16_t> ports(const Servers& servers) {
  std::vector<std::uint16_t> ports;
  for (const auto& server : servers) ports.push_back(server->port());
  return ports;
}

struct Pattern {
  std::string name;
  std::vector<std::string> lines;
  bool recovers_alone = true;  ///< without the server that is out
  bool gathers = true;
  std::size_t workers = 1;
  Language language = Language::redis;
};
void PrintTo(const Pattern& route, std::ostream* out) { *out << route.name; }

class Failures : public testing::TestWithParam<Pattern> {
 protected:
  Failures() : servers_(servers(3, GetParam().language)) {}
  ~Failures() override {
    for (auto& server : servers_) server->cont();
  }

  /// With a short time a server that is well may fail, too, where the machine is slow.
  void begin(int timeout = 150) {
    auto lines = GetParam().lines;
    lines.insert(lines.end(), {fmt::format("timeout: {}", timeout), "server_failure_limit: 2",
                               "server_retry_timeout: 200"});
    proxy_.emplace(pool(ports(servers_), lines, GetParam().language),
                   std::vector<std::string>{fmt::format("workers: {}", GetParam().workers)});
    load_.emplace(proxy_->port(), RandomLoad::Options{.gathers = GetParam().gathers,
                                                      .language = GetParam().language});
    expect_recovery("the start");
  }

  /// All replies are good again: how long there were errors since `event`.
  void expect_recovery(const char* from, RandomLoad::Time event = {}) {
    ASSERT_TRUE(load_->await_health()) << from << ": " << load_->wrong();
    if (event == RandomLoad::Time{}) return;
    const auto took =
        std::chrono::duration_cast<std::chrono::milliseconds>(load_->last_error() - event);
    std::cout << GetParam().name << ": errors for " << std::max<std::int64_t>(took.count(), 0)
              << " ms after " << from << '\n';
  }
  void await_work_of(std::size_t server) {
    const auto before = totals(*proxy_, server).responses;
    ASSERT_TRUE(
        RandomLoad::await([&] { return totals(*proxy_, server).responses > before + 100; }));
  }
  /// Nothing is under way any more, and every request had one outcome.
  void expect_silence() {
    load_->stop();
    EXPECT_EQ(load_->wrong(), "");
    EXPECT_TRUE(RandomLoad::await([&] {
      return totals(*proxy_, 0).out_queue + totals(*proxy_, 1).out_queue +
                 totals(*proxy_, 2).out_queue ==
             0;
    }));
    EXPECT_EQ(totals(*proxy_, 0).out_queue_bytes, 0);
    EXPECT_TRUE(RandomLoad::await([&] { return totals(*proxy_).client_connections == 0; }));
  }

  Servers servers_;
  std::optional<ProxyUnderTest> proxy_;
  std::optional<RandomLoad> load_;
};

TEST_P(Failures, KilledAndStartedAgain) {
  begin(30'000);
  const auto errors = load_->errors();
  const auto killed = RandomLoad::Clock::now();
  servers_[1]->kill();
  ASSERT_TRUE(RandomLoad::await([&] { return load_->errors() > errors; }));
  if (GetParam().recovers_alone) expect_recovery("a kill", killed);
  const auto started = RandomLoad::Clock::now();
  servers_[1]->start();
  await_work_of(1);
  expect_recovery("its return", started);
  expect_silence();
  EXPECT_GT(totals(*proxy_, 1).failures, 0);
  EXPECT_GE(totals(*proxy_).server_ejects, 1);
  EXPECT_EQ(totals(*proxy_, 0).failures + totals(*proxy_, 2).failures, 0);
}

TEST_P(Failures, StoppedAndContinued) {
  begin();
  const auto errors = load_->errors();
  const auto stopped = RandomLoad::Clock::now();
  servers_[0]->stop();
  ASSERT_TRUE(RandomLoad::await([&] { return load_->errors() > errors; }));
  ASSERT_TRUE(RandomLoad::await([&] { return totals(*proxy_).server_ejects >= 1; }));
  if (GetParam().recovers_alone) expect_recovery("a stop", stopped);
  const auto continued = RandomLoad::Clock::now();
  servers_[0]->cont();
  await_work_of(0);
  expect_recovery("its continuation", continued);
  expect_silence();
  EXPECT_GT(totals(*proxy_, 0).server_timedout, 0);
  for (const std::size_t other : {1, 2})
    EXPECT_EQ(totals(*proxy_, other).failures, totals(*proxy_, other).server_timedout);
}

TEST_P(Failures, RestartedAtOnce) {
  begin();
  const auto begun = RandomLoad::Clock::now();
  for (int times = 3; times > 0; --times) {
    servers_[2]->kill();
    servers_[2]->start();
    await_work_of(2);
  }
  expect_recovery("the first of three restarts", begun);
  expect_silence();
}

TEST_P(Failures, ClientsThatVanishWithThousandsUnderWay) {
  begin();
  std::string requests;
  const Asked asked[] = {{Asked::What::get_many, {"key:1", "key:2", "key:3", "key:4"}},
                         {Asked::What::set, {"vanished"}},
                         {Asked::What::get, {"key:5"}}};
  for (int i = 0; i < 500; ++i)
    for (const auto& each : asked) append_request(requests, GetParam().language, each);
  servers_[1]->stop();
  for (int times = 60; times > 0; --times) {
    if (times == 30) servers_[1]->cont();
    PlainClient client{proxy_->port()};
    client.send(requests);
    if (times % 2 == 0) client.finish_sending();
    if (times % 3 == 0 && times < 30) static_cast<void>(client.read_raw());
  }
  await_work_of(1);
  expect_recovery("clients that vanished");
  expect_silence();
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Failures,
    testing::Values(
        Pattern{"rehash", {"auto_eject_hosts: true"}},
        Pattern{"rehash_three_connections", {"auto_eject_hosts: true", "server_connections: 3"}},
        Pattern{"rehash_strict", {"auto_eject_hosts: true", "compat: strict"}, false, false},
        Pattern{"fail", {"on_failure: fail"}, false},
        Pattern{"fail_three_connections",
                {"on_failure: fail", "server_connections: 3", "partial_replies: true"},
                false},
        Pattern{"rehash_two_workers", {"auto_eject_hosts: true"}, true, true, 2},
        Pattern{"memcached", {"auto_eject_hosts: true"}, true, true, 1, Language::memcached},
        Pattern{"memcached_fail", {"on_failure: fail"}, false, true, 2, Language::memcached}),
    [](const auto& route) { return route.param.name; });

TEST(Failure, ATimeoutIsOfItsOwnRequestAlone) {
  RedisServer server;
  VirtualClock clock;
  ProxyUnderTest proxy{
      pool({server.port()}, {"timeout: 300", "auto_eject_hosts: true"}), {}, clock};
  PlainClient slow{proxy.port()}, neighbour{proxy.port()};
  ASSERT_EQ(neighbour.command({"SET", "k", "k#"}).as_text(), "OK");
  // What comes behind it after 0.25 s waits as long, which is within its own time.
  server.stop();
  std::string get;
  resp::append_command(get, std::vector<std::string_view>{"GET", "k"});
  for (auto* const client : {&slow, &neighbour}) {
    const auto before = totals(proxy, 0).out_queue;
    client->send(get);
    ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy, 0).out_queue == before + 1; }));
    proxy.pass(client == &slow ? 250ms : 100ms);
  }
  const auto late = slow.read();
  ASSERT_TRUE(late.is_error());
  EXPECT_EQ(late.as_text(), "ERR Connection timed out");
  server.cont();
  EXPECT_EQ(neighbour.read().as_text(), "k#");
  EXPECT_EQ(slow.command({"GET", "k"}).as_text(), "k#");
  const auto counted = totals(proxy, 0);
  EXPECT_EQ(counted.server_timedout, 1);
  EXPECT_EQ(counted.late_replies, 1);
  EXPECT_EQ(counted.failures, 1);
  EXPECT_EQ(counted.server_eof + counted.server_err, 0);
  EXPECT_EQ(counted.server_connections, 1);
}

TEST(Failure, TheTimeIsKeptOnAConnectionThatIsGreetedToo) {
  RedisServer server;
  ProxyUnderTest proxy{pool({server.port()}, {"timeout: 100", "redis_db: 3"})};
  server.stop();
  PlainClient client{proxy.port()};
  EXPECT_EQ(client.command({"GET", "k"}).as_text(), "ERR Connection timed out");
  server.cont();
}

TEST(Failure, ManyConnectionsThatBreakAtOnceAreOne) {
  RedisServer server;
  ProxyUnderTest proxy{
      pool({server.port()}, {"server_connections: 8", "on_failure: fail", "server_failure_limit: 2",
                             "server_retry_timeout: 60000"})};
  std::vector<std::unique_ptr<PlainClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<PlainClient>(proxy.port()));
    ASSERT_TRUE(clients.back()->command({"GET", "k"}).is_null());
  }
  ASSERT_EQ(totals(proxy, 0).server_connections, 8);
  server.stop();  // so that all have something under way when it goes
  std::string get;
  resp::append_command(get, std::vector<std::string_view>{"GET", "k"});
  for (auto& client : clients) client->send(get);
  ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy, 0).out_queue == 8; }));
  server.kill();
  for (auto& client : clients) EXPECT_TRUE(client->read().is_error());
  EXPECT_EQ(totals(proxy).server_ejects, 0);
  server.start();
  for (auto& client : clients) EXPECT_TRUE(client->command({"GET", "k"}).is_null());
}

TEST(Failure, CutInTheMiddleOfAReplyAtEveryByte) {
  RedisServer server;
  FaultProxy between{server.port()};
  ProxyUnderTest proxy{pool({between.port()}, {})};
  PlainClient client{proxy.port()};
  const std::string keys[] = {"key:a", "key:b", "key:c"};
  for (const auto& key : keys) ASSERT_EQ(client.command({"SET", key, key + "#"}).as_text(), "OK");
  std::string requests;
  for (const auto& key : keys)
    resp::append_command(requests, std::vector<std::string_view>{"GET", key});
  constexpr std::uint64_t all = 3 * 12;  // "$6\r\nkey:a#\r\n"
  for (std::uint64_t byte = 1; byte < all; ++byte) {
    between.cut();
    ASSERT_TRUE(RandomLoad::await([&] { return totals(proxy, 0).server_connections == 0; }));
    between.cut_next_at(FaultProxy::Way::to_client, byte);
    client.send(requests);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto reply = client.read();
      if (byte >= (i + 1) * 12)
        EXPECT_EQ(reply.as_text(), keys[i] + "#") << byte;
      else
        EXPECT_TRUE(reply.is_error()) << byte;
    }
  }
  EXPECT_EQ(client.command({"GET", keys[0]}).as_text(), "key:a#");
}

TEST(Failure, AServerOfAnotherLanguageFailsItsOwnRequests) {
  RedisServer redis;
  Memcached memcached;
  for (const auto language : {Language::redis, Language::memcached}) {
    const bool is_redis = language == Language::redis;
    const auto right = is_redis ? redis.port() : memcached.port();
    const auto wrong = is_redis ? memcached.port() : redis.port();
    ProxyUnderTest proxy{pool({wrong, right}, {}, language)};
    const auto talk = connect(language, proxy.port());
    for (int times = 3; times > 0; --times) {
      const Asked here{Asked::What::get, {proxy.key_at(1)}},
          there{Asked::What::get, {proxy.key_at(0)}};
      std::string requests;
      for (const auto& asked : {there, here, there, there, here})
        append_request(requests, language, asked);
      talk->send(requests);
      for (const auto& asked : {there, here, there, there, here})
        EXPECT_EQ(talk->read(asked),
                  asked.keys == here.keys ? Talk::Outcome::right : Talk::Outcome::error);
    }
    EXPECT_GE(totals(proxy, 0).server_err, 3);
    EXPECT_EQ(totals(proxy, 1).server_err, 0);
  }
}

/// Nothing that has a reply is under way, and so nothing else that has a time.
TEST(Failure, X13_AConnectionWithNoreplyAloneIsGivenUpToo) {
  VirtualClock clock;
  const auto port = free_port();
  // The kernel takes the connection, and nobody shakes hands on it.
  const auto silent = net::ServerSocket::open({.host = "127.0.0.1", .port = port}, {});
  ProxyUnderTest proxy{PoolLines{{"server_tls: true", "connect_timeout: 200ms",
                                  "servers:", fmt::format(" - 127.0.0.1:{}:1 a", port)}},
                       {},
                       clock};
  PlainClient client{proxy.port()};
  client.send("set k 0 0 1 noreply\r\nx\r\n");
  EXPECT_TRUE(comes_true([&] {
    proxy.pass(100ms);
    return totals(proxy, 0).server_timedout > 0;
  }));
}

TEST(Failure, AReplyThatIsTooLongFailsItsRequestAlone) {
  RedisServer server;
  ProxyUnderTest proxy{pool({server.port()}, {"reply_size_limit: 64kb", "auto_eject_hosts: true",
                                              "server_failure_limit: 1"})};
  PlainClient client{proxy.port()};
  ASSERT_EQ(client.command({"SET", "long", std::string(100'000, 'x')}).as_text(), "OK");
  ASSERT_EQ(client.command({"SET", "fits", std::string(60'000, 'x')}).as_text(), "OK");
  const auto refused = client.command({"GET", "long"});
  ASSERT_TRUE(refused.is_error());
  EXPECT_EQ(refused.as_text(), "ERR the server's reply is beyond reply_size_limit");
  EXPECT_EQ(client.command({"GET", "fits"}).as_text().size(), 60'000U);
  EXPECT_EQ(totals(proxy, 0).failures, 0);
  EXPECT_EQ(totals(proxy).server_ejects, 0);
}

}  // namespace
}  // namespace sluice::test
