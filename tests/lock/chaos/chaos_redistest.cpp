/// scripts/chaos for some seconds, without what depends on the speed of the machine.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice::chaos {
namespace {

/// What it has printed, where it has found something.
std::string findings_of(const std::vector<std::string>& words) {
  const test::TempDir folder;
  const auto log = folder / "log";
  std::vector<std::string> command{test::built_path("tests/lock/lock_chaos"),
                                   "--only-safety",
                                   "--processes",
                                   "4",
                                   "--threads",
                                   "3"};
  command.insert(command.end(), words.begin(), words.end());
  test::Process play{command, {.directory = {}, .environment = {}, .output = log}};
  if (play.wait() == 0) return {};
  std::ifstream file{log};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(Chaos, NoPromiseIsBrokenInSomeSeconds) {
  EXPECT_EQ(findings_of({std::to_string(test::is_sanitized ? 5 : 8)}), "");
}

TEST(Chaos, NoPromiseIsBrokenInAClusterInSomeSeconds) {
  EXPECT_EQ(findings_of({std::to_string(test::is_sanitized ? 15 : 30), "--cluster"}), "");
}

}  // namespace
}  // namespace sluice::chaos
