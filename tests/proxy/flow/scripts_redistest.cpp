// SCRIPT LOAD, SCRIPT FLUSH, SCRIPT EXISTS and EVALSHA over two servers.
#include <atomic>
#include <thread>

#include "proxy/flow/two_servers.hpp"
#include "resp/letters.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;

class Scripts : public TwoServers {
 protected:
  void SetUp() override {
    TwoServers::SetUp();
    for (std::size_t i = 0; i < 2; ++i) flush(i);
  }
  static void flush(std::size_t server) {
    auto client = direct(server);
    ASSERT_EQ(ask(client, "SCRIPT FLUSH"), "+OK");
  }
};

std::string load(PlainClient& client, const std::string& body) {
  client.send(request("SCRIPT LOAD " + body));
  return client.read().as_text();
}

const std::string no_script = "-NOSCRIPT No matching script. Please use EVAL.";
const std::string increment = "return{redis.call('INCR',KEYS[1])}";

std::string evalsha(const std::string& sha, const std::string& key) {
  return "EVALSHA " + sha + " 1 " + key;
}

TEST_F(Scripts, AreLoadedOnEveryServer) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  EXPECT_EQ(sha.size(), 40U);
  for (std::size_t i = 0; i < 2; ++i) {
    auto server = direct(i);
    EXPECT_EQ(ask(server, "SCRIPT EXISTS " + sha), "*1 :1");
  }
  EXPECT_EQ(ask(client, "SCRIPT EXISTS " + sha + " " + std::string(40, '0')), "*2 :1 :0");
  flush(1);
  EXPECT_EQ(ask(client, "SCRIPT EXISTS " + sha), "*1 :0");
}

TEST_F(Scripts, ThatDoNotCompileAreRefused) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto reply = ask(client, "SCRIPT LOAD this(is(no)lua");
  EXPECT_EQ(reply.substr(0, 29), "-ERR Error compiling script (") << reply;
}

TEST_F(Scripts, RunWhereTheirKeysAre) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  for (std::size_t home = 0; home < 2; ++home) {
    const auto key = proxy.key_at(home);
    EXPECT_EQ(ask(client, evalsha(sha, key)), "*1 :1");
    auto server = direct(home);
    EXPECT_EQ(ask(server, "GET " + key), "$1 1");
  }
  EXPECT_EQ(ask(client, "EVALSHA " + sha + " 2 " + proxy.key_at(0) + " " + proxy.key_at(1)),
            "-CROSSSLOT Keys in request don't have the same home: they are on different servers");
  std::string upper = sha;
  for (auto& c : upper)
    if (c >= 'a') c = static_cast<char>(c - 32);
  EXPECT_EQ(ask(client, evalsha(upper, proxy.key_at(0))), "*1 :2");
  const auto one = load(client, "return(1)");
  EXPECT_EQ(ask(client, "EVALSHA " + one + " 0"), ":1");
  EXPECT_EQ(ask(client, "EVALSHA_RO " + one + " 1 " + proxy.key_at(1)), ":1");
}

TEST_F(Scripts, NobodyHasLoadedAreNotThere) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  EXPECT_EQ(ask(client, evalsha(std::string(40, '0'), "a")), no_script);
  EXPECT_EQ(ask(client, evalsha("short", "a")), no_script);
  EXPECT_EQ(totals(proxy).healed_scripts, 0);
}

TEST_F(Scripts, LoadedAndRunInOneWrite) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  EXPECT_EQ(ask(client, "SCRIPT FLUSH"), "+OK");
  const auto a = proxy.key_at(0), b = proxy.key_at(1);
  EXPECT_EQ(ask_all(client, {"SCRIPT LOAD " + increment, evalsha(sha, a), evalsha(sha, b),
                             "GET " + a, "SCRIPT FLUSH", evalsha(sha, a), "GET " + b}),
            (Texts{"$40 " + sha, "*1 :1", "*1 :1", "$1 1", "+OK", no_script, "$1 1"}));
}

TEST_F(Scripts, FlushedThroughTheProxyAreForgotten) {
  ProxyUnderTest proxy{ports(), {}, {"workers: 2"}};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  EXPECT_EQ(ask(client, evalsha(sha, "a")), "*1 :1");
  EXPECT_EQ(ask(client, "SCRIPT FLUSH"), "+OK");
  for (int i = 0; i < 8; ++i) {  // of both workers
    PlainClient other{proxy.port()};
    EXPECT_EQ(ask(other, evalsha(sha, "a")), no_script);
  }
  EXPECT_EQ(load(client, increment), sha);
  EXPECT_EQ(ask(client, evalsha(sha, "a")), "*1 :2");
}

