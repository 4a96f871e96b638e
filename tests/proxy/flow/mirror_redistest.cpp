// A second pool that gets the writes of the first, with real servers.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>

#include "proxy/flow/two_servers.hpp"
#include "proxy/support/listening.hpp"
#include "proxy/support/memcached.hpp"
#include "sluice/log.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

/// A proxy with a pool of two servers, and a mirror of it with two others, which listens at a path.
class Mirrored : public testing::Test {
 protected:
  PoolLines pools(const std::string& mirror, const Texts& first = {},
                  const Texts& second = {}) const {
    const auto server = [](const RedisServer& one, char name) {
      return fmt::format(" - 127.0.0.1:{}:1 {}", one.port(), name);
    };
    PoolLines lines;
    lines.lines = {"redis: true"};
    lines.lines.insert(lines.lines.end(), first.begin(), first.end());
    if (!mirror.empty()) lines.lines.push_back("mirror: " + mirror);
    for (const auto& line : {std::string{"servers:"}, server(a, 'a'), server(b, 'b')})
      lines.lines.push_back(line);
    lines.others = {"second_pool:", "  listen: " + (directory.path() / "second").string(),
                    "  redis: true", "  distribution: modula"};
    for (const auto& line : second) lines.others.push_back("  " + line);
    for (const auto& line : {std::string{"servers:"}, server(c, 'a'), server(d, 'b')})
      lines.others.push_back("  " + line);
    return lines;
  }

  static proxy::watch::PoolFigures figures(ProxyUnderTest& proxy, std::size_t pool) {
    return proxy.proxy().registry().snapshot().pools.at(pool);
  }
  /// Everything that was sent to the mirror has been answered: true, or it takes too long.
  static bool comes_to_rest(ProxyUnderTest& proxy) {
    return comes_true([&] {
      const auto& second = figures(proxy, 1);
      return std::ranges::all_of(second.servers,
                                 [](const auto& server) { return server.totals.out_queue == 0; }) &&
             figures(proxy, 0).totals.mirror_requests ==
                 figures(proxy, 0).totals.mirror_compared +
                     figures(proxy, 0).totals.mirror_failures;
    });
  }
  /// "key=DUMP" of all keys of both servers, in order.
  static Texts data_of(const RedisServer& one, const RedisServer& other, int db = 0) {
    Texts data;
    for (const auto* const server : {&one, &other}) {
      PlainClient client{server->port()};
      static_cast<void>(client.command({"SELECT", std::to_string(db)}));
      const auto keys = client.command({"KEYS", "*"});
      for (const auto& key : keys.as_items())
        data.push_back(key.as_text() + '=' + text_of(client.command({"DUMP", key.as_text()})));
    }
    std::ranges::sort(data);
    return data;
  }

  TempDir directory;
  RedisServer a, b, c, d;
};

/// A client that asks at random, of keys of its own.
void ask_at_random(std::uint16_t port, int number, int requests) {
  std::mt19937 random{static_cast<std::uint32_t>(number)};
  PlainClient client{port};
  if (number % 3 == 1) static_cast<void>(ask(client, "SELECT 3"));
  if (number % 3 == 2) static_cast<void>(ask(client, "HELLO 3"));
  const auto sha = client.command({"SCRIPT", "LOAD", "return redis.call('append', KEYS[1], 's')"});
  for (int i = 0; i < requests; ++i) {
    const auto key = fmt::format("c{}:{{{}}}", number, random() % 8);
    Texts lines;
    switch (random() % 10) {
      case 0: lines = {fmt::format("SET {} {}", key, i), "APPEND " + key + " x"}; break;
      case 1: lines = {fmt::format("RPUSH {}l {} {}", key, i, i + 1), "LPOP " + key + "l"}; break;
      case 2:
        lines = {fmt::format("MSET {} a{} c{}:x y c{}:z {}", key, i, number, number, i)};
        break;
      case 3: lines = {"DEL " + key + " c" + std::to_string(number) + ":x"}; break;
      case 4:
        lines = {"MULTI", "APPEND " + key + " m", fmt::format("HSET {}h f{} {}", key, i % 5, i),
                 "EXEC"};
        break;
      case 5: lines = {"MULTI", "APPEND " + key + " no", "DISCARD"}; break;
      case 6: lines = {"WATCH " + key, "MULTI", "APPEND " + key + " w", "EXEC"}; break;
      case 7: lines = {fmt::format("EVALSHA {} 1 {}", sha.as_text(), key), "GET " + key}; break;
      case 8:
        lines = {fmt::format("ZADD {}z {} m{}", key, i, i % 7), "ZPOPMIN " + key + "z"};
        break;
      case 9: lines = {"INCR " + key + "i", "PEXPIRE " + key + "i 10000000"}; break;
    }
    static_cast<void>(ask_all(client, lines));
  }
}

