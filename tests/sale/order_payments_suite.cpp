// Payments, deadlines, parts, refunds and messages, on every database and by its own clock.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>

#include "sale/order_store_suite.hpp"
#include "support/comes_true.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

Payment payment_of(const SaleOrder& of, const std::string& event, std::int64_t amount) {
  return {.provider = "acme",
          .event = event,
          .sale = "s",
          .order = of.number,
          .amount = amount,
          .currency = "EUR"};
}

class OrderPaymentsSuite : public OrderStoreSuite {
 protected:
  /// A unit costs 7; unpaid orders end at once if they may.
  void sell(const std::string& window_us, std::vector<SaleOrder> sold) {
    orders_->keep_definition("s", {{"payment", window_us + " 0 7 EUR"}});
    ASSERT_EQ(insert(sold).inserted, sold.size());
  }
  OrderPayments& money() { return orders_->payments(); }
  OrderState state(std::int64_t id) { return money().find("s", id)->order.state; }
  void expect_sound() {
    const auto totals = money().totals("s");
    EXPECT_EQ(totals.odd_payments, 0);
    EXPECT_EQ(totals.odd_refunds, 0);
    EXPECT_EQ(totals.odd_events, 0);
    EXPECT_EQ(totals.odd_deadlines, 0);
    EXPECT_EQ(totals.odd_messages, 0);
    const auto all = orders_->totals("s");
    EXPECT_EQ(all.odd, 0);
    EXPECT_EQ(all.odd_returns, 0);
    EXPECT_EQ(all.stock.initial - all.stock.left, all.units);
  }
};

TEST_P(OrderPaymentsSuite, FiguresOfAnUnknownSaleAreZero) {
  const auto figures = orders_->figures("nobody's");
  EXPECT_TRUE(figures.orders.empty());
  EXPECT_FALSE(figures.next_due);
  EXPECT_EQ(figures.messages + figures.refunds + figures.payments_flagged, 0);
}

TEST_P(OrderPaymentsSuite, FiguresCountWhatOperatorsWatch) {
  orders_->add_sale("other", 5);
  ASSERT_EQ(orders_->insert("other", std::vector{order(9, "ann")}).inserted, 1u);
  sell("30000000", {order(1, "ann"), order(2, "bob"), order(3, "cid"), order(4, "dan")});
  const auto pay = payment_of(order(1, "ann"), "e1", 7);
  money().keep(pay);
  EXPECT_TRUE(money().apply(pay).now);
  orders_->end_order("s", 2, OrderState::cancelled, "");
  const auto late = payment_of(order(2, "bob"), "e2", 7);
  money().keep(late);
  EXPECT_EQ(money().apply(late).state, PaymentState::returned);
  for (const auto* event : {"e3", "e4"}) {
    const auto wrong = payment_of(order(3, "cid"), event, 8);
    money().keep(wrong);
    EXPECT_EQ(money().apply(wrong).state, PaymentState::flagged);
  }
  money().keep(payment_of(order(8, "eve"), "e5", 7));  // its order is not there
  auto messages = money().take_messages("s", 1, 60s);
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(money().message_failed("s", messages.front(), {}));

  const auto figures = orders_->figures("s");
  const auto count = [&](OrderState state) {
    std::int64_t found = 0;
    for (const auto& row : figures.orders)
      if (row.state == state) found += row.orders;
    return found;
  };
  EXPECT_EQ(count(OrderState::awaiting), 2);
  EXPECT_EQ(count(OrderState::paid), 1);
  EXPECT_EQ(count(OrderState::refunding), 1);
  EXPECT_EQ(count(OrderState::cancelled), 0);
  EXPECT_EQ(figures.next_due,
            std::min(*money().find("s", 3)->pay_by, *money().find("s", 4)->pay_by));
  EXPECT_EQ(figures.due_soon, 2);
  EXPECT_EQ(figures.payments_flagged, 2);
  EXPECT_EQ(figures.payments_waiting, 1);
  EXPECT_EQ(figures.payments_asking, 0);
  EXPECT_EQ(figures.refunds, 1);
  EXPECT_EQ(figures.messages_dead, 1);
  EXPECT_EQ(figures.messages, money().totals("s").messages);
}

TEST_P(OrderPaymentsSuite, PaymentsAreListedPageByPage) {
  sell("3600000000", {order(1, "ann")});
  for (const auto* event : {"b", "a'\x01", "c%", "d"}) {
    const auto wrong = payment_of(order(1, "ann"), event, 8);
    money().keep(wrong);
    money().apply(wrong);
  }
  std::vector<std::string> events;
  std::optional<PaymentPlace> after;
  for (;;) {
    const auto page = money().list("s", PaymentState::flagged, 3, after);
    for (const auto& kept : page) events.push_back(kept.payment.event);
    if (page.size() < 3) break;
    after = PaymentPlace{page.back().payment.provider, page.back().payment.event};
  }
  std::ranges::sort(events);
  EXPECT_EQ(events, (std::vector<std::string>{"a'\x01", "b", "c%", "d"}));
  EXPECT_TRUE(money().list("s", PaymentState::flagged, 3, PaymentPlace{"acme", "x"}).empty());
  EXPECT_TRUE(money().list("s", PaymentState::flagged, 3, PaymentPlace{"' OR 1", "x"}).empty());
}

