#include "topology/freshness.hpp"

#include <gtest/gtest.h>

#include "support/matchers.hpp"
#include "topology/views.hpp"

namespace sluice::topology::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view ours = "8371445ee67a4caa";

Value master_says(std::uint64_t offset, std::string_view history = ours) {
  return text(
      fmt::format("# Replication\r\nrole:master\r\nconnected_slaves:2\r\n"
                  "master_replid:{}\r\nmaster_replid2:0\r\nmaster_repl_offset:{}\r\n",
                  history, offset));
}

Value replica_says(std::uint64_t offset, std::string_view history = ours,
                   std::string_view link = "up", int syncs = 0) {
  return text(
      fmt::format("# Replication\r\nrole:slave\r\nmaster_link_status:{}\r\n"
                  "master_sync_in_progress:{}\r\nslave_read_repl_offset:999\r\n"
                  "slave_repl_offset:{}\r\nmaster_replid:{}\r\nmaster_repl_offset:7\r\n",
                  link, syncs, offset, history));
}

TEST(ReplicationAnswers, AreRead) {
  const auto master = replication_of(master_says(12), answerer);
  EXPECT_TRUE(master.is_master);
  EXPECT_EQ(master.history, ours);
  EXPECT_EQ(master.offset, 12U);
  const auto replica = replication_of(replica_says(11), answerer);
  EXPECT_FALSE(replica.is_master);
  EXPECT_EQ(replica.offset, 11U) << "what it has executed, not what it has read";
  EXPECT_TRUE(replica.is_linked);
  EXPECT_FALSE(replication_of(replica_says(11, ours, "down"), answerer).is_linked);
  EXPECT_FALSE(replication_of(replica_says(11, ours, "up", 1), answerer).is_linked);
}

TEST(ReplicationAnswers, ThatAreNoneAreRefused) {
  for (const auto& wrong :
       {Value{}, number(1), Value::array({}), text(""), text("role:sentinel"), text("role:master"),
        text("role:master\nmaster_replid:x"), text("xrole:master\nmaster_replid:x\n"),
        text("role:master\nmaster_replid:x\nmaster_repl_offset:-1\n"),
        text("role:slave\nmaster_replid:x\nmaster_repl_offset:1\n"),
        text(std::string(1 << 20, 'x'))})
    EXPECT_THAT(error_of([&] { return replication_of(wrong, answerer); }),
                HasSubstr("INFO replication"));
  EXPECT_THAT(error_of([&] { return replication_of(Value::error("NOPERM no"), answerer); }),
              HasSubstr("NOPERM"));
}

/// A master with the replicas 1 and 2, and the one who asks them.
class FreshnessTest : public testing::Test {
 protected:
  FreshnessTest() { freshness_.follow(std::vector{at(1), at(2)}); }

  /// A round: who is not given an answer gives none.
  void round(std::optional<Value> master, std::optional<Value> first,
             std::optional<Value> second = {}) {
    freshness_.pick(now_, SteadyTime::min());
    for (const auto& question : freshness_.act(now_)) {
      const auto& answer = !question.replica ? master : *question.replica == at(1) ? first : second;
      if (answer)
        freshness_.answered(now_ + 1ms, question.id, *answer);
      else
        freshness_.failed(question.id);
    }
    asked_ = now_;
    now_ += freshness_.period();
  }
  std::optional<Endpoint> pick(SteadyTime as_of = SteadyTime::min()) {
    const auto* const picked = freshness_.pick(now_, as_of);
    return picked ? std::optional{*picked} : std::nullopt;
  }

  Freshness freshness_{{.max_lag = 1s}};
  SteadyTime now_{1h};
  SteadyTime asked_{};  // in the last round
};

TEST_F(FreshnessTest, AReplicaThatHasAllOfItsMasterIsReadFrom) {
  EXPECT_EQ(pick(), std::nullopt) << "nothing is known yet";
  round(master_says(100), replica_says(100), replica_says(99));
  EXPECT_EQ(freshness_.caught_up(at(1)), asked_);
  EXPECT_EQ(freshness_.caught_up(at(2)), SteadyTime::min());
  EXPECT_EQ(pick(), at(1));
}

TEST_F(FreshnessTest, ItIsHeldAgainstWhatTheMasterHasSaidBefore) {
  round(master_says(100), replica_says(0), replica_says(0));
  const auto before = asked_;
  round(master_says(200), replica_says(199), replica_says(99));
  EXPECT_EQ(freshness_.caught_up(at(1)), before);
  EXPECT_EQ(freshness_.caught_up(at(2)), SteadyTime::min());
}

TEST_F(FreshnessTest, WhatItHasCaughtUpWithGetsOld) {
  round(master_says(100), replica_says(100));
  now_ = asked_ + 1s;
  EXPECT_EQ(pick(), at(1));
  now_ += 1ns;
  EXPECT_EQ(pick(), std::nullopt);
}

TEST_F(FreshnessTest, OnesOwnWritesAreAskedFor) {
  round(master_says(100), replica_says(100));
  EXPECT_EQ(pick(asked_ - 1ns), at(1));
  EXPECT_EQ(pick(asked_), std::nullopt) << "a write that was acknowledged then may be missing";
  round(master_says(120), replica_says(120));
  EXPECT_EQ(pick(asked_ - 1ns), at(1));
}

