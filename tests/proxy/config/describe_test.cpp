#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "proxy/config/inspect.hpp"
#include "proxy/config/read.hpp"
#include "support/matchers.hpp"
#include "support/paths.hpp"

namespace sluice::proxy::config {
namespace {

using testing::HasSubstr;

TEST(Describe, WhatItWritesMeansTheSame) {
  const auto config = read(R"(
sluice:
  workers: 3
  metrics: 127.0.0.1:9100
  slow_log_threshold: 1500us
alpha:
  listen: /tmp/a b.sock 0600
  hash_tag: "\"'"
  timeout: 400
  redis: true
  distribution: modula
  compat: strict
  allow: [flushall, "config get"]
  commands: {MY.*: keys 1 -1 2 read, "*": key 1}
  server_tls: {ca: /etc/ca.pem, verify: false}
  client_idle_timeout: 90s
  rate_limit: {per_user: 60/m burst 100, per_address: none, bytes_per_address: 10mb/s,
    action: delay}
  request_size_limit: 3mb
  servers:
   - h:11211:1
   - h:6379:2 "x
   - /tmp/r.sock:3
   - a b:6379:1 named
'be ta:':
  listen: "*:2"
  mirror: {pool: third pool, reads: true, sample: 1/5, queue: 1mb}
  servers:
   - h:1:1
watched:
  listen: "*:4"
  redis: true
  sentinels: [s:1]
  server_tls: true
  sentinel_tls: false
  servers:
   - h:1:1 a/b
third pool:
  listen: "*:3"
  servers:
   - h:3:1
)",
                           "t.yml");
  const auto written = describe(config);
  EXPECT_EQ(read(written, "written.yml"), config) << written;
}

TEST(Describe, WritesRightsSoThatTheyAreReadAgain) {
  const auto config = read(
      "a:\n  listen: h:1\n  redis: true\n  servers:\n   - h:1:1\n"
      "  users: [{name: u, password: \"***\", acl: \"+@all ~\\\\[x]* %R~* &a\"}]\n",
      "t.yml");
  EXPECT_EQ(config.pools[0].users[0].acl, "+@all ~\\[x]* %R~* &a");
  EXPECT_EQ(read(describe(config), "written.yml"), config);
}

TEST(Describe, HidesSecrets) {
  const auto config = read(
      "a:\n  listen: h:1\n  redis: true\n  redis_auth: hunter2\n  server_password: hunter3\n"
      "  users: [{name: u, password: hunter4}]\n  servers:\n   - h:1:1\n",
      "t.yml");
  EXPECT_THAT(describe(config), Not(HasSubstr("hunter")));
  EXPECT_THAT(describe(config), HasSubstr("redis_auth: \"***\""));
}

TEST(Settings, TheTableOfTheDocumentationIsThisOne) {
  std::ifstream file{test::source_path("docs/proxy.md"), std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  EXPECT_THAT(text, HasSubstr(settings_as_markdown()))
      << "replace the tables of docs/proxy.md by `sluice proxy describe --markdown`";
}

}  // namespace
}  // namespace sluice::proxy::config