TEST_P(OrderPaymentsSuite, MessagesAreListedPageByPage) {
  sell("3600000000", {order(1, "ann"), order(2, "bob"), order(3, "cid")});
  for (const std::int64_t id : {1, 2, 3}) orders_->end_order("s", id, OrderState::cancelled, "");
  for (const auto& message : money().take_messages("s", 10, 60s))
    EXPECT_TRUE(money().message_failed("s", message, {}));
  const auto first = money().messages("s", "dead", {}, 2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first.front().order_id, 1);
  const auto rest = money().messages("s", "dead", {first.back().order_id, first.back().seq}, 2);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest.front().order_id, 3);
  EXPECT_TRUE(money().messages("s", "due", {}, 2).empty());
  EXPECT_TRUE(money().messages("nobody's", "dead", {}, 2).empty());
  EXPECT_THROW(money().messages("s", "de'ad", {}, 2), Error);
}

TEST_P(OrderPaymentsSuite, OrdersOfABuyerAreListedPageByPage) {
  const std::string odd{"a\0'%\xff", 5};
  ASSERT_EQ(
      insert({order(1, odd, 1), order(2, "bob"), order(3, odd, 2), order(4, odd, 3)}).inserted, 4u);
  const auto first = orders_->orders_of("s", {odd}, 0, 2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first.front(), order(1, odd, 1));
  const auto rest = orders_->orders_of("s", {odd}, first.back().id, 2);
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(rest.front().id, 4);
  EXPECT_TRUE(orders_->orders_of("s", {"nobody"}, 0, 2).empty());
  EXPECT_TRUE(orders_->orders_of("nobody's", {"bob"}, 0, 2).empty());
}

TEST_P(OrderPaymentsSuite, AnOrderIsPaidOnceByAPaymentThatFits) {
  sell("3600000000", {order(1, "ann", 1, 2), order(2, "bob")});
  const auto owed = money().find("s", 1);
  ASSERT_TRUE(owed && owed->pay_by);
  EXPECT_EQ(owed->due, 14);
  EXPECT_GT(*owed->pay_by, orders_->wall() + 30min);
  EXPECT_LE(*owed->pay_by, orders_->wall() + 1h);
  const auto pay = payment_of(order(1, "ann", 1, 2), std::string("e\0'1", 4), 14);
  EXPECT_TRUE(money().keep(pay));
  EXPECT_FALSE(money().keep(pay));
  EXPECT_TRUE(money().apply(pay).now);
  const auto again = money().apply(pay);
  EXPECT_FALSE(again.now);
  EXPECT_EQ(again.state, PaymentState::applied);
  EXPECT_FALSE(again.differs);
  auto reused = pay;  // the id of an event that came before
  reused.order = order(2, "bob").number;
  EXPECT_FALSE(money().keep(reused));
  EXPECT_TRUE(money().apply(reused).differs);
  EXPECT_EQ(state(2), OrderState::awaiting);
  const auto wrong = payment_of(order(2, "bob"), "e2", 8);
  money().keep(wrong);
  EXPECT_EQ(money().apply(wrong).state, PaymentState::flagged);
  EXPECT_EQ(money().list("s", PaymentState::flagged, 10).at(0).payment, wrong);
  EXPECT_EQ(money().messages_of("s", 1).at(0).type, "order.paid");
  EXPECT_EQ(orders_->page("s", 0, 10).at(0).state, OrderState::paid);
  expect_sound();
}

TEST_P(OrderPaymentsSuite, V10_APaymentMayComeBeforeItsOrderAndItsSale) {
  const auto early = payment_of(order(1, "ann"), "e", 7);
  EXPECT_TRUE(money().keep(early));
  EXPECT_EQ(money().apply(early).state, PaymentState::waiting);
  EXPECT_TRUE(money().ready("s", 10).empty());
  sell("3600000000", {order(1, "ann")});
  EXPECT_EQ(money().ready("s", 10), std::vector<Payment>{early});
  EXPECT_TRUE(money().apply(early).now);
  expect_sound();
}

TEST_P(OrderPaymentsSuite, AnOverdueOrderEndsOnceAndALatePaymentAsksForItsUnits) {
  sell("1000", {order(1, "ann", 1, 4), order(2, "bob", 1, 4)});
  ASSERT_TRUE(test::comes_true([&] { return money().due("s", 10).size() == 2; }));
  for (const auto id : {1, 2}) {
    EXPECT_TRUE(money().expire("s", id));
    EXPECT_FALSE(money().expire("s", id));
  }
  EXPECT_EQ(orders_->stock("s")->left, 10);
  for (const auto& back : orders_->returns("s", 0, 10, true))
    orders_->return_done("s", back.order.id, back.seq);
  for (const auto& late :
       {payment_of(order(1, "ann"), "a", 28), payment_of(order(2, "b"), "b", 28)}) {
    money().keep(late);
    EXPECT_EQ(money().apply(late).state, PaymentState::asking);
  }
  expect_sound();
  for (const auto& retake : orders_->returns("s", 0, 10, true)) {
    EXPECT_EQ(retake.units, -4);
    const bool taken = retake.order.id == 1;
    EXPECT_TRUE(money().end_retake("s", retake.order.id, retake.seq, taken));
    EXPECT_FALSE(money().end_retake("s", retake.order.id, retake.seq, taken));
  }
  EXPECT_EQ(state(1), OrderState::paid);
  EXPECT_EQ(state(2), OrderState::refunding);
  EXPECT_EQ(orders_->stock("s")->left, 6);
  expect_sound();
}