TEST_F(Scripts, FlushedBehindTheProxyAreHealed) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  const auto key = proxy.key_at(1);
  EXPECT_EQ(ask(client, evalsha(sha, key)), "*1 :1");
  flush(1);
  EXPECT_EQ(ask(client, evalsha(sha, key)), "*1 :2");
  EXPECT_EQ(totals(proxy).healed_scripts, 1);
  flush(1);
  EXPECT_EQ(ask_all(client, {"SET other x", "GET other", evalsha(sha, key)}),
            (Texts{"+OK", "$1 x", "*1 :3"}));  // nothing behind it: it may be asked again
  EXPECT_EQ(totals(proxy).healed_scripts, 2);
}

TEST_F(Scripts, FlushedBehindTheProxyAreNotHealedOutOfOrder) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  const auto key = proxy.key_at(0);
  EXPECT_EQ(ask(client, evalsha(sha, key)), "*1 :1");
  flush(0);
  EXPECT_EQ(ask_all(client, {evalsha(sha, key), "SET " + key + " 10"}), (Texts{no_script, "+OK"}));
  EXPECT_EQ(ask_all(client, {evalsha(sha, key), "GET " + key}), (Texts{"*1 :11", "$2 11"}));
}

TEST_F(Scripts, WithMoreThanIsKeptAreGivenAgainTheNextTime) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  const auto large = evalsha(sha, proxy.key_at(0)) + " " + std::string(50'000, 'x');
  EXPECT_EQ(ask(client, large), "*1 :1");
  flush(0);
  EXPECT_EQ(ask(client, large), no_script);
  EXPECT_EQ(ask(client, large), "*1 :2");
}

TEST_F(Scripts, AreBroughtToTransactions) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment),
             other = load(client, "return{redis.call('DECR',KEYS[1])}");
  const auto key = proxy.key_at(0);
  flush(0);
  EXPECT_EQ(ask_all(client, {"MULTI", evalsha(sha, key), evalsha(other, key), "INCR " + key,
                             evalsha(sha, key), "EXEC", "GET " + key}),
            (Texts{"+OK", "+QUEUED", "+QUEUED", "+QUEUED", "+QUEUED", "*4 *1 :1 *1 :0 :1 *1 :2",
                   "$1 2"}));
  const auto third = load(client, "return{redis.call('INCRBY',KEYS[1],10)}");
  flush(0);
  EXPECT_EQ(ask_all(client, {"WATCH " + key, "MULTI", "INCR " + key, evalsha(third, key), "EXEC"}),
            (Texts{"+OK", "+OK", "+QUEUED", "+QUEUED", "*2 :3 *1 :13"}));
}

TEST_F(Scripts, ThatAServerLosesInATransactionAreBroughtToTheNext) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  const auto key = proxy.key_at(0);
  const std::vector<std::string> transaction{"MULTI", evalsha(sha, key), "EXEC"};
  EXPECT_EQ(ask_all(client, transaction)[2], "*1 *1 :1");
  flush(0);
  EXPECT_EQ(ask_all(client, transaction)[2], "*1 " + no_script);
  EXPECT_EQ(ask_all(client, transaction)[2], "*1 *1 :2");
}

TEST(LostScripts, NothingIsDoneWhereTheyCannotBeBrought) {
  RedisServer server;
  VirtualClock clock;
  ProxyUnderTest proxy{{server.port()}, {"timeout: 200"}, {}, clock};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  ASSERT_EQ(ask_all(client, {"MULTI", "INCR k"}), (Texts{"+OK", "+QUEUED"}));
  server.stop();
  EXPECT_EQ(ask_as_time_passes(client, evalsha(sha, "k"), proxy).substr(0, 5), "-ERR ");
  client.send(request("EXEC") + request("PING"));
  EXPECT_EQ(text_of(client.read()).substr(0, 5), "-EXEC");
  EXPECT_EQ(text_of(client.read()), "+PONG");
  server.cont();
}

TEST(LostScripts, TheProxyMayEndWhileItBringsOne) {
  RedisServer server;
  {
    ProxyUnderTest proxy{{server.port()}};
    PlainClient client{proxy.port()};
    const auto sha = load(client, increment);
    ASSERT_EQ(ask_all(client, {"MULTI", "INCR k"}), (Texts{"+OK", "+QUEUED"}));
    server.stop();
    client.send(request(evalsha(sha, "k")) + request("EXEC"));
    ASSERT_TRUE(comes_true([&] { return totals(proxy, 0).out_queue == 1; }));
  }
  server.cont();
  EXPECT_EQ(text_of(PlainClient{server.port()}.command({"EXISTS", "k"})), ":0");
}

