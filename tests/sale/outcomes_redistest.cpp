#include <set>
#include <thread>

#include "sale/shop.hpp"
#include "sluice/id.hpp"
#include "sluice/sale_recovery.hpp"
#include "sluice/when_all.hpp"
#include "support/forwarding_store.hpp"

namespace sluice {
namespace {

using test::buy;
using namespace std::chrono_literals;

class SaleOutcomes : public testing::Test {
 protected:
  Sale create(SaleDefinition definition) {
    store_->run({"DEL", "sluice:sales:types"}).get();  // each test uses the same one
    definition.number_type = "MT";
    definition.name = testing::UnitTest::GetInstance()->current_test_info()->name();
    return Sale::create(*store_, definition).get();
  }

  std::unique_ptr<Store> store_ = open(test::shared_server().url());
};

/// "admitted", or the message of its Error.
Task<std::string> answer_of(Sale& sale, std::string buyer, std::string request) {
  std::string answer;
  try {
    auto asked = sale.buy({std::move(buyer)}, {std::move(request)});
    const auto admission = co_await asked;
    answer = to_string(admission.outcome);
  } catch (const Error& error) {
    answer = error.errc() == Errc::corrupt ? error.message() : "another Error";
  }
  co_return answer;
}

TEST_F(SaleOutcomes, ADamagedRecordFailsItsBuyerAlone) {
  auto sale = create({.stock = 20, .limit = 2});
  for (const auto* const buyer : {"ann", "bob", "cid", "dan", "eve"}) buy(sale, buyer, "r1");
  const std::string keys = "{" + sale.definition().name + "}:";
  const auto write = [&](const char* hash, const char* field, std::string_view value) {
    store_->run({"HSET", keys + hash, field, value}).get();
  };
  write("buyers", "ann", "rubbish");
  write("buyers", "bob", std::string(400, '9') + " 1 a 1 1 MT 1 1 r1");
  write("buyers", "cid", "1 1 a 1 x MT 1 1 r1");
  buy(sale, "dan", "r2");
  write("requests", "3:danr1", "rubbish");

  const std::pair<const char*, const char*> wishes[] = {
      {"first", "r"}, {"ann", "r1"}, {"ann", "r2"}, {"bob", "r2"}, {"cid", "r1"},
      {"dan", "r1"},  {"dan", "r2"}, {"eve", "r1"}, {"eve", "r2"}, {"new", "r"}};
  std::vector<Task<std::string>> asked;  // the first goes alone, the others together
  for (const auto& [buyer, request] : wishes) asked.push_back(answer_of(sale, buyer, request));
  const auto answers = when_all(std::move(asked)).get();
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::string buyer = wishes[i].first;
    SCOPED_TRACE(buyer + " " + wishes[i].second + ": " + answers[i]);
    const bool fails = i >= 1 && i <= 5;
    EXPECT_EQ(answers[i].find("buyer '" + buyer + "' makes no order") != std::string::npos, fails);
  }
  EXPECT_EQ(answers[0], "admitted");
  EXPECT_EQ(answers[6], "repeated");
  EXPECT_EQ(answers[7], "repeated");
  EXPECT_EQ(answers[8], "admitted");
  EXPECT_EQ(answers[9], "admitted");
}

TEST_F(SaleOutcomes, EachRequestGetsWhatTheTableSays) {
  struct Row {
    const char* buyer;
    const char* request;
    std::int64_t units;
    SaleOutcome outcome;
    const char* number_ends;  // of the order in the answer; empty: none
  };
  static constexpr Row rows[] = {
      {"ann", "a1", 2, SaleOutcome::admitted, "0001"},
      {"ann", "a1", 2, SaleOutcome::repeated, "0001"},
      {"ann", "a2", 1, SaleOutcome::already_bought, "0001"},
      // The request decides, not what it asks this time.
      {"ann", "a1", 5, SaleOutcome::other_units, "0001"},
      {"bob", "a1", 1, SaleOutcome::admitted, "0002"},  // a request id belongs to its buyer
      {"cid", "c1", 3, SaleOutcome::not_enough, ""},
      {"cid", "c1", 2, SaleOutcome::admitted, "0003"},
      {"dan", "d1", 1, SaleOutcome::sold_out, ""},
      {"ann", "a3", 1, SaleOutcome::already_bought, "0001"},  // also when sold out
      {"bob", "a1", 1, SaleOutcome::repeated, "0002"},
  };
  auto sale = create({.stock = 5});
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string{row.buyer} + " " + row.request);
    const auto answer = buy(sale, row.buyer, row.request, row.units);
    EXPECT_EQ(to_string(answer.outcome), to_string(row.outcome));
    EXPECT_EQ(answer.order.has_value(), *row.number_ends != '\0');
    if (answer.order) {
      EXPECT_TRUE(answer.order->number.ends_with(row.number_ends)) << answer.order->number;
      EXPECT_EQ(answer.order->buyer.value, row.buyer);
    }
  }
  const auto status = sale.status().get();
  EXPECT_EQ(to_string(status.state), "sold out");
  EXPECT_EQ(status.sold, 5);
  EXPECT_EQ(status.orders, 3);
  EXPECT_EQ(status.waiting, 3);
}

