#include "proxy/process/pid_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sluice/error.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy {
namespace {

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

}  // namespace
}  // namespace sluice::proxy