TEST_F(Scripts, AreRememberedForAllWorkers) {
  ProxyUnderTest proxy{ports(), {}, {"workers: 2"}};
  PlainClient client{proxy.port()};
  const auto sha = load(client, "return(7)");
  flush(0);
  flush(1);
  for (int i = 0; i < 8; ++i) {
    PlainClient other{proxy.port()};
    EXPECT_EQ(ask(other, evalsha(sha, proxy.key_at(static_cast<std::size_t>(i % 2)))), ":7");
  }
}

TEST(LostScripts, AServerStartedAgainIsGivenThemBeforehand) {
  RedisServer one, other;
  ProxyUnderTest proxy{{one.port(), other.port()}};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  const auto key = proxy.key_at(0);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(ask_all(client, {evalsha(sha, key), "GET " + key, evalsha(sha, key), "GET " + key}),
              (Texts{"*1 :1", "$1 1", "*1 :2", "$1 2"}));
    one.restart(false);
    ASSERT_TRUE(comes_true([&] { return totals(proxy, 0).server_connections == 0; }));
  }
  EXPECT_EQ(totals(proxy).healed_scripts, 0);
}

TEST(LostScripts, AServerThatWasOutAtTheLoadIsGivenThemLater) {
  RedisServer one, other;
  ProxyUnderTest proxy{{one.port(), other.port()}};
  PlainClient client{proxy.port()};
  one.kill();
  const auto sha = load(client, increment);
  EXPECT_EQ(sha.size(), 40U) << sha;
  one.start();
  EXPECT_EQ(ask_all(client, {evalsha(sha, proxy.key_at(0)), "PING"}), (Texts{"*1 :1", "+PONG"}));
  one.kill();
  other.kill();
  ASSERT_TRUE(comes_true([&] { return totals(proxy, 1).server_connections == 0; }));
  EXPECT_EQ(load(client, increment).substr(0, 4), "ERR ");
}

TEST_F(Scripts, LibrariesOfFunctionsAreLoadedOnEveryServer) {
  ProxyUnderTest proxy{ports()};
  PlainClient client{proxy.port()};
  const std::string code =
      "#!lua name=counting\nredis.register_function('up', function(keys) return "
      "redis.call('INCR', keys[1]) end)";
  EXPECT_EQ(text_of(client.command({"FUNCTION", "LOAD", "REPLACE", code})), "$8 counting");
  for (std::size_t home = 0; home < 2; ++home)
    EXPECT_EQ(ask(client, "FCALL up 1 " + proxy.key_at(home)), ":1");
  for (std::size_t i = 0; i < 2; ++i) {
    auto server = direct(i);
    EXPECT_EQ(ask(server, "FUNCTION FLUSH"), "+OK");
  }
}

/// Each client counts its own key up, in pipelines of a script and a GET, while servers are flushed
/// all the time.
TEST_F(Scripts, KeepTheOrderOfSixteenClientsWhileServersAreFlushed) {
  ProxyUnderTest proxy{ports(), {"server_connections: 2"}, {"workers: 2"}};
  PlainClient client{proxy.port()};
  const auto sha = load(client, increment);
  std::atomic<bool> over{false};
  std::atomic<int> done{0}, unseen{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 16; ++number)
    threads.emplace_back([&, number] {
      PlainClient own{proxy.port()};
      const auto key = "counter" + std::to_string(number);
      int value = 0;
      for (int round = 0; round < 100; ++round) {
        const bool alone = round % 2 == 0;
        const auto replies = alone ? ask_all(own, {evalsha(sha, key)})
                                   : ask_all(own, {evalsha(sha, key), "GET " + key});
        if (replies[0] == no_script)
          ++unseen;
        else
          EXPECT_EQ(replies[0], "*1 :" + std::to_string(++value));
        if (!alone) {
          const auto digits = std::to_string(value);
          EXPECT_EQ(replies[1], "$" + std::to_string(digits.size()) + " " + digits);
        }
        ++done;
      }
    });
  std::thread flusher{[&] {
    for (std::size_t i = 0; !over; ++i) {
      flush(i % 2);
      std::this_thread::sleep_for(std::chrono::milliseconds{3});
    }
  }};
  for (auto& thread : threads) thread.join();
  over = true;
  flusher.join();
  EXPECT_EQ(done, 1600);
  EXPECT_GT(totals(proxy).healed_scripts, 0);
  EXPECT_LT(unseen, 800);
}

}  // namespace
}  // namespace sluice::test