// "if redis.call('sismember', ...) then" is always true in Lua, and refuses every first buyer.
TEST_F(SaleOutcomes, TheFirstBuyerIsNotTakenForASecond) {
  auto sale = create({.stock = 1});
  EXPECT_EQ(buy(sale, "first", "r").outcome, SaleOutcome::admitted);
}

// A stock that was never loaded is an outcome and no script error "attempt to compare nil with
// number".
TEST_F(SaleOutcomes, ASaleThatTheStoreLostIsNotLoaded) {
  auto sale = create({.stock = 1});
  store_->run({"DEL", "{" + sale.definition().name + "}:sale"}).get();
  EXPECT_EQ(buy(sale, "ann", "r").outcome, SaleOutcome::not_loaded);
  EXPECT_EQ(sale.status().get().state, SaleState::not_loaded);
  EXPECT_FALSE(Sale::load(*store_, sale.definition().name).get());
}

TEST_F(SaleOutcomes, TheLimitCountsOrdersOfABuyer) {
  for (const std::int64_t limit : {0, 1, 3}) {
    SaleDefinition definition{.name = "limit" + std::to_string(limit),
                              .stock = 100,
                              .limit = limit,
                              .number_type = "L" + std::to_string(limit)};
    auto sale = Sale::create(*store_, definition).get();
    const std::int64_t most = limit == 0 ? 20 : limit;
    for (std::int64_t n = 1; n <= most; ++n) {
      const auto answer = buy(sale, "ann", "r" + std::to_string(n));
      ASSERT_EQ(answer.outcome, SaleOutcome::admitted) << "limit " << limit << ", order " << n;
      EXPECT_EQ(answer.order->n, n);
    }
    if (limit == 0) continue;
    const auto refused = buy(sale, "ann", "one more");
    EXPECT_EQ(refused.outcome, SaleOutcome::already_bought);
    EXPECT_EQ(refused.order->n, limit);
    EXPECT_EQ(refused.order->request.value, "r" + std::to_string(limit));
    EXPECT_EQ(buy(sale, "ann", "r1").order->n, 1);
    EXPECT_EQ(buy(sale, "bob", "r1").outcome, SaleOutcome::admitted);
  }
}

TEST_F(SaleOutcomes, TheUnitLimitCountsUnitsOfABuyer) {
  auto sale = create({.stock = 100, .limit = 0, .unit_limit = 5});
  EXPECT_EQ(buy(sale, "ann", "r1", 6).outcome, SaleOutcome::too_many_units);
  EXPECT_FALSE(buy(sale, "ann", "r1", 6).order);
  EXPECT_EQ(buy(sale, "ann", "r1", 3).outcome, SaleOutcome::admitted);
  const auto refused = buy(sale, "ann", "r2", 3);
  EXPECT_EQ(to_string(refused.outcome), "too many units for one buyer");
  EXPECT_FALSE(refused.has_order());
  EXPECT_EQ(refused.order->request.value, "r1") << "what he has";
  EXPECT_EQ(buy(sale, "ann", "r2", 2).outcome, SaleOutcome::admitted);
  EXPECT_EQ(buy(sale, "ann", "r1", 3).outcome, SaleOutcome::repeated);
  EXPECT_EQ(buy(sale, "bob", "r1", 5).outcome, SaleOutcome::admitted);
}

