// Many clients that say nothing. A program of its own: it forks before it has threads.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "client.hpp"
#include "serving.hpp"
#include "support/process.hpp"
#include "support/sanitized.hpp"

namespace sluice::http {
namespace {

constexpr std::size_t clients = 10'000;
constexpr std::size_t of_an_address = 900;  // below the limit

/// Room for the clients and some more; false: this machine does not give it.
bool has_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max > clients + 500;
}

/// Bytes of its own that a process has in memory.
std::size_t memory_of(pid_t process) {
  std::size_t whole = 0, resident = 0, of_files = 0;
  std::ifstream{"/proc/" + std::to_string(process) + "/statm"} >> whole >> resident >> of_files;
  return (resident - of_files) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(HttpIdle, V40_TenThousandConnectionsTakeTwoKilobytesEach) {
  if (test::is_sanitized) GTEST_SKIP() << "a sanitizer's memory is another";
  if (!has_descriptors()) GTEST_SKIP() << "too few descriptors";
  auto port_of_server = make_pipe();
  auto end_of_server = make_pipe();
  test::Process server{[&] {
    end_of_server.write.close();
    Serving serving{{.loops = 1}};
    const auto port = serving.port();
    static_cast<void>(!::write(port_of_server.write.number(), &port, sizeof port));
    char end = 0;
    static_cast<void>(!::read(end_of_server.read.number(), &end, 1));
    return 0;
  }};
  std::uint16_t port = 0;
  ASSERT_EQ(::read(port_of_server.read.number(), &port, sizeof port), ssize_t{sizeof port});

  std::vector<std::unique_ptr<RawClient>> idle;
  const auto add = [&] {
    const auto from = "127.0.0." + std::to_string(2 + idle.size() / of_an_address);
    idle.push_back(std::make_unique<RawClient>(port, from.c_str()));
    return body_of(idle.back()->ask(get("/hello"))) == "hello";
  };
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(add());  // what the first ones need is there
  const auto before = memory_of(server.pid());
  while (idle.size() < clients) ASSERT_TRUE(add());
  const auto each = (memory_of(server.pid()) - before) / (clients - 100);
  RecordProperty("bytes_each", static_cast<int>(each));
  EXPECT_LE(each, 2048);
  EXPECT_EQ(body_of(idle.front()->ask(get("/hello"))), "hello");
  EXPECT_EQ(body_of(idle.back()->ask(get("/hello"))), "hello");
}

}  // namespace
}  // namespace sluice::http
