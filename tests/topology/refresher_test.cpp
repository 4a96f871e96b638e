#include "topology/refresher.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/matchers.hpp"
#include "topology/views.hpp"

namespace sluice::topology::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A refresher that asks in the order of the ids, and the one who drives it.
class Driven : public testing::Test {
 protected:
  using Questions = std::vector<RefreshQuestion>;

  Questions act() { return refresher_.act(now_); }
  /// Goes on to the next time at which there are questions, up to `most`.
  Questions next(std::chrono::nanoseconds most = 1min) {
    const auto end = now_ + most;
    for (int turns = 0; turns < 10'000; ++turns) {
      auto questions = act();
      if (!questions.empty()) return questions;
      if (refresher_.wakes() > end) break;
      now_ = std::max(now_, refresher_.wakes());
    }
    now_ = end;
    return {};
  }
  bool answer_all(const Questions& questions, std::string_view nodes,
                  std::string_view state = "ok") {
    bool is_new = false;
    for (const auto& question : questions)
      is_new |= refresher_.answered(now_, question.id, answer(nodes, 99, state));
    return is_new;
  }
  void fail_all(const Questions& questions) {
    for (const auto& question : questions) refresher_.failed(now_, question.id, "refused");
  }
  /// A map, and peace.
  void open() {
    answer_all(next(), three);
    next(5s);
  }
  std::string owner_of(std::uint16_t slot) const {
    const Node* const owner = refresher_.map()->owner(slot);
    return owner ? to_string(owner->endpoint.value()) : "nobody";
  }

  SteadyTime now_{1h};
  std::size_t asked_between_ = 0;
  Refresher refresher_{{at(7001), at(7002), at(7003)}, {.random = [](std::uint64_t) { return 0; }}};
};

using Refresh = Driven;

TEST_F(Refresh, T01_OneSeedOfThreeAliveIsEnough) {
  const auto questions = act();
  ASSERT_EQ(questions.size(), 3U) << "all at the same time";
  EXPECT_TRUE(refresher_.map()->knows_nothing());
  refresher_.failed(now_, questions[0].id, "connection refused");
  EXPECT_THAT(refresher_.why_not(), HasSubstr("10.0.0.1:7001: connection refused"));
  EXPECT_TRUE(refresher_.answered(now_, questions[2].id, answer(three)));
  EXPECT_EQ(owner_of(0), "10.0.0.1:7001");
}

TEST_F(Refresh, WithoutAMapGoesOnAskingAndSaysWhy) {
  EXPECT_NE(error_of([] { return Refresher{{}}; }), "");
  EXPECT_NE(error_of([] { return Refresher{{at(7001)}, {.most_questions = 0}}; }), "");
  for (int round = 0; round < 20; ++round) {
    const auto questions = next();
    ASSERT_FALSE(questions.empty());
    for (const auto& question : questions)
      EXPECT_FALSE(refresher_.answered(now_, question.id, answer(three, 99, "fail")));
  }
  EXPECT_THAT(refresher_.why_not(), HasSubstr("state fail"));
  EXPECT_TRUE(refresher_.map()->knows_nothing());
}

// Networks of every delay up to the patience of a connection, with a node that is silent.
TEST_F(Refresh, D11_AClusterThatIsFarIsFoundAndStaysFound) {
  for (const auto delay : {1ms, 200ms, 499ms, 501ms, 700ms, 1500ms, 3000ms, 7900ms}) {
    Refresher far{{at(7001), at(7002), at(7003)},
                  {.longest_answer_timeout = 8000ms, .random = [](std::uint64_t) { return 0; }}};
    SteadyTime now{1h};
    const SteadyTime end = now + 5min;
    std::multimap<SteadyTime, std::uint64_t> coming;
    std::size_t answers = 0;
    while (now < end) {
      for (const auto& question : far.act(now))
        if (question.node != at(7003)) coming.emplace(now + delay, question.id);
      now = coming.empty() ? far.wakes() : std::min(far.wakes(), coming.begin()->first);
      while (!coming.empty() && coming.begin()->first <= now) {
        answers += far.answered(now, coming.begin()->second, answer(three)) ? 1 : 0;
        coming.erase(coming.begin());
      }
      if (now >= end - 4min) {
        ASSERT_FALSE(far.map()->knows_nothing()) << delay;
        ASSERT_FALSE(far.is_lost(now)) << delay;
      }
    }
    EXPECT_GE(answers, 1U) << delay;
  }
}

TEST_F(Refresh, T07_MovedToAnUnknownNodeIsUsedAndAskedOnce) {
  open();
  EXPECT_TRUE(refresher_.moved(now_, 0, at(7001), at(7777)));
  EXPECT_EQ(owner_of(0), "10.0.0.1:7777");
  const auto questions = next(1s);
  ASSERT_EQ(questions.size(), 3U);
  EXPECT_EQ(questions[0].node, at(7777)) << "it knows best";
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(refresher_.moved(now_, 0, at(7001), at(7777)));
  EXPECT_TRUE(act().empty()) << "one round at a time";
  answer_all(questions, three);
  EXPECT_EQ(owner_of(0), "10.0.0.1:7777") << "nodes that do not know yet are not heard";
}

