#include "proxy/config/read.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "proxy/config/inspect.hpp"
#include "proxy/config/settings.hpp"
#include "sluice/error.hpp"
#include "support/matchers.hpp"

namespace sluice::proxy::config {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

/// A pool with these lines more, which is right without them.
std::string pool(const std::string& lines = "") {
  std::string text = "alpha:\n  listen: 127.0.0.1:22121\n";
  std::string line;
  for (const char c : lines) {
    line += c;
    if (c == '\n') text += "  " + std::exchange(line, "");
  }
  if (!line.empty()) text += "  " + line + '\n';
  return text + "  servers:\n   - 127.0.0.1:6379:1\n";
}

PoolSettings read_pool(const std::string& lines) { return read(pool(lines), "t.yml").pools.at(0); }

/// What is said of a file that is refused.
std::string refusal(const std::string& yaml) {
  try {
    read(yaml, "t.yml");
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::bad_argument);
    return std::string{error.message()};
  }
  return "it was taken";
}

TEST(ReadConfig, TakesAFileOfTwemproxyWhole) {
  const auto config = read(R"(
# two pools
beta:
  listen: /tmp/beta.sock 0660
  servers:
   - /tmp/redis.sock:3 unix
   - "[::1]:6380:2"
alpha:
  listen: 0.0.0.0:22121
  hash: murmur
  hash_tag: "{}"
  distribution: modula
  timeout: 400
  backlog: 1024
  client_connections: 10
  tcpkeepalive: true
  preconnect: true
  redis: true
  redis_auth: secret
  redis_db: 3
  server_connections: 2
  auto_eject_hosts: true
  server_retry_timeout: 2000
  server_failure_limit: 1
  servers:
   - cache.example:11211:1
   - 127.0.0.1:6379:1
   - 127.0.0.1:6378:5 first
)",
                           "t.yml");
  ASSERT_EQ(config.pools.size(), 2U);
  EXPECT_EQ(config.pools[0].name, "beta");  // the shorter name first
  const auto& beta = config.pools[0];
  EXPECT_EQ(beta.listen.endpoint.unix_path, "/tmp/beta.sock");
  EXPECT_EQ(beta.listen.permissions, 0660U);
  EXPECT_EQ(beta.servers.at(0).name, "unix");
  EXPECT_EQ(beta.servers.at(0).endpoint.unix_path, "/tmp/redis.sock");
  EXPECT_EQ(beta.servers.at(0).weight, 3U);
  EXPECT_EQ(beta.servers.at(1).endpoint.host, "::1");
  EXPECT_EQ(beta.servers.at(1).name, "[::1]:6380");

  const auto& alpha = config.pools[1];
  EXPECT_EQ(alpha.hash, Hash::murmur);
  EXPECT_EQ(alpha.hash_tag, (HashTag{'{', '}'}));
  EXPECT_EQ(alpha.distribution, Distribution::modula);
  EXPECT_EQ(alpha.timeout, 400ms);
  EXPECT_EQ(alpha.backlog, 1024);
  EXPECT_EQ(alpha.client_connections, 10U);
  EXPECT_TRUE(alpha.tcpkeepalive);
  EXPECT_TRUE(alpha.preconnect);
  EXPECT_TRUE(alpha.redis);
  EXPECT_EQ(alpha.redis_auth, "secret");
  EXPECT_EQ(alpha.redis_db, 3);
  EXPECT_EQ(alpha.server_connections, 2U);
  EXPECT_TRUE(alpha.auto_eject_hosts);
  EXPECT_EQ(alpha.server_retry_timeout, 2000ms);
  EXPECT_EQ(alpha.server_failure_limit, 1U);
  ASSERT_EQ(alpha.servers.size(), 3U);  // sorted: length of the name, then bytes
  EXPECT_EQ(alpha.servers[0].name, "first");
  EXPECT_EQ(alpha.servers[0].weight, 5U);
  EXPECT_EQ(alpha.servers[0].place.position, 2U);
  EXPECT_EQ(alpha.servers[1].name, "cache.example");  // as libmemcached: 11211 is left out
  EXPECT_EQ(alpha.servers[2].name, "127.0.0.1:6379");
}