// Together in one script the n-th order must see those before it.
TEST_F(SaleOutcomes, OrdersOfOneBuyerInOneScriptSeeEachOther) {
  auto sale = create({.stock = 100, .limit = 3, .unit_limit = 5});
  std::vector<Task<Admission>> wishes;
  for (const auto& [request, units] : std::initializer_list<std::pair<const char*, int>>{
           {"r1", 2}, {"r2", 2}, {"r1", 2}, {"r3", 2}, {"r4", 1}, {"r5", 1}, {"r2", 1}})
    wishes.push_back(sale.buy({"ann"}, {request}, units));
  std::string outcomes;
  for (const auto& answer : when_all(std::move(wishes)).get())
    outcomes += std::string{to_string(answer.outcome)} + ", ";
  EXPECT_EQ(outcomes,
            "admitted, admitted, repeated, too many units for one buyer, admitted, already bought, "
            "admitted before for other units, ");
  const test::TempDir folder;
  const auto database = open_order_store(test::database_url(folder));
  OrderWorker{*store_, sale, *database}.drain();
  test::expect_clean(*store_, sale, *database);
}

TEST_F(SaleOutcomes, TheWindowIsTheStoresClock) {
  const auto now = store_->time().get();
  auto early =
      Sale::create(*store_,
                   {.name = "early", .stock = 1, .opens_at = now + 1h, .number_type = "EARLY"})
          .get();
  EXPECT_EQ(buy(early, "ann", "r").outcome, SaleOutcome::not_started);
  EXPECT_EQ(early.status().get().state, SaleState::not_started);
  Sale::create(*store_, {.name = "late", .stock = 1, .closes_at = now + 1h, .number_type = "LATE"})
      .get();
  const auto past = std::to_string((now - 1us).time_since_epoch().count());
  store_->run({"HSET", "{late}:sale", "closes", past}).get();
  auto late = *Sale::load(*store_, "late").get();
  EXPECT_EQ(buy(late, "ann", "r").outcome, SaleOutcome::closed);
  EXPECT_EQ(late.status().get().state, SaleState::closed);
  auto open_now =
      Sale::create(
          *store_,
          {.name = "now", .stock = 1, .opens_at = now, .closes_at = now + 1h, .number_type = "NOW"})
          .get();
  EXPECT_EQ(buy(open_now, "ann", "r").outcome, SaleOutcome::admitted);
}

TEST_F(SaleOutcomes, AClosedSaleStillKnowsItsOrders) {
  auto sale = create({.stock = 10});
  const auto bought = buy(sale, "ann", "r1");
  sale.close().get();
  EXPECT_EQ(buy(sale, "bob", "r").outcome, SaleOutcome::closed);
  EXPECT_EQ(buy(sale, "ann", "r2").outcome, SaleOutcome::closed);
  const auto again = buy(sale, "ann", "r1");
  EXPECT_EQ(again.outcome, SaleOutcome::repeated);
  EXPECT_EQ(again.order, bought.order);
}

TEST_F(SaleOutcomes, AnyBytesMakeAnId) {
  auto sale = create({.stock = 100, .limit = 0});
  const std::string nul("a\0b", 3);
  const std::string ids[] = {
      nul, "a", "1:a", "a b", "%", "\n\r", "\xff\xfe", std::string(128, 'x'), "a\0c" + nul, "ü"};
  std::vector<SaleOrder> orders;
  for (const auto& buyer : ids)
    for (const auto& request : ids) {
      if (orders.size() == 100) break;
      const auto answer = buy(sale, buyer, request);
      ASSERT_EQ(answer.outcome, SaleOutcome::admitted);
      EXPECT_EQ(answer.order->buyer.value, buyer);
      EXPECT_EQ(answer.order->request.value, request);
      orders.push_back(*answer.order);
    }
  for (const auto& order : orders) {
    const auto again = buy(sale, order.buyer.value, order.request.value);
    EXPECT_EQ(again.outcome, SaleOutcome::repeated);
    EXPECT_EQ(again.order, order);
  }
  const test::TempDir folder;
  const auto database = open_order_store(test::database_url(folder));
  OrderWorker{*store_, sale, *database}.drain();
  EXPECT_EQ(database->page(sale.definition().name, 0, 1000), orders);
  test::expect_clean(*store_, sale, *database);
}

