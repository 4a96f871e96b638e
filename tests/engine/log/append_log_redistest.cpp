// The folder is Redis's own: a real redis-server loads ours, and we load its.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "engine/embedded_store.hpp"
#include "engine/log/dump.hpp"
#include "support/plain_client.hpp"
#include "support/redis_server.hpp"

namespace sluice::engine {
namespace {

using sluice::test::PlainClient;
using sluice::test::RedisServer;
using sluice::test::TempDir;
using test::Dump;
using namespace std::string_literals;

template <class Run>
void fill_streams(const Run& run) {
  for (int i = 1; i <= 150; ++i)
    run({"XADD", "stream", "1700000000000-" + std::to_string(i), "f", "v", "g", ""});
  run({"XADD", "stream", "*", "other", "fields"});
  run({"XDEL", "stream", "1700000000000-7"});
  run({"XTRIM", "stream", "MAXLEN", "140"});
  run({"XGROUP", "CREATE", "stream", "group", "0"});
  run({"XREADGROUP", "GROUP", "group", "first", "COUNT", "5", "STREAMS", "stream", ">"});
  run({"XREADGROUP", "GROUP", "group", "second", "COUNT", "5", "STREAMS", "stream", ">"});
  run({"XACK", "stream", "group", "1700000000000-14"});
  run({"XCLAIM", "stream", "group", "second", "0", "1700000000000-12"});
  run({"XGROUP", "CREATECONSUMER", "stream", "group", "idle"});
  run({"XGROUP", "CREATE", "stream", "late", "$"});
  run({"XGROUP", "CREATE", "empty:stream", "group", "0", "MKSTREAM"});
  run({"XADD", "trimmed", "5-5", "f", "v"});
  run({"XTRIM", "trimmed", "MAXLEN", "0"});
}

void fill(const test::Ask& ask) {
  const auto run = [&](std::initializer_list<std::string_view> words) {
    const Value reply = ask(std::span{words.begin(), words.size()});
    EXPECT_FALSE(reply.is_error()) << *words.begin() << ": " << to_string(reply);
  };
  run({"SET", "text", std::string_view{"a\0\r\nb", 5}});
  run({"SET", "empty", ""});
  run({"SET", "leased", "x", "PX", "100000000"});
  run({"INCRBYFLOAT", "float", "0.1"});
  run({"SETBIT", "bits", "100", "1"});
  run({"HSET", "hash", "f", "1", "g", ""});
  run({"EXPIRE", "hash", "100000"});
  run({"RPUSH", "list", "a", "b", "c"});
  run({"LPOP", "list"});
  run({"SADD", "set", "1", "2", "three"});
  run({"SPOP", "set"});
  run({"ZADD", "zset", "0.1", "a", "inf", "b", "-1e300", "c", "3", "d"});
  for (int i = 0; i < 300; ++i) {
    const auto number = std::to_string(i);
    run({"RPUSH", "long:list", number});
    run({"HSET", "long:hash", number, number});
    run({"SADD", "long:set", "m" + number});
    run({"ZADD", "long:zset", number, "m" + number});
  }
  run({"EVAL", "redis.call('SET', KEYS[1], ARGV[1]) redis.call('INCR', KEYS[2])", "2", "{s}a",
       "{s}b", "x"});
  fill_streams(run);
  run({"FUNCTION", "LOAD",
       "#!lua name=lib\nredis.register_function('put', function(keys, args) return "
       "redis.call('SET', keys[1], args[1]) end)"});
  run({"FCALL", "put", "1", "by:function", "x"});
  run({"GEOADD", "places", "13.361389", "38.115556", "a", "15.087269", "37.502669", "b"});
  run({"GEOSEARCHSTORE", "near", "places", "FROMLONLAT", "15", "37", "BYRADIUS", "99", "km"});
  run({"GEORADIUS", "places", "15", "37", "300", "km", "STOREDIST", "distances"});
  run({"PFADD", "counted", "a", "b", "c"});
  for (int i = 0; i < 3000; ++i) run({"PFADD", "counted:many", std::to_string(i)});
  run({"PFMERGE", "counted:all", "counted", "counted:many"});
  run({"SET", "gone", "x"});
  run({"DEL", "gone"});
  run({"RENAME", "text", "renamed"});
  run({"COPY", "list", "copied"});
}

test::Ask asking(Store& store) {
  return [&](std::span<const std::string_view> words) { return store.run(words).get(); };
}
test::Ask asking(PlainClient& client) {
  return [&](std::span<const std::string_view> words) { return client.command(words); };
}

/// What a redis-server shows that has loaded `folder`.
Dump loaded_by_redis(const std::string& folder) {
  const RedisServer server{{"dir " + folder, "appendonly yes", "aof-load-truncated no"}};
  PlainClient client{server.port()};
  return test::dump(asking(client));
}

std::string copy_of(const TempDir& folder, const TempDir& into) {
  std::filesystem::copy(folder.path(), into.path(), std::filesystem::copy_options::recursive);
  return into.str();
}

TEST(AppendLogAndRedis, E11_TheFolderOfAServerThatRunsIsRefused) {
  for (const char* const kept : {"appendonly yes", "save 3600 1"}) {
    const TempDir folder;
    {
      const RedisServer server{{"dir " + folder.str(), kept}};
      PlainClient client{server.port()};
      client.command({"SET", "a", "1"});
      client.command({"SAVE"});
      try {
        open_embedded({.path = folder.str()});
        ADD_FAILURE() << "both write: " << kept;
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::in_use) << error.message();
        EXPECT_NE(error.message().find("redis-server, process"), std::string::npos);
      }
    }
    EXPECT_EQ(open_embedded({.path = folder.str()})->run({"GET", "a"}).get(),
              Value::bulk_string("1"));
  }
}

TEST(AppendLogAndRedis, ARealServerLoadsOurFolder) {
  const TempDir folder;
  const auto store = open_embedded({.path = folder.str(), .fsync = Fsync::never});
  fill(asking(*store));
  const TempDir copy;
  EXPECT_EQ(test::difference(loaded_by_redis(copy_of(folder, copy)), test::dump(*store)), "");
}

TEST(AppendLogAndRedis, ARealServerLoadsOurFolderAfterARewrite) {
  const TempDir folder;
  auto store = open_embedded({.path = folder.str(), .fsync = Fsync::never});
  fill(asking(*store));
  store->rewrite();
  store->run({"SET", "after", "1"}).get();
  store->run({"RPUSH", "list", "z"}).get();
  const auto before = test::dump(*store);
  store.reset();
  store = open_embedded({.path = folder.str(), .fsync = Fsync::never});
  EXPECT_EQ(test::difference(test::dump(*store), before), "");
  const TempDir copy;
  EXPECT_EQ(test::difference(loaded_by_redis(copy_of(folder, copy)), test::dump(*store)), "");
}

/// Lets a server fill a folder.
void write_by_redis(const TempDir& folder, std::vector<std::string> config, bool rewrite) {
  config.insert(config.end(), {"dir " + folder.str(), "appendonly yes", "appendfsync no"});
  const RedisServer server{std::move(config)};
  PlainClient client{server.port()};
  fill(asking(client));
  if (rewrite) {
    client.command({"BGREWRITEAOF"});
    const auto running = [&] {
      const auto info = client.command({"INFO", "persistence"}).as_text();
      return info.find("aof_rewrite_in_progress:1") != std::string::npos ||
             info.find("aof_rewrite_scheduled:1") != std::string::npos;
    };
    while (running()) std::this_thread::yield();
    client.command({"SET", "after", "1"});
  }
}

TEST(AppendLogAndRedis, WeLoadTheFolderOfARealServer) {
  for (const auto& [preamble, rewrite] : {std::pair{"no", false}, {"no", true}, {"yes", true}}) {
    const TempDir folder;
    write_by_redis(folder, {"aof-use-rdb-preamble "s + preamble, "aof-timestamp-enabled yes"},
                   rewrite);
    const TempDir copy;
    const auto expected = loaded_by_redis(copy_of(folder, copy));
    EXPECT_GT(expected.size(), 10U);
    EXPECT_EQ(test::difference(test::dump(*open_embedded({.path = folder.str()})), expected), "")
        << (rewrite ? "rewritten, with a preamble: " : "plain ") << preamble;
  }
}

/// What a program says of a file, and its exit code.
std::pair<int, std::string> check_by_redis(const std::filesystem::path& manifest) {
  const TempDir folder;
  const auto said = folder.path() / "said";
  const int code = std::system(
      ("redis-check-aof " + manifest.string() + " > " + said.string() + " 2>&1").c_str());
  std::ifstream file{said};
  return {code, {std::istreambuf_iterator<char>{file}, {}}};
}

TEST(AppendLogAndRedis, E09_RedisAndItsCheckerTakeOurChecksumsForComments) {
  const TempDir folder;
  Dump ours;
  {
    const auto store = open_embedded({.path = folder.str(), .fsync = Fsync::never});
    fill(asking(*store));
    store->rewrite();
    store->run({"SET", "after", "1"}).get();
    ours = test::dump(*store);
  }
  const auto [code, said] = check_by_redis(folder.path() / "appendonlydir/appendonly.aof.manifest");
  EXPECT_EQ(code, 0) << said;
  EXPECT_EQ(test::difference(loaded_by_redis(folder.str()), ours), "");
}

TEST(AppendLogAndRedis, E09_ALogGoesFromHandToHand) {
  const TempDir folder;
  for (int round = 0; round < 3; ++round) {
    const auto number = std::to_string(round);
    {
      const auto store = open_embedded({.path = folder.str(), .fsync = Fsync::never});
      EXPECT_EQ(store->run({"DBSIZE"}).get(), Value::integer(2 * round));
      store->run({"SET", "ours" + number, "v"}).get();
    }
    const RedisServer server{{"dir " + folder.str(), "appendonly yes", "appendfsync always",
                              "aof-use-rdb-preamble no", "aof-load-truncated no"}};
    PlainClient client{server.port()};
    EXPECT_EQ(client.command({"DBSIZE"}).as_integer(), 2 * round + 1);
    client.command({"SET", "theirs" + number, "v"});
  }
}

/// A log as a server writes it, without checksums.
std::string written_by_redis() {
  const TempDir folder;
  const RedisServer server{{"dir " + folder.str(), "appendonly yes", "appendfsync always"}};
  PlainClient client{server.port()};
  client.command({"SET", "text", "*2\r\n$3\r\nDEL\r\n$4\r\nhash\r\n*1\r\n$8\r\nFLUSHALL\r\n"});
  client.command({"HSET", "hash", "f", "v"});
  client.command({"EVAL", "redis.call('INCR', 'n') redis.call('RPUSH', 'list', 'a')", "0"});
  client.command({"APPEND", "text", "more\r\n*1\r\n$4\r\nPING\r\n"});
  std::ifstream file{folder.path() / "appendonlydir/appendonly.aof.1.incr.aof"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(AppendLogAndRedis, E09_WhatRedisLoadsOfADamagedLogWeLoadOrRefuse) {
  const auto whole = written_by_redis();
  ASSERT_GT(whole.size(), 200U);
  std::mt19937 random{7};
  for (int i = 0; i < 24; ++i) {
    auto content = whole;
    if (i % 2 == 0)
      content.resize(1 + random() % whole.size());  // torn
    else
      content[random() % whole.size()] ^= static_cast<char>(1 << random() % 7);
    const TempDir ours;
    const TempDir theirs;
    for (const auto* folder : {&ours, &theirs})
      std::ofstream{folder->path() / "appendonly.aof", std::ios::binary} << content;
    Dump loaded;
    try {
      loaded = test::dump(*open_embedded({.path = ours.str()}));
    } catch (const Error& error) {
      EXPECT_NE(i % 2, 0) << "a torn log is loaded: " << error.message();
      EXPECT_NE(error.message().find("at byte"), std::string::npos) << error.message();
      continue;
    }
    const RedisServer server{{"dir " + theirs.str(), "appendonly yes"}};
    PlainClient client{server.port()};
    EXPECT_EQ(test::difference(loaded, test::dump(asking(client))), "") << i;
  }
}

TEST(AppendLogAndRedis, WeTakeOverTheSingleFileOfAnOldServer) {
  const TempDir folder;
  Dump expected;
  {
    const TempDir written;
    const auto store = open_embedded({.path = written.str(), .fsync = Fsync::never});
    fill(asking(*store));
    expected = test::dump(*store);
    std::filesystem::copy(written.path() / "appendonlydir/appendonly.aof.1.incr.aof",
                          folder.path() / "appendonly.aof");
  }
  {
    const auto store = open_embedded({.path = folder.str()});
    EXPECT_EQ(test::difference(test::dump(*store), expected), "");
    store->run({"SET", "after", "1"}).get();
    expected = test::dump(*store);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "appendonly.aof"));
  EXPECT_EQ(test::difference(test::dump(*open_embedded({.path = folder.str()})), expected), "");
  const TempDir copy;
  EXPECT_EQ(test::difference(loaded_by_redis(copy_of(folder, copy)), expected), "");
}

}  // namespace
}  // namespace sluice::engine
