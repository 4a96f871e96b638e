#include "proxy/flow/client_state.hpp"

#include <gtest/gtest.h>

#include "front/reply_mode.hpp"

namespace sluice::proxy::flow {
namespace {

constexpr Pause pauses[] = {Pause::session, Pause::turn, Pause::earlier, Pause::server,
                            Pause::room};

TEST(ClientState, ReadsUntilItIsPausedAndAgainAfterwards) {
  for (const auto pause : pauses) {
    ClientState state;
    EXPECT_TRUE(state.reads());
    state.pause(pause);
    EXPECT_TRUE(state.has(pause));
    EXPECT_FALSE(state.reads());
    state.end(pause);
    EXPECT_TRUE(state.reads());
  }
}

TEST(ClientState, OfTwoPausesEachMustEnd) {
  for (const auto one : pauses)
    for (const auto other : pauses) {
      if (one == other) continue;
      ClientState state;
      state.pause(one);
      state.pause(other);
      state.end(one);
      EXPECT_FALSE(state.reads());
      EXPECT_TRUE(state.has(other));
      state.end(other);
      EXPECT_TRUE(state.reads());
    }
}

TEST(ClientState, APauseThatIsBegunTwiceEndsOnce) {
  ClientState state;
  state.pause(Pause::room);
  state.pause(Pause::room);
  state.end(Pause::room);
  EXPECT_TRUE(state.reads());
}

TEST(ClientState, TheLastReplyEndsWhatWaitsForItAndNothingElse) {
  ClientState state;
  for (const auto pause : pauses) state.pause(pause);
  state.all_answered();
  EXPECT_FALSE(state.has(Pause::turn) || state.has(Pause::earlier));
  EXPECT_TRUE(state.has(Pause::session) && state.has(Pause::server) && state.has(Pause::room));
}

TEST(ClientState, DrainingReadsOnAndEndsBetweenRequests) {
  ClientState state;
  EXPECT_FALSE(state.ends(false));
  state.advance(Life::draining);
  EXPECT_TRUE(state.reads());
  EXPECT_FALSE(state.is_closing());
  EXPECT_FALSE(state.ends(true)) << "half a request or an open transaction is served to its end";
  EXPECT_TRUE(state.ends(false));
}

TEST(ClientState, ClosingReadsNoMore) {
  ClientState state;
  state.advance(Life::closing);
  EXPECT_FALSE(state.reads());
  EXPECT_FALSE(state.drops_replies());
  EXPECT_TRUE(state.ends(true));
}

TEST(ClientState, DiscardingClosesToo) {
  ClientState state;
  state.advance(Life::discarding);
  EXPECT_TRUE(state.is_closing() && state.drops_replies() && state.ends(true));
}

TEST(ClientState, LifeNeverGoesBack) {
  ClientState state;
  state.advance(Life::discarding);
  state.advance(Life::closing);
  state.advance(Life::draining);
  state.advance(Life::serving);
  EXPECT_TRUE(state.drops_replies());
}

TEST(ReplyMode, SkipMutesItselfAndTheNextRequest) {
  front::ReplyMode mode;
  EXPECT_FALSE(mode.is_muted());
  mode.skip_next();
  EXPECT_TRUE(mode.is_muted());
  mode.served();  // CLIENT REPLY SKIP
  EXPECT_TRUE(mode.is_muted());
  mode.served();  // the next
  EXPECT_FALSE(mode.is_muted());
  mode.served();
  EXPECT_FALSE(mode.is_muted());
}

TEST(ReplyMode, OffLastsUntilOn) {
  front::ReplyMode mode;
  mode.turn_off();
  for (int i = 0; i < 1000; ++i) mode.served();
  mode.skip_next();
  mode.served();
  mode.served();
  EXPECT_TRUE(mode.is_muted());
  mode.turn_on();
  EXPECT_FALSE(mode.is_muted());
}

TEST(ReplyMode, OnEndsASkip) {
  front::ReplyMode mode;
  mode.skip_next();
  mode.turn_on();
  EXPECT_FALSE(mode.is_muted());
}

TEST(ReplyMode, SkipWhileSkippingBeginsAnew) {
  front::ReplyMode mode;
  mode.skip_next();
  mode.served();
  mode.skip_next();
  mode.served();
  EXPECT_TRUE(mode.is_muted());
  mode.served();
  EXPECT_FALSE(mode.is_muted());
}

}  // namespace
}  // namespace sluice::proxy::flow
