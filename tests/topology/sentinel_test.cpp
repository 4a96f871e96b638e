#include <gtest/gtest.h>

#include <algorithm>

#include "support/matchers.hpp"
#include "topology/sentinel_watch.hpp"
#include "topology/views.hpp"

namespace sluice::topology::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using To = SentinelQuestion::To;

Value words(std::initializer_list<std::string_view> all) {
  Value::Items items;
  for (const auto word : all) items.push_back(text(word));
  return Value::array(std::move(items));
}

/// What a Sentinel says: the master at 10.0.0.1:`port`.
std::vector<Value> says(std::uint16_t port, std::uint64_t epoch,
                        std::vector<std::uint16_t> others = {}) {
  Value::Items sentinels;
  for (const auto other : others)
    sentinels.push_back(
        words({"ip", "10.0.0.1", "port", std::to_string(other), "flags", "sentinel"}));
  return {words({"10.0.0.1", std::to_string(port)}),
          words({"name", "m", "config-epoch", std::to_string(epoch)}),
          Value::array({words({"ip", "10.0.0.1", "port", "6002", "flags", "slave"}),
                        words({"ip", "10.0.0.1", "port", "6003", "flags", "slave,s_down"})}),
          Value::array(std::move(sentinels))};
}

const std::vector<Value> knows_no_name{Value{}, Value::error("ERR No such master with that name"),
                                       Value::error("ERR No such master with that name"),
                                       Value::error("ERR No such master with that name")};

std::vector<Value> is_master() {
  return {Value::array({text("master"), number(7), Value::array({})})};
}
std::vector<Value> is_replica_of(std::uint16_t port) {
  return {
      Value::array({text("slave"), text("10.0.0.1"), number(port), text("connected"), number(7)})};
}

TEST(SentinelAnswers, AreRead) {
  const auto view = sentinel_view_of(says(6001, 5, {5002, 5003}), answerer);
  EXPECT_EQ(view.master, at(6001));
  EXPECT_EQ(view.epoch, 5U);
  EXPECT_EQ(view.replicas, (std::vector{at(6002)})) << "those that it reaches";
  EXPECT_EQ(view.sentinels, (std::vector{at(5002), at(5003)}));
  EXPECT_EQ(sentinel_view_of(knows_no_name, answerer).master, std::nullopt);

  auto replies = says(6001, 5);
  replies[1] = replies[2] = replies[3] = Value::error("NOPERM");
  EXPECT_EQ(sentinel_view_of(replies, answerer).master, at(6001));
  EXPECT_EQ(sentinel_view_of(replies, answerer).epoch, 0U);
}

TEST(SentinelAnswers, ThatAreNoneAreRefused) {
  const auto refused = [](std::vector<Value> replies) {
    return error_of([&] { return sentinel_view_of(replies, answerer); });
  };
  EXPECT_THAT(refused({}), HasSubstr("10.0.0.9:7009"));
  auto replies = says(6001, 5);
  replies[0] = words({"10.0.0.1"});
  EXPECT_NE(refused(replies), "");
  replies[0] = words({"10.0.0.1", "x"});
  EXPECT_NE(refused(replies), "");
  replies[0] = words({"", "6001"});
  EXPECT_NE(refused(replies), "");
  replies[0] = Value::error("NOAUTH Authentication required.");
  EXPECT_THAT(refused(replies), HasSubstr("NOAUTH"));
  replies = says(6001, 5, std::vector<std::uint16_t>(most_sentinels + 1, 5001));
  EXPECT_THAT(refused(replies), HasSubstr("too long"));
  replies = says(6001, 5);
  replies[3] = Value::array({number(1)});
  EXPECT_NE(refused(replies), "");
}

TEST(Role, IsRead) {
  EXPECT_TRUE(parse_role(is_master()[0], answerer).is_master);
  EXPECT_EQ(parse_role(is_replica_of(6001)[0], answerer).master, at(6001));
  for (const auto& wrong : {Value{}, number(1), Value::array({}), words({"sentinel"}),
                            words({"slave", "10.0.0.1"}), Value::error("NOPERM no")})
    EXPECT_NE(error_of([&] { return parse_role(wrong, answerer); }), "");
}