TEST_F(Refresh, T08_AsksNoMoreThanTenTimesASecond) {
  open();
  refresher_.lost(now_, at(7001));
  std::vector<SteadyTime> asked;
  for (const auto end = now_ + 10s; now_ < end; now_ += 1ms) {
    for (int thread = 0; thread < 100; ++thread) refresher_.doubt(now_);
    const auto questions = act();
    asked.insert(asked.end(), questions.size(), now_);
    answer_all(questions, three);
  }
  for (std::size_t i = 10; i < asked.size(); ++i) EXPECT_GE(asked[i] - asked[i - 10], 1s);
  EXPECT_GT(asked.size(), 30U) << "but goes on asking";
}

TEST_F(Refresh, T09_MovedInACircleChangesTheMapAndAsksSeldom) {
  open();
  std::size_t asked = 0;
  for (int i = 0; i < 1000; ++i, now_ += 1ms) {
    refresher_.moved(now_, 0, at(7001), at(7002));
    refresher_.moved(now_, 0, at(7002), at(7001));
    const auto questions = act();
    asked += questions.size();
    answer_all(questions, three);
  }
  EXPECT_LE(asked, 10U);
}

TEST_F(Refresh, T14_ANodeThatIsSilentDelaysNothing) {
  open();
  refresher_.lost(now_, at(7001));
  auto questions = next(1s);
  ASSERT_EQ(questions.size(), 3U);
  refresher_.answered(now_, questions[0].id, answer(three));
  const auto began = now_;
  questions = next(1s);
  EXPECT_FALSE(questions.empty());
  EXPECT_LE(now_ - began, 150ms) << "two of the round before have not answered";
  EXPECT_LE(refresher_.in_flight(), Refresher::most_in_flight);
}

TEST_F(Refresh, ALostOwnerIsAskedForUntilAnotherHasItsSlots) {
  open();
  refresher_.lost(now_, at(7001));
  for (int round = 0; round < 10; ++round) {
    const auto questions = next(1s);
    ASSERT_FALSE(questions.empty()) << "nobody calls, and the trouble goes on";
    for (const auto& question : questions) {
      EXPECT_NE(question.node, at(7001)) << "there are others";
      refresher_.answered(now_, question.id, answer(three));
    }
  }
  answer_all(next(1s), line(1, 1) + line(4, 9, " 0-5460") + line(2, 2, " 5461-10922"));
  EXPECT_EQ(owner_of(0), "10.0.0.1:7004");
  next(1s);
  EXPECT_TRUE(next(10s).empty());
}

TEST_F(Refresh, ALostNodeThatIsBackIsNoTrouble) {
  open();
  refresher_.lost(now_, at(7001));
  answer_all(next(1s), three);
  refresher_.is_back(now_, at(7001));
  answer_all(next(1s), three);
  EXPECT_TRUE(next(10s).empty());
}

TEST_F(Refresh, RoundsWithoutNewsBecomeSeldom) {
  open();
  refresher_.lost(now_, at(7001));
  std::size_t first = 0;
  std::size_t last = 0;
  for (const auto began = now_; now_ < began + 60s;) {
    const auto questions = next(5s);
    for (const auto& question : questions)
      if (question.node == at(7001))
        refresher_.failed(now_, question.id, "refused");
      else
        refresher_.answered(now_, question.id, answer(line(1, 1, " 0-5460") + line(2, 2)));
    (now_ < began + 10s ? first : now_ > began + 50s ? last : asked_between_) += questions.size();
    refresher_.lost(now_, at(7001));
  }
  EXPECT_GE(first, 40U);
  EXPECT_LE(last, 20U);
  EXPECT_GE(last, 5U);
}

/// A master is dead for half a minute, and calls doubt all the time: 80 processes ask this often
/// the node that is asked most, the heir of the master.
TEST_F(Refresh, D21_ManyProcessesAskANodeSeldomInAnOutage) {
  constexpr std::size_t processes = 80;
  std::mt19937 source{21};
  Refresher refresher{{at(7001)},
                      {.random = [&](std::uint64_t bound) { return source() % bound; }}};
  const auto ask_for = [&](std::chrono::seconds time) {
    std::map<Endpoint, std::size_t> asked;
    std::size_t most = 0;
    for (const auto end = now_ + time; now_ < end; now_ += 10ms) {
      refresher.lost(now_, at(7001));
      for (const auto& question : refresher.act(now_)) {
        most = std::max(most, ++asked[question.node]);
        if (question.node == at(7001) && refresher.map()->find(at(7001)))
          refresher.failed(now_, question.id, "refused");
        else
          refresher.answered(now_, question.id, answer(three));
      }
    }
    return processes * most / static_cast<std::size_t>(time.count());
  };
  EXPECT_LE(ask_for(2s), 480U);
  EXPECT_LE(ask_for(28s), 120U);
}

