// What a redis.conf says of a port, and its users.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "port/redis_conf.hpp"
#include "port/users.hpp"
#include "sluice/error.hpp"
#include "support/temp_dir.hpp"

namespace sluice::port {
namespace {

PortConf read(std::string_view text) {
  PortConf conf;
  read_redis_conf(text, "redis.conf", conf);
  return conf;
}

std::string refusal_of(std::string_view text) {
  try {
    read(text);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument);
    return error.message();
  }
}

TEST(RedisConf, TakesWhatItHas) {
  const auto conf = read(R"(# a comment

bind 127.0.0.1 -::1
PORT 7000
unixsocket "/run/my socket"
unixsocketperm 770
requirepass 'a b'
user ann on >x ~a:* +get
dir /var/lib/app
appendfsync always
auto-aof-rewrite-percentage 50
auto-aof-rewrite-min-size 1gb
maxclients 5
timeout 300
io-threads 4
notify-keyspace-events KEx
client-output-buffer-limit normal 1mb 0 0 pubsub 2mb 1mb 10
save ""
maxmemory 0
)");
  ASSERT_EQ(conf.port.listen.size(), 3U);
  EXPECT_EQ(conf.port.listen[0].endpoint.unix_path, "/run/my socket");
  EXPECT_EQ(net::to_string(conf.port.listen[1].endpoint), "127.0.0.1:7000");
  EXPECT_EQ(net::to_string(conf.port.listen[2].endpoint), "[::1]:7000");
  EXPECT_EQ(conf.port.unix_permissions, 0770U);
  EXPECT_EQ(conf.port.password, "a b");
  EXPECT_EQ(conf.port.users.size(), 1U);
  EXPECT_EQ(conf.engine.path, "/var/lib/app");
  EXPECT_EQ(conf.engine.fsync, engine::Fsync::always);
  EXPECT_EQ(conf.engine.rewrite_growth_percent, 50U);
  EXPECT_EQ(conf.engine.rewrite_above_bytes, std::uint64_t{1} << 30);
  EXPECT_EQ(conf.port.most_clients, 5U);
  EXPECT_EQ(conf.port.idle_timeout, std::chrono::seconds{300});
  EXPECT_EQ(conf.port.threads, 4U);
  EXPECT_EQ(conf.port.of_clients.hard, std::size_t{1} << 20);
  EXPECT_EQ(conf.port.of_listeners.patience, std::chrono::seconds{10});
  EXPECT_TRUE(conf.remarks.empty()) << conf.remarks.front();
}

TEST(RedisConf, WithoutALogTheDataAreInMemory) {
  EXPECT_EQ(read("dir /x\nappendonly no\n").engine.path, "");
  EXPECT_EQ(read("dir /x\n").engine.path, "/x");
}

TEST(RedisConf, TlsHasAPortOfItsOwn) {
  const auto conf = read("port 0\ntls-port 6380\ntls-cert-file c\ntls-key-file k\n");
  ASSERT_EQ(conf.port.listen.size(), 1U);
  EXPECT_TRUE(conf.port.listen[0].tls);
  EXPECT_EQ(conf.port.listen[0].endpoint.port, 6380);
}

TEST(RedisConf, WhatWouldChangeWhatAUserReliesOnIsRefused) {
  struct Row {
    std::string_view line, says;
  };
  for (const auto& [line, says] :
       std::vector<Row>{{"save 3600 1", "writes no snapshots"},
                        {"maxmemory 1gb", "evicts no keys"},
                        {"maxmemory-policy allkeys-lru", "evicts no keys"},
                        {"replicaof 10.0.0.1 6379", "no replica"},
                        {"cluster-enabled yes", "no node of a cluster"},
                        {"databases 17", "1 to 16"},
                        {"port 70000", "0 to 65535"},
                        {"io-threads zero", "is no number"},
                        {"appendonly perhaps", "neither yes nor no"},
                        {"appendfsync sometimes", "none of always"},
                        {"maxmemory 12qb", "is no size"},
                        {"auto-aof-rewrite-min-size 99999999999gb", "is no size"},
                        {"requirepass \"open", "a quote is not closed"},
                        {"requirepass", "takes one word"},
                        {"unixsocketperm 999", "is no mode"},
                        {"notify-keyspace-events Kq", "the letters are"},
                        {"client-output-buffer-limit pubsub 1mb", "takes four words"},
                        {"client-output-buffer-limit others 1 1 1", "no class of clients"},
                        {"aclfile /nowhere/at/all", "cannot be read"}}) {
    const auto refusal = refusal_of(fmt::format("\n{}\n", line));
    EXPECT_TRUE(refusal.starts_with("redis.conf:2: ")) << refusal;
    EXPECT_NE(refusal.find(says), std::string::npos) << line << ": " << refusal;
  }
}

TEST(RedisConf, WhatHasNoEffectIsNamedWithItsLine) {
  const auto conf = read("rdbcompression yes\n\nsome-thing 1\n");
  ASSERT_EQ(conf.remarks.size(), 2U);
  EXPECT_EQ(conf.remarks[0], "redis.conf:1: 'rdbcompression' has no effect here");
  EXPECT_EQ(conf.remarks[1], "redis.conf:3: 'some-thing' is not known, and has no effect");
}

/// Debian's own file, where it is installed: nothing in it is unknown.
TEST(RedisConf, TheFileOfADistributionIsKnown) {
  std::ifstream file{"/etc/redis/redis.conf"};
  if (!file) GTEST_SKIP() << "no redis.conf is installed";
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  for (const auto& remark : read(text).remarks)
    EXPECT_TRUE(remark.ends_with("has no effect here")) << remark;
}

TEST(PortUsers, WithoutALineAllMayDoAll) {
  Users users{{}, ""};
  ASSERT_NE(users.newcomer(), nullptr);
  EXPECT_EQ(users.newcomer()->rights, nullptr);
  Users closed{{}, "secret"};
  EXPECT_EQ(closed.newcomer(), nullptr);
  EXPECT_TRUE(closed.find("default")->is_admitted_by("secret"));
  EXPECT_FALSE(closed.find("default")->is_admitted_by("Secret"));
  EXPECT_FALSE(closed.find("default")->is_admitted_by(""));
}

TEST(PortUsers, LinesAreThoseOfRedis) {
  Users users{
      {"ann on >one >two ~a:* +get", "bob off nopass ~* +@all",
       "eve on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b ~* &* +@all",
       "default on nopass ~x +get"},
      "ignored"};
  EXPECT_TRUE(users.find("ann")->is_admitted_by("one"));
  EXPECT_TRUE(users.find("ann")->is_admitted_by("two"));
  EXPECT_FALSE(users.find("ann")->is_admitted_by("three"));
  EXPECT_FALSE(users.find("bob")->is_admitted_by("")) << "a user that is off";
  EXPECT_TRUE(users.find("eve")->is_admitted_by("secret"));
  EXPECT_EQ(users.find("eve")->rights, nullptr) << "who may do all is not checked";
  EXPECT_NE(users.newcomer()->rights, nullptr);
  EXPECT_EQ(users.find("nobody"), nullptr);
}

TEST(PortUsers, BadLinesNameTheUserAndTheWord) {
  struct Row {
    std::vector<std::string> lines;
    std::string_view says;
  };
  for (const auto& [lines, says] : std::vector<Row>{{{""}, "without a name"},
                                                    {{"ann on", "ann off"}, "is named twice"},
                                                    {{"ann on #12"}, "SHA-256"},
                                                    {{"ann on +nothing"}, "+nothing"},
                                                    {{"ann on ~a %Z~b"}, "%Z~b"}}) {
    try {
      Users{lines, ""};
      ADD_FAILURE() << lines.front();
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(says), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace sluice::port