TEST_P(OrderPaymentsSuite, ManyThatAreDueEndTogetherEachOnce) {
  constexpr std::int64_t count = 9;
  std::vector<SaleOrder> sold;
  for (std::int64_t id = 1; id <= count; ++id) sold.push_back(order(id, fmt::format("b{}", id)));
  sell("1000", sold);
  const auto kept = payment_of(sold.front(), "e", 7);
  money().keep(kept);  // and nobody has applied it
  std::vector<std::int64_t> due;
  ASSERT_TRUE(test::comes_true([&] { return (due = money().due("s", 99)).size() == count; }));
  due.push_back(due.back());  // twice
  due.push_back(999);         // there is none
  EXPECT_EQ(money().expire_all("s", due), count - 1U);
  EXPECT_EQ(money().expire_all("s", due), 0U);
  EXPECT_EQ(money().expire_all("s", {}), 0U);
  EXPECT_EQ(state(1), OrderState::awaiting);
  const auto back = orders_->returns("s", 0, 99, true);
  EXPECT_EQ(back.size(), count - 1U);
  EXPECT_EQ(money().messages_of("s", count).size(), 1U);
  orders_->returns_done("s", back);
  orders_->returns_done("s", back);
  EXPECT_TRUE(orders_->returns("s", 0, 99, true).empty());
  expect_sound();
}

TEST_P(OrderPaymentsSuite, WhatAKeptPaymentIsForDoesNotExpire) {
  sell("1000", {order(1, "ann"), order(2, "bob")});
  ASSERT_TRUE(test::comes_true([&] { return money().due("s", 10).size() == 2; }));
  for (const auto& [of, amount] : {std::pair{order(1, "ann"), 7}, std::pair{order(2, "bob"), 8}}) {
    const auto kept = payment_of(of, "of " + of.number, amount);
    money().keep(kept);
    EXPECT_FALSE(money().expire("s", of.id));
    EXPECT_TRUE(money().apply(kept).now);
  }
  EXPECT_EQ(state(1), OrderState::paid);
  EXPECT_TRUE(money().expire("s", 2)) << "what was paid does not fit";
  expect_sound();
}

TEST_P(OrderPaymentsSuite, V14_PartsAreCancelledAndRefundedOnceForEachKey) {
  sell("3600000000", {order(1, "ann", 1, 5)});
  const auto pay = payment_of(order(1, "ann"), "e", 35);
  money().keep(pay);
  money().apply(pay);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(money().cancel_units("s", 1, 2, "k", "").refund, 14);
  EXPECT_EQ(orders_->stock("s")->left, 7);
  const std::vector<BuyerId> ann{{"ann"}};
  EXPECT_EQ(orders_->totals("s", ann).at(0).units, 3);
  expect_sound();
  const auto first = money().refunds("s", 10);
  ASSERT_EQ(first.size(), 1U);
  money().refund_failed(first[0], "not now", 1h);
  EXPECT_TRUE(money().refunds("s", 10).empty());
  EXPECT_EQ(money().refunds_of("s", 1).at(0).attempts, 1);
  EXPECT_EQ(money().cancel_units("s", 1, 0, "all", "ill").outcome, UnitsResult::Outcome::cancelled);
  for (const auto& refund : money().refunds_of("s", 1)) {
    EXPECT_TRUE(money().refund_done(refund));
    EXPECT_FALSE(money().refund_done(refund));
  }
  EXPECT_EQ(state(1), OrderState::refunded);
  const std::vector<std::int64_t> ids{1};
  EXPECT_EQ(orders_->reasons("s", ids).at(0), "ill");
  expect_sound();
}

TEST_P(OrderPaymentsSuite, ARefundIsOneSendersAloneAndOfItsProvider) {
  sell("3600000000", {order(1, "ann")});
  const auto pay = payment_of(order(1, "ann"), "e", 7);
  money().keep(pay);
  money().apply(pay);
  money().cancel_units("s", 1, 0, "k", "");
  EXPECT_FALSE(money().take_refund("s", "other", 1h));
  EXPECT_THROW(money().take_refund("s", "a'b", 1h), Error);
  EXPECT_FALSE(money().take_refund("unknown", "", 1h));
  const auto taken = money().take_refund("s", pay.provider, 1h);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->amount, 7);
  EXPECT_FALSE(money().take_refund("s", "", 1h)) << "another has it";
  money().refund_failed(*taken, "not now", 0s);
  EXPECT_EQ(money().take_refund("s", "", 1h)->attempts, 1);
  EXPECT_TRUE(money().refund_done(*taken));
  money().refund_failed(*taken, "late", 0s);
  EXPECT_FALSE(money().take_refund("s", "", 1h)) << "it is done, whatever a slow sender says";
}