/// Seen in the statistics of nutcracker 0.5.0.
TEST(ReadConfig, AServerWithoutANameIsNamedAsTwemproxyNamesIt) {
  const auto name = [](const std::string& server) {
    return read("a:\n  listen: h:1\n  servers:\n   - " + server + "\n", "t.yml")
        .pools.at(0)
        .servers.at(0)
        .name;
  };
  EXPECT_EQ(name("h:6379:2"), "h:6379");
  EXPECT_EQ(name("h:11211:2"), "h");
  EXPECT_EQ(name("h:11211:2 x"), "x");
  EXPECT_EQ(name("/tmp/r.sock:2"), "/tmp/r.sock:");
  EXPECT_EQ(name("/tmp/r.sock:2 x"), "x");
  EXPECT_EQ(name("':6379:1'"), ":6379");
}

TEST(ReadConfig, DefaultsAreThoseOfTheTable) {
  const auto read = read_pool("");
  auto expected = PoolSettings{};
  expected.name = "alpha";
  expected.listen = read.listen;
  expected.servers = read.servers;
  EXPECT_EQ(read, expected);
  const auto check = []<class Target>(const Target& by_default) {
    ASSERT_FALSE(settings_of<Target>().empty());
    for (const auto& setting : settings_of<Target>())
      EXPECT_EQ(setting.text(by_default), setting.default_text) << setting.name;
  };
  check(PoolSettings{});
  check(ProcessSettings{});
  check(TlsSettings{});
  check(UserSettings{});
}

TEST(ReadConfig, TakesOurSettingsAsListsAndMaps) {
  const auto settings = read_pool(R"(redis: true
on_failure: fail
client_idle_timeout: 5m
resolve_interval: 1500
request_size_limit: 16MB
key_bytes: arm
allow: [flushall, dbsize]
listen_tls:
  certificate: /etc/c.pem
  key: /etc/k.pem
server_tls: true
users:
  - name: reader
    password: r
    read_only: true
  - {name: writer, password: w}
  - name: app
    password: a
    acl: +@read -@dangerous ~app:* %R~shared:* &news)");
  EXPECT_EQ(settings.on_failure, OnFailure::fail);
  EXPECT_EQ(settings.client_idle_timeout, 5min);
  EXPECT_EQ(settings.resolve_interval, 1500ms);
  EXPECT_EQ(settings.request_size_limit, 16U << 20);
  EXPECT_EQ(settings.key_bytes, CharSign::is_unsigned);
  EXPECT_EQ(settings.allow, (std::vector<std::string>{"flushall", "dbsize"}));
  EXPECT_TRUE(settings.listen_tls.on);
  EXPECT_EQ(settings.listen_tls.certificate, "/etc/c.pem");
  EXPECT_TRUE(settings.server_tls.on);
  ASSERT_EQ(settings.users.size(), 3U);
  EXPECT_TRUE(settings.users[0].read_only);
  EXPECT_EQ(settings.users[1].password, "w");
  EXPECT_EQ(settings.users[2].acl, "+@read -@dangerous ~app:* %R~shared:* &news");
}

TEST(ReadConfig, TheProcessHasAMapOfItsOwn) {
  const auto config =
      read("sluice:\n  workers: 4\n  slow_log_threshold: 500us\n" + pool(), "t.yml");
  EXPECT_EQ(config.process.workers, 4U);
  EXPECT_EQ(config.process.slow_log_threshold, 500us);
  EXPECT_EQ(config.pools.size(), 1U);
}

TEST(ReadConfig, APoolMayBeNamedSluice) {
  auto yaml = pool();
  yaml.replace(0, 5, "sluice");
  EXPECT_EQ(read(yaml, "t.yml").pools.at(0).name, "sluice");
}

TEST(ReadConfig, WhatOnlyMovedInTheFileIsEqual) {
  EXPECT_EQ(read("\n\n# moved\n" + pool(), "t.yml"), read(pool(), "t.yml"));
  EXPECT_NE(read(pool("timeout: 1"), "t.yml"), read(pool(), "t.yml"));
}

