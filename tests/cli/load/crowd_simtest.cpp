// A crowd in virtual time, at servers that are slow, broken, busy, or lie.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cli/load/crowd.hpp"

namespace sluice::load {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

HttpAnswer answer(int status, std::string body = "{}") {
  return {.status = status, .keeps_alive = true, .retry_after = {}, .body = std::move(body)};
}
HttpAnswer order(int status, int number, std::int64_t units = 1) {
  return answer(status, fmt::format(R"({{"id":"{}","number":"T{}","units":{},"recorded":true}})",
                                    number, number, units));
}
HttpAnswer problem(int status, std::string_view type,
                   std::optional<std::chrono::seconds> retry = {}) {
  auto refusal = answer(status, fmt::format(R"({{"type":"urn:sluice:problem:{}"}})", type));
  refusal.retry_after = retry;
  return refusal;
}

std::string field(const std::string& request, const std::string& name) {
  const auto at = request.find("\r\n" + name + ": ");
  if (at == std::string::npos) return {};
  const auto from = at + name.size() + 4;
  return request.substr(from, request.find("\r\n", from) - from);
}
bool is_click(const std::string& request) {
  return request.find("/orders HTTP") != std::string::npos;
}

/// Serves one request at a time, in virtual time: each takes `takes`, unless the test says more.
class Stage {
 public:
  /// Empty: the connection breaks.
  using Server = std::function<std::optional<HttpAnswer>(const std::string& request)>;

  explicit Stage(CrowdPlan plan) : crowd(std::move(plan), ledger, begins, WallTime{}) {}

