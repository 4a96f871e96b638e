#include "proxy/flow/session/transaction_state.hpp"

#include <gtest/gtest.h>

namespace sluice::proxy::flow {
namespace {

using Phase = TransactionState::Phase;
using Fault = TransactionState::Fault;
using Wait = TransactionState::Wait;

TEST(TransactionState, BeginsBeforeMultiWithoutAFault) {
  const TransactionState state;
  EXPECT_FALSE(state.is_open());
  EXPECT_FALSE(state.is_sent());
  EXPECT_FALSE(state.is_spoiled());
  EXPECT_FALSE(state.is_lost());
  EXPECT_FALSE(state.is_waiting());
  EXPECT_FALSE(state.uses_scripts());
}

TEST(TransactionState, GoesForwardAndNeverBack) {
  TransactionState state;
  state.advance(Phase::open);
  EXPECT_TRUE(state.is_open());
  EXPECT_FALSE(state.is_sent());
  state.advance(Phase::sent);
  EXPECT_TRUE(state.is_open());
  EXPECT_TRUE(state.is_sent());
  state.advance(Phase::watching);
  EXPECT_TRUE(state.is_sent());
}

TEST(TransactionState, TheWorseFaultStays) {
  TransactionState state;
  state.suffer(Fault::spoiled);
  EXPECT_TRUE(state.is_spoiled());
  EXPECT_FALSE(state.is_lost());
  state.suffer(Fault::lost);
  state.suffer(Fault::spoiled);
  EXPECT_TRUE(state.is_lost());
  EXPECT_TRUE(state.is_spoiled()) << "what is lost aborts EXEC as well";
}

TEST(TransactionState, AFaultChangesNoPhase) {
  TransactionState state;
  state.advance(Phase::open);
  state.suffer(Fault::lost);
  EXPECT_TRUE(state.is_open()) << "EXEC or DISCARD is still to come";
  EXPECT_FALSE(state.is_sent());
}

TEST(TransactionState, TheClientGoesOnWhenAllThatItWaitsForHasCome) {
  for (const auto first : {Wait::readiness, Wait::outcome}) {
    const auto second = first == Wait::readiness ? Wait::outcome : Wait::readiness;
    TransactionState state;
    state.wait_for(Wait::readiness);
    state.wait_for(Wait::outcome);
    EXPECT_FALSE(state.has_come(first));
    EXPECT_FALSE(state.waits_for(first));
    EXPECT_TRUE(state.waits_for(second));
    EXPECT_TRUE(state.is_waiting());
    EXPECT_TRUE(state.has_come(second));
    EXPECT_FALSE(state.is_waiting());
  }
}

TEST(TransactionState, WhatNobodyWaitsForLetsNobodyGoOn) {
  TransactionState state;
  EXPECT_FALSE(state.has_come(Wait::readiness));
  state.wait_for(Wait::outcome);
  EXPECT_FALSE(state.has_come(Wait::readiness));
  EXPECT_TRUE(state.waits_for(Wait::outcome));
  state.wait_for(Wait::outcome);  // twice is once
  EXPECT_TRUE(state.has_come(Wait::outcome));
}

}  // namespace
}  // namespace sluice::proxy::flow
