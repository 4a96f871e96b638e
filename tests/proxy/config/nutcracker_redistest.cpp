// Files that `nutcracker -t` takes are taken, and files that it refuses are refused.
#include <gtest/gtest.h>

#include <fstream>

#include "proxy/config/read.hpp"
#include "sluice/error.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy::config {
namespace {

class Files {
 public:
  bool nutcracker_takes(const std::string& text) {
    write(text);
    return test::Process{
               {"nutcracker", "-t", "-c", path()},
               {.directory = folder_.path(), .environment = {}, .output = folder_ / "out"}}
               .wait() == 0;
  }
  bool we_take(const std::string& text) {
    write(text);
    try {
      check(path());
      return true;
    } catch (const Error&) {
      return false;
    }
  }

 private:
  void write(const std::string& text) const { std::ofstream{path(), std::ios::binary} << text; }
  std::string path() const { return (folder_ / "nutcracker.yml").string(); }

  test::TempDir folder_;
};

const std::string head = "a:\n  listen: 127.0.0.1:22121\n";
const std::string servers = "  servers:\n   - 127.0.0.1:6379:1\n";

std::string with(const std::string& line) { return head + "  " + line + "\n" + servers; }
std::string listening(const std::string& address) {
  return "a:\n  listen: " + address + "\n" + servers;
}
std::string served_by(const std::string& server) {
  return head + "  servers:\n   - " + server + "\n";
}

std::vector<std::string> files() {
  std::vector<std::string> all{"",
                               "# nothing\n",
                               "word\n",
                               "- a\n- b\n",
                               "a:\n",
                               head,
                               servers,
                               head + servers,
                               head + servers + "  timeout: 5\n",
                               head + "  servers:\n  - h:1:1\n",
                               "\xef\xbb\xbf" + head + servers,
                               "a:\r\n  listen: 127.0.0.1:22121\r\n  servers:\r\n   - h:1:1\r\n",
                               "---\n" + head + servers,
                               head + servers + "...\n",
                               head + servers + "---\n" + head + servers,
                               "%YAML 1.1\n" + head + servers,
                               "%x\n" + head + servers,
                               "a:\n\tlisten: h:1\n" + servers,
                               "a:\n  listen: 127.0.0.1:1\n servers:\n  - h:1:1\n",
                               head + servers + head + servers,
                               head + servers + "b:\n  listen: 127.0.0.1:22121\n" + servers,
                               head + servers + "a:\n  listen: 127.0.0.1:22122\n" + servers,
                               head + servers + "b:\n  listen: 127.0.0.1:22122\n" + servers,
                               "~:\n  listen: 127.0.0.1:1\n" + servers,
                               "'':\n  listen: 127.0.0.1:1\n" + servers,
                               "\xc3\xa9:\n  listen: 127.0.0.1:1\n" + servers,
                               "\xff:\n  listen: 127.0.0.1:1\n" + servers,
                               "a\x01:\n  listen: 127.0.0.1:1\n" + servers,
                               "a\x7f:\n  listen: 127.0.0.1:1\n" + servers,
                               "sluice:\n  listen: 127.0.0.1:1\n" + servers,
                               "{a: {listen: '127.0.0.1:1'}}\n",
                               "? a\n: listen: 127.0.0.1:1\n" + servers,
                               "a:\n  - listen\n",
                               head + "  servers: h:1:1\n",
                               head + "  servers: [h:1:1]\n",
                               head + servers + "   - 127.0.0.1:6379:2\n",
                               head + servers + "   - h:1:1\n",
                               head + servers + servers,
                               head + "  servers:\n",
                               head + "  servers:\n   - h:1:1\n   -\n",
                               head + "  servers:\n   - [h:1:1]\n",
                               head + "  servers:\n   - h: 1\n"};
  for (const auto* const line : {"timeout: 5",
                                 "timeout: 0",
                                 "timeout: -1",
                                 "timeout: +5",
                                 "timeout: 5 5",
                                 "timeout: 5ms",
                                 "timeout:",
                                 "timeout: '5'",
                                 "timeout: \"5\"",
                                 "timeout: 05",
                                 "timeout: 0x5",
                                 "timeout: 5.0",
                                 "timeout: 5 # five",
                                 "timeout: 5# five",
                                 "timeout: |\n    5",
                                 "timeout: |-\n    5",
                                 "timeout: >-\n    5",
                                 "timeout: &x 5",
                                 "timeout: *x",
                                 "timeout: !!int 5",
                                 "timeout: [5]",
                                 "timeout: {}",
                                 "timeout: 5\n  timeout: 5",
                                 "timeout:5",
                                 "Timeout: 5",
                                 "timeout : 5",
                                 "timeout: 2147483647",
                                 "'timeout': 5",
                                 "timeout: null",
                                 "<<: 5",
                                 "x:\n    y: 1",
                                 "hash: md5",
                                 "hash: MD5",
                                 "hash: crc32a",
                                 "hash: fnv1a_64",
                                 "hash: sha1",
                                 "hash:",
                                 "distribution: ketama",
                                 "distribution: modula",
                                 "distribution: random",
                                 "distribution: maglev",
                                 "hash_tag: '{}'",
                                 "hash_tag: {}",
                                 "hash_tag: '{'",
                                 "hash_tag: '{}}'",
                                 "hash_tag: ''",
                                 "hash_tag: $$",
                                 "hash_tag: \xc3\xa9",
                                 "backlog: 1",
                                 "backlog: x",
                                 "client_connections: 0",
                                 "client_connections: 5",
                                 "tcpkeepalive: true",
                                 "tcpkeepalive: 1",
                                 "preconnect: true",
                                 "preconnect: True",
                                 "preconnect: yes",
                                 "preconnect: 'true'",
                                 "redis: true",
                                 "redis: false",
                                 "redis: on",
                                 "redis: true\n  redis_auth: x",
                                 "redis: false\n  redis_auth: x",
                                 "redis_auth: x",
                                 "redis: true\n  redis_auth:",
                                 "redis: true\n  redis_auth: null",
                                 "redis_auth: x\n  redis: true",
                                 "redis: true\n  redis_db: 3",
                                 "redis_db: 3",
                                 "redis_db: -3",
                                 "server_connections: 0",
                                 "server_connections: 1",
                                 "server_connections: 100",
                                 "auto_eject_hosts: true",
                                 "auto_eject_hosts: tru",
                                 "server_retry_timeout: 0",
                                 "server_retry_timeout: x",
                                 "server_failure_limit: 0",
                                 "server_failure_limit: 1",
                                 "listen: 127.0.0.1:1",
                                 "frobnicate: 1",
                                 "workers: 1",
                                 "sluice: 1"})
    all.push_back(with(line));
  for (const auto* const address : {"127.0.0.1",
                                    "127.0.0.1:",
                                    ":1",
                                    "127.0.0.1:0",
                                    "127.0.0.1:65535",
                                    "127.0.0.1:65536",
                                    "127.0.0.1:x",
                                    "'*:1'",
                                    "0.0.0.0:1",
                                    "localhost:1",
                                    "no.such.host.invalid:1",
                                    "'::1:1'",
                                    "/tmp/sluice.sock",
                                    "/tmp/sluice.sock 0777",
                                    "/tmp/sluice.sock 777",
                                    "/tmp/sluice.sock 01000",
                                    "/tmp/sluice.sock 0",
                                    "x",
                                    "''",
                                    "/"})
    all.push_back(listening(address));
  all.push_back(listening("/" + std::string(106, 'x')));
  all.push_back(listening("/" + std::string(107, 'x')));
  all.push_back(listening("/" + std::string(120, 'x')));
  for (const auto* const server : {"h:1:1",
                                   "h:1:1 name",
                                   "h:1:1  name",
                                   "h:1:1 a b",
                                   "'h:1:1 '",
                                   "h:1",
                                   "h",
                                   "h:1:0",
                                   "h:1:-1",
                                   "h:1:x",
                                   "h:0:1",
                                   "h:65536:1",
                                   "h:x:1",
                                   ":1:1",
                                   "'::1:1:1'",
                                   "/tmp/a.sock:1",
                                   "/tmp/a.sock:1 name",
                                   "/tmp/a.sock",
                                   "/tmp/a.sock:0",
                                   "/tmp/a:b.sock:1",
                                   "h:1:2147483647",
                                   "h:11211:1",
                                   "h:1:1:1",
                                   "''",
                                   "' h:1:1'",
                                   "no.such.host.invalid:1:1"})
    all.push_back(served_by(server));
  return all;
}

TEST(BesideNutcracker, FilesAreTakenAndRefusedAlike) {
  Files files_of_test;
  std::size_t taken = 0;
  std::size_t refused = 0;
  for (const auto& file : files()) {
    const bool theirs = files_of_test.nutcracker_takes(file);
    EXPECT_EQ(files_of_test.we_take(file), theirs) << file;
    ++(theirs ? taken : refused);
  }
  EXPECT_GT(taken, 40U);
  EXPECT_GT(refused, 60U);
}

/// What nutcracker makes something else of than is written, we refuse; docs/proxy.md names each.
TEST(BesideNutcracker, WhatItMisreadsWeRefuse) {
  Files files_of_test;
  for (const auto& file :
       std::vector<std::string>{
           with("timeout: 99999999999"),        // wraps to another number
           served_by("h:1:4294967297"),         // weight 1
           listening("/tmp/sluice.sock abc"),   // no permissions
           listening("/tmp/sluice.sock 0999"),  // the digits before the first that is not octal
           "a:\n  listen:\n   - 127.0.0.1:1\n  servers: h:1:1\n"}) {  // a list where there is one
                                                                      // value
    EXPECT_TRUE(files_of_test.nutcracker_takes(file)) << file;
    EXPECT_FALSE(files_of_test.we_take(file)) << file;
  }
}

}  // namespace
}  // namespace sluice::proxy::config