TEST_P(OrderPaymentsSuite, V05_ASaleThatHadNothingLeftTellsThatItReopened) {
  const auto told = [&] { return money().messages_of("s", 0); };
  sell("3600000000", {order(1, "ann", 1, 4), order(2, "bob", 1, 3), order(3, "cid", 1, 2)});
  ASSERT_EQ(orders_->stock("s")->left, 1);
  money().cancel_units("s", 1, 1, "k", "");
  EXPECT_TRUE(told().empty()) << "something was left";
  orders_->insert("s", std::vector{order(4, "dan", 1, 2)});
  money().cancel_units("s", 1, 1, "k2", "");
  money().cancel_units("s", 1, 1, "k3", "");
  ASSERT_EQ(told().size(), 1U) << "the first of them";
  EXPECT_EQ(told()[0].type, "sale.reopened");
  EXPECT_EQ(told()[0].data, R"({"sale":"s","version":1,"left":1})");
  orders_->insert("s", std::vector{order(5, "eve", 1, 2)});
  orders_->begin_stock_change("s", 12);
  ASSERT_EQ(told().size(), 2U);
  EXPECT_EQ(told()[1].seq, 2);
  const auto taken = money().take_messages("s", 10, 1h);
  EXPECT_EQ(std::ranges::count(taken, 0, &OrderMessage::order_id), 1) << "one after another";
  orders_->insert("s", std::vector{order(6, "fay", 1, 2)});
  orders_->keep_definition("s", {{"closed", "1"}});
  orders_->end_order("s", 2, OrderState::cancelled, "");
  EXPECT_EQ(told().size(), 2U) << "nobody buys any more";
  EXPECT_EQ(money().totals("s").odd_messages, 0);
}

// Outside a sale with buckets is one: none of its messages names a bucket, and while another bucket
// has units it was not sold out.
TEST_P(OrderPaymentsSuite, V05_BucketsTellForTheWholeSaleAndOnceThatItReopens) {
  constexpr int rounds = 10;
  for (int bucket = 0; bucket < 2; ++bucket) {
    const auto name = "w:" + std::to_string(bucket);
    orders_->add_sale(name, rounds);
    orders_->keep_definition(
        name, {{"payment", "3600000000 0 7 CNY"}, {"bucket", std::to_string(bucket) + " 2 20"}});
    std::vector<SaleOrder> sold;
    for (int i = 0; i < rounds; ++i)
      sold.push_back(order(100 * (bucket + 1) + i, "b" + std::to_string(i)));
    ASSERT_EQ(orders_->insert(name, sold).inserted, sold.size());
  }
  for (int round = 0; round < rounds; ++round) {
    std::latch start{2};
    std::vector<std::jthread> threads;
    for (int bucket = 0; bucket < 2; ++bucket)
      threads.emplace_back([&, bucket] {
        const auto own = open_order_store(url_);
        start.arrive_and_wait();
        own->end_order("w:" + std::to_string(bucket), 100 * (bucket + 1) + round,
                       OrderState::cancelled, "");
      });
    threads.clear();
    ASSERT_EQ(money().messages_of("w:0", 0).size(), static_cast<std::size_t>(round + 1));
    // The two units are sold again, both in one bucket.
    std::vector<SaleOrder> again{order(1000 + 2 * round, "x" + std::to_string(2 * round)),
                                 order(1001 + 2 * round, "x" + std::to_string(2 * round + 1))};
    const auto name = "w:" + std::to_string(round % 2);
    ASSERT_EQ(orders_->insert(name, again).inserted, 2U);
  }
  EXPECT_TRUE(money().messages_of("w:1", 0).empty());
  EXPECT_EQ(money().messages_of("w:0", 0)[1].data, R"({"sale":"w","version":2,"left":1})");
  const auto of_order = money().messages_of("w:1", 200);
  ASSERT_EQ(of_order.size(), 1U);
  EXPECT_TRUE(of_order[0].data.starts_with(R"({"sale":"w","order")")) << of_order[0].data;
}

TEST_P(OrderPaymentsSuite, V48_MessagesOfAnOrderComeOneAfterAnother) {
  sell("3600000000", {order(1, "ann"), order(2, "bob")});
  orders_->end_order("s", 1, OrderState::cancelled, "");
  money().cancel_units("s", 2, 0, "k", "");
  const auto pay = payment_of(order(1, "ann"), "e", 7);
  money().keep(pay);
  EXPECT_EQ(money().apply(pay).state, PaymentState::returned);
  auto taken = money().take_messages("s", 10, 1h);
  ASSERT_EQ(taken.size(), 2U) << "one of each order";
  EXPECT_TRUE(money().take_messages("s", 10, 1h).empty());
  for (const auto& message : taken) EXPECT_TRUE(money().message_sent("s", message));
  taken = money().take_messages("s", 10, 1h);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].type, "order.refunding");
  EXPECT_TRUE(money().message_failed("s", taken[0], std::nullopt));
  EXPECT_FALSE(money().message_sent("s", taken[0]));
  money().stop_messages("s");
  EXPECT_EQ(money().totals("s").dead, 1);
  EXPECT_EQ(money().replay_messages("s"), 1);
  EXPECT_EQ(money().take_messages("s", 10, 1h).size(), 1U);
}

TEST_P(OrderPaymentsSuite, V06_V09_ThreadsThatPayExpireAndCancelAgreeOnOneEnd) {
  constexpr int count = 8;
  std::vector<SaleOrder> sold;
  for (int id = 1; id <= count; ++id) sold.push_back(order(id, "b" + std::to_string(id)));
  sell("1000", sold);
  ASSERT_TRUE(test::comes_true([&] { return money().due("s", count).size() == count; }));
  std::atomic<int> ended = 0;
  std::latch start{3};
  std::vector<std::jthread> threads;
  for (int who = 0; who < 3; ++who)
    threads.emplace_back([&, who] {
      const auto own = open_order_store(url_);
      start.arrive_and_wait();
      for (const auto& one : sold) {
        const auto pay = payment_of(one, "of " + one.number, 7);
        if (who == 0) own->payments().keep(pay);
        if (who == 0) ended += own->payments().apply(pay).state == PaymentState::applied;
        if (who == 1) ended += own->payments().expire("s", one.id);
        if (who == 2) ended += own->end_order("s", one.id, OrderState::cancelled, "").now;
      }
    });
  threads.clear();
  EXPECT_EQ(ended, count);
  expect_sound();
}

