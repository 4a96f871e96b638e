/// A check that finds nothing proves nothing: for each promise a history that breaks it, and one
/// that just does not.
#include "lock/chaos/findings.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "support/temp_dir.hpp"

namespace sluice::chaos {
namespace {

using namespace std::chrono_literals;
using Kind = Trouble::Kind;

/// A stay in a lock; tokens are the microseconds of the moment when they were given.
Section stay(const char* who, Stamp came, Stamp valid, const char* name = "mutex") {
  return {.who = who,
          .name = name,
          .asked = came - 1ms,
          .came = came,
          .entered = true,
          .token = static_cast<std::uint64_t>(came.count() / 1000),
          .valid = valid,
          .left = valid};
}

Section stay_with(std::uint64_t token, Section section) {
  section.token = token;
  return section;
}

Section reader(const char* who, Stamp came, Stamp valid, std::uint64_t token) {
  auto section = stay_with(token, stay(who, came, valid, "shared"));
  section.mode = Mode::shared;
  return section;
}

Section permits(const char* who, std::uint64_t many, Stamp came, Stamp valid) {
  auto section = stay_with(0, stay(who, came, valid, "desks"));
  section.mode = Mode::permits;
  section.permits = many;
  return section;
}

Section number(std::uint64_t number, Stamp came, const char* name = "numbers") {
  auto section = stay_with(number, stay("a", came, came, name));
  section.mode = Mode::number;
  return section;
}

Trouble trouble(Kind kind, Stamp begin, Stamp end, const char* who = "") {
  return {.kind = kind,
          .text = "trouble",
          .begin = begin,
          .end = end,
          .end_us = static_cast<std::uint64_t>(end.count() / 1000),
          .who = who};
}

/// What is found, each by its first words; what a loss explains is not.
std::vector<std::string> found(const std::vector<Section>& sections,
                               const std::vector<Trouble>& troubles = {}) {
  const Rules rules{.names = {{"mutex", {}},
                              {"durable", {.durable = true}},
                              {"shared", {}},
                              {"desks", {.permits = 3, .most = 2}},
                              {"fair", {.fair = true}},
                              {"quorum", {.apart = true}},
                              {"rate", {.rate = 3}},
                              {"latch", {.count = 2}},
                              {"numbers", {.numbers = true}},
                              {"durable-numbers", {.durable = true, .numbers = true}}},
                    .lease = 1s,
                    .patience = 3s,
                    .longest = 60s,
                    .queued = 1s};
  std::vector<std::string> all;
  for (const auto& finding : check(sections, troubles, rules)) {
    EXPECT_NE(extract(sections, troubles, finding).find(finding.text), std::string::npos);
    if (!finding.is_explained) all.push_back(finding.text.substr(0, finding.text.find(':')));
  }
  return all;
}

using Found = std::vector<std::string>;

TEST(Findings, TwoValidHolders) {
  EXPECT_EQ(found({stay("1.1/1", 1s, 3s), stay("2.1/1", 2s, 4s)}), Found{"two exclusive holders"});
  EXPECT_EQ(found({stay("1.1/1", 1s, 2s), stay("2.1/1", 2s, 4s)}), Found{});
}

TEST(Findings, AHoldIsCertainAsLongAsItWasSeenToBeValid) {
  auto unaware = stay("1.1/1", 1s, 2s);
  unaware.left = 9s;  // it did not look any more
  EXPECT_EQ(found({unaware, stay("2.1/1", 3s, 4s)}), Found{});
}

TEST(Findings, AHoldFromBeforeALossMayOverlapForALease) {
  const auto loss = trouble(Kind::snapshot, 2s, 2500ms);
  EXPECT_EQ(found({stay("1.1/1", 1s, 3400ms), stay("2.1/1", 3s, 4s)}, {loss}), Found{});
  EXPECT_EQ(found({stay("1.1/1", 1s, 3600ms), stay("2.1/1", 3s, 4s)}, {loss}),
            Found{"two exclusive holders"});
  EXPECT_EQ(found({stay("1.1/1", 2700ms, 3400ms), stay("2.1/1", 3s, 4s)}, {loss}),
            Found{"two exclusive holders"})
      << "both are from after it";
}

TEST(Findings, ManyLossesAreCheckedInNoTime) {
  std::vector<Trouble> losses;
  for (int i = 0; i < 100; ++i)
    losses.push_back(trouble(Kind::snapshot, 10s + i * 2s, 10s + i * 2s + 1ms));
  EXPECT_EQ(found({stay("1.1/1", 1s, 500s), stay("2.1/1", 400s, 600s)}, losses),
            Found{"two exclusive holders"});
}

TEST(Findings, ANumberThatIsGivenTwice) {
  const Found twice{"number 7 is given to a and was a's"};
  EXPECT_EQ(found({number(7, 1s), number(8, 2s), number(7, 3s)}),
            (Found{twice.front(), "number not rising"}));
  EXPECT_EQ(found({number(7, 1s), number(7, 1s)}), twice);
  EXPECT_EQ(found({number(7, 1s), number(9, 2s), number(10, 3s)}), Found{});
}

TEST(Findings, ANumberOfAServerThatLostItMayComeAgain) {
  const std::vector<Section> again{number(7, 1s), number(8, 2s), number(8, 4s), number(9, 5s)};
  const auto promotion = trouble(Kind::promotion, 2500ms, 3s);
  EXPECT_EQ(found(again, {promotion}), Found{});
  EXPECT_EQ(
      check(again, {promotion}, {.names = {{"numbers", {.numbers = true}}}, .lease = 1s}).size(),
      1U)
      << "it is told";
  EXPECT_EQ(found({number(8, 1s), number(8, 4s)}, {promotion}).size(), 1U)
      << "a replica had it long before";
  EXPECT_EQ(found({number(8, 1s), number(8, 4s)}, {trouble(Kind::snapshot, 2500ms, 3s)}), Found{});
  EXPECT_EQ(found({number(8, 2s), number(8, 2400ms)}, {promotion}).size(), 1U) << "before the loss";
  EXPECT_EQ(found({number(8, 2s, "durable-numbers"), number(8, 4s, "durable-numbers")}, {promotion})
                .size(),
            1U)
      << "a replica was demanded";
}

TEST(Findings, APromotionIsNoExcuseWhereAReplicaWasDemanded) {
  const auto promotion = trouble(Kind::promotion, 2s, 2500ms);
  const auto play = [&](const char* name, Trouble what) {
    return found({stay("1.1/1", 1s, 3400ms, name), stay("2.1/1", 3s, 4s, name)}, {what});
  };
  EXPECT_EQ(play("mutex", promotion), Found{});
  EXPECT_EQ(play("durable", promotion), Found{"two exclusive holders"});
  EXPECT_EQ(play("durable", trouble(Kind::snapshot, 2s, 2500ms)), Found{});
  EXPECT_EQ(play("mutex", trouble(Kind::server, 2s, 2500ms)), Found{"two exclusive holders"});
}

TEST(Findings, AReaderBesideAWriter) {
  EXPECT_EQ(found({reader("1.1/1", 1s, 3s, 1), stay("2.1/1", 2s, 4s, "shared")}),
            Found{"shared beside exclusive"});
  EXPECT_EQ(found({reader("1.1/1", 1s, 3s, 1), reader("2.1/1", 2s, 4s, 1)}), Found{});
}

TEST(Findings, MorePermitsThanThereAre) {
  EXPECT_EQ(found({permits("1.1/1", 2, 1s, 3s), permits("2.1/1", 2, 2s, 4s)}),
            Found{"permits above total"});
  EXPECT_EQ(found({permits("1.1/1", 2, 1s, 3s), permits("2.1/1", 1, 2s, 4s)}), Found{});
  EXPECT_EQ(found({permits("1.1/1", 2, 1s, 3s), permits("2.1/1", 2, 2s, 4s)},
                  {trouble(Kind::promotion, 1500ms, 3s)}),
            Found{});
}

TEST(Findings, ATokenThatIsGivenTwice) {
  EXPECT_EQ(found({stay_with(7, stay("1.1/1", 1s, 2s)), stay_with(7, stay("2.1/1", 3s, 4s))},
                  {trouble(Kind::snapshot, 2s, 2500ms)})
                .at(0),
            "token 7 is given to 2.1/1 and was 1.1/1's");
}

TEST(Findings, ATokenThatDoesNotRise) {
  const auto first = stay_with(8, stay("1.1/1", 1s, 2s));
  auto second = stay_with(7, stay("2.1/1", 3s, 4s));
  EXPECT_EQ(found({first, second}), Found{"token not rising"});
  second.asked = 500ms;  // it may have been granted before
  EXPECT_EQ(found({first, second}), Found{});
}

TEST(Findings, ATokenFromBeforeALossMayComeLateButANewOneRises) {
  const auto loss = trouble(Kind::snapshot, 2s, 2500ms);
  const auto first = stay("1.1/1", 2100ms, 2400ms);
  EXPECT_EQ(found({first, stay_with(1'999'000, stay("2.1/1", 2900ms, 3s))}, {loss}), Found{});
  EXPECT_EQ(found({first, stay_with(1'999'000, stay("2.1/1", 4s, 5s))}, {loss}),
            Found{"token not rising"});
}

TEST(Findings, AReaderKnowsTheLastWriter) {
  const auto writer = stay_with(5, stay("1.1/1", 1s, 2s, "shared"));
  EXPECT_EQ(found({writer, reader("2.1/1", 3s, 4s, 5)}), Found{});
  EXPECT_EQ(found({writer, reader("2.1/1", 3s, 4s, 4)}).size(), 1U);
  EXPECT_EQ(found({writer, reader("2.1/1", 5s, 6s, 4)}, {trouble(Kind::snapshot, 2s, 2500ms)}),
            Found{});
  EXPECT_EQ(found({reader("2.1/1", 3s, 4s, 9), stay_with(9, stay("1.1/1", 5s, 6s, "shared"))}),
            Found{"token not rising"});
}

Section waited(const char* who, Stamp asked, Stamp came, const char* name = "mutex") {
  auto section = stay(who, came, came + 1ms, name);
  section.asked = asked;
  return section;
}

TEST(Findings, AWaiterBesideAFreeLock) {
  const auto holder = stay("1.1/1", 1s, 2s);
  EXPECT_EQ(found({holder, waited("2.1/1", 1500ms, 4900ms)}), Found{});
  EXPECT_EQ(found({holder, waited("2.1/1", 1500ms, 5100ms)}), Found{"forgotten"});
  EXPECT_EQ(found({holder, stay("3.1/1", 3s, 3500ms), waited("2.1/1", 1500ms, 6s)}), Found{});
}

TEST(Findings, AProcessThatIsNotWellCostsTwoSecondsAndALease) {
  const std::vector<Section> sections{stay("1.1/1", 1s, 2s), waited("2.1/1", 1500ms, 7s)};
  EXPECT_EQ(found(sections, {trouble(Kind::process, 1s, 20s, "3.1")}), Found{});
  EXPECT_EQ(found(sections, {trouble(Kind::process, 20s, 30s, "3.1")}), Found{"forgotten"});
  const std::vector<Section> longer{stay("1.1/1", 1s, 2s), waited("2.1/1", 1500ms, 20s)};
  EXPECT_EQ(found(longer, {trouble(Kind::process, 3s, 18s, "3.1")}), Found{"forgotten"});
  EXPECT_EQ(found(longer, {trouble(Kind::process, 3s, 18s, "2.1")}), Found{}) << "it stood still";
  EXPECT_EQ(found(longer, {trouble(Kind::server, 3s, 18s)}), Found{});
}

TEST(Findings, WhoDidNotSayThatItLeftIsInForALease) {
  auto killed = stay("1.1/1", 1s, 2s);
  killed.left.reset();
  EXPECT_EQ(found({killed, waited("2.1/1", 1500ms, 5900ms)}), Found{});
  EXPECT_EQ(found({killed, waited("2.1/1", 1500ms, 6100ms)}), Found{"forgotten"});
}

TEST(Findings, PermitsAreFreeWhenThereAreEnoughForAnyone) {
  auto waiter = permits("2.1/1", 2, 9s, 10s);
  waiter.asked = 1500ms;
  EXPECT_EQ(found({permits("1.1/1", 2, 1s, 8s), waiter}), Found{});
  EXPECT_EQ(found({permits("1.1/1", 1, 1s, 8s), waiter}), Found{"forgotten"});
}

TEST(Findings, AWaitThatIsTooLongInAll) {
  std::vector<Section> sections;
  for (int i = 1; i < 70; ++i) sections.push_back(stay("1.1/1", i * 1s, i * 1s + 999ms));
  sections.push_back(waited("2.1/1", 2s, 70s));
  EXPECT_EQ(found(sections), Found{"starved"});
  EXPECT_EQ(found(sections, {trouble(Kind::server, 20s, 27s)}), Found{"starved"});
  EXPECT_EQ(found(sections, {trouble(Kind::server, 20s, 29s)}), Found{});
  EXPECT_EQ(found(sections, {trouble(Kind::process, 20s, 29s, "1.1")}), Found{"starved"});
}

TEST(Findings, OneThatIsInBeforeAnotherThatStoodInTheQueueOfAFairLock) {
  const auto holder = stay("1.1/1", 1s, 4s, "fair");
  const auto first = waited("2.1/1", 1500ms, 5s, "fair");
  const auto late = [](Stamp asked) { return waited("3.1/1", asked, 4500ms, "fair"); };
  EXPECT_EQ(found({holder, first, late(2600ms)}), Found{"overtaken"});
  EXPECT_EQ(found({holder, first, late(2400ms)}), Found{}) << "nobody knows who was there first";
  const auto while_stopped = [&](const char* who) {
    return found({holder, first, late(2600ms)}, {trouble(Kind::process, 2s, 3s, who)});
  };
  EXPECT_EQ(while_stopped("2.1"), Found{}) << "it goes to the end";
  EXPECT_EQ(while_stopped("1.1"), Found{"overtaken"});
  EXPECT_EQ(found({holder, first, late(2600ms)}, {trouble(Kind::server, 2s, 2100ms)}), Found{});
}

TEST(Findings, AQuorumLosesNothingWithTheServer) {
  EXPECT_EQ(found({stay("1.1/1", 1s, 3400ms, "quorum"), stay("2.1/1", 3s, 4s, "quorum")},
                  {trouble(Kind::snapshot, 2s, 2500ms)}),
            Found{"two exclusive holders"});
}

TEST(Findings, MorePermitsThanTheRateInASecond) {
  const auto taken = [](std::uint64_t permits, Stamp asked, Stamp came) {
    auto section = waited("1.1/1", asked, came, "rate");
    section.mode = Mode::rate;
    section.permits = permits;
    return section;
  };
  EXPECT_EQ(found({taken(2, 1s, 1100ms), taken(2, 1800ms, 1900ms)}), Found{"rate"});
  EXPECT_EQ(found({taken(2, 1s, 1100ms), taken(2, 1800ms, 2s)}), Found{});
  EXPECT_EQ(found({taken(2, 1s, 1100ms), taken(2, 1800ms, 1900ms)},
                  {trouble(Kind::snapshot, 1s, 1500ms)}),
            Found{});
}

Section call_of_latch(Mode mode, Stamp asked, Stamp came, bool entered = true) {
  auto section = waited("1.1/1", asked, came, "latch");
  section.mode = mode;
  section.permits = mode == Mode::set ? 2 : 0;
  section.entered = entered;
  return section;
}

TEST(Findings, ALatchThatIsOpenBeforeAllHaveCounted) {
  const auto set = call_of_latch(Mode::set, 1s, 1100ms);
  const auto one = call_of_latch(Mode::count_down, 2s, 2100ms);
  const auto other = call_of_latch(Mode::count_down, 3s, 3100ms, false);  // it failed
  const auto opens = [](Stamp at) { return call_of_latch(Mode::wait, 1500ms, at); };
  EXPECT_EQ(found({set, one, other, opens(2900ms)}), Found{"open"});
  EXPECT_EQ(found({set, one, other, opens(3s)}), Found{});
  EXPECT_EQ(found({set, one, opens(2900ms)}, {trouble(Kind::promotion, 1s, 2s)}), Found{});
}

TEST(Findings, AWaiterAtAnOpenLatch) {
  const auto play = [](Stamp came, Stamp asked = 1500ms) {
    return found({call_of_latch(Mode::set, 1s, 1100ms), call_of_latch(Mode::count_down, 2s, 2100ms),
                  call_of_latch(Mode::count_down, 3s, 3100ms),
                  call_of_latch(Mode::wait, asked, came, false)});
  };
  EXPECT_EQ(play(6s), Found{});
  EXPECT_EQ(play(6200ms), Found{"forgotten"});
  EXPECT_EQ(play(9s, 3200ms), Found{}) << "it may have been set again";
}

TEST(Findings, WhatEndedLongAgoIsNotLookedAtAgain) {
  const Rules rules{.names = {{"mutex", {}}}, .lease = 1s};
  const std::vector<Section> sections{stay("1.1/1", 1s, 3s), stay("2.1/1", 2s, 4s)};
  EXPECT_EQ(check(sections, {}, rules, 2s).size(), 1U);
  EXPECT_EQ(check(sections, {}, rules, 5s).size(), 0U);
}

class Journals : public testing::Test {
 protected:
  void write(const std::string& text) {
    std::ofstream{folder_ / "j", std::ios::app | std::ios::binary} << text;
    sections_.read(folder_ / "j", "1.1");
  }

