#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

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

/// The master is dead and calls doubt all the time: 80 processes ask one Sentinel this often.
TEST_F(Watch, D21_ManyProcessesAskNoMoreInAnOutageThanTwiceWhatTheyDoInPeace) {
  constexpr std::size_t processes = 80;
  open();
  servers_.clear();
  const auto ask_for = [&](std::chrono::seconds time) {
    asked_.clear();
    for (const auto end = now_ + time; now_ < end; run(10ms)) watch_.doubt(now_);
    return processes * asked_[at(5001)] / static_cast<std::size_t>(time.count());
  };
  EXPECT_LE(ask_for(2s), 800U) << "a second; a failover may be over soon";
  EXPECT_LE(ask_for(28s), 160U);
  all_say(says(6002, 2));
  servers_[6002] = is_master();
  watch_.heard(now_, "m 10.0.0.1 6001 10.0.0.1 6002");
  run(150ms);
  EXPECT_EQ(watch_.master(), at(6002)) << "what a Sentinel says is not waited for";
}

TEST_F(Watch, MostOfThemAreRightWhereNoEpochIsTold) {
  servers_[6001] = is_master();
  sentinels_[5001] = says(6001, 0);
  sentinels_[5002] = sentinels_[5003] = says(6002, 0);
  servers_[6002] = is_master();
  run(2s);
  EXPECT_EQ(watch_.master(), at(6002));
}

/// What a Sentinel of another deployment says, which knows a master of the same name.
std::vector<Value> stranger_says(std::uint64_t epoch) {
  auto replies = says(7001, epoch, {7501, 7502});
  replies[2] = Value::array({words({"ip", "10.0.0.1", "port", "7002", "flags", "slave"})});
  return replies;
}

struct Takeover {
  std::uint64_t epoch;       // that the stranger tells; ours have 5
  std::uint16_t seat;        // whose address it has
  bool is_there_from_start;  // or it comes when the master is used
  bool is_first;             // it answers before the others
};

class WatchBesideAStranger : public Watch, public testing::WithParamInterface<Takeover> {};

TEST_P(WatchBesideAStranger, D10_ASentinelOfAnotherDeploymentDoesNotLeadAway) {
  const auto [epoch, seat, is_there_from_start, is_first] = GetParam();
  all_say(says(6001, 5, {5001, 5002, 5003}));
  servers_[6001] = servers_[7001] = is_master();
  sentinels_[7501] = sentinels_[7502] = stranger_says(epoch);
  if (!is_there_from_start) run(2s);
  sentinels_[seat] = stranger_says(epoch);
  run(2s);
  EXPECT_EQ(watch_.master(), at(6001));
  for (int i = 0; i < 20; ++i) {
    if (is_first) watch_.is_back(now_, at(seat));
    watch_.heard(now_, "m 10.0.0.1 6001 10.0.0.1 7001");
    run(500ms);
    ASSERT_EQ(watch_.master(), at(6001));
  }
  EXPECT_EQ(asked_[at(7501)] + asked_[at(7001)], 0U) << "nothing of it is asked";
  // Its own failovers are followed at once, by the word of one.
  sentinels_[seat == 5002 ? 5001 : 5002] = says(6002, 6);
  servers_[6002] = is_master();
  watch_.heard(now_, "m 10.0.0.1 6001 10.0.0.1 6002");
  run(150ms);
  EXPECT_EQ(watch_.master(), at(6002));
}

std::vector<Takeover> takeovers() {
  std::vector<Takeover> all;
  for (const std::uint64_t epoch : {0, 4, 5, 6, 1'000})
    for (const std::uint16_t seat : {5001, 5002, 5003})
      for (const bool is_there_from_start : {false, true})
        for (const bool is_first : {false, true})
          all.push_back({epoch, seat, is_there_from_start, is_first});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Deployments, WatchBesideAStranger, testing::ValuesIn(takeovers()));

TEST_F(Watch, D10_AServerThatNobodyKnewCountsOnceMostSentinelsNameIt) {
  open();
  servers_[6009] = is_master();
  sentinels_[5003] = says(6009, 2);
  run(5s);
  EXPECT_EQ(watch_.master(), at(6001));
  sentinels_[5002] = says(6009, 2);
  run(1100ms);
  EXPECT_EQ(watch_.master(), at(6009));
}

TEST_F(Watch, D10_SentinelsThatAreGoneForAMinuteHoldUpNoChange) {
  open();
  sentinels_.clear();
  sentinels_[5003] = says(6009, 2);
  servers_[6009] = is_master();
  run(50s);
  EXPECT_EQ(watch_.master(), at(6001));
  run(15s);
  EXPECT_EQ(watch_.master(), at(6009));
}

/// A replica that its Sentinels do not reach is known all the same.
TEST_F(Watch, D10_AReplicaThatWasAwayIsFollowedAtOnce) {
  open();
  sentinels_[5003] = says(6003, 2);
  servers_[6003] = is_master();
  watch_.heard(now_, "m 10.0.0.1 6001 10.0.0.1 6003");
  run(150ms);
  EXPECT_EQ(watch_.master(), at(6003));
}

/// Servers and Sentinels answer so long after they were asked; the first time three times as long,
/// since they have to be connected to.
class WatchFromAfar : public testing::TestWithParam<std::chrono::milliseconds> {
 protected:
  void run(SteadyTime end) {
    while (now_ < end && !watch_.master()) {
      for (const auto& question : watch_.act(now_)) {
        const bool is_sentinel = question.to == To::sentinel;
        auto& connected =
            connected_.try_emplace(question.node, now_ + 2 * GetParam()).first->second;
        answers_.emplace(std::max(now_, connected) + GetParam(),
                         std::pair{question.id, is_sentinel ? says(6001, 1) : is_master()});
        waits_.emplace(question.deadline, question.id);
      }
      hopeless_ |= watch_.have_all_told() && !watch_.has_any_answered();
      now_ = std::max(now_, watch_.wakes());
      if (!answers_.empty()) now_ = std::min(now_, answers_.begin()->first);
      if (!waits_.empty()) now_ = std::min(now_, waits_.begin()->first);
      for (; !answers_.empty() && answers_.begin()->first <= now_; answers_.erase(answers_.begin()))
        watch_.answered(now_, answers_.begin()->second.first, answers_.begin()->second.second);
      for (; !waits_.empty() && waits_.begin()->first <= now_; waits_.erase(waits_.begin()))
        watch_.failed(now_, waits_.begin()->second, "no connection in time");
    }
  }

  SteadyTime now_{1h};
  SentinelWatch watch_{{at(5001), at(5002), at(5003)},
                       {.name = "m", .longest_answer_timeout = 60s}};
  std::map<Endpoint, SteadyTime> connected_;
  std::multimap<SteadyTime, std::pair<std::uint64_t, std::vector<Value>>> answers_;
  std::multimap<SteadyTime, std::uint64_t> waits_;
  bool hopeless_ = false;
};

TEST_P(WatchFromAfar, D11_FindsTheMasterHoweverFarItIs) {
  const auto begin = now_;
  run(begin + 200s);
  EXPECT_EQ(watch_.master(), at(6001));
  EXPECT_FALSE(hopeless_) << "who is slow may answer yet";
  EXPECT_LE(now_ - begin, 12 * GetParam() + 2s);
}

INSTANTIATE_TEST_SUITE_P(Deployments, WatchFromAfar,
                         testing::Values(1ms, 100ms, 150ms, 200ms, 400ms, 500ms, 600ms, 1s, 1500ms,
                                         2s, 4s, 8s));

}  // namespace
}  // namespace sluice::topology::test
