/// Debian's tools for memcached (libmemcached) through the proxy, with two real memcached behind
/// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "proxy/support/memcached.hpp"
#include "proxy/support/nutcracker.hpp"
#include "proxy/support/proxy_under_test.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

class MemcachedTools : public testing::Test {
 protected:
  struct Outcome {
    int code;
    std::string output;
  };

  Outcome run(const std::string& tool, const std::vector<std::string>& words) {
    const auto output = directory_ / "output";
    std::vector<std::string> argv{tool, fmt::format("--servers=127.0.0.1:{}", proxy_.port())};
    argv.insert(argv.end(), words.begin(), words.end());
    Process process{argv, {.directory = directory_.path(), .environment = {}, .output = output}};
    const int code = process.wait();
    std::ifstream file{output};
    return {code, {std::istreambuf_iterator<char>{file}, {}}};
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream{directory_ / name} << text;
  }

  TempDir directory_;
  Memcached first_, second_;
  ProxyUnderTest proxy_{PoolLines{memcached_pool({first_.port(), second_.port()})}};
};

TEST_F(MemcachedTools, StoreFindTouchAndRemove) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) {  // some on each server
    names.push_back(fmt::format("file{}", i));
    write(names.back(), fmt::format("text of {}", i));
  }
  ASSERT_EQ(run("memccp", names).code, 0);
  for (int i = 0; i < 20; ++i) {
    const auto found = run("memccat", {names[static_cast<std::size_t>(i)]});
    EXPECT_EQ(found.code, 0);
    EXPECT_NE(found.output.find(fmt::format("text of {}", i)), std::string::npos) << found.output;
  }
  EXPECT_EQ(run("memcexist", {"file3"}).code, 0);
  EXPECT_EQ(run("memctouch", {"--expire=100", "file3"}).code, 0);
  EXPECT_EQ(run("memcrm", {"file3"}).code, 0);
  EXPECT_NE(run("memcexist", {"file3"}).code, 0);
  EXPECT_EQ(run("memcexist", {"file4"}).code, 0);
}

TEST_F(MemcachedTools, BinaryProtocolIsRefused) {
  write("file", "text");
  EXPECT_NE(run("memccp", {"--binary", "file"}).code, 0);
  EXPECT_NE(run("memcexist", {"file"}).code, 0) << "nothing was stored";
}

}  // namespace
}  // namespace sluice::test