TEST(SwitchMessage, T39_IsOfItsMaster) {
  EXPECT_TRUE(is_switch_of("m 10.0.0.1 6001 10.0.0.1 6002", "m"));
  EXPECT_FALSE(is_switch_of("mm 10.0.0.1 6001 10.0.0.1 6002", "m"));
  EXPECT_FALSE(is_switch_of("m", "m"));
}

/// A watch of three Sentinels, 5001 to 5003, and the one who drives it.
class Watch : public testing::Test {
 protected:
  /// Answers all questions that come within `time`: Sentinels as `sentinels_` says, servers as
  /// `servers_`; who is not there is silent.
  void run(std::chrono::nanoseconds time) {
    const auto end = now_ + time;
    for (int turns = 0; turns < 10'000; ++turns) {
      for (const auto& question : watch_.act(now_)) {
        ++asked_[question.node];
        const auto& all = question.to == To::sentinel ? sentinels_ : servers_;
        const auto reply = all.find(question.node.port);
        if (reply != all.end()) watch_.answered(now_, question.id, reply->second);
      }
      if (watch_.wakes() > end) break;
      now_ = std::max(now_, watch_.wakes());
    }
    now_ = end;
  }
  void all_say(const std::vector<Value>& replies) {
    for (std::uint16_t port = 5001; port <= 5003; ++port) sentinels_[port] = replies;
  }
  void open() {
    all_say(says(6001, 1));
    servers_[6001] = is_master();
    run(2s);
    ASSERT_EQ(watch_.master(), at(6001));
  }

  SteadyTime now_{1h};
  std::map<std::uint16_t, std::vector<Value>> sentinels_;
  std::map<std::uint16_t, std::vector<Value>> servers_;
  std::map<Endpoint, std::size_t> asked_;
  SentinelWatch watch_{{at(5001), at(5002), at(5003)}, {.name = "m"}};
};

TEST_F(Watch, T34_OpensThoughTheFirstSentinelIsSilent) {
  sentinels_[5002] = says(6001, 1);
  servers_[6001] = is_master();
  run(300ms);
  EXPECT_EQ(watch_.master(), at(6001));
  EXPECT_EQ(watch_.replicas(), (std::vector{at(6002)}));
}

TEST_F(Watch, T35_ANameThatNoneKnowsIsAnErrorOfItsOwn) {
  EXPECT_NE(error_of([] { return SentinelWatch{{}, {.name = "m"}}; }), "");
  run(3s);
  EXPECT_FALSE(watch_.is_name_unknown());
  EXPECT_THAT(watch_.why_not(), HasSubstr("no Sentinel answers"));
  EXPECT_THAT(watch_.why_not(), HasSubstr("no answer in 500 ms"));
  sentinels_[5001] = knows_no_name;
  run(3s);
  EXPECT_TRUE(watch_.is_name_unknown());
  EXPECT_THAT(watch_.why_not(), HasSubstr("no Sentinel knows a master 'm'"));
}

TEST_F(Watch, T36_AReplicaIsWaitedForWithoutHaste) {
  all_say(says(6001, 1));
  servers_[6001] = is_replica_of(6009);
  run(2s);
  EXPECT_EQ(watch_.master(), std::nullopt);
  EXPECT_THAT(watch_.why_not(), HasSubstr("10.0.0.1:6001 is a replica of 10.0.0.1:6009"));
  EXPECT_LE(asked_[at(6001)], 14U);
  EXPECT_LE(asked_[at(5001)], 14U);
  servers_[6001] = is_master();
  run(500ms);
  EXPECT_EQ(watch_.master(), at(6001));
}

TEST_F(Watch, T37_AMasterThatLivesIsLeftAtOnce) {
  open();
  sentinels_[5003] = says(6002, 2);  // one knows; the others are to hear it within two seconds
  servers_[6002] = is_master();
  watch_.heard(now_, "m 10.0.0.1 6001 10.0.0.1 6002");
  run(150ms);
  EXPECT_EQ(watch_.master(), at(6002));
  EXPECT_EQ(watch_.epoch(), 2U);
  run(5s);
  EXPECT_EQ(watch_.master(), at(6002)) << "the others still name the old one, which is one, too";
}