TEST_F(Mirrored, AfterARunWithoutDropsBothPoolsHoldTheSame) {
  ProxyUnderTest proxy{pools("{pool: second_pool, queue: 64mb}"), {"workers: 2"}};
  std::vector<std::thread> clients;
  for (int number = 0; number < 6; ++number)
    clients.emplace_back([&, number] { ask_at_random(proxy.port(), number, 400); });
  for (auto& client : clients) client.join();
  ASSERT_TRUE(comes_to_rest(proxy));
  const auto totals = figures(proxy, 0).totals;
  EXPECT_EQ(totals.mirror_dropped, 0);
  EXPECT_EQ(totals.mirror_failures, 0);
  EXPECT_EQ(totals.mirror_skipped, 0);
  EXPECT_EQ(totals.mirror_mismatches, 0);
  EXPECT_GT(totals.mirror_compared, 2000);
  for (const int db : {0, 3}) {
    const auto first = data_of(a, b, db);
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(first, data_of(c, d, db));
  }
}

TEST_F(Mirrored, WhatDiffersIsCountedAndLoggedWithoutValues) {
  std::vector<std::string> lines;
  std::mutex mutex;
  set_log_sink([&](LogLevel, std::string_view text) {
    const std::lock_guard lock{mutex};
    lines.emplace_back(text);
  });
  {
    ProxyUnderTest proxy{pools("{pool: second_pool, reads: true}")};
    PlainClient client{proxy.port()}, second{(directory.path() / "second").string()};
    EXPECT_EQ(ask(client, "SET k v"), "+OK");
    ASSERT_TRUE(comes_to_rest(proxy));
    EXPECT_EQ(ask(second, "GET k"), "$1 v");
    EXPECT_EQ(ask(second, "SET k secret"), "+OK");
    EXPECT_EQ(ask(client, "GET k"), "$1 v");
    ASSERT_TRUE(comes_true([&] { return figures(proxy, 0).totals.mirror_mismatches == 1; }));
    EXPECT_EQ(ask(client, "TTL k"), ":-1");
    EXPECT_EQ(ask(client, "GET other"), "_");
    ASSERT_TRUE(comes_true([&] { return figures(proxy, 0).totals.mirror_requests == 4; }));
    EXPECT_EQ(figures(proxy, 0).totals.mirror_mismatches, 1);
  }
  set_log_sink({});
  const auto is_told = [](const std::string& line) {
    return line.find("the mirror 'second_pool' answers get \"k\" otherwise") != line.npos;
  };
  EXPECT_EQ(std::ranges::count_if(lines, is_told), 1);
  for (const auto& line : lines) EXPECT_EQ(line.find("secret"), line.npos) << line;
}

TEST_F(Mirrored, ATransactionThatWasNotDoneIsNotMirrored) {
  ProxyUnderTest proxy{pools("{pool: second_pool}")};
  PlainClient client{proxy.port()}, other{proxy.port()};
  EXPECT_EQ(ask_all(client, {"WATCH k", "MULTI", "SET k mine"}), (Texts{"+OK", "+OK", "+QUEUED"}));
  EXPECT_EQ(ask(other, "SET k theirs"), "+OK");
  EXPECT_EQ(ask(client, "EXEC"), "_");
  EXPECT_EQ(ask_all(client, {"MULTI", "SET k x", "NONSENSE", "EXEC"}).back().substr(0, 10),
            "-EXECABORT");
  EXPECT_EQ(ask(client, "BLPOP l 0.01"), "_");
  ASSERT_TRUE(comes_to_rest(proxy));
  EXPECT_EQ(figures(proxy, 0).totals.mirror_requests, 1);
  EXPECT_EQ(figures(proxy, 0).totals.mirror_skipped, 1) << "BLPOP";
  EXPECT_EQ(data_of(a, b), data_of(c, d));
}