TEST_F(Refresh, T02_AskSeedsWhenAllKnownNodesFail) {
  open();
  const auto replaced = fmt::format(
      "{} 10.0.0.1:8001@1 master - 0 0 5 connected 0-16383\n"
      "{} 10.0.0.1:7001@1 master - 0 0 1 connected\n",
      id_of(50), id_of(1));
  refresher_.doubt(now_);
  answer_all(next(1s), replaced);
  EXPECT_EQ(owner_of(0), "10.0.0.1:8001");
  refresher_.lost(now_, at(8001));
  std::vector<Endpoint> asked;
  for (int round = 0; round < 8; ++round)
    for (const auto& question : next(2s)) {
      asked.push_back(question.node);
      refresher_.failed(now_, question.id, "refused");
    }
  EXPECT_THAT(asked, testing::IsSupersetOf({at(7001), at(7002), at(7003)}));
}

TEST_F(Refresh, T15_AForeignClusterIsRefused) {
  open();
  const auto foreign =
      line(1, 1).replace(0, 40, std::string(40, 'f')).insert(line(1, 1).size() - 1, " 0-16383");
  refresher_.doubt(now_);
  EXPECT_FALSE(answer_all(next(1s), foreign));
  EXPECT_EQ(refresher_.map()->find(std::string(40, 'f')), nullptr);
  EXPECT_THAT(refresher_.why_not(), HasSubstr("another cluster"));
  EXPECT_EQ(refresher_.replacements(), 0U);
}

TEST_F(Refresh, T15_AForeignClusterIsRefusedAlsoWhenNobodyWasAskedForLong) {
  open();
  const auto foreign =
      line(1, 1).replace(0, 40, std::string(40, 'f')).insert(line(1, 1).size() - 1, " 0-16383");
  now_ += 35s;  // the next question of a client that rests
  EXPECT_FALSE(answer_all(next(10s), foreign));
  EXPECT_EQ(refresher_.replacements(), 0U);
  answer_all(next(10s), three);
  EXPECT_EQ(refresher_.replacements(), 0U);
  EXPECT_EQ(owner_of(0), "10.0.0.1:7001");
}

TEST_F(Refresh, T02_AClusterThatWasReplacedIsFoundBySeedsAfterAWhile) {
  open();
  const auto foreign =
      line(1, 1).replace(0, 40, std::string(40, 'f')).insert(line(1, 1).size() - 1, " 0-16383");
  const auto began = now_;
  refresher_.doubt(now_);
  while (refresher_.replacements() == 0 && now_ < began + 2min) answer_all(next(10s), foreign);
  EXPECT_EQ(refresher_.replacements(), 1U);
  EXPECT_GE(now_ - began, 20s);
  EXPECT_EQ(refresher_.map()->owner(0)->id, std::string(40, 'f'));
  EXPECT_EQ(refresher_.map()->find(id_of(1)), nullptr);
}

TEST_F(Refresh, LiesGiveNoMap) {
  open();
  const auto before = refresher_.map();
  for (const std::string_view lie : {"", "x", "\n\n"}) {
    refresher_.doubt(now_);
    EXPECT_FALSE(answer_all(next(10s), lie));
  }
  refresher_.doubt(now_);
  for (const auto& question : next(10s)) EXPECT_FALSE(refresher_.answered(now_, question.id, {}));
  EXPECT_EQ(refresher_.map(), before);
  EXPECT_FALSE(refresher_.answered(now_, 4711, answer(three))) << "no such question";
}

TEST_F(Refresh, ALateAnswerIsNotUsed) {
  open();
  refresher_.doubt(now_);
  const auto questions = next(1s);
  now_ += 501ms;
  act();
  EXPECT_FALSE(answer_all(questions, line(4, 9, " 0-5460")));
  EXPECT_EQ(owner_of(0), "10.0.0.1:7001");
}

TEST_F(Refresh, ServersWithoutShardsAreAskedForSlots) {
  const auto questions = act();
  EXPECT_EQ(questions[0].form, Form::shards);
  answer_all(questions, three);
  refresher_.doubt(now_);
  const auto next_ones = next(1s);
  ASSERT_FALSE(next_ones.empty());
  EXPECT_EQ(next_ones[0].form, Form::slots);
}

TEST_F(Refresh, InPeaceAsksFromTimeToTime) {
  open();
  EXPECT_TRUE(next(17s).empty());
  EXPECT_EQ(next(60s).size(), 3U);
}

TEST_F(Refresh, InALargeClusterAsksSeldom) {
  std::string nodes;
  for (int node = 0; node < 640; ++node) nodes += line(node, 1, node == 7 ? " 0-16383" : "");
  answer_all(act(), nodes);
  refresher_.doubt(now_);
  answer_all(next(5s), nodes);
  refresher_.doubt(now_);
  const auto began = now_;
  EXPECT_FALSE(next(5s).empty());
  EXPECT_GE(now_ - began, 1s);
}

}  // namespace
}  // namespace sluice::topology::test
