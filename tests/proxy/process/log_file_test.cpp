#include "proxy/process/log_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sluice/error.hpp"
#include "sluice/log.hpp"
#include "support/matchers.hpp"
#include "support/temp_dir.hpp"

namespace sluice::proxy::process {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

class LogFileTest : public testing::Test {
 protected:
  test::TempDir directory;
  std::filesystem::path path = directory / "proxy.log";
};

TEST_F(LogFileTest, LinesLookAsNutcrackers) {
  LogFile log{path.string(), 5};
  log.write(LogSeverity::notice, "started on pid 1");
  EXPECT_THAT(text_of(path),
              testing::MatchesRegex("\\[[0-9]{4}(-[0-9]{2}){2} [0-9]{2}(:[0-9]{2}){2}"
                                    "\\.[0-9]{3}\\] notice started on pid 1\n"));
}

TEST_F(LogFileTest, TheLevelDecidesAndIsHeldWithinItsBounds) {
  LogFile log{path.string(), 99};
  EXPECT_EQ(log.level(), 11);
  log.set_level(-3);
  EXPECT_EQ(log.level(), 0);
  log.write(LogSeverity::alert, "no");
  log.write(LogSeverity::emergency, "yes");
  log.set_level(6);
  log.write(LogSeverity::debug, "no");
  log.write(LogSeverity::info, "yes too");
  EXPECT_EQ(text_of(path).find("no"), std::string::npos);
  EXPECT_NE(text_of(path).find("emergency yes\n"), std::string::npos);
  EXPECT_NE(text_of(path).find("info yes too\n"), std::string::npos);
}

TEST_F(LogFileTest, ReopensAfterItWasMovedAway) {
  LogFile log{path.string(), 5};
  log.write(LogSeverity::notice, "before");
  std::filesystem::rename(path, directory / "old.log");
  log.write(LogSeverity::notice, "between");
  log.reopen();
  log.write(LogSeverity::notice, "after");
  EXPECT_NE(text_of(directory / "old.log").find("between"), std::string::npos);
  EXPECT_EQ(text_of(path).find("between"), std::string::npos);
  EXPECT_NE(text_of(path).find("after"), std::string::npos);
}

TEST_F(LogFileTest, GoesOnWithTheOldFileWhenTheNewOneCannotBeOpened) {
  const auto folder = directory / "folder";
  std::filesystem::create_directory(folder);
  LogFile log{(folder / "a.log").string(), 5};
  std::filesystem::rename(folder, directory / "moved");
  log.reopen();
  log.write(LogSeverity::notice, "still here");
  EXPECT_NE(text_of(directory / "moved" / "a.log").find("still here"), std::string::npos);
}

TEST_F(LogFileTest, NobodyForgesALineOrFillsTheDisk) {
  LogFile log{path.string(), 5};
  log.write(LogSeverity::notice, "a\n[2026-01-01 00:00:00.000] notice b\r\x1b[0m");
  log.write(LogSeverity::notice, std::string(1 << 20, 'x'));
  const auto text = text_of(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_LT(text.size(), 2 * LogFile::most_text);
}

TEST_F(LogFileTest, TheLibrarySpeaksThroughIt) {
  {
    LogFile log{path.string(), 4};
    log.take_library_log();
    sluice::log(LogLevel::info, "not so loud");
    sluice::log(LogLevel::warning, "a lost connection");
  }
  sluice::log(LogLevel::error, "nobody listens");
  const auto text = text_of(path);
  EXPECT_NE(text.find("warning a lost connection\n"), std::string::npos);
  EXPECT_EQ(text.find("loud"), std::string::npos);
  EXPECT_EQ(text.find("nobody"), std::string::npos);
}

TEST_F(LogFileTest, SaysWhyItCannotBeOpened) {
  try {
    LogFile log{"/no such folder/x", 5};
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "opening log file '/no such folder/x' failed: No such file or directory");
  }
}

}  // namespace
}  // namespace sluice::proxy::process