TEST_F(Mirrored, AMirrorThatIsStoppedHoldsUpNobodyAndItsQueueIsBounded) {
  ProxyUnderTest proxy{pools("{pool: second_pool, queue: 64kb}")};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "SET warm up"), "+OK");
  ASSERT_TRUE(comes_to_rest(proxy));
  c.stop();
  d.stop();
  const std::string value(1000, 'x');
  for (int i = 0; i < 3000; ++i)
    ASSERT_EQ(ask(client, fmt::format("SET k{} {}", i, value)), "+OK") << i;
  const auto totals = figures(proxy, 0).totals;
  EXPECT_GT(totals.mirror_dropped, 2000);
  EXPECT_EQ(totals.server_ejects, 0);
  EXPECT_LT(proxy.proxy().memory(), 2 << 20);
  c.cont();
  d.cont();
  ASSERT_TRUE(comes_to_rest(proxy));
  EXPECT_EQ(ask(client, "SET after it"), "+OK");
  ASSERT_TRUE(comes_to_rest(proxy));
  PlainClient second{(directory.path() / "second").string()};
  EXPECT_EQ(ask(second, "GET after"), "$2 it");
}

TEST_F(Mirrored, AMirrorThatIsStoppedTakesNoMemoryOfTheClients) {
  ProxyUnderTest proxy{pools("{pool: second_pool, queue: 64mb}"), {"memory_limit: 4mb"}};
  std::vector<PlainClient> clients;
  for (int i = 0; i < 4; ++i) clients.emplace_back(proxy.port());
  c.stop();
  d.stop();
  const std::string value(50'000, 'x');
  for (int i = 0; i < 100; ++i)
    for (auto& client : clients)
      ASSERT_EQ(ask(client, fmt::format("SET k{} {}", i, value)), "+OK") << i;
  EXPECT_GT(figures(proxy, 0).totals.mirror_dropped, 0);
  EXPECT_LT(proxy.proxy().memory(), 3 << 20);
  EXPECT_EQ(figures(proxy, 0).totals.client_evictions, 0);
  c.cont();
  d.cont();
}

TEST_F(Mirrored, AMirrorThatWasKilledFailsAloneAndComesBack) {
  const Texts ejecting{"auto_eject_hosts: true", "server_failure_limit: 1",
                       "server_retry_timeout: 100", "timeout: 20000"};
  ProxyUnderTest proxy{pools("{pool: second_pool}", ejecting, ejecting)};
  PlainClient client{proxy.port()};
  c.kill();
  d.kill();
  for (int i = 0; i < 500; ++i) ASSERT_EQ(ask(client, fmt::format("SET k{} {}", i, i)), "+OK") << i;
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(ask(client, "MULTI"), "+OK");
    EXPECT_EQ(ask(client, fmt::format("SET k{} again", i)), "+QUEUED");
    EXPECT_EQ(ask(client, "EXEC"), "*1 +OK");
  }
  ASSERT_TRUE(comes_to_rest(proxy));
  EXPECT_EQ(figures(proxy, 0).totals.mirror_failures, 505);
  EXPECT_EQ(figures(proxy, 0).totals.mirror_mismatches, 0);
  EXPECT_EQ(figures(proxy, 0).totals.server_ejects, 0);
  EXPECT_EQ(figures(proxy, 0).totals.forward_error, 0);
  EXPECT_GT(figures(proxy, 1).totals.server_ejects, 0);
  c.start();
  d.start();
  PlainClient second{(directory.path() / "second").string()};
  EXPECT_TRUE(comes_true([&] {
    return ask(client, "SET again here") == "+OK" && ask(second, "GET again") == "$4 here";
  }));
}

