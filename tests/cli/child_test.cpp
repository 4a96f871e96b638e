#include "cli/child.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "cli/command_line/signals.hpp"

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

/// Each test is a process of its own: signals are the whole process's.
class Child : public testing::Test {
 protected:
  static int run(const char* line) {
    return run_child({"sh", "-c", line}, std::stop_token{}, 1s).exit_code;
  }
  static constexpr const char* long_sleep = "exec sleep 60";
};

TEST_F(Child, ASignalBetweenTheWaitAndTheCommandIsTheCommands) {
  for (const int signal : {SIGTERM, SIGHUP, SIGUSR2})
    EXPECT_EXIT(
        {
          prepare_signals();
          StopOnSignal waiting({SIGTERM, SIGHUP, SIGUSR2});
          if (waiting.finish() != 0) ::_exit(1);
          ::kill(::getpid(), signal);
          ::_exit(run(long_sleep));
        },
        testing::ExitedWithCode(128 + signal), "");
}

TEST_F(Child, ASignalAtTheEndOfTheWaitIsToldOnce) {
  EXPECT_EXIT(
      {
        prepare_signals();
        StopOnSignal waiting({SIGTERM});
        ::kill(::getpid(), SIGTERM);
        if (waiting.sleep_for(60s) || waiting.finish() != SIGTERM) ::_exit(1);
        ::_exit(run("exit 9"));
      },
      testing::ExitedWithCode(9), "");
}

TEST_F(Child, TheEndOfAChildIsSeenWhereSigchldWasIgnored) {
  EXPECT_EXIT(
      {
        ::signal(SIGCHLD, SIG_IGN);
        prepare_signals();
        ::_exit(run("exit 9"));
      },
      testing::ExitedWithCode(9), "");
}

TEST_F(Child, AHangUpThatIsIgnoredEndsNeitherTheWaitNorTheCommand) {
  EXPECT_EXIT(
      {
        ::signal(SIGHUP, SIG_IGN);
        prepare_signals();
        StopOnSignal waiting({SIGTERM, SIGHUP});
        ::kill(::getpid(), SIGHUP);
        ::kill(::getpid(), SIGTERM);
        if (waiting.sleep_for(60s) || waiting.finish() != SIGTERM) ::_exit(1);
        ::kill(::getpid(), SIGHUP);
        ::_exit(run("kill -HUP $$; exit 9"));
      },
      testing::ExitedWithCode(9), "");
}

}  // namespace
}  // namespace sluice::cli
