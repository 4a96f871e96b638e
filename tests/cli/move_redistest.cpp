/// `sluice engine move`: all keys from one store to another, while programs run.
#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "cli/program.hpp"
#include "support/cluster_rig.hpp"
#include "support/comes_true.hpp"
#include "support/free_port.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::PlainClient;
using test::Process;
using test::Ran;
using test::RedisServer;
using Words = std::vector<std::string>;

const std::vector<std::string> with_debug{"enable-debug-command yes", "save \"\""};

/// The engine at a port, in memory.
struct EngineServer {
  std::uint16_t port = test::free_port();
  Process process{{test::built_path("sluice-engine"), "serve", "--memory", "--listen",
                   "127.0.0.1:" + std::to_string(port), "--io-threads", "2"},
                  {.directory = {}, .environment = {}, .output = "/dev/null"}};

  EngineServer() {
    EXPECT_TRUE(test::comes_true([&] {
      try {
        return PlainClient{port}.command({"PING"}).as_text() == "PONG";
      } catch (const std::system_error&) {
        return false;
      }
    }));
  }
  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port); }
};

/// Writes that make keys of all types, change and delete them.
class Writes {
 public:
  explicit Writes(unsigned seed, std::string prefix = {})
      : random_(seed), prefix_(std::move(prefix)) {}

