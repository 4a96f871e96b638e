#include "proxy/process/signals.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include "support/process.hpp"

namespace sluice::proxy::process {
namespace {

TEST(Signals, EachIsAnOrderAndNoneKills) {
  const Signals ignored_while_waiting;  // in this process: what kill() does below must not end it
  Signals signals;
  const std::pair<int, SignalAction> all[] = {
      {SIGINT, SignalAction::quit},     {SIGTERM, SignalAction::drain},
      {SIGHUP, SignalAction::reopen},   {SIGTTIN, SignalAction::louder},
      {SIGTTOU, SignalAction::quieter}, {SIGUSR1, SignalAction::reload},
      {SIGUSR2, SignalAction::nothing},
  };
  EXPECT_FALSE(signals.next().has_value());
  for (const auto& [number, order] : all) {
    ::raise(number);
    pollfd wait{signals.descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&wait, 1, 5000), 1) << number;
    const auto came = signals.next();
    ASSERT_TRUE(came.has_value()) << number;
    EXPECT_EQ(came->action, order);
  }
  ::raise(SIGPIPE);  // ignored, or this test is no more
  EXPECT_FALSE(signals.next().has_value());
}

TEST(Signals, AreToldAsNutcrackerTellsThem) {
  Signals signals;
  ::raise(SIGHUP);
  EXPECT_EQ(to_string(*signals.next()), "signal 1 (SIGHUP) received, reopening log file");
  ::raise(SIGUSR2);
  EXPECT_EQ(to_string(*signals.next()), "signal 12 (SIGUSR2) received");
}

TEST(Signals, HangUpOfAProcessThatWasTaughtToIgnoreIt) {
  std::signal(SIGHUP, SIG_IGN);
  Signals signals;
  ::raise(SIGHUP);
  EXPECT_TRUE(signals.next().has_value());
}

}  // namespace
}  // namespace sluice::proxy::process
