#include "support/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

#include "support/temp_dir.hpp"

namespace sluice::test {
namespace {

using namespace std::chrono_literals;

TEST(Process, GivesTheExitStatus) {
  Process process{{"sh", "-c", "exit 3"}};
  EXPECT_EQ(process.wait(), 3);
  EXPECT_EQ(process.wait(), 3);
}

TEST(Process, SaysWhichSignalEndedIt) {
  Process process{{"sleep", "100"}};
  EXPECT_TRUE(process.running());
  process.kill();
  EXPECT_EQ(process.wait(), 128 + SIGKILL);
}

TEST(Process, RefusesAProgramThatIsNotThere) {
  EXPECT_THROW(Process({"/nowhere/at-all"}), std::system_error);
}

TEST(Process, TakesFolderEnvironmentAndOutput) {
  TempDir directory;
  ProcessOptions options{directory.path(), {{"SLUICE_WORD", "barrier"}}, directory / "out"};
  Process process{{"sh", "-c", "echo $SLUICE_WORD; pwd"}, options};
  EXPECT_EQ(process.wait(), 0);
  std::ifstream file{directory / "out"};
  const std::string text{std::istreambuf_iterator<char>{file}, {}};
  EXPECT_EQ(text, "barrier\n" + directory.str() + "\n");
}

TEST(Process, RunsAFunctionInAFork) {
  Process good{[] { return 4; }};
  EXPECT_EQ(good.wait(), 4);
  Process bad{[]() -> int { throw std::runtime_error{"as the test wants it"}; }};
  EXPECT_EQ(bad.wait(), 70);
}

TEST(Process, AStoppedChildRunsAgain) {
  Process process{{"sleep", "100"}};
  process.stop();
  EXPECT_TRUE(process.running());
  process.cont();
  process.terminate();
  EXPECT_EQ(process.wait(), 128 + SIGTERM);
}

TEST(TempDir, IsGoneAfterwards) {
  std::filesystem::path path;
  {
    TempDir directory;
    path = directory.path();
    std::ofstream{directory / "file"} << "x";
    directory.clear();
    EXPECT_TRUE(std::filesystem::is_empty(path));
    std::filesystem::create_directories(directory / "a/b");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace sluice::test