TEST_P(OrderPaymentsSuite, SV01_SV13_APaymentThatIsKeptIsAppliedBeforeUnitsAreTakenBack) {
  sell("3600000000", {order(1, "ann", 1, 3), order(2, "bob")});
  for (const auto& kept :
       {payment_of(order(1, "ann"), "a", 21), payment_of(order(2, "bob"), "b", 7)})
    EXPECT_TRUE(money().keep(kept));
  EXPECT_EQ(money().cancel_units("s", 1, 1, "k", "").refund, 7);
  EXPECT_EQ(state(1), OrderState::paid);
  const auto ended = orders_->end_order("s", 2, OrderState::cancelled, "");
  EXPECT_FALSE(ended.now);
  EXPECT_EQ(ended.order->state, OrderState::paid);
  EXPECT_TRUE(money().list("s", PaymentState::flagged, 10).empty());
  EXPECT_EQ(money().find("s", 1)->due, 14);
  money().cancel_units("s", 1, 0, "all", "");
  EXPECT_EQ(money().find("s", 1)->due, 0);
  expect_sound();
}

TEST_P(OrderPaymentsSuite, SQ04_APaymentThatTheDatabaseRefusesIsNotKept) {
  const auto refused = payment_of(order(1, "ann"), "e", 7);
  GetParam().run(url_,
                 GetParam().name == "sqlite"
                     ? "CREATE TRIGGER no BEFORE INSERT ON sale_payments BEGIN SELECT "
                       "RAISE(ABORT, 'no payments'); END"
                     : "ALTER TABLE sale_payments ADD CONSTRAINT no_payments CHECK (amount > 7)");
  try {
    money().keep(refused);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.errc(), Errc::database);
    EXPECT_EQ(error.effect(), Effect::none);
    EXPECT_NE(error.message().find("is not kept"), std::string::npos) << error.what();
  }
  EXPECT_EQ(money().apply(refused).state, PaymentState::waiting);
  EXPECT_TRUE(money().list("s", PaymentState::waiting, 10).empty());
}

TEST_P(OrderPaymentsSuite, SQ05_AKeyCarriesWhatItAskedFor) {
  using Outcome = UnitsResult::Outcome;
  sell("3600000000", {order(1, "ann", 1, 5)});
  const auto cancel = [&](std::int64_t units, const char* key) {
    return money().cancel_units("s", 1, units, key, "");
  };
  EXPECT_EQ(cancel(2, "k").outcome, Outcome::cancelled);
  EXPECT_EQ(cancel(2, "k").outcome, Outcome::repeated);
  for (const auto other : {1, 3, 0}) {
    EXPECT_EQ(cancel(other, "k").outcome, Outcome::other_units) << other;
    EXPECT_EQ(cancel(other, "k").units, 2);
  }
  EXPECT_EQ(cancel(0, "all").outcome, Outcome::cancelled);
  for (const auto same : {0, 3}) EXPECT_EQ(cancel(same, "all").outcome, Outcome::repeated) << same;
  EXPECT_EQ(cancel(2, "all").outcome, Outcome::other_units);
  expect_sound();
}