TEST(ReadConfig, WordsThatYamlReadsAsNullAreText) {
  EXPECT_EQ(read_pool("redis: true\nredis_auth: null").redis_auth, "null");
  EXPECT_EQ(read_pool("redis: true\nredis_auth: ~").redis_auth, "~");
  EXPECT_EQ(read_pool("server_user:").server_user, "");
  EXPECT_THAT(refusal(pool("redis: true\nredis_auth:")), HasSubstr("remove the line"));
  EXPECT_EQ(read_pool("redis: true\nredis_auth: 'null'").redis_auth, "null");
}

struct Wrong {
  std::string yaml;
  std::string said;
};

TEST(ReadConfig, SaysWhereAndWhatIsWrong) {
  const std::vector<Wrong> all{
      {pool("timeout: -1"),
       "t.yml:3: pool 'alpha': timeout: '-1' is not right here; write a number"},
      {pool("timeout: 30s"), "timeout: '30s' is not right"},
      {pool("timeout: 99999999999"), "from 0 to 2147483647"},
      {pool("redis: yes"),
       "t.yml:3: pool 'alpha': redis: 'yes' is not right here; write true or false"},
      {pool("tiemout: 1"), "'tiemout' is no setting; did you mean 'timeout'?"},
      {pool("frobnicate: 1"), "'frobnicate' is no setting"},
      {pool("hash: md4"), "one of one_at_a_time, md5,"},
      {pool("distribution: Ketama"), "one of ketama, modula, random"},
      {pool("hash_tag: '{'"), "two characters"},
      {pool("timeout: 1\ntimeout: 2"), "t.yml:4: pool 'alpha': 'timeout' is there twice"},
      {pool("listen: 127.0.0.1:1"), "'listen' is there twice"},
      {pool("server_connections: 0"), "from 1 to"},
      {pool("redis_auth: x"), "memcached knows none"},
      {pool("redis: [true]"), "redis: a list or map is not right here"},
      {pool("listen_tls: {certificate: c}"), "needs a certificate and its key"},
      {pool("listen_tls: {cert: c}"), "listen_tls: 'cert' is no setting"},
      {pool("redis: true\nusers: [{name: a}]"), "a name and a password"},
      {pool("redis: true\nusers: [{name: a, password: b}, {name: a, password: c}]"), "twice"},
      {pool(
           "redis: true\nusers:\n - {name: a, password: b}\n - {name: u, password: b, acl: +gett}"),
       "t.yml:6: the user 'u' of the pool 'alpha': acl: '+gett' names no command; did you mean "
       "'get'?"},
      {pool("redis: true\nusers: [{name: u, password: b, acl: \" \"}]"),
       "acl: ' ' is not right here; write words like +@read ~app:*, or remove the line"},
      {pool("redis: true\nusers: [{name: u, password: b, acl: +my.get}]"), "names no command"},
      {pool() + pool(), "t.yml:5: the pools 'alpha' and 'alpha' both listen at 127.0.0.1:22121"},
      {pool() + "   - 127.0.0.1:6379:2\n",
       "t.yml:5: two servers of the pool 'alpha' have the name"},
      {pool() + "   - 127.0.0.1:6378\n", "t.yml:5: pool 'alpha': servers: "},
      {pool() + "   - 127.0.0.1:6378:0\n", "weight from 1"},
      {pool() + "   - 127.0.0.1:0:1\n", "from 1 to 65535"},
      {pool() + "   - 127.0.0.1:65536:1\n", "from 1 to 65535"},
      {pool() + "   - h:1:4000000000\n", "the weight '4000000000'"},
      {pool() + "   - h:1:2147483647\n   - g:1:2147483647\n   - i:1:2147483647\n", "add up to"},
      {"alpha:\n  listen: x\n  servers:\n   - h:1:1\n",
       "t.yml:2: pool 'alpha': listen: 'x' is no address"},
      {"alpha:\n  listen: /s 0999\n  servers:\n   - h:1:1\n", "up to 0777 in octal"},
      {"alpha:\n  listen: /s 01000\n  servers:\n   - h:1:1\n", "up to 0777 in octal"},
      {"alpha:\n  servers:\n   - h:1:1\n", "t.yml:1: the pool 'alpha' has no listen"},
      {"alpha:\n  listen: h:1\n", "has no servers"},
      {"alpha:\n  listen: h:1\n  servers: h:1:1\n",
       "a list of servers, each on a line after a dash"},
      {"alpha:\n", "t.yml:1: pool 'alpha': write settings here"},
      {"", "there is no pool"},
      {"sluice:\n  workers: 2\n", "there is no pool"},
      {"sluice:\n  wokers: 2\n" + pool(), "did you mean 'workers'?"},
      {"sluice:\n  workers: 0\n" + pool(), "from 1 to 1024"},
      {"- a\n- b\n", "write the name of a pool"},
      {"just text\n", "write the name of a pool"},
  };
  for (const auto& [yaml, said] : all) EXPECT_THAT(refusal(yaml), HasSubstr(said)) << yaml;
}