TEST_F(Watch, T37_AMasterIsLeftBeforeTheNewOneAnswers) {
  open();
  sentinels_[5003] = says(6002, 2);
  watch_.heard(now_, "m 10.0.0.1 6001 10.0.0.1 6002");
  run(150ms);
  EXPECT_EQ(watch_.master(), std::nullopt);
}

TEST_F(Watch, T38_ALostMessageCostsAPoll) {
  open();
  sentinels_[5003] = says(6002, 2);
  servers_[6002] = is_master();
  run(1100ms);
  EXPECT_EQ(watch_.master(), at(6002));
}

TEST_F(Watch, T41_AStaleSentinelIsNotHeard) {
  open();
  all_say(says(6002, 2));
  servers_[6002] = is_master();
  run(2s);
  ASSERT_EQ(watch_.master(), at(6002));
  servers_.erase(6002);
  sentinels_.clear();
  sentinels_[5001] = says(6001, 1);  // it alone is there, and the old master
  run(20s);
  EXPECT_EQ(watch_.master(), at(6002));
  sentinels_[5002] = sentinels_[5003] = says(6001, 1);  // most of them: they watch it anew
  run(2s);
  EXPECT_EQ(watch_.master(), at(6001));
}

TEST_F(Watch, T42_WithoutSentinelsAllGoesOn) {
  open();
  sentinels_.clear();
  run(1min);
  EXPECT_EQ(watch_.master(), at(6001));
  EXPECT_LE(asked_[at(5001)], 70U);
}

TEST_F(Watch, T43_AfterFailoverToTheRoleLeadsOn) {
  open();
  servers_[6001] = is_replica_of(6002);
  servers_[6002] = is_master();
  watch_.doubt(now_);  // READONLY
  run(150ms);
  EXPECT_EQ(watch_.master(), at(6002));
  run(20s);
  EXPECT_EQ(watch_.master(), at(6002)) << "the Sentinels still name the old one";
}

TEST_F(Watch, ReplicasInACircleAreNotFollowedForEver) {
  open();
  servers_[6001] = is_replica_of(6002);
  servers_[6002] = is_replica_of(6001);
  run(2s);
  EXPECT_EQ(watch_.master(), std::nullopt);
  EXPECT_LE(asked_[at(6001)] + asked_[at(6002)], 60U);
}

TEST_F(Watch, LearnsOfSentinelsAndForgetsThem) {
  all_say(says(6001, 1, {5001, 5002, 5003, 5004}));
  servers_[6001] = is_master();
  run(3s);
  EXPECT_EQ(watch_.sentinels().size(), 4U);
  EXPECT_GE(asked_[at(5004)], 2U) << "all are heard";
  all_say(says(6001, 1));
  run(2min);
  EXPECT_EQ(watch_.sentinels().size(), 3U);
}

TEST_F(Watch, ASentinelThatIsBackIsAskedAtOnce) {
  open();
  const auto before = asked_[at(5002)];
  run(200ms);
  watch_.is_back(now_, at(5002));
  run(1ms);
  EXPECT_EQ(asked_[at(5002)], before + 1);
}

TEST_F(Watch, AFloodOfDoubtsAsksTenTimesASecond) {
  open();
  asked_.clear();
  for (int i = 0; i < 1000; ++i) {
    watch_.doubt(now_);
    watch_.heard(now_, "m 10.0.0.1 6001 10.0.0.1 6002");
    run(1ms);
  }
  for (const auto& [node, asked] : asked_) EXPECT_LE(asked, 12U) << to_string(node);
}

TEST_F(Watch, MostOfThemAreRightWhereNoEpochIsTold) {
  servers_[6001] = is_master();
  sentinels_[5001] = says(6001, 0);
  sentinels_[5002] = sentinels_[5003] = says(6002, 0);
  servers_[6002] = is_master();
  run(2s);
  EXPECT_EQ(watch_.master(), at(6002));
}

}  // namespace
}  // namespace sluice::topology::test
