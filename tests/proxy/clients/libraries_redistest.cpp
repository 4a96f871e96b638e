/// Client libraries, as they are installed, through the proxy and at an engine's port: each has a script in this folder.
/// A library that is not here is passed over (docs/testing.md says how to have those of node).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "port/port_under_test.hpp"
#include "proxy/support/memcached.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_program.hpp"
#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using Texts = std::vector<std::string>;

class Libraries : public testing::Test {
 protected:
  struct Outcome {
    int code;
    std::string output;
  };

  Outcome run(Texts argv, std::vector<std::pair<std::string, std::string>> environment = {}) {
    const auto output = directory_ / "output";
    if (std::getenv("NODE_PATH") == nullptr)
      environment.emplace_back("NODE_PATH", source_path("build/node/node_modules"));
    environment.emplace_back("PYTHONDONTWRITEBYTECODE", "1");
    argv.insert(argv.begin(), "env");  // tells by its exit code, too, that there is no such program
    Process process{argv,
                    {.directory = {}, .environment = std::move(environment), .output = output}};
    const int code = process.wait();
    std::ifstream file{output};
    return {code, {std::istreambuf_iterator<char>{file}, {}}};
  }

  /// Skips the test, unless `look` succeeds; else runs the script against a proxy with `pool`, or,
  /// where that is empty, at an engine's port.
  void try_out(const Texts& look, const std::string& interpreter, const std::string& script,
               const Texts& pool) {
    if (const auto looked = run(look); looked.code != 0)
      GTEST_SKIP() << "the library is not installed (docs/testing.md, \"Client libraries\"): "
                   << looked.output.substr(0, 300);
    if (pool.empty()) {
      const PortUnderTest port{{.users = {"default off", "ann on >sesame ~* &* +@all",
                                          "eve on >look ~* +@read +@connection"},
                                .threads = 2}};
      const auto ran = run({interpreter, source_path("tests/proxy/clients/" + script)},
                           {{"PORT", std::to_string(port.port())}});
      EXPECT_EQ(ran.code, 0) << ran.output;
      return;
    }
    const ProxyProgram proxy{pool, {.process = {"drain_timeout: 20000"}, .arguments = {}}};
    const auto ran = run({interpreter, source_path("tests/proxy/clients/" + script)},
                         {{"PORT", std::to_string(proxy.port())},
                          {"ADMIN", proxy.admin()},
                          {"CONFIG", proxy.config()}});
    EXPECT_EQ(ran.code, 0) << ran.output << proxy.log();
  }

  /// Debian's python3, wherever another one comes first in PATH.
  void try_python(const std::string& library, const std::string& script, const Texts& pool) {
    const std::string python = "/usr/bin/python3";
    try_out({python, "-c", "import " + library}, python, script, pool);
  }
  void try_node(const std::string& library, const std::string& script, const Texts& pool) {
    try_out({"node", "-e", fmt::format("require('{}')", library)}, "node", script, pool);
  }

  Texts redis() {
    // Named: where the scripts' keys are does not hang on free ports.
    return {"redis: true",
            "timeout: 10000",
            "users:",
            " - {name: ann, password: sesame}",
            " - {name: eve, password: look, read_only: true}",
            "servers:",
            fmt::format(" - 127.0.0.1:{}:1 one", first_.port()),
            fmt::format(" - 127.0.0.1:{}:1 two", second_.port())};
  }

  TempDir directory_;
  RedisServer first_, second_;
};

TEST_F(Libraries, RedisPy) { try_python("redis", "redis_py.py", redis()); }

TEST_F(Libraries, Pymemcache) {
  const Memcached first, second;
  auto lines = memcached_pool({first.port(), second.port()});
  lines.insert(lines.begin(), "timeout: 10000");
  try_python("pymemcache", "pymemcache_py.py", lines);
}

TEST_F(Libraries, IoRedis) { try_node("ioredis", "ioredis.cjs", redis()); }

TEST_F(Libraries, NodeRedis) { try_node("redis", "node_redis.cjs", redis()); }

using LibrariesAtAPort = Libraries;

TEST_F(LibrariesAtAPort, RedisPy) { try_python("redis", "redis_py.py", {}); }

TEST_F(LibrariesAtAPort, IoRedis) { try_node("ioredis", "ioredis.cjs", {}); }

TEST_F(LibrariesAtAPort, NodeRedis) { try_node("redis", "node_redis.cjs", {}); }

TEST_F(LibrariesAtAPort, BullMq) { try_node("bullmq", "bullmq.cjs", {}); }

}  // namespace
}  // namespace sluice::test