  /// Until everybody has left.
  void run(const Server& server, const std::function<nanoseconds(SteadyTime)>& takes) {
    for (int asked = 0; !crowd.is_over(); ++asked) {
      ASSERT_LT(asked, 100'000) << "it never ends";
      const auto ask = crowd.next(now);
      if (!ask) {
        ASSERT_NE(crowd.next_due(), SteadyTime::max()) << "somebody waits for nothing";
        now = std::max(now + 1ns, crowd.next_due());
        continue;
      }
      times.push_back(now);
      requests.push_back(ask->bytes);
      now += takes(now);
      const auto told = server(ask->bytes);
      if (told)
        crowd.answered(ask->buyer, *told, now);
      else
        crowd.failed(ask->buyer, "connection closed", now);
    }
  }
  void run(const Server& server) {
    run(server, [](SteadyTime) { return 1ms; });
  }

  const SteadyTime begins{1h};
  SteadyTime now = begins;
  Ledger ledger;
  Crowd crowd;
  std::vector<std::string> requests;
  std::vector<SteadyTime> times;
};

CrowdPlan plan_of(std::uint64_t buyers) {
  CrowdPlan plan;
  plan.sale = "tea";
  plan.buyers = buyers;
  plan.looks = false;
  plan.repeats = 0;
  return plan;
}

std::chrono::microseconds click_quantile(const Stage& stage, double share) {
  return stage.crowd.tally().latencies[static_cast<std::size_t>(Step::click)].quantile(share);
}

// The server stands still for a second, once. A tool that waits for an answer before it asks again
// would see one slow answer; here all who came in that second waited, and count.
TEST(Crowd, AServerThatStoodStillDelayedAllWhoCameMeanwhile) {
  auto plan = plan_of(10'000);
  plan.rate = 100;
  plan.lasts = 10s;
  Stage stage{plan};
  int next = 0;
  stage.run([&](const std::string&) { return order(201, ++next); },
            [&, stood = false](SteadyTime now) mutable -> nanoseconds {
              if (stood || now < stage.begins + 5s) return 1ms;
              stood = true;
              return 1s;
            });
  EXPECT_EQ(stage.crowd.tally().arrived, 1000U);
  EXPECT_LT(click_quantile(stage, 0.5), 1100us);
  EXPECT_GT(click_quantile(stage, 0.95), 400ms);
  EXPECT_GT(click_quantile(stage, 0.99), 850ms);
  const auto& all = stage.crowd.tally().latencies[static_cast<std::size_t>(Step::click)];
  // 100 came within the second, and had to wait for half of it on average; then the queue shrinks
  // by nine tenths of its speed.
  EXPECT_NEAR(static_cast<double>(all.mean().count()), 1000 + 0.1 * 500'000 * 1.11, 6000);
}

TEST(Crowd, BuyersComeAtTheirRateWhateverTheServerDoes) {
  auto plan = plan_of(1000);
  plan.rate = 1000;
  plan.lasts = 100ms;
  Stage stage{plan};
  int next = 0;
  stage.run([&](const std::string&) { return order(201, ++next); },
            [](SteadyTime) { return 10ms; });
  EXPECT_EQ(stage.crowd.tally().arrived, 100U);
  EXPECT_GT(click_quantile(stage, 1), 850ms);
}

TEST(Crowd, ABrokenConnectionIsRepeatedWithTheSameKeyAndIsOnePurchase) {
  Stage stage{plan_of(1)};
  int asked = 0;
  stage.run([&](const std::string&) -> std::optional<HttpAnswer> {
    if (++asked < 4) return std::nullopt;
    return order(200, 1);
  });
  ASSERT_EQ(stage.requests.size(), 4U);
  for (const auto& request : stage.requests) EXPECT_EQ(request, stage.requests[0]);
  EXPECT_EQ(stage.crowd.tally().retries, 3U);
  EXPECT_EQ(stage.crowd.tally().broken, 3U);
  EXPECT_EQ(stage.crowd.tally().admitted, 1U);
  EXPECT_EQ(stage.ledger.breaches(), 0U);
  EXPECT_EQ(stage.crowd.tally().purchases.count(), 1U);
  EXPECT_GE(stage.crowd.tally().purchases.quantile(1), 4ms + 25ms);
}

TEST(Crowd, ARefusalForAWhileIsRepeatedWhenItSays) {
  for (const auto& [status, type] : {std::pair{429, "too-many-requests"},
                                     {503, "recovering"},
                                     {503, "effect-unknown"},
                                     {403, "not-started"}}) {
    Stage stage{plan_of(1)};
    int asked = 0;
    stage.run([&](const std::string&) {
      return ++asked == 1 ? problem(status, type, 4s) : order(201, 1);
    });
    ASSERT_EQ(stage.times.size(), 2U) << type;
    const auto pause = stage.times[1] - stage.times[0];
    EXPECT_GE(pause, 2s) << type;
    EXPECT_LE(pause, 4s + 1ms) << type;
    EXPECT_EQ(stage.crowd.tally().admitted, 1U) << type;
  }
}

// A proxy in front whose server was killed: what it was asked may have been done.
TEST(Crowd, AnAnswerInPlaceOfTheServersIsAskedAgain) {
  for (const int status : {500, 502, 504, 599}) {
    Stage stage{plan_of(1)};
    int asked = 0;
    stage.run([&](const std::string&) {
      return ++asked == 1 ? answer(status, "<html>") : order(200, 1);
    });
    EXPECT_EQ(stage.requests.size(), 2U) << status;
    EXPECT_EQ(stage.crowd.tally().admitted, 1U) << status;
  }
  auto plan = plan_of(3);
  plan.tries = 2;
  Stage stage{plan};
  stage.run([](const std::string&) { return answer(502, ""); });
  EXPECT_EQ(stage.ledger.open_units(), 3) << "they may have been bought";
  EXPECT_EQ(stage.crowd.tally().decided, 0U);
}

// A server that stands still for good: those who wait at the end have waited.
TEST(Crowd, TheWaitOfThoseWhoWereNeverAnsweredCounts) {
  auto plan = plan_of(100);
  plan.rate = 100;
  plan.lasts = 1s;
  Stage stage{plan};
  const auto ask = stage.crowd.next(stage.now);
  ASSERT_TRUE(ask);
  stage.crowd.answered(ask->buyer, order(201, 1), stage.now + 1ms);
  stage.now += 10s;
  while (stage.crowd.next(stage.now)) {
  }
  stage.crowd.end(stage.now);
  EXPECT_EQ(stage.crowd.tally().given_up, 99U);
  EXPECT_EQ(stage.crowd.tally().count_of(Step::click, "no answer until the end"), 99U);
  EXPECT_GT(click_quantile(stage, 0.5), 9s);
  EXPECT_GT(stage.crowd.tally().purchases.quantile(0.5), 9s);
}

TEST(Crowd, WhatAServerSaysGivesATerminalAndTheNextRequestNoCommands) {
  auto plan = plan_of(200);
  plan.queues = true;
  Stage stage{plan};
  int asked = 0;
  stage.run([&](const std::string& request) {
    if (!is_click(request)) return answer(200, R"({"state":"inside","ticket":"a\r\nX: y"})");
    return problem(409, fmt::format(R"(\u001b[2J{})", ++asked));
  });
  const auto& kinds = stage.crowd.tally().outcomes[static_cast<std::size_t>(Step::click)];
  EXPECT_LE(kinds.size(), 51U) << "a server may think of many";
  EXPECT_EQ(kinds.begin()->first.substr(0, 11), R"(409 \x1b[2J)") << kinds.begin()->first;
  for (const auto& request : stage.requests) EXPECT_EQ(request.find("X: y"), std::string::npos);
  stage.ledger.broken("a promise", std::string("\x1b]0;\xff") + std::string(1000, 'x'));
  const auto& evidence = stage.ledger.evidence().back().evidence;
  EXPECT_TRUE(evidence.starts_with(R"(\x1b]0;\xffxxx)")) << evidence;
  EXPECT_LT(evidence.size(), 600U);
}

TEST(Crowd, ABuyerGivesUpAfterHisTriesAndHisPurchaseStaysOpen) {
  auto plan = plan_of(3);
  plan.tries = 5;
  plan.most_units = 1;
  Stage stage{plan};
  stage.run([](const std::string&) { return std::nullopt; });
  EXPECT_EQ(stage.requests.size(), 15U);
  EXPECT_EQ(stage.crowd.tally().given_up, 3U);
  EXPECT_EQ(stage.ledger.open_units(), 3);
  EXPECT_EQ(stage.crowd.tally().first_trouble, "connection closed");
}

TEST(Crowd, GoesThroughTheWaitingRoom) {
  auto plan = plan_of(1);
  plan.queues = true;
  Stage stage{plan};
  int polls = 0;
  stage.run([&](const std::string& request) -> std::optional<HttpAnswer> {
    if (request.starts_with("POST /v1/sales/tea/queue"))
      return answer(200, R"({"state":"enrolled","ticket":"tick","poll_after_ms":3000})");
    if (!is_click(request))
      return answer(200, ++polls < 3 ? R"({"state":"waiting","poll_after_ms":500})"
                                     : R"({"state":"inside","poll_after_ms":0})");
    return order(201, 1);
  });
  ASSERT_EQ(stage.requests.size(), 5U);
  EXPECT_EQ(field(stage.requests[1], "Sluice-Ticket"), "tick");
  EXPECT_EQ(field(stage.requests[4], "Sluice-Ticket"), "tick");
  EXPECT_GE(stage.times[1] - stage.times[0], 3s) << "he was told when to ask again";
  EXPECT_GE(stage.times[2] - stage.times[1], 500ms);
  EXPECT_EQ(stage.crowd.tally().admitted, 1U);
}

TEST(Crowd, ThinksAndClicksAgainAsPlanned) {
  auto plan = plan_of(2000);
  plan.looks = true;
  plan.think = 1s;
  plan.repeats = 0.25;
  plan.most_units = 4;
  Stage stage{plan};
  std::map<std::string, std::pair<int, std::int64_t>> orders;
  std::set<std::int64_t> seen;
  stage.run(
      [&](const std::string& request) {
        if (!is_click(request)) return answer(200, R"({"stock":9999,"sold":0})");
        const auto units = std::stoll(request.substr(request.find("units\":") + 7));
        seen.insert(units);
        const auto next = std::pair{static_cast<int>(orders.size()) + 1, std::int64_t{units}};
        const auto [at, is_new] = orders.try_emplace(field(request, "Sluice-Buyer"), next);
        return order(is_new ? 201 : 200, at->second.first, at->second.second);
      },
      [](SteadyTime) { return 1us; });
  const auto& tally = stage.crowd.tally();
  EXPECT_EQ(tally.admitted, 2000U);
  EXPECT_NEAR(static_cast<double>(tally.repeats_same), 500, 80);
  EXPECT_EQ(seen, (std::set<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(stage.ledger.breaches(), 0U);
  EXPECT_GT(stage.now - stage.begins, 4s) << "some think for long";
  EXPECT_LT(click_quantile(stage, 0.99), 100ms) << "thinking is no latency";
}

TEST(Crowd, SignsATokenForEachBuyer) {
  auto plan = plan_of(1);
  plan.keys = TokenKeys{{{.id = "k1", .secret = std::string(32, 's')}}};
  Stage stage{plan};
  stage.run([&](const std::string&) { return order(201, 1); });
  const auto word = field(stage.requests[0], "Authorization");
  ASSERT_TRUE(word.starts_with("Bearer ")) << word;
  const auto claims = plan.keys->check(word.substr(7), "sale:tea", WallTime{});
  ASSERT_TRUE(claims);
  EXPECT_EQ(claims->subject, "load-0");
  EXPECT_EQ(field(stage.requests[0], "Sluice-Buyer"), "");
}

TEST(Crowd, ANameOfASaleIsEscapedInAPath) {
  auto plan = plan_of(1);
  plan.sale = "a/b c?\r\nX: y";
  Stage stage{plan};
  stage.run([&](const std::string&) { return order(201, 1); });
  EXPECT_TRUE(
      stage.requests[0].starts_with("POST /v1/sales/a%2Fb%20c%3F%0D%0AX%3A%20y/orders HTTP"))
      << stage.requests[0];
}

struct Lie {
  std::string_view promise;
  std::function<HttpAnswer(int asked)> tells;
};

TEST(Crowd, FindsEachLie) {
  const Lie lies[] = {
      {"an order number is given once",
       [](int asked) {
         return asked < 2 ? order(201, 1) : answer(201, R"({"id":"2","number":"T1","units":1})");
       }},
      {"an order id is given once",
       [](int asked) {
         return asked < 2 ? order(201, 1) : answer(201, R"({"id":"1","number":"T2","units":1})");
       }},
      {"the same key gets the same order", [](int asked) { return order(201, asked); }},
      {"the same key gets the same order",
       [](int asked) { return asked % 2 == 0 ? problem(409, "sold-out") : order(201, asked); }},
      {"an order has the units that were asked for",
       [](int asked) { return order(201, asked, 2); }},
      {"a purchase is answered by its order", [](int) { return answer(201, "{}"); }},
      {"a purchase is answered by its order", [](int) { return answer(201, "[[[["); }},
  };
  for (const auto& lie : lies) {
    auto plan = plan_of(2);
    plan.repeats = 1;
    Stage stage{plan};
    int asked = 0;
    stage.run([&](const std::string&) { return lie.tells(++asked); });
    ASSERT_GT(stage.ledger.breaches(), 0U) << lie.promise;
    EXPECT_TRUE(std::ranges::any_of(stage.ledger.evidence(), [&](const Breach& breach) {
      return breach.promise == lie.promise && !breach.evidence.empty();
    })) << lie.promise;
  }
}

TEST(Crowd, AnOrderThatCannotBeFoundAfterwardsIsALie) {
  const auto look = [](const HttpAnswer& shown) {
    Stage stage{plan_of(1)};
    stage.run([&](const std::string&) { return order(201, 1); });
    Stage audit{plan_of(0)};
    audit.ledger = stage.ledger;
    audit.crowd.check_orders(audit.now, audit.now + 10s);
    audit.run([&](const std::string& request) {
      EXPECT_NE(request.find("/orders/1 HTTP"), std::string::npos) << request;
      return shown;
    });
    return audit.ledger.evidence().empty() ? "" : audit.ledger.evidence()[0].promise;
  };
  EXPECT_EQ(look(order(200, 1)), "");
  EXPECT_EQ(look(order(200, 2)), "an order that was told stands");
  EXPECT_EQ(look(problem(404, "no-order")), "an order that was told stands");
  EXPECT_EQ(look(answer(200, R"({"id":"1","number":"T1","units":1,"recorded":false})")),
            "the database has the orders");
}

TEST(Ledger, TheSalesFiguresMustAgree) {
  struct Case {
    ToldSale after;
    bool alone;
    bool holds;
  };
  const ToldSale before{.stock = 10, .sold = 2};
  for (const auto& [after, alone, holds] : {
           Case{{.stock = 10, .sold = 5}, true, true},
           Case{{.stock = 10, .sold = 4}, true, false},  // it counts fewer
           Case{
               {.stock = 10, .sold = 7}, true, true},  // two may have been bought without an answer
           Case{{.stock = 10, .sold = 8}, true, false},
           Case{{.stock = 10, .sold = 8}, false, true},  // another buyer's
           Case{{.stock = 10, .sold = 4}, false, true},  // another buyer has cancelled
           Case{{.stock = 4, .sold = 5}, false, false},  // oversold
           Case{{.stock = 2, .sold = 2}, false, true},   // the shop has taken some back meanwhile
           Case{{.stock = 10, .sold = 4, .has_price = true}, true, true},
       }) {
    Ledger ledger;
    for (int i = 0; i < 3; ++i)
      ledger.told(fmt::format("b{}", i), "k", 1,
                  {.id = fmt::to_string(i), .number = fmt::format("T{}", i), .units = 1});
    ledger.left_open(2);
    ledger.compare(before, after, alone);
    EXPECT_EQ(ledger.breaches() == 0, holds) << after.stock << ' ' << after.sold << ' ' << alone;
  }
}

TEST(Ledger, FiguresThatNoSaleHasAreNone) {
  const auto read = [](const std::string& text) { return JsonValue::parse(text, {}).value(); };
  for (const char* const units : {"0", "-1", "4611686018427387904", "1.5", "\"1\""})
    EXPECT_FALSE(
        ToldOrder::of(read(fmt::format(R"({{"id":"1","number":"T1","units":{}}})", units))))
        << units;
  for (const auto& word : {std::string{}, std::string(129, 'x')})
    EXPECT_FALSE(ToldOrder::of(read(fmt::format(R"({{"id":"1","number":"{}","units":1}})", word))));
  for (const char* const sold : {"-1", "-9223372036854775808", "9223372036854775807"})
    EXPECT_FALSE(ToldSale::of(read(fmt::format(R"({{"stock":5,"sold":{}}})", sold)))) << sold;
}

TEST(Ledger, KeepsTheEvidenceOfTheFirstAndCountsAll) {
  Ledger ledger;
  for (int i = 0; i < 1000; ++i) ledger.broken("a promise", fmt::to_string(i));
  EXPECT_EQ(ledger.breaches(), 1000U);
  EXPECT_EQ(ledger.evidence().size(), Ledger::most_kept);
}

}  // namespace
}  // namespace sluice::load
