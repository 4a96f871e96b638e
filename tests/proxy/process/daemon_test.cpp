#include "proxy/process/daemon.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "sluice/error.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy::process {
namespace {

pid_t session_of_the_test = 0;

/// Starts a daemon, in a child of this process; `body` is what it does. Gives the exit code of what
/// was started, and what the daemon wrote.
std::pair<int, std::string> start_daemon(void (*body)(Daemon daemon, int tell)) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(pipe[0]);
    body(Daemon::start(), pipe[1]);
    ::_exit(9);
  }
  ::close(pipe[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  std::string told;
  std::array<char, 256> bytes;
  for (ssize_t got = 0; (got = ::read(pipe[0], bytes.data(), bytes.size())) > 0;)
    told.append(bytes.data(), static_cast<std::size_t>(got));
  ::close(pipe[0]);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, told};
}

TEST(Daemon, ItsParentEndsWellWhenItIsReady) {
  session_of_the_test = ::getsid(0);
  const auto [code, told] = start_daemon([](Daemon daemon, int tell) {
    daemon.ready();
    std::array<char, 256> path{};
    const auto size = ::readlink("/proc/self/fd/2", path.data(), path.size());
    const bool own_session = ::getsid(0) != session_of_the_test && ::getsid(0) != ::getpid();
    const std::string text =
        std::string(path.data(), static_cast<std::size_t>(size)) + (own_session ? " apart" : "");
    static_cast<void>(!::write(tell, text.data(), text.size()));
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(told, "/dev/null apart");
}

TEST(Daemon, ItsParentFailsWhenItDoes) {
  const auto [code, told] = start_daemon([](Daemon, int) {});
  EXPECT_EQ(code, 1);
}

TEST(Daemon, ItsParentFailsWhenItIsKilled) {
  const auto [code, told] = start_daemon([](Daemon daemon, int) {
    ::raise(SIGKILL);
    daemon.ready();
  });
  EXPECT_EQ(code, 1);
}

TEST(PidFile, NamesTheProcessAsLongAsItRuns) {
  const test::TempDir directory;
  const auto path = directory / "pid";
  std::ofstream{path} << "99999999 left by another";
  {
    const PidFile file{path.string()};
    std::ifstream in{path};
    EXPECT_EQ((std::string{std::istreambuf_iterator<char>{in}, {}}), std::to_string(::getpid()));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(PidFile, OfASuccessorStays) {
  const test::TempDir directory;
  const auto path = directory / "pid";
  {
    const PidFile file{path.string()};
    std::ofstream{path} << "1";
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(PidFile, SaysWhyItCannotBeWritten) {
  try {
    const PidFile file{"/no such folder/pid"};
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "opening pid file '/no such folder/pid' failed: No such file or directory");
  }
}

TEST(Descriptors, X16_AreEnoughOrItIsSaid) {
  Config config;
  config.pools.emplace_back().servers.resize(3);
  config.process.workers = 2;
  const auto plan = plan_descriptors(config);
  EXPECT_EQ(plan.connections - plan.clients, 6U);
  EXPECT_LT(plan.connections, plan.limit - 32);
  config.pools.front().server_connections = std::size_t{1} << 31;
  try {
    static_cast<void>(plan_descriptors(config));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("open files are too few: 12884901888 connections to servers"),
              std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace sluice::proxy::process