  Words next() {
    const auto key = [&](std::string_view type) {
      return prefix_ + std::string{type} + std::to_string(random_() % 60);
    };
    const auto text = [&] { return std::string(random_() % 40, static_cast<char>(random_())); };
    const auto number = [&] { return std::to_string(random_() % 1000); };
    const auto member = [&] { return random_() % 2 ? number() : text(); };
    static constexpr std::string_view types[] = {"string", "list", "set", "hash", "zset", "stream"};
    const auto any = key(types[random_() % std::size(types)]);
    switch (random_() % 14) {
      case 0: return {"SET", key("string"), text()};
      case 1: return {"INCR", key("count")};
      case 2: return {"RPUSH", key("list"), text(), number()};
      case 3: return {"LPOP", key("list")};
      case 4: return {"SADD", key("set"), member(), member()};
      case 5: return {"SREM", key("set"), member()};
      case 6: return {"HSET", key("hash"), member(), text(), member(), number()};
      case 7: return {"HDEL", key("hash"), member()};
      case 8: return {"ZADD", key("zset"), random_() % 9 ? number() + ".1" : "-inf", member()};
      case 9: return {"XADD", key("stream"), "MAXLEN", "20", "*", text(), text()};
      case 10: return {"PEXPIRE", any, std::to_string(600'000 + random_() % 1000)};
      case 11: return {"PERSIST", any};
      case 12:
        return random_() % 4 ? Words{"SETBIT", key("string"), number(), "1"} : Words{"DEL", any};
      default: return group_write(key("stream"));
    }
  }

 private:
  /// Of most of them a server tells nobody.
  Words group_write(const std::string& stream) {
    switch (random_() % 4) {
      case 0: return {"XGROUP", "CREATE", stream, "group", "0", "MKSTREAM"};
      case 1:
        return {"XREADGROUP", "GROUP", "group", "c" + std::to_string(random_() % 3), "COUNT", "2",
                "STREAMS",    stream,  ">"};
      case 2: return {"XAUTOCLAIM", stream, "group", "c0", "0", "0", "COUNT", "3"};
      default:
        return {"XREADGROUP", "GROUP", "group",   "c1",   "NOACK",
                "COUNT",      "1",     "STREAMS", stream, ">"};
    }
  }

  std::mt19937 random_;
  std::string prefix_;
};

class MoveProgram : public testing::Test {
 protected:
  Process start(const std::string& source, const std::string& target, Words more = {}) {
    Words words{test::built_path("sluice-engine"), "--json", "move", source, target};
    words.insert(words.end(), more.begin(), more.end());
    output_ = folder_ / ("output" + std::to_string(++runs_));
    return Process{words, {.directory = folder_.path(), .environment = {}, .output = output_}};
  }
  Ran run(const std::string& source, const std::string& target, Words more = {}) {
    const int status = start(source, target, std::move(more)).wait();
    return {status, test::read_file(output_)};
  }
  std::string folder_url() const { return "embedded:" + (folder_ / "app").string(); }
  std::string output() const { return test::read_file(output_); }

  test::TempDir folder_;
  std::filesystem::path output_;
  int runs_ = 0;
};

void fill(PlainClient client, unsigned seed, int writes, bool in_cluster = false) {
  Writes next{seed};
  for (int i = 0; i < writes; ++i) {
    if (i % 100 == 0 && !in_cluster)
      client.command({"SELECT", std::to_string(i / 100 % 3 == 1 ? 5 : 0)});
    client.command(next.next());
  }
}

/// What a server has, by its own digest, with times and groups beside it.
std::string picture(std::uint16_t port) {
  PlainClient client{port};
  std::string text = to_string(client.command({"DEBUG", "DIGEST"}));
  for (const auto* const database : {"0", "5"}) {
    client.command({"SELECT", database});
    std::set<std::string> lines;
    for (const auto& key : client.command({"KEYS", "*"}).as_items()) {
      const auto& name = key.as_text();
      auto line = name + to_string(client.command({"PEXPIRETIME", name}));
      if (client.command({"TYPE", name}).as_text() == "stream") {
        line += to_string(client.command({"XINFO", "GROUPS", name}));
        line += to_string(client.command({"XPENDING", name, "group"}));
      }
      lines.insert(line);
    }
    for (const auto& line : lines) text += '\n' + line;
  }
  return text;
}

TEST_F(MoveProgram, MV01_ThereAndBackThroughEveryKindOfStore) {
  const RedisServer from{with_debug}, to{with_debug};
  const EngineServer engine;
  fill(PlainClient{from.port()}, 1, 3000);
  const Words stores{from.url(), engine.url(), folder_url(), to.url()};
  std::string digest;
  for (std::size_t i = 0; i + 1 < stores.size(); ++i) {
    const auto ran = run(stores[i], stores[i + 1], {"--compare-paused"});
    ASSERT_EQ(ran.status, 0) << ran.output;
    if (i > 0) EXPECT_EQ(ran.json().at("digest"), digest);
    digest = ran.json().at("digest");
  }
  EXPECT_EQ(picture(from.port()), picture(to.port()));
  EXPECT_EQ(PlainClient{to.port()}.command({"EXISTS", "sluice-move:source"}).as_integer(), 0);
}

/// Writers run until the move says that writes are paused; then nothing is acknowledged any more,
/// and the target has what was.
class Meanwhile : public MoveProgram {
 protected:
  void move_under_writers(const std::string& source, std::uint16_t port, const std::string& target,
                          std::uint16_t target_port) {
    fill(PlainClient{port}, 2, 3000);
    constexpr int writers = 3;
    std::atomic<bool> ends{false};
    std::atomic<std::int64_t> done[writers]{};
    std::vector<std::thread> threads;
    for (int number = 0; number < writers; ++number)
      threads.emplace_back([&, number] {
        PlainClient client{port};
        Writes next{static_cast<unsigned>(number), "w" + std::to_string(number) + ":"};
        const auto count = "count:" + std::to_string(number);
        while (!ends) {
          client.command(next.next());
          done[number] = client.command({"INCR", count}).as_integer();
        }
      });
    auto move = start(source, target, {"--hold", "60"});
    EXPECT_TRUE(
        test::comes_true([&] { return output().contains("stay paused") || !move.running(); }));
    ASSERT_TRUE(move.running()) << output();
    PlainClient there{target_port};
    for (int number = 0; number < writers; ++number)
      EXPECT_EQ(there.command({"GET", "count:" + std::to_string(number)}).as_text(),
                std::to_string(done[number].load()));
    EXPECT_EQ(PlainClient{port}.command({"DBSIZE"}), there.command({"DBSIZE"}));
    compare(port, target_port);
    move.terminate();
    EXPECT_EQ(move.wait(), 0) << output();
    EXPECT_TRUE(test::comes_true([&, at = done[0].load()] { return done[0] > at + 2; }));
    ends = true;
    for (auto& thread : threads) thread.join();
  }
  /// Also where a server has no digest of its own.
  static void compare(std::uint16_t one, std::uint16_t other) {
    PlainClient here{one}, there{other};
    for (const auto& item : here.command({"KEYS", "*"}).as_items()) {
      const auto& key = item.as_text();
      const auto type = here.command({"TYPE", key}).as_text();
      Words words{"GET", key};
      if (type == "list") words = {"LRANGE", key, "0", "-1"};
      if (type == "set") words = {"SORT_RO", key, "ALPHA"};
      if (type == "hash") words = {"HLEN", key};
      if (type == "zset") words = {"ZRANGE", key, "0", "-1"};
      if (type == "stream") words = {"XRANGE", key, "-", "+"};
      EXPECT_EQ(to_string(here.command(words)), to_string(there.command(words))) << key;
      if (type == "stream")
        EXPECT_EQ(to_string(here.command({"XPENDING", key, "group"})),
                  to_string(there.command({"XPENDING", key, "group"})))
            << key;
      EXPECT_EQ(here.command({"PEXPIRETIME", key}), there.command({"PEXPIRETIME", key})) << key;
    }
  }
};

TEST_F(Meanwhile, MV02_FromRedisToTheEngine) {
  const RedisServer redis;
  const EngineServer engine;
  move_under_writers(redis.url(), redis.port(), engine.url(), engine.port);
}

TEST_F(Meanwhile, MV03_FromTheEngineToRedis) {
  const RedisServer redis;
  const EngineServer engine;
  move_under_writers(engine.url(), engine.port, redis.url(), redis.port());
}

TEST_F(MoveProgram, MV04_KilledAtEachStepItIsRunAgain) {
  const RedisServer from{with_debug}, to{with_debug};
  PlainClient source{from.port()};
  fill(PlainClient{from.port()}, 3, 6000);
  Writes next{4};
  int killed = 0;
  for (auto after = 5ms; after < 400ms; after = after * 4 / 3) {
    auto move = start(from.url(), to.url(), {"--hold", "60"});
    if (move.wait_for(after)) break;
    move.kill();
    ++killed;
    if (output().contains("stay paused")) break;
    source.command({"CLIENT", "UNPAUSE"});  // it would end by itself
    for (int i = 0; i < 20; ++i) source.command(next.next());
  }
  EXPECT_GT(killed, 5);
  source.command({"CLIENT", "UNPAUSE"});
  PlainClient target{to.port()};  // killed when all was done: another move begins
  if (target.command({"EXISTS", "sluice-move:source"}).as_integer() == 0)
    target.command({"FLUSHALL"});
  const auto ran = run(from.url(), to.url(), {"--compare-paused"});
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_EQ(picture(from.port()), picture(to.port()));
}

TEST_F(MoveProgram, MV05_WhatCannotBeMovedIsNamed) {
  const RedisServer from, to;
  PlainClient source{from.port()}, target{to.port()};
  source.command({"MSET", "a1", "1", "b1", "2"});
  target.command({"ACL", "SETUSER", "some", "on", ">pw", "+@all", "~a*", "~sluice-move:*"});
  const auto limited = "redis://some:pw@127.0.0.1:" + std::to_string(to.port());
  auto ran = run(from.url(), limited);
  EXPECT_EQ(ran.status, 65) << ran.output;
  EXPECT_TRUE(ran.says("refused: 'b1' of database 0: NOPERM")) << ran.output;
  ran = run(to.url(), from.url());
  EXPECT_TRUE(ran.says("has keys already")) << ran.output;
  EXPECT_TRUE(run(to.url(), folder_url()).says("has not ended")) << "it is half of another";
  EXPECT_TRUE(run(from.url() + "/3", folder_url()).says("leave the database out"));
  EXPECT_TRUE(run("embedded:" + (folder_ / "none").string(), to.url()).says("there is no folder"));

  source.command({"ACL", "SETUSER", "quiet", "on", ">pw", "+@all", "-client|tracking", "~*", "&*"});
  const auto quiet = "redis://quiet:pw@127.0.0.1:" + std::to_string(from.port());
  EXPECT_TRUE(run(quiet, folder_url()).says("--still")) << output();
  ran = run(quiet, folder_url(), {"--still"});
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST_F(MoveProgram, MV06_ThroughACluster) {
  const RedisServer from{with_debug}, to{with_debug};
  test::ClusterRig cluster{{.masters = 3, .replicas = 0}};
  fill(PlainClient{from.port()}, 5, 2000, true);
  for (const auto& [source, target] :
       {std::pair{from.url(), cluster.url()}, std::pair{cluster.url(), to.url()}}) {
    const auto ran = run(source, target);
    ASSERT_EQ(ran.status, 0) << ran.output;
  }
  EXPECT_EQ(picture(from.port()), picture(to.port()));
  PlainClient other{from.port()};
  other.command({"SELECT", "3"});
  other.command({"SET", "k", "v"});
  const auto ran = run(from.url(), cluster.url(), {"--into-used"});
  EXPECT_TRUE(ran.says("database 3")) << ran.output;
}

}  // namespace
}  // namespace sluice