TEST_P(OrderPaymentsSuite, SQ06_NoRefundIsToldThatNobodySends) {
  sell("3600000000", {order(1, "ann", 1, 2)});
  const auto pay = payment_of(order(1, "ann"), "e", 14);
  money().keep(pay);
  money().apply(pay);
  GetParam().run(url_, "UPDATE sale_payments SET state = 'flagged'");
  for (const auto units : {0, 1}) {
    try {
      money().cancel_units("s", 1, units, "k", "");
      ADD_FAILURE() << units;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::corrupt);
      EXPECT_NE(error.message().find("nothing was changed"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ(state(1), OrderState::paid);
  EXPECT_EQ(orders_->stock("s")->left, 8);
}

// A payment has the time of its INSERT: one whose COMMIT took long comes into a list in front of
// what was read already.
TEST_P(OrderPaymentsSuite, SQ11_APaymentThatIsCommittedLateIsInTheNextListAndNoWorkerMissesIt) {
  std::vector<std::string> events{"e1", "e2", "e3"};
  for (const auto& event : events) money().keep(payment_of(order(1, "ann"), event, 7));
  const auto waiting = [&](std::size_t most, const std::optional<PaymentPlace>& after) {
    std::vector<std::string> found;
    for (const auto& kept : money().list("s", PaymentState::waiting, most, after))
      found.push_back(kept.payment.event);
    std::ranges::sort(found);
    return found;
  };
  const auto page = waiting(2, {});
  ASSERT_EQ(page.size(), 2U);
  money().keep(payment_of(order(1, "ann"), "late", 7));
  GetParam().run(url_,
                 "UPDATE sale_payments SET received_us = received_us - 60000000 WHERE event = "
                 "'late'");
  EXPECT_LE(waiting(10, PaymentPlace{.provider = "acme", .event = page[1]}).size(), 2U);
  events.emplace_back("late");
  EXPECT_EQ(waiting(10, {}), events);
  insert({order(1, "ann")});
  EXPECT_EQ(money().ready("s", 10).size(), 4U);
}

TEST_P(OrderPaymentsSuite, SQ12_AllChangesOfAnOrderAreShown) {
  orders_->begin_stock_change("s", 1000);
  orders_->end_stock_change("s", 1, true);
  sell("3600000000", {order(1, "ann", 1, 200)});
  const auto pay = payment_of(order(1, "ann"), "e", 1400);
  money().keep(pay);
  money().apply(pay);
  for (int i = 0; i < 60; ++i) money().cancel_units("s", 1, 1, fmt::format("k{}", i), "");
  for (const auto& refund : money().refunds_of("s", 1)) EXPECT_TRUE(money().refund_done(refund));
  const auto version = money().find("s", 1)->version;
  EXPECT_EQ(version, 121);
  EXPECT_EQ(std::ssize(money().messages_of("s", 1)), version);
}

TEST_P(OrderPaymentsSuite, SQ13_TheWordsOfAFailureAreNotCutWithinACharacter) {
  sell("3600000000", {order(1, "ann")});
  const auto pay = payment_of(order(1, "ann"), "e", 7);
  money().keep(pay);
  money().apply(pay);
  money().cancel_units("s", 1, 0, "k", "");
  std::string why = "x";
  for (int i = 0; i < 300; ++i) why += "ü";
  money().refund_failed(money().refunds_of("s", 1).at(0), why, 0s);
  EXPECT_EQ(money().refunds_of("s", 1).at(0).note, why.substr(0, 499));
}

// --- what a person settles ---

/// Every payment that did not pay an order, however it came to that.
TEST_P(OrderPaymentsSuite, SV12_APersonSettlesEachPaymentThatPaidNothing) {
  sell("3600000000", {order(1, "ann"), order(2, "bob")});
  const auto keep = [&](Payment payment) {
    money().keep(payment);
    return money().apply(payment).state;
  };
  EXPECT_EQ(keep(payment_of(order(1, "ann"), "right", 7)), PaymentState::applied);
  EXPECT_EQ(keep(payment_of(order(2, "bob"), "other sum", 8)), PaymentState::flagged);
  EXPECT_EQ(keep(payment_of(order(1, "ann"), "second", 7)), PaymentState::flagged);
  EXPECT_EQ(keep(payment_of(order(9, "eve"), "no order", 7)), PaymentState::waiting);
  auto stray = payment_of(order(1, "ann"), "no sale", 7);
  stray.sale = "nobody's";
  EXPECT_EQ(keep(stray), PaymentState::waiting);
  EXPECT_EQ(money().payments_of_no_sale(), 1);
  EXPECT_EQ(money().list("", PaymentState::waiting, 10).size(), 2u);
  EXPECT_EQ(money().list("s", PaymentState::waiting, 10).size(), 1u);

  const auto settle = [&](const char* event, PaymentState to) {
    return money().settle_payment({"acme", event}, to, "zoe", "a reason");
  };
  EXPECT_FALSE(settle("right", PaymentState::refunding).now) << "it paid its order";
  EXPECT_FALSE(settle("unheard", PaymentState::settled).payment);
  EXPECT_THROW(settle("second", PaymentState::applied), Error);
  for (const auto* event : {"other sum", "no order", "no sale"}) {
    const auto settled = settle(event, PaymentState::refunding);
    EXPECT_TRUE(settled.now) << event;
    EXPECT_EQ(settled.payment->state, PaymentState::refunding);
    EXPECT_TRUE(settled.payment->note.ends_with("refunding by zoe: a reason"));
    EXPECT_FALSE(settle(event, PaymentState::settled).now) << "once";
    keep(settled.payment->payment);  // told again
  }
  EXPECT_EQ(money().list("", PaymentState::refunding, 10).size(), 3u);
  EXPECT_TRUE(settle("second", PaymentState::settled).now);
  EXPECT_EQ(money().totals("s").flagged + money().totals("s").waiting, 0);
  EXPECT_EQ(money().payments_of_no_sale(), 0);
  EXPECT_EQ(orders_->figures("s").refunds, 2);
  EXPECT_EQ(money().payments_of("s", order(1, "ann")).size(), 2u);
  EXPECT_EQ(money().payments_of("s", order(9, "eve")).size(), 1u);
  EXPECT_EQ(state(1), OrderState::paid);
  EXPECT_EQ(state(2), OrderState::awaiting) << "nothing happens to an order";
  expect_sound();
}

TEST_P(OrderPaymentsSuite, SV12_MoneyOfAPaymentGoesBackOnceByItsProvidersQueue) {
  sell("3600000000", {order(1, "ann")});
  for (const auto* event : {"e1", "e2"}) {
    money().keep(payment_of(order(1, "ann"), event, 8));
    money().apply(payment_of(order(1, "ann"), event, 8));
    EXPECT_TRUE(money().settle_payment({"acme", event}, PaymentState::refunding, "zoe", "r").now);
  }
  EXPECT_FALSE(money().take_refund("", "other", 1h));
  EXPECT_FALSE(money().take_refund("s", "acme", 1h)) << "no refund of an order";
  const auto first = money().take_refund("", "acme", 1h);
  const auto second = money().take_refund("", "", 1h);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->event, second->event) << "each is one sender's";
  EXPECT_FALSE(money().take_refund("", "acme", 1h));
  EXPECT_EQ(first->sale, "s");
  EXPECT_EQ(first->amount, 8);
  EXPECT_EQ(first->id, 0);
  EXPECT_TRUE(money().refund_done(*first));
  EXPECT_FALSE(money().refund_done(*first));
  money().refund_failed(*second, "no", 1h);
  const auto listed = money().list("s", PaymentState::refunding, 10);
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed.front().attempts, 1);
  EXPECT_EQ(listed.front().failure, "no");
  EXPECT_EQ(orders_->figures("s").refunds_failing, 1);
  EXPECT_FALSE(
      money().settle_payment({"acme", second->event}, PaymentState::refunding, "zoe", "now").now);
  EXPECT_TRUE(money().take_refund("", "acme", 1h)) << "a repeated wish makes it due";
  EXPECT_TRUE(money().refund_done(*second));
  EXPECT_EQ(money().list("", PaymentState::refunded, 10).size(), 2u);
  expect_sound();
}

/// An order that comes in while its payment is settled: it is paid, or the money goes back.
TEST_P(OrderPaymentsSuite, SV12_APaymentPaysItsOrderOrIsSettled) {
  sell("3600000000", {});
  for (std::int64_t id = 1; id <= 8; ++id) {
    const auto its = order(id, fmt::format("b{}", id));
    const auto payment = payment_of(its, fmt::format("e{}", id), 7);
    money().keep(payment);
    std::latch both{2};
    std::jthread comes{[&] {
      both.arrive_and_wait();
      insert({its});
      money().apply(payment);
    }};
    both.arrive_and_wait();
    const auto settled =
        money().settle_payment({"acme", payment.event}, PaymentState::refunding, "zoe", "r");
    comes.join();
    const bool is_paid = state(id) == OrderState::paid;
    EXPECT_EQ(settled.now, !is_paid);
    EXPECT_EQ(money().apply(payment).state,
              is_paid ? PaymentState::applied : PaymentState::refunding);
  }
  expect_sound();
}

TEST_P(OrderPaymentsSuite, SV12_WhatWasNotSentSaysWhyAndIsSentAgain) {
  sell("3600000000", {order(1, "ann"), order(2, "bob"), order(3, "cid")});
  for (const auto id : {1, 2, 3}) orders_->end_order("s", id, OrderState::cancelled, "");
  auto taken = money().take_messages("s", 3, 60s);
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_TRUE(money().message_failed("s", taken[0], 10h, "answered 500"));
  EXPECT_TRUE(money().message_failed("s", taken[1], std::nullopt, "answered 404"));
  EXPECT_TRUE(money().message_sent("s", taken[2]));
  const auto figures = orders_->figures("s");
  EXPECT_EQ(figures.messages_failing, 1);
  EXPECT_EQ(figures.messages_dead, 1);
  EXPECT_EQ(figures.last_failure, "answered 500");
  EXPECT_EQ(figures.failing_since, taken[0].at);
  const auto failing = money().messages("s", "failing", {}, 10);
  ASSERT_EQ(failing.size(), 1u);
  EXPECT_EQ(failing.front().note, "answered 500");
  EXPECT_EQ(money().messages("s", "dead", {}, 10).front().note, "answered 404");
  EXPECT_TRUE(money().take_messages("s", 3, 60s).empty());
  for (const auto at : {0, 1})
    EXPECT_TRUE(money().resend_message("s", {taken[at].order_id, taken[at].seq}));
  EXPECT_FALSE(money().resend_message("s", {taken[2].order_id, taken[2].seq}));
  EXPECT_EQ(money().take_messages("s", 3, 60s).size(), 2u);
}

/// Each way to begin again, beside one that is dead and one that waits for its next attempt.
TEST_P(OrderPaymentsSuite, SV12_WhatAReceiverHasStoppedIsSeenAndBegunAgain) {
  const auto orders = orders_from(1, 4);
  sell("3600000000", orders);
  for (const auto& each : orders) orders_->end_order("s", each.id, OrderState::cancelled, "");
  struct Way {
    const char* name;
    std::function<std::int64_t(const OrderMessage& dead)> begin;
    std::int64_t count;
  };
  const Way ways[] = {{"all", [&](const auto&) { return money().replay_messages("s"); }, 4},
                      {"one",
                       [&](const auto& m) {
                         return money().resend_message("s", {m.order_id, m.seq});
                       },
                       4},
                      {"none", [&](const auto&) { return money().resume_messages("s"); }, 3}};
  for (const auto& way : ways) {
    auto taken = money().take_messages("s", 4, 60s);
    ASSERT_EQ(taken.size(), 4U) << way.name;
    EXPECT_TRUE(money().message_failed("s", taken[0], 10h, "answered 500"));
    EXPECT_TRUE(money().message_failed("s", taken[1], std::nullopt, "answered 404"));
    const auto before = orders_->wall();
    money().stop_messages("s");
    money().stop_messages("s");
    EXPECT_TRUE(money().message_failed("s", taken[2], 0s, "answered 410"));
    EXPECT_TRUE(money().message_failed("s", taken[3], 0s));
    EXPECT_TRUE(money().take_messages("s", 4, 60s).empty());
    const auto stopped = orders_->figures("s");
    EXPECT_EQ(stopped.messages_stopped, 3) << way.name;
    EXPECT_EQ(stopped.messages_failing, 0) << "they are not tried again";
    ASSERT_TRUE(stopped.stopped_since) << way.name;
    EXPECT_GE(*stopped.stopped_since, before);
    EXPECT_EQ(stopped.last_failure, "answered 410") << "not that of one that waits for longer";
    const auto waiting = money().messages("s", "due", {}, 10);
    EXPECT_EQ(waiting.size(), 3U);
    for (const auto& one : waiting) EXPECT_EQ(one.state, "stopped") << one.order_id;
    EXPECT_EQ(money().messages("s", "dead", {}, 10).at(0).state, "dead");
    EXPECT_EQ(money().messages_of("s", taken[0].order_id).at(0).state, "stopped");
    EXPECT_EQ(way.begin(taken[1]), way.count) << way.name;
    const auto begun = orders_->figures("s");
    EXPECT_EQ(begun.messages_stopped, 0);
    EXPECT_FALSE(begun.stopped_since);
    EXPECT_EQ(money().resume_messages("s"), 0);
    EXPECT_EQ(money().resend_message("s", {taken[1].order_id, 99}), 0);
    if (way.count < 4) EXPECT_EQ(money().replay_messages("s"), 1) << "the dead one alone";
  }
  EXPECT_EQ(money().take_messages("s", 9, 60s).size(), 4U);
}

TEST_P(OrderPaymentsSuite, SV12_ARefundThatFailsIsListedAndSentAgain) {
  sell("3600000000", {order(1, "ann"), order(2, "bob")});
  for (const auto* buyer : {"ann", "bob"}) {
    const auto its = order(buyer[0] == 'a' ? 1 : 2, buyer);
    money().keep(payment_of(its, buyer, 7));
    money().apply(payment_of(its, buyer, 7));
    money().cancel_units("s", its.id, 0, "k", "ill");
  }
  const auto taken = money().take_refund("s", "acme", 1h);
  money().refund_failed(*taken, "no", 10h);
  EXPECT_EQ(money().refunds("s", "asked", {}, 10).size(), 2u);
  EXPECT_EQ(money().refunds("s", "asked", {}, 1).size(), 1u);
  EXPECT_EQ(money().refunds("s", "asked", {1, 100}, 10).size(), 1u);
  ASSERT_EQ(money().refunds("s", "failing", {}, 10).size(), 1u);
  EXPECT_EQ(orders_->figures("s").refunds_failing, 1);
  EXPECT_TRUE(money().resend_refund("s", {taken->id, taken->seq}));
  EXPECT_EQ(money().refunds("s", 10).size(), 2u) << "both are due";
  EXPECT_TRUE(money().refund_done(*taken));
  EXPECT_FALSE(money().resend_refund("s", {taken->id, taken->seq}));
  EXPECT_EQ(money().refunds("s", "done", {}, 10).size(), 1u);
  EXPECT_THROW(money().refunds("s", "lost", {}, 10), Error);
}

TEST_P(OrderPaymentsSuite, SV20_OrdersAreListedNewestFirstByStateAndBuyer) {
  auto orders = orders_from(1, 5);
  for (auto& each : orders) each.buyer = {each.id % 2 == 0 ? "even" : "odd"};
  for (auto& each : orders) each.n = (each.id + 1) / 2;
  sell("3600000000", orders);
  orders_->end_order("s", 4, OrderState::cancelled, "");
  const auto ids = [&](const OrderQuery& which, std::size_t most) {
    std::vector<std::int64_t> found;
    for (const auto& each : orders_->newest("s", which, most)) found.push_back(each.id);
    return found;
  };
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(ids({}, 3), (Ids{5, 4, 3}));
  EXPECT_EQ(ids({.before = 3}, 3), (Ids{2, 1}));
  EXPECT_EQ(ids({.state = OrderState::awaiting}, 3), (Ids{5, 3, 2}));
  EXPECT_EQ(ids({.buyer = BuyerId{"even"}}, 3), (Ids{4, 2}));
  EXPECT_EQ(ids({.state = OrderState::cancelled, .buyer = BuyerId{"even"}}, 3), (Ids{4}));
  EXPECT_EQ(ids({.state = OrderState::refunded}, 3), Ids{});
  EXPECT_TRUE(orders_->newest("nobody's", {}, 3).empty());
}

TEST_P(OrderPaymentsSuite, SV20_OrdersAreCountedByDayAndState) {
  const auto a_day = std::chrono::microseconds{24h}.count();
  auto orders = orders_from(1, 4);
  for (auto& each : orders) {
    each.units = each.id;
    each.issued_at = WallTime{std::chrono::microseconds{20'000 * a_day + each.id * a_day / 2 - 1}};
  }
  sell("3600000000", orders);
  money().cancel_units("s", 4, 1, "k", "");
  orders_->end_order("s", 1, OrderState::cancelled, "");
  const auto rows = [&](std::chrono::minutes offset) {
    std::vector<std::string> text;
    for (const auto& each : money().by_day("s", offset))
      text.push_back(fmt::format(
          "{} {} {} {}",
          std::chrono::duration_cast<std::chrono::minutes>(each.day.time_since_epoch()).count() -
              20'000 * 1440,
          to_string(each.state), each.orders, each.units));
    return text;
  };
  using Rows = std::vector<std::string>;
  EXPECT_EQ(rows(0min), (Rows{"1440 awaiting 2 6", "0 awaiting 1 2", "0 cancelled 1 1"}));
  EXPECT_EQ(rows(720min), (Rows{"2160 awaiting 1 3", "720 awaiting 2 5", "-720 cancelled 1 1"}));
  EXPECT_TRUE(money().by_day("nobody's", 0min).empty());
}

INSTANTIATE_TEST_SUITE_P(All, OrderPaymentsSuite, testing::ValuesIn(database_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace sluice