  test::TempDir folder_;
  Sections sections_;
};

TEST_F(Journals, SayWhatWasWritten) {
  {
    Journal journal{folder_ / "j"};
    journal.ask(7, "mutex", Mode::exclusive, 0);
    journal.enter(7, "mutex", 42, 5s);
    journal.valid(7, 6s);
    journal.leave(7);
    journal.ask(8, "desks", Mode::permits, 2);
    journal.fail(8, "no such thing");
  }
  sections_.read(folder_ / "j", "1.1");
  ASSERT_EQ(sections_.all().size(), 2U);
  const Section& stayed = sections_.all()[0];
  EXPECT_EQ(stayed.who, "1.1/7");
  EXPECT_TRUE(stayed.entered && stayed.left);
  EXPECT_EQ(stayed.token, 42U);
  EXPECT_EQ(stayed.came, 5s);
  EXPECT_EQ(stayed.valid, 6s);
  EXPECT_EQ(sections_.all()[1].permits, 2U);
  EXPECT_FALSE(sections_.all()[1].entered);
  EXPECT_EQ(sections_.failures().at("no-such-thing"), 1U);
}

TEST_F(Journals, OfOneThatIsKilledEndWithItsLastLine) {
  write("1000 ask 1 mutex exclusive 0\n2000 enter 1 mutex 9\n3000 valid 1\n4000 va");
  EXPECT_EQ(sections_.all().at(0).valid, 3000ns);
  EXPECT_FALSE(sections_.all()[0].left);
}

TEST_F(Journals, AreReadOnWhereTheyEnded) {
  write("1000 ask 1 mutex exclusive 0\n2000 ent");
  EXPECT_FALSE(sections_.all().at(0).entered);
  write("er 1 mutex 9\n3000 leave 1\n");
  EXPECT_TRUE(sections_.all().at(0).entered);
  EXPECT_EQ(sections_.all().size(), 1U);
}

TEST_F(Journals, HaveASectionForEachNameOfAMultiLock) {
  write("1000 ask 1 a+b exclusive 0\n2000 enter 1 a 9\n2000 enter 1 b 4\n3000 valid 1\n");
  ASSERT_EQ(sections_.all().size(), 2U);
  EXPECT_EQ(sections_.all()[0].token, 9U);
  EXPECT_EQ(sections_.all()[1].token, 4U);
  EXPECT_EQ(sections_.all()[1].valid, 3000ns);
}

TEST_F(Journals, WithLinesThatNobodyWritesAreRefused) {
  EXPECT_THROW(write("x ask 1 mutex exclusive 0\n"), std::runtime_error);
  EXPECT_THROW(write("1 leave 1\n"), std::runtime_error) << "it did not ask";
}

}  // namespace
}  // namespace sluice::chaos
