#include "sluice/log.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {
namespace {

TEST(Log, GoesToTheSinkThatIsSetNow) {
  std::vector<std::pair<LogLevel, std::string>> first;
  std::vector<std::string> second;
  set_log_sink(
      [&](LogLevel level, std::string_view message) { first.emplace_back(level, message); });
  log(LogLevel::warning, "one");
  set_log_sink([&](LogLevel, std::string_view message) { second.emplace_back(message); });
  log(LogLevel::error, "two");
  set_log_sink({});
  log(LogLevel::error, "nobody hears this");

  EXPECT_EQ(first, (std::vector<std::pair<LogLevel, std::string>>{{LogLevel::warning, "one"}}));
  EXPECT_EQ(second, (std::vector<std::string>{"two"}));
}

// In a process of its own, where nobody has set a sink.
TEST(Frictions, U18_WarningsReachStderrUnlessSilenced) {
  const auto said_of = [](const auto& prepare) {
    testing::internal::CaptureStderr();
    prepare();
    log(LogLevel::info, "all is well");
    log(LogLevel::warning, "a lock was lost");
    return testing::internal::GetCapturedStderr();
  };
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        const bool told = said_of([] {}) == "sluice: warning: a lock was lost\n";
        const bool silent = said_of([] { set_log_sink({}); }).empty();
        std::exit(told && silent ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Log, ASinkMaySetAnother) {
  int heard = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++heard;
    set_log_sink({});
  });
  log(LogLevel::info, "the sink outlives its own call");
  log(LogLevel::info, "nobody hears this");
  EXPECT_EQ(heard, 1);
}

TEST(Log, TheSinkIsExchangedWhileOthersLog) {
  std::atomic<int> heard{0};
  std::atomic<bool> stop{false};
  const auto sink = [&](LogLevel, std::string_view) { ++heard; };
  set_log_sink(sink);
  {
    std::jthread logger{[&] {
      do log(LogLevel::debug, "again");
      while (!stop);
    }};
    for (int i = 0; i < 200; ++i) set_log_sink(sink);
    stop = true;
  }
  set_log_sink({});
  EXPECT_GT(heard, 0);
}

}  // namespace
}  // namespace sluice