TEST_F(SaleOutcomes, SizesAreChecked) {
  auto sale = create({.stock = 10, .largest_order = 2});
  EXPECT_THROW(buy(sale, "", "r"), Error);
  EXPECT_THROW(buy(sale, "b", ""), Error);
  EXPECT_THROW(buy(sale, std::string(129, 'b'), "r"), Error);
  EXPECT_THROW(buy(sale, "b", std::string(100'000, 'r')), Error);
  EXPECT_THROW(buy(sale, "b", "r", 0), Error);
  EXPECT_THROW(buy(sale, "b", "r", -1), Error);
  EXPECT_THROW(buy(sale, "b", "r", 3), Error);
  EXPECT_EQ(sale.status().get().sold, 0);
}

using Frictions = SaleOutcomes;

TEST_F(Frictions, U13_ARepeatedRequestForOtherUnitsIsTold) {
  auto sale = create({.stock = 20});
  EXPECT_EQ(buy(sale, "ann", "r", 8).outcome, SaleOutcome::admitted);
  const auto answer = buy(sale, "ann", "r", 2);
  EXPECT_EQ(answer.outcome, SaleOutcome::other_units);
  EXPECT_EQ(answer.order->units, 8);
  EXPECT_FALSE(answer.has_order());
  EXPECT_EQ(buy(sale, "ann", "r", 8).outcome, SaleOutcome::repeated);
}

TEST_F(Frictions, U12_TwoSalesOfOneStoreNeverGiveTheSameId) {
  std::set<std::int64_t> ids;
  auto tea = Sale::create(*store_, {.name = "tea", .stock = 500, .number_type = "TE"}).get();
  auto wine = Sale::create(*store_, {.name = "wine", .stock = 500, .number_type = "WI"}).get();
  for (int i = 0; i < 500; ++i)
    for (Sale* const sale : {&tea, &wine})
      EXPECT_TRUE(ids.insert(buy(*sale, std::to_string(i), "r").order->id).second) << i;
}

TEST_F(SaleOutcomes, ASaleOfAnOlderVersionIsRefusedWithWhatToDo) {
  // As that version left it. It sees none of ours: the stock has another name here.
  store_->run({"HSET", "{old}:sale", "stock", "10", "sold", "1", "orders", "1", "type", "MT"})
      .get();
  for (const bool create : {true, false}) {
    try {
      if (create)
        Sale::create(*store_, {.name = "old", .stock = 10, .number_type = "MT"}).get();
      else
        Sale::load(*store_, "old").get();
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::config_mismatch);
      EXPECT_NE(error.message().find("with that version to its end"), std::string::npos)
          << error.what();
    }
  }
  auto sale = create({.stock = 10});
  EXPECT_TRUE(
      store_->run({"HGET", "{" + sale.definition().name + "}:sale", "stock"}).get().is_null());
}

TEST_F(SaleOutcomes, AllSalesAreListedInTheOrderOfTheirCreation) {
  test::RedisServer server;
  const auto store = open(server.url());
  EXPECT_TRUE(Sale::names(*store).get().empty());
  for (const auto* const name : {"wine", "tea", "beer", "tea"})
    Sale::create(*store, {.name = name, .stock = 1, .number_type = name}).get();
  EXPECT_EQ(Sale::names(*store).get(), (std::vector<std::string>{"wine", "tea", "beer"}));
}

TEST_F(SaleOutcomes, E11_ASaleThatCannotSellItsStockIsRefused) {
  const auto now = store_->time().get();
  const auto refused = [&](SaleDefinition definition, const std::string& says) {
    definition.name = "E11";
    definition.number_type = "E11";
    for (const bool check : {true, false}) {
      try {
        if (check)
          Sale::check(*store_, definition).get();
        else
          Sale::create(*store_, definition).get();
        ADD_FAILURE() << "created, expected: " << says;
      } catch (const Error& error) {
        EXPECT_EQ(error.errc(), Errc::bad_argument) << error.what();
        EXPECT_NE(error.message().find(says), std::string::npos) << error.what();
      }
    }
    EXPECT_FALSE(Sale::load(*store_, "E11").get());
  };
  refused({.stock = 50'000}, "50000 units can be 50000 orders on one day");
  refused({.stock = 10'000}, "4 digit(s) number only 9999; use 5 digits");
  refused({.stock = 1'000'000'000'000, .digits = 12}, "sell fewer in one sale");
  refused({.stock = 1, .opens_at = now + 2h, .closes_at = now + 1h}, "closes before it opens");
  refused({.stock = 1, .closes_at = now - 1h}, "nobody could buy");
  refused({.stock = 1, .opens_at = WallTime{std::chrono::hours{24 * 365 * 130}}}, "when ids end");
  refused({.stock = 1, .unit_limit = -1}, "unit_limit is -1");
  Sale::create(*store_, {.name = "E11", .stock = 9'999, .number_type = "E11"}).get();
}

TEST_F(SaleOutcomes, DefinitionsAreCheckedAndCompared) {
  const auto refused = [&](SaleDefinition definition, Errc code, const std::string& says) {
    try {
      Sale::create(*store_, definition).get();
      ADD_FAILURE() << "created, expected: " << says;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), code) << error.what();
      EXPECT_NE(error.message().find(says), std::string::npos) << error.what();
    }
  };
  const WallTime noon{1h};
  refused({.name = "", .stock = 1, .number_type = "MT"}, Errc::bad_argument, "0 bytes");
  refused({.name = std::string(100'000, 'x'), .stock = 1, .number_type = "MT"}, Errc::bad_argument,
          "100000 bytes");
  refused({.name = "a{b", .stock = 1}, Errc::bad_argument, "braces");
  refused({.name = "x", .stock = -1, .number_type = "MT"}, Errc::bad_argument, "stock is -1");
  refused({.name = "x", .stock = 1, .limit = -1, .number_type = "MT"}, Errc::bad_argument,
          "limit is -1");
  refused({.name = "x", .stock = 1, .number_type = "MT", .digits = 13}, Errc::bad_argument,
          "digits is 13");
  refused({.name = "x", .stock = 1, .number_type = "M T"}, Errc::bad_argument, "number_type");
  refused({.name = "x", .stock = 1}, Errc::bad_argument, "number_type is ''");
  refused({.name = "x", .stock = 1, .number_type = "MT", .zone = "Asia/Nowhere"},
          Errc::bad_argument, "Asia/Nowhere");
  refused({.name = "x", .stock = 1, .opens_at = noon, .closes_at = noon, .number_type = "MT"},
          Errc::bad_argument, "closes before");

  const SaleDefinition definition{.name = "compared",
                                  .stock = 7,
                                  .opens_at = noon,
                                  .limit = 2,
                                  .largest_order = 3,
                                  .number_type = "XY",
                                  .zone = "Europe/Berlin",
                                  .digits = 6};
  auto sale = Sale::create(*store_, definition).get();
  buy(sale, "ann", "r");
  EXPECT_EQ(Sale::create(*store_, definition).get().definition(), definition);
  EXPECT_EQ(Sale::load(*store_, "compared").get()->definition(), definition);
  EXPECT_EQ(sale.status().get().sold, 1) << "joining a sale begins it anew";
  auto other = definition;
  other.stock = 8;
  refused(other, Errc::config_mismatch, "stock is '7' there and '8' here");
  other = definition;
  other.unit_limit = 1;
  refused(other, Errc::config_mismatch, "unit_limit is '0' there and '1' here");
}

TEST_F(SaleOutcomes, CallersThatCoalesceGetDenseNumbersAndRisingIds) {
  constexpr int threads = 16;
  constexpr int each = 100;
  auto sale = create({.stock = threads * each});
  std::vector<std::vector<SaleOrder>> orders(threads);
  {
    std::vector<std::jthread> crew;
    for (int t = 0; t < threads; ++t)
      crew.emplace_back([&, t] {
        for (int i = 0; i < each; ++i)
          orders[static_cast<std::size_t>(t)].push_back(
              *buy(sale, std::to_string(t * each + i), "r").order);
      });
  }
  std::vector<SaleOrder> all;
  for (auto& some : orders) {
    EXPECT_TRUE(std::is_sorted(some.begin(), some.end(),
                               [](const SaleOrder& a, const SaleOrder& b) { return a.id < b.id; }));
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end(),
            [](const SaleOrder& a, const SaleOrder& b) { return a.id < b.id; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(i == 0 || all[i - 1].id < all[i].id);
    EXPECT_EQ(std::stoul(all[i].number.substr(10)), i + 1) << all[i].number;
  }
  EXPECT_EQ(sale.status().get().state, SaleState::sold_out);
}

/// Executes every script, and loses the reply of the first `lost` ones.
class LossyStore final : public test::ForwardingStore {
 public:
  LossyStore(Store& store, int lost) : ForwardingStore(store), lost_(lost) {}
  using ForwardingStore::run;
  Task<Value> run(const Script& script, Words keys, Words args, CallOptions options) override {
    Value reply = store_.run(script, keys, args, options).get();
    if (lost_-- > 0) throw Error{Errc::connection, "the reply was lost", Effect::unknown};
    return Task<Value>::ready(std::move(reply));
  }
  Driver* driver() noexcept override { return nullptr; }

 private:
  int lost_;
};

TEST_F(SaleOutcomes, AskingAgainAfterALostReplyGivesTheOrder) {
  create({.stock = 2});
  LossyStore lossy{*store_, 2};
  auto sale = Sale::load(lossy, "AskingAgainAfterALostReplyGivesTheOrder").get();
  for (int lost = 0; lost < 2; ++lost) {
    try {
      buy(*sale, "ann", "r");
      ADD_FAILURE() << "no reply was lost";
    } catch (const Error& error) {
      EXPECT_EQ(error.effect(), Effect::unknown);
    }
  }
  const auto answer = buy(*sale, "ann", "r");
  EXPECT_EQ(answer.outcome, SaleOutcome::repeated);
  EXPECT_TRUE(answer.order->number.ends_with("0001"));
  EXPECT_EQ(sale->status().get().sold, 1);
}

TEST(SaleRestart, AServerThatIsKilledLosesNoAnswer) {
  test::RedisServer server{{"appendonly yes", "appendfsync always"}};
  const auto store = open(server.url());
  auto sale = Sale::create(*store, {.name = "s", .stock = 10, .number_type = "MT"}).get();
  std::vector<SaleOrder> told;
  for (int i = 0; i < 5; ++i) told.push_back(*buy(sale, std::to_string(i), "r").order);
  server.kill();
  server.start();
  for (const auto& order : told) {
    const auto again = buy(sale, order.buyer.value, "r");
    EXPECT_EQ(again.outcome, SaleOutcome::repeated);
    EXPECT_EQ(again.order, order);
  }
  // Nothing is lost, but the server cannot know that.
  EXPECT_EQ(buy(sale, "5", "r").outcome, SaleOutcome::recovering);
  const auto orders = open_order_store("sqlite::memory:");
  EXPECT_EQ(recover(*store, "s", *orders).on_the_way, 5);
  EXPECT_TRUE(buy(sale, "5", "r").order->number.ends_with("0006"));
  OrderWorker{*store, sale, *orders}.drain();
  EXPECT_EQ(orders->page("s", 0, 10).size(), 6U);
  test::expect_clean(*store, sale, *orders);

  // The sale remembers its store as a whole word.
  const auto id = store->run({"HGET", "{s}:sale", "store"}).get().as_text();
  for (const auto& other : {id.substr(1), id.substr(0, id.size() - 1), std::string{}}) {
    store->run({"HSET", "{s}:sale", "store", other}).get();
    EXPECT_EQ(sale.status().get().state, SaleState::recovering) << other;
    EXPECT_FALSE(audit(*store, sale, *orders).ok()) << other;
  }
  store->run({"HDEL", "{s}:sale", "store"}).get();
  EXPECT_FALSE(audit(*store, sale, *orders).ok());
  recover(*store, "s", *orders);
  test::expect_clean(*store, sale, *orders);
}

}  // namespace
}  // namespace sluice