TEST(ReadConfig, RefusesTheYamlThatTwemproxyRefuses) {
  const std::vector<Wrong> all{
      {"---\n" + pool(), "t.yml:1: '---' is not allowed"},
      {pool() + "...\n", "'...' is not allowed"},
      {"%YAML 1.1\n" + pool(), "directive"},
      {pool("timeout: &t 5"), "t.yml:3: an anchor"},
      {pool("timeout: *t"), "anchor is not defined"},
      {pool("timeout: !!int 5"), "a tag"},
      {"alpha: {listen: 'h:1', servers: ['h:1:1']}\n", "on a line of its own"},
      {pool("hash_tag: {}"), "a list or map is not right here"},
      {"alpha:\n\tlisten: h:1\n", "t.yml:2: this is not YAML"},
      {"alpha: [\n", "this is not YAML"},
      {pool("redis_auth: \"\x01\""), "byte 0x01 in column"},
      {pool("redis_auth: \xff"), "is not text in UTF-8"},
      {pool("redis_auth: \xed\xa0\x80"), "is not text in UTF-8"},
  };
  for (const auto& [yaml, said] : all) EXPECT_THAT(refusal(yaml), HasSubstr(said)) << yaml;
}

TEST(ReadConfig, ASmallFileCannotBecomeALargeTree) {
  std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char name = 'b'; name < 'j'; ++name) {
    const std::string before{static_cast<char>(name - 1)};
    laughs += std::string{name} + ": &" + name + " [*" + before + ", *" + before + "]\n";
  }
  EXPECT_THAT(refusal(laughs), StartsWith("t.yml:1: an anchor"));
  EXPECT_THAT(refusal("a:\n - - - - - - - - b\n"), HasSubstr("nested more than 8 deep"));
  EXPECT_THAT(refusal("a: " + std::string(100'000, '[')), StartsWith("t.yml:1: "));
  EXPECT_THAT(refusal(std::string((4U << 20) + 1, '#')), HasSubstr("more than 4194304 bytes"));
  std::string many = "a:\n";
  for (int i = 0; i < 200'001; ++i) many += " - x\n";
  EXPECT_THAT(refusal(many), HasSubstr("more than 200000 values"));
}

TEST(ReadConfig, SecretsAreNotInWhatIsSaid) {
  EXPECT_THAT(refusal(pool("redis_auth: hunter2")), Not(HasSubstr("hunter2")));
  EXPECT_THAT(refusal(pool("redis: true\nredis_auth: [hunter2]")), Not(HasSubstr("hunter2")));
  EXPECT_THAT(refusal(pool("redis: true\nredis_auth: hunter2\nredis_auth: hunter3")),
              Not(HasSubstr("hunter")));
}

TEST(LoadConfig, SaysThatAFileIsNotThere) {
  try {
    load("/nowhere/nutcracker.yml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(std::string{error.message()},
                HasSubstr("/nowhere/nutcracker.yml: the file cannot be read: No such file"));
  }
}

TEST(Frictions, U23_ABareNumberIsMillisecondsAndAUnitIsTakenAsItIsWritten) {
  const auto process = [](const std::string& line) {
    return read("sluice:\n  " + line + "\n" + pool(), "t.yml").process;
  };
  EXPECT_EQ(process("drain_timeout: 500").drain_timeout, 500ms);
  EXPECT_EQ(process("drain_timeout: 1.5s").drain_timeout, 1500ms);
  EXPECT_EQ(process("drain_timeout: 2M").drain_timeout, 2min);
  EXPECT_EQ(process("memory_limit: 32mb").memory_limit, std::size_t{32} << 20);
  EXPECT_EQ(process("memory_limit: 4096").memory_limit, 4096U);
  EXPECT_EQ(read_pool("timeout: 400").timeout, 400ms);
}

TEST(ReadAddress, HasAHostAndAPortOrIsAPath) {
  EXPECT_EQ(net::to_string(parse_address("[::1]:22")), "[::1]:22");
  EXPECT_EQ(net::to_string(parse_address("host:22")), "host:22");
  EXPECT_EQ(net::to_string(parse_address("*:22")), "0.0.0.0:22");
  EXPECT_EQ(net::to_string(parse_address("/a:b")), "/a:b");
  for (const auto* bad : {"", "host", "host:", "host:0", "host:x", "host:65536", "host:1 "})
    EXPECT_THROW(parse_address(bad), Error) << bad;
}

/// A file in which `setting` is this address, written as YAML.
std::string file_with(std::string_view setting, std::string_view address) {
  const auto quoted = fmt::format("\"{}\"", address);
  if (setting == "sentinels")
    return fmt::format(
        "a:\n  listen: h:1\n  redis: true\n  sentinels: [{}]\n  servers:\n   - h:2:1 shop\n",
        quoted);
  if (setting == "cluster")
    return fmt::format("a:\n  listen: h:1\n  redis: true\n  cluster: [{}]\n", quoted);
  if (setting == "listen") return fmt::format("a:\n  listen: {}\n  servers:\n   - h:1:1\n", quoted);
  if (setting == "servers")
    return fmt::format("a:\n  listen: h:1\n  servers:\n   - \"{}:1\"\n", address);
  return fmt::format("sluice:\n  {}: {}\n{}", setting, quoted, pool());
}

TEST(Deployments, R05_AddressesOfTheProxyAreAddresses) {
  constexpr std::string_view settings[] = {"sentinels", "cluster", "metrics",
                                           "admin",     "listen",  "servers"};
  // All settings refuse these.
  for (const std::string bad : {"127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536",
                                "127.0.0.1:-1", "127.0.0.1:x", "127.0.0.1: 26379", "[::1]", "::"})
    for (const auto setting : settings)
      EXPECT_THAT(refusal(file_with(setting, bad)), HasSubstr(fmt::format("'{}", bad))) << setting;
  // twemproxy takes these for `listen` and `servers`, whatever then comes of them.
  for (const std::string bad :
       {"127.0.0.1:26379:1", "h:26379:1", "h:1:26379:1", " 127.0.0.1:26379", "127.0.0.1 :26379",
        "a b:26379", "a\\tb:26379", "::1:26379", "[::1:26379", "::1]:26379", "[]:26379",
        "[h]:26379", "[127.0.0.1]:26379", "[::1]x:26379", "redis://h:26379", "u@h:26379",
        "h:1,g:26379", "h,g:26379", "h/0:26379"})
    for (const auto setting : settings)
      if (setting != "listen" && setting != "servers")
        EXPECT_THAT(refusal(file_with(setting, bad)), HasSubstr("write host:port"))
            << setting << ' ' << bad;
  // A machine that is asked has a name; one that listens may do so everywhere.
  for (const std::string any : {":26379", "*:26379"}) {
    for (const std::string setting : {"sentinels", "cluster"})
      EXPECT_THAT(refusal(file_with(setting, any)), HasSubstr("names no host")) << any;
    EXPECT_NO_THROW(read(file_with("metrics", any), "t.yml")) << any;
  }
  for (const std::string good :
       {"127.0.0.1:26379", "h:1", "h.example:65535", "under_score-1.x.:26379", "[::1]:26379",
        "[fe80::1%eth0]:26379", "[::ffff:10.0.0.1]:26379"})
    for (const auto setting : settings)
      EXPECT_NO_THROW(read(file_with(setting, good), "t.yml")) << setting << ' ' << good;
}

TEST(ReadConfig, X15_WhatWouldHaveNoEffectIsRefused) {
  const auto with = [](const std::string& lines) { return refusal(pool(lines)); };
  EXPECT_THAT(with("redis: true\ncompat: strict\nusers: [{name: u, password: p}]"),
              HasSubstr("with 'compat: strict' AUTH takes one password alone"));
  EXPECT_THAT(with("redis: true\nallow: [flushall, flushal]"),
              HasSubstr("'flushal' in allow of the pool 'alpha' is no command that is known here"));
  EXPECT_THAT(with("redis: true\nallow: [config gett]"), HasSubstr("'config gett'"));
  EXPECT_THAT(with("redis: true\nallow: [shutdown]"), HasSubstr("'shutdown' in allow"));
  EXPECT_THAT(with("allow: [flushall]"), HasSubstr("'flushall' in allow"));
  EXPECT_EQ(read_pool("compat: strict").compat, Compat::strict);
  for (const std::string right :
       {"redis: true\nallow: [flushall, config, Config Get, debug, lastsave, slowlog get]",
        "allow: [flush_all, stats, verbosity]"})
    EXPECT_NO_THROW(read(pool(right), "t.yml")) << right;
}

TEST(ReadConfig, X19_CommandsAreTaught) {
  const auto settings = read_pool("redis: true\ncommands:\n  MY.Get: key 1 read\n  MY.*: whole");
  EXPECT_EQ(settings.commands,
            (std::vector<CommandRule>{{"my.get", "key 1 read"}, {"my.*", "whole"}}));
  for (const auto* const rule :
       {"key 1", "keys 1 -1 2", "keys 2 5 1 read", "count 3", "key 1 count 2 blocking", "none",
        "behind KEYS read blocking", "whole read"})
    EXPECT_EQ(read_pool(fmt::format("redis: true\ncommands: {{x: {}}}", rule)).commands.at(0).text,
              rule);
  for (const auto* const rule :
       {"", "key", "key 0", "key 121", "key -1", "key 1 2", "keys 1 -1", "keys 1 0 1", "count",
        "behind", "write", "read key 1", "key 1 blocking read", "whole 1"})
    EXPECT_THAT(refusal(pool(fmt::format("redis: true\ncommands: {{x: '{}'}}", rule))),
                HasSubstr("where its keys are"))
        << rule;
  for (const auto* const name : {"'a b'", "a*b", "'a|b'", "'**'", "''"})
    EXPECT_THAT(refusal(pool(fmt::format("redis: true\ncommands: {{{}: key 1}}", name))),
                HasSubstr("is no name of a command"))
        << name;
  EXPECT_THAT(refusal(pool("redis: true\ncommands: {x: key 1, X: key 1}")), HasSubstr("twice"));
  EXPECT_THAT(refusal(pool("redis: true\ncommands: [x]")), HasSubstr("write a map"));
  EXPECT_THAT(refusal(pool("commands: {x: key 1}")), HasSubstr("redis: true"));
}

TEST(ReadConfig, RatesAreAmountsInATime) {
  const auto rate_of = [](const std::string& text) {
    return read_pool(fmt::format("rate_limit: {{per_address: {}}}", text)).rate_limit.per_address;
  };
  EXPECT_EQ(rate_of("1000/s"), (Rate{1000, 1s, 1000}));
  EXPECT_EQ(rate_of("60/m burst 7"), (Rate{60, 1min, 7}));
  EXPECT_EQ(rate_of("5/h"), (Rate{5, 1h, 5}));
  EXPECT_FALSE(rate_of("none")->holds());
  for (const auto* const bad : {"1000", "0/s", "-1/s", "1/d", "1/s burst", "1/s burst 0",
                                "1/s burst x", "1/s  burst 2", "1mb/s", "2000000000/s", "''"})
    EXPECT_THAT(refusal(pool(fmt::format("rate_limit: {{per_address: {}}}", bad))),
                HasSubstr("so many /s, /m or /h"))
        << bad;
  const auto bytes =
      read_pool("rate_limit: {bytes_per_address: 10mb/s burst 1gb}").rate_limit.bytes_per_address;
  EXPECT_EQ(bytes, (Rate{10 << 20, 1s, 1 << 30}));
  const auto settings =
      read_pool("redis: true\nusers: [{name: u, password: p, rate: 5/s, byte_rate: none}]");
  EXPECT_EQ(settings.users.at(0).rate, (Rate{5, 1s, 5}));
  EXPECT_THAT(refusal(pool("rate_limit: {action: delay}")), HasSubstr("it limits nothing"));
  EXPECT_THAT(refusal(pool("rate_limit: {per_user: 1/s}")), HasSubstr("memcached knows none"));
  EXPECT_THAT(refusal(pool("rate_limit: {per_usr: 1/s}")), HasSubstr("did you mean 'per_user'?"));
}

TEST(ReadConfig, D19_SentinelsHaveTheTlsOfServersUnlessTheyHaveTheirOwn) {
  const auto tls = [](const std::string& lines) {
    auto yaml = pool("redis: true\nsentinels: [s:1]\n" + lines);
    yaml.insert(yaml.size() - 1, " m");  // the name of the master
    return read(yaml, "t.yml").pools.at(0).tls_to_sentinels();
  };
  EXPECT_FALSE(tls("").on);
  EXPECT_EQ(tls("server_tls: {ca: x}").ca, "x");
  EXPECT_FALSE(tls("server_tls: true\nsentinel_tls: false").on);
  EXPECT_EQ(tls("server_tls: {ca: x}\nsentinel_tls: {ca: y}").ca, "y");
  EXPECT_TRUE(tls("sentinel_tls: true").on);
  EXPECT_THAT(refusal(pool("redis: true\nsentinel_tls: true")), HasSubstr("no sentinels"));
}

TEST(ReadConfig, ServersBehindSentinelsAreNamesOfMasters) {
  const auto pool = [](const std::string& settings, const std::string& server) {
    return "a:\n  listen: h:1\n" + settings + "  servers:\n   - " + server + "\n";
  };
  const std::string watched = "  redis: true\n  sentinels: [s1:26379, \"[::1]:26379\"]\n";
  const auto settings = read(pool(watched, "h:2:1 shop"), "t.yml").pools.at(0);
  EXPECT_EQ(settings.sentinels, (std::vector<std::string>{"s1:26379", "[::1]:26379"}));
  EXPECT_THAT(refusal(pool(watched, "h:2:1")), HasSubstr("'h:2' of the pool 'a' names no master"));
  for (const std::string name : {"a/b", "a:b", "/", "h:3", "h"})
    EXPECT_EQ(read(pool(watched, "h:2:1 " + name), "t.yml").pools.at(0).servers.at(0).name, name);
  EXPECT_THAT(refusal(pool(watched, "/r.sock:1")), HasSubstr("names no master"));
  EXPECT_THAT(refusal(pool("  sentinels: [s1:26379]\n", "h:2:1 shop")),
              HasSubstr("memcached knows none"));
  EXPECT_THAT(refusal(pool("  redis: true\n  sentinels: [s1]\n", "h:2:1 shop")),
              HasSubstr("write host:port"));
  EXPECT_THAT(refusal(pool("  redis: true\n  sentinels: [/s.sock]\n", "h:2:1 shop")),
              HasSubstr("is a path"));
  EXPECT_THAT(refusal(pool("  redis: true\n  sentinel_user: u\n", "h:2:1 shop")),
              HasSubstr("no sentinels"));
  const auto reads = read(pool(watched + "  read_from: replica\n", "h:2:1 shop"), "t.yml");
  EXPECT_EQ(reads.pools.at(0).read_from, ReadFrom::replica);
  EXPECT_THAT(refusal(pool("  redis: true\n  read_from: replica\n", "h:2:1 shop")),
              HasSubstr("only Sentinels or a cluster tell it of replicas"));
  EXPECT_THAT(refusal(pool(watched + "  read_from: replica\n  compat: strict\n", "h:2:1 shop")),
              HasSubstr("twemproxy does not know"));
  EXPECT_NE(refusal(pool(watched + "  read_from: slave\n", "h:2:1 shop")), "");
  EXPECT_NE(refusal(pool(watched + "  replica_max_lag: 99ms\n", "h:2:1 shop")), "");
}

TEST(ReadConfig, AClusterTellsItsNodesItself) {
  const auto pool = [](const std::string& more) {
    return "a:\n  listen: h:1\n  cluster: [c1:7000, \"[::1]:7001\"]\n" + more;
  };
  const auto config = read(pool("  redis: true\n"), "t.yml");
  EXPECT_EQ(config.pools.at(0).cluster, (std::vector<std::string>{"c1:7000", "[::1]:7001"}));
  EXPECT_EQ(read(describe(config), "t.yml"), config);
  const auto told = explain(config.pools.at(0), "{user}:1");
  EXPECT_EQ(told.slot, 5474);
  EXPECT_THAT(text_of(told), HasSubstr("the master of slot 5474"));
  EXPECT_THAT(refusal(pool("")), HasSubstr("memcached has no clusters"));
  for (const auto* const contradiction :
       {"servers:\n   - h:2:1", "sentinels: [s:26379]", "hash: md5", "hash_tag: \"{}\"",
        "distribution: modula", "key_bytes: arm", "auto_eject_hosts: true", "on_failure: fail",
        "redis_db: 1", "compat: strict"})
    EXPECT_THAT(refusal(pool(fmt::format("  redis: true\n  {}\n", contradiction))),
                HasSubstr("remove"))
        << contradiction;
  EXPECT_THAT(refusal("a:\n  listen: h:1\n  redis: true\n  cluster: [c1]\n"),
              HasSubstr("write host:port"));
  EXPECT_THAT(refusal("a:\n  listen: h:1\n  redis: true\n  cluster: [/c.sock]\n"),
              HasSubstr("is a path"));
  EXPECT_THAT(refusal("a:\n  listen: h:1\n  redis: true\n"), HasSubstr("has no servers"));
}

TEST(ReadConfig, AMirrorIsAnotherPoolOfItsKind) {
  const auto two = [](const std::string& first, const std::string& second) {
    return "a:\n  listen: h:1\n  redis: true\n" + first + "  servers:\n   - h:2:1\n" +
           "b:\n  listen: h:3\n" + second + "  servers:\n   - h:4:1\n";
  };
  const std::string to_b = "  mirror: {pool: b, sample: 1/10, compare: false}\n";
  const std::string redis = "  redis: true\n";
  EXPECT_EQ(read(two(to_b, redis), "t.yml").pools.at(0).mirror,
            (MirrorSettings{.pool = "b", .compare = false, .sample = 10}));
  EXPECT_THAT(refusal(two("  mirror: {pool: a}\n", redis)), HasSubstr("leads back to it"));
  EXPECT_THAT(refusal(two(to_b, redis + "  mirror: {pool: a}\n")), HasSubstr("leads back to it"));
  EXPECT_THAT(refusal(two("  mirror: {pool: c}\n", redis)), HasSubstr("is no pool of this file"));
  EXPECT_THAT(refusal(two(to_b, "")), HasSubstr("speaks another protocol"));
  EXPECT_THAT(refusal(two(to_b, redis + "  compat: strict\n")), HasSubstr("compat: strict"));
  EXPECT_THAT(refusal(two("  compat: strict\n" + to_b, redis)), HasSubstr("compat: strict"));
  EXPECT_THAT(refusal("a:\n  listen: h:1\n  redis: true\n" + to_b +
                      "  servers:\n   - h:2:1\nb:\n  listen: h:3\n  redis: true\n  servers:\n"
                      "   - h:4:1\n   - h:2:1 same\n"),
              HasSubstr("its writes would be done twice"));
  EXPECT_THAT(refusal(two("  mirror: {queue: 4mb}\n", redis)),
              HasSubstr("needs the name of a pool"));
  for (const auto* const bad : {"1", "0/1", "1/0", "2/3", "1/2000000"})
    EXPECT_THAT(refusal(two(fmt::format("  mirror: {{pool: b, sample: {}}}\n", bad), redis)),
                HasSubstr("1/1 to 1/1000000"))
        << bad;
}

}  // namespace
}  // namespace sluice::proxy::config