TEST_F(Mirrored, AReloadTurnsItOnAndOff) {
  ProxyUnderTest proxy{pools("")};
  PlainClient client{proxy.port()}, second{(directory.path() / "second").string()};
  const auto set = [&](const std::string& key) {
    EXPECT_EQ(ask(client, "SET " + key + " v"), "+OK");
    EXPECT_TRUE(comes_to_rest(proxy));
    return ask(second, "GET " + key);
  };
  EXPECT_EQ(set("before"), "_");
  proxy.reload(pools("{pool: second_pool}"));
  EXPECT_EQ(set("on"), "$1 v");
  proxy.reload(pools("{pool: second_pool}", {}, {"redis_db: 2"}));
  EXPECT_EQ(set("other_db"), "$1 v");
  proxy.reload(pools(""));
  EXPECT_EQ(set("off"), "_");
}

TEST_F(Mirrored, TheSecondPoolAsksTheMirrorForNoPassword) {
  ProxyUnderTest proxy{pools("{pool: second_pool}", {},
                             {"users: [{name: u, password: p}]", "client_idle_timeout: 1ms"})};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, "SET k v"), "+OK");
  proxy.reload(pools("{pool: second_pool}", {}, {"users: [{name: w, password: p}]"}));
  EXPECT_EQ(ask(client, "SET l v"), "+OK");
  ASSERT_TRUE(comes_to_rest(proxy));
  EXPECT_EQ(data_of(a, b), data_of(c, d));
}

TEST_F(Mirrored, OfASampleAKeyHasAllItsWritesOrNone) {
  ProxyUnderTest proxy{pools("{pool: second_pool, sample: 1/4}")};
  PlainClient client{proxy.port()};
  for (int i = 0; i < 200; ++i)
    EXPECT_EQ(ask_all(client, {fmt::format("SET k{} a", i), fmt::format("APPEND k{} b", i)}),
              (Texts{"+OK", ":2"}));
  ASSERT_TRUE(comes_to_rest(proxy));
  const auto first = data_of(a, b), second = data_of(c, d);
  EXPECT_GT(second.size(), 10U);
  EXPECT_LT(second.size(), 150U);
  EXPECT_TRUE(std::ranges::includes(first, second));
}

TEST(MirrorOfMemcached, GetsWhatWasStoredAndNotWhatHangsOnAUniqueNumber) {
  Memcached first, second;
  const TempDir directory;
  ProxyUnderTest proxy{PoolLines{
      {"mirror: {pool: second_pool, reads: true}", "servers:", " - " + first.address() + ":1"},
      {"second_pool:", "  listen: " + (directory.path() / "second").string(),
       "  servers:", "   - " + second.address() + ":1"}}};
  const auto said = talk(proxy.port(),
                         "set k 0 0 1\r\n1\r\n"
                         "set quiet 0 0 1 noreply\r\n2\r\n"
                         "incr k 5\r\n"
                         "get k quiet\r\n"
                         "ms meta 1 q\r\n3\r\n"
                         "cas k 0 0 1 77\r\n9\r\n"
                         "gets k\r\n"
                         "mn\r\n",
                         "MN\r\n");
  EXPECT_TRUE(
      said.bytes.starts_with("STORED\r\n6\r\nVALUE k 0 1\r\n6\r\nVALUE quiet 0 1\r\n2\r\n"
                             "END\r\nEXISTS\r\n"))
      << said.bytes;
  EXPECT_TRUE(comes_true([&] { return totals(proxy).mirror_compared == 4; }));
  EXPECT_EQ(totals(proxy).mirror_requests, 6);
  EXPECT_EQ(totals(proxy).mirror_skipped, 1) << "cas";
  EXPECT_EQ(totals(proxy).mirror_mismatches, 0);
  EXPECT_EQ(talk(second.port(), "get k quiet meta\r\n", "END\r\n").bytes,
            "VALUE k 0 1\r\n6\r\nVALUE quiet 0 1\r\n2\r\nVALUE meta 0 1\r\n3\r\nEND\r\n");
}

}  // namespace
}  // namespace sluice::test