TEST_F(FreshnessTest, T21_WhoHasLostItsMasterIsNotReadFrom) {
  round(master_says(100), replica_says(100), replica_says(100));
  round(master_says(100), replica_says(100, ours, "down"), replica_says(100, ours, "up", 1));
  EXPECT_EQ(pick(), std::nullopt);
  round(master_says(100), replica_says(100), replica_says(100));
  EXPECT_NE(pick(), std::nullopt);
}

TEST_F(FreshnessTest, OtherHistoryIsNeverFresh) {
  round(master_says(100), replica_says(100, "another"), master_says(100));
  EXPECT_EQ(pick(), std::nullopt);
  // The master came back as another one, empty.
  round(master_says(100), replica_says(100));
  EXPECT_EQ(pick(), at(1));
  round(master_says(5, "another"), replica_says(100));
  EXPECT_EQ(pick(), std::nullopt);
  round(master_says(6, "another"), replica_says(6, "another"));
  EXPECT_EQ(pick(), at(1));
  round(replica_says(6, "another"), replica_says(6, "another"));  // it is none any more
  EXPECT_EQ(pick(), std::nullopt);
}

TEST_F(FreshnessTest, WhoClaimsMoreThanItsMasterHasIsLeftOut) {
  round(master_says(100), replica_says(1'000'000));
  round(master_says(110), replica_says(1'000'000));
  EXPECT_EQ(pick(), std::nullopt);
  round(master_says(120), replica_says(120));
  EXPECT_EQ(pick(), std::nullopt) << "it is not believed any more";
  freshness_.forget(at(1));  // by another connection
  round(master_says(130), replica_says(130));
  EXPECT_EQ(pick(), at(1));
}

TEST_F(FreshnessTest, WhoGivesNoAnswerIsLeftOut) {
  round(master_says(100), replica_says(100), replica_says(100));
  round(master_says(100), std::nullopt, replica_says(100));
  EXPECT_EQ(pick(), at(2));
  round(master_says(100), replica_says(100), std::nullopt);
  EXPECT_EQ(pick(), at(1));
  freshness_.pick(now_, SteadyTime::min());
  for (const auto& question : freshness_.act(now_)) {
    if (question.replica != at(1)) continue;
    EXPECT_THROW(freshness_.answered(now_, question.id, Value::error("NOPERM")), Error);
  }
  EXPECT_EQ(pick(), std::nullopt);
}

TEST_F(FreshnessTest, AnAnswerThatComesTooLateIsNotUsed) {
  freshness_.pick(now_, SteadyTime::min());
  const auto questions = freshness_.act(now_);
  ASSERT_EQ(questions.size(), 3U);
  EXPECT_TRUE(freshness_.act(now_ + freshness_.period()).empty()) << "one is asked once at a time";
  now_ = questions.front().deadline;
  freshness_.act(now_);
  for (const auto& question : questions)
    freshness_.answered(now_, question.id, question.replica ? replica_says(1) : master_says(1));
  EXPECT_EQ(pick(), std::nullopt);
}

TEST_F(FreshnessTest, NobodyIsAskedWhileNobodyReads) {
  EXPECT_TRUE(freshness_.act(now_).empty());
  EXPECT_EQ(freshness_.wakes(), SteadyTime::max());
  round(master_says(100), replica_says(100), replica_says(100));
  int rounds = 0;
  for (auto wakes = freshness_.wakes(); wakes != SteadyTime::max(); wakes = freshness_.wakes()) {
    ASSERT_LT(++rounds, 10);
    now_ = wakes;
    for (const auto& question : freshness_.act(now_))
      freshness_.answered(now_, question.id,
                          question.replica ? replica_says(100) : master_says(100));
  }
  EXPECT_GT(rounds, 0);
}

TEST_F(FreshnessTest, ReadsStayWithOneReplicaWhileItIsFresh) {
  round(master_says(100), std::nullopt, replica_says(100));
  EXPECT_EQ(pick(), at(2));
  round(master_says(200), replica_says(200), replica_says(100));
  EXPECT_EQ(pick(), at(2)) << "it is fresh enough";
}

TEST_F(FreshnessTest, AnotherMasterIsAsStrangersAre) {
  round(master_says(100), replica_says(100));
  freshness_.forget_all();
  EXPECT_EQ(pick(), std::nullopt);
  round(master_says(100), replica_says(100));
  EXPECT_EQ(pick(), at(1));
}

TEST_F(FreshnessTest, NoMoreThanSomeAreAsked) {
  std::vector<Endpoint> many;
  for (std::uint16_t i = 1; i <= 1'000; ++i) many.push_back(at(i));
  freshness_.follow(many);
  freshness_.pick(now_, SteadyTime::min());
  EXPECT_EQ(freshness_.act(now_).size(), most_followed + 1);
  freshness_.follow({});
  EXPECT_EQ(pick(), std::nullopt);
  EXPECT_TRUE(freshness_.act(now_ + 1h).empty());
}

}  // namespace
}  // namespace sluice::topology::test
