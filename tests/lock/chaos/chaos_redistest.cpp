/// scripts/chaos for some seconds, without what depends on the speed of the machine.
#include <gtest/gtest.h>

#include <fstream>

#include "support/paths.hpp"
#include "support/process.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice::chaos {
namespace {

TEST(Chaos, NoPromiseIsBrokenInSomeSeconds) {
  const test::TempDir folder;
  const auto log = folder / "log";
  test::Process play{
      {test::built_path("tests/lock/lock_chaos"), std::to_string(test::is_sanitized ? 5 : 8),
       "--only-safety", "--processes", "4", "--threads", "3"},
      {.directory = {}, .environment = {}, .output = log}};
  const int code = play.wait();
  std::ifstream file{log};
  EXPECT_EQ(code, 0) << file.rdbuf();
}

}  // namespace
}  // namespace sluice::chaos
