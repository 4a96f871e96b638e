// The life of an order from its admission to its money: V04 to V21, and the dying of processes amid
// each step of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <tuple>

#include "sale/life.hpp"
#include "sale/records.hpp"
#include "sluice/order_messages.hpp"
#include "sluice/sale_recovery.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Life;
using Strings = std::vector<std::string>;

TEST(SaleLife, V04_PaidInTimeItStaysPaidAndGivesNothingBack) {
  Life life;
  const auto order = *life.buy("ann", "r", 2).order;
  life.work();
  const auto owed = life.payments().find("s", order.id);
  EXPECT_EQ(owed->due, 2998);
  EXPECT_EQ(owed->pay_by, life.now() + 30min);
  life.pass(31min);  // within the grace
  const auto paid = life.pay(order);
  EXPECT_EQ(paid.state, PaymentState::applied);
  EXPECT_TRUE(paid.now);
  life.pass(24h);
  EXPECT_EQ(life.sale().expire(life.orders()), 0u);
  EXPECT_EQ(life.state(order), OrderState::paid);
  EXPECT_EQ(life.left(), 7);
  EXPECT_EQ(life.told(order), Strings{"order.paid"});
  life.expect_sound();
}

TEST(SaleLife, V05_AnUnpaidOrderExpiresOnceAndTheSaleOpensAgain) {
  Life life;
  const auto order = *life.buy("ann", "r", 9).order;
  life.work();
  EXPECT_EQ(life.buy("bob").outcome, SaleOutcome::sold_out);
  life.pass(32min - 1us);
  EXPECT_EQ(life.sale().expire(life.orders()), 0u);
  life.pass(1us);
  EXPECT_EQ(life.sale().expire(life.orders()), 1u);
  EXPECT_EQ(life.sale().expire(life.orders()), 0u);
  EXPECT_EQ(life.state(order), OrderState::expired);
  EXPECT_EQ(life.left(), 9);
  EXPECT_EQ(life.sale().status().get().state, SaleState::open);
  EXPECT_EQ(life.told(order), Strings{"order.expired"});
  const auto repeat = life.buy("ann", "r", 9);
  EXPECT_EQ(repeat.outcome, SaleOutcome::cancelled);
  EXPECT_EQ(repeat.order->state, OrderState::expired);
  EXPECT_EQ(life.buy("bob").outcome, SaleOutcome::admitted);
  life.expect_sound();
}

TEST(SaleLife, V05_AWorkerExpiresThemToo) {
  Life life;
  const auto order = *life.buy("ann").order;
  life.work();
  life.pass(33min);
  life.work();
  EXPECT_EQ(life.state(order), OrderState::expired);
  EXPECT_EQ(life.left(), 9);
}

TEST(SaleLife, V06_APaymentAndTheExpiryAtOneInstantPayOrReturnNeverBoth) {
  for (int i = 0; i < 200; ++i) {
    Life life;
    const auto order = *life.buy("ann", "r", 3).order;
    life.work();
    life.pass(32min);
    // Each side has looked before the other one writes.
    const auto due = life.payments().due("s", 10);
    ASSERT_EQ(due.size(), 1u);
    bool expired = false;
    PaymentResult paid;
    if (i % 2 == 0) expired = life.payments().expire("s", order.id);
    life.payments().keep(Life::payment(order, "e"));
    paid = life.payments().apply(Life::payment(order, "e"));
    if (i % 2 == 1) expired = life.payments().expire("s", order.id);
    EXPECT_EQ(expired, i % 2 == 0);
    EXPECT_EQ(paid.state, expired ? PaymentState::asking : PaymentState::applied);
    EXPECT_EQ(life.orders().returns("s", -1, 10, false).empty(), !expired);
    life.expect_sound();
    EXPECT_EQ(life.state(order), OrderState::paid) << "late, units are left";
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SaleLife, V07_ALatePaymentTakesTheUnitsAgainWhereSomeAreLeft) {
  Life life;
  const auto order = *life.buy("ann", "r", 3).order;
  life.work();
  life.pass(33min);
  life.sale().expire(life.orders());
  EXPECT_EQ(life.left(), 9);
  const auto paid = life.pay(order);
  EXPECT_EQ(paid.state, PaymentState::applied);
  EXPECT_TRUE(paid.now);
  EXPECT_EQ(paid.order->order.state, OrderState::paid);
  EXPECT_EQ(life.left(), 6);
  EXPECT_EQ(life.told(order), (Strings{"order.expired", "order.paid_late", "order.paid"}));
  EXPECT_EQ(life.buy("ann", "r", 3).outcome, SaleOutcome::repeated) << "it stands again";
  EXPECT_FALSE(life.pay(order).now);
  EXPECT_EQ(life.left(), 6);
  life.expect_sound();
}

TEST(SaleLife, V08_ALatePaymentGoesBackWhereNoneAreLeft) {
  Life life;
  const auto order = *life.buy("ann", "r", 3).order;
  life.work();
  life.pass(33min);
  life.sale().expire(life.orders());
  life.buy("bob", "r", 7);
  const auto paid = life.pay(order);
  EXPECT_EQ(paid.state, PaymentState::returned);
  life.pay(order);
  EXPECT_EQ(life.state(order), OrderState::refunding);
  const auto refunds = life.payments().refunds_of("s", order.id);
  ASSERT_EQ(refunds.size(), 1u);
  EXPECT_EQ(refunds[0].amount, 3 * 1499);
  EXPECT_EQ(refunds[0].event, "e1");
  EXPECT_TRUE(life.payments().refund_done(refunds[0]));
  EXPECT_FALSE(life.payments().refund_done(refunds[0]));
  EXPECT_EQ(life.state(order), OrderState::refunded);
  EXPECT_EQ(life.told(order),
            (Strings{"order.expired", "order.paid_late", "order.refunding", "order.refunded"}));
  EXPECT_EQ(life.left(), 2);
  life.expect_sound();
}

/// Two processes ask the store for the units of one order, and it has them when the second one
/// asks: had the second been given them, the first would send back the money of units that nobody
/// could sell any more.
TEST(SaleLife, ARetakeThatWasRefusedIsRefusedToAllWhoAsk) {
  Life life;
  const auto order = *life.buy("ann", "r", 9).order;
  life.work();
  life.pass(33min);
  life.sale().expire(life.orders());
  const auto other = *life.buy("bob", "r", 9).order;
  life.work();
  const auto payment = Life::payment(order, "late");
  life.payments().keep(payment);
  ASSERT_EQ(life.payments().apply(payment).state, PaymentState::asking);
  const auto retake = life.orders().returns("s", order.id - 1, 10, true).back();
  sale::Records records{life.store(), life.sale().definition()};
  ASSERT_EQ(records.take_again(retake).get(), sale::Records::Retaken::refused);
  life.sale().cancel(life.orders(), {"bob"}, {"r"}, "");  // here the first process stands still
  ASSERT_EQ(life.left(), 9);
  EXPECT_EQ(records.take_again(retake).get(), sale::Records::Retaken::refused);
  for (const auto& check : audit(life.store(), life.sale(), life.orders()).checks)
    EXPECT_TRUE(check.ok) << check.name << ": " << check.detail;
  recover(life.store(), "s", life.orders());
  EXPECT_FALSE(life.payments().end_retake("s", order.id, retake.seq, false)) << "it was told";
  EXPECT_EQ(life.state(order), OrderState::refunding);
  EXPECT_EQ(life.left(), 9);
  life.expect_sound();
}

/// A store that was away while buyers paid: what was kept then pays, however long it took.
TEST(SaleLife, PaymentsThatWereKeptInTimePayThoughNobodyCouldApplyThem) {
  auto sale = Life::usual();
  sale.stock = 300;
  Life life{sale};
  std::vector<SaleOrder> orders;
  for (int i = 0; i < 300; ++i) orders.push_back(*life.buy("b" + std::to_string(i)).order);
  life.work();
  // Told in another order than the deadlines have.
  for (auto order = orders.rbegin(); order != orders.rend(); ++order)
    life.payments().keep(Life::payment(*order, "of " + order->number));
  life.pass(1h);
  EXPECT_EQ(life.sale().expire(life.orders()), 0U);
  life.expect_sound();  // one look of a worker
  for (const auto& order : orders) EXPECT_EQ(life.state(order), OrderState::paid);
}

TEST(SaleLife, V09_AnEventThatIsToldTenTimesPaysOnce) {
  Life life;
  const auto order = *life.buy("ann").order;
  life.work();
  int now = 0;
  for (int i = 0; i < 10; ++i) {
    const auto paid = life.pay(order);
    now += paid.now;
    EXPECT_EQ(paid.state, PaymentState::applied);
  }
  EXPECT_EQ(now, 1);
  EXPECT_FALSE(life.payments().keep(Life::payment(order, "e1", 5))) << "what came first counts";
  EXPECT_EQ(life.payments().find("s", order.id)->version, 1);
  life.expect_sound();
}

TEST(SaleLife, V10_APaymentThatComesBeforeItsOrderWaitsForIt) {
  Life life;
  const auto order = *life.buy("ann").order;
  const auto paid = life.pay(order);
  EXPECT_EQ(paid.state, PaymentState::waiting);
  EXPECT_FALSE(paid.order);
  EXPECT_EQ(life.payments().list("s", PaymentState::waiting, 10).size(), 1u);
  life.work();
  life.work();
  EXPECT_EQ(life.state(order), OrderState::paid);
  EXPECT_TRUE(life.payments().list("s", PaymentState::waiting, 10).empty());
  life.expect_sound();
}

TEST(SaleLife, V12_AnotherAmountOrCurrencyPaysNothingAndIsListed) {
  Life life;
  const auto order = *life.buy("ann", "r", 2).order;
  life.work();
  EXPECT_EQ(life.pay(order, "less", 2997).state, PaymentState::flagged);
  EXPECT_EQ(life.pay(order, "more", 2999).state, PaymentState::flagged);
  auto dollars = Life::payment(order, "dollars");
  dollars.currency = "USD";
  EXPECT_EQ(life.sale().pay(life.orders(), dollars).state, PaymentState::flagged);
  EXPECT_EQ(life.state(order), OrderState::awaiting);
  EXPECT_EQ(life.pay(order, "right").state, PaymentState::applied);
  EXPECT_EQ(life.pay(order, "twice").state, PaymentState::flagged) << "it is paid";
  const auto flagged = life.payments().list("s", PaymentState::flagged, 10);
  ASSERT_EQ(flagged.size(), 4u);
  const auto less = std::ranges::find(flagged, "less", [](auto& p) { return p.payment.event; });
  EXPECT_EQ(less->note, "29.97 CNY was paid, and 29.98 CNY is due");
  for (auto wrong : {Life::payment(order, ""), Life::payment(order, std::string(129, 'x'))})
    EXPECT_THROW(life.sale().pay(life.orders(), wrong), Error);
  auto other = Life::payment(order, "e");
  other.sale = "t";
  EXPECT_THROW(life.sale().pay(life.orders(), other), Error);
  life.expect_sound();
}

TEST(SaleLife, V13_OfACancelAndAPaymentOneWins) {
  Life life;
  const auto ann = *life.buy("ann").order;
  const auto bob = *life.buy("bob").order;
  life.work();
  EXPECT_TRUE(life.sale().cancel(life.orders(), {"ann"}, {"r"}, "").now);
  EXPECT_EQ(life.pay(ann, "a").state, PaymentState::returned) << "its money goes back";
  EXPECT_EQ(life.state(ann), OrderState::refunding);
  EXPECT_EQ(life.pay(bob, "b").state, PaymentState::applied);
  const auto late = life.sale().cancel(life.orders(), {"bob"}, {"r"}, "");
  EXPECT_FALSE(late.now);
  EXPECT_EQ(late.order->state, OrderState::paid);
  EXPECT_EQ(life.left(), 8);
  life.expect_sound();
}

TEST(SaleLife, V14_SomeUnitsAreCancelledAndTheirPriceGoesBackOnce) {
  Life life;
  const auto order = *life.buy("ann", "r", 5).order;
  life.work();
  life.pay(order);
  for (int i = 0; i < 3; ++i) {
    const auto done = life.sale().cancel_units(life.orders(), {"ann"}, {"r"}, 2, "k1", "too many");
    EXPECT_EQ(done.outcome,
              i == 0 ? UnitsResult::Outcome::cancelled : UnitsResult::Outcome::repeated);
    EXPECT_EQ(done.units, 2);
    EXPECT_EQ(done.refund, 2 * 1499);
    EXPECT_EQ(done.order->returned, 2);
  }
  EXPECT_EQ(life.left(), 6);
  EXPECT_EQ(life.state(order), OrderState::paid);
  EXPECT_EQ(life.payments().refunds_of("s", order.id).size(), 1u);
  const auto cancel = [&](std::int64_t units, const char* key) {
    return life.sale().cancel_units(life.orders(), {"ann"}, {"r"}, units, key).outcome;
  };
  EXPECT_EQ(cancel(4, "k2"), UnitsResult::Outcome::too_many);
  life.expect_sound();
  EXPECT_EQ(cancel(0, "k3"), UnitsResult::Outcome::cancelled) << "the rest";
  EXPECT_EQ(cancel(1, "k4"), UnitsResult::Outcome::ended);
  EXPECT_EQ(life.state(order), OrderState::refunding);
  EXPECT_EQ(life.left(), 9);
  for (const auto& refund : life.payments().refunds_of("s", order.id))
    life.payments().refund_done(refund);
  EXPECT_EQ(life.state(order), OrderState::refunded);
  life.expect_sound();
  EXPECT_EQ(life.sale().cancel_units(life.orders(), {"cid"}, {"r"}, 1, "k").outcome,
            UnitsResult::Outcome::unknown);
}

// Ann was told of an order that was lost with the store; its number is bob's now.
TEST(SaleLife, SV18_APaymentThatNamesAnOrderByItsIdPaysNoOther) {
  Life life;
  life.save();
  const auto lost = *life.buy("ann").order;
  life.come_back();
  life.pass(1s);
  const auto order = *life.buy("bob").order;
  ASSERT_EQ(order.number, lost.number);
  ASSERT_NE(order.id, lost.id);
  auto payment = Life::payment(lost, "of ann");
  payment.order = std::to_string(lost.id);
  EXPECT_EQ(life.sale().pay(life.orders(), payment).state, PaymentState::waiting);
  payment = Life::payment(order, "of bob");
  payment.order = std::to_string(order.id);
  EXPECT_EQ(life.sale().pay(life.orders(), payment).state, PaymentState::waiting);
  life.work();
  EXPECT_EQ(life.payments().ready("s", 10).size() + (life.state(order) == OrderState::paid), 1u);
  life.sale().pay(life.orders(), payment);
  EXPECT_EQ(life.state(order), OrderState::paid);
  EXPECT_EQ(life.payments().payments_of("s", order).size(), 1u);
  life.expect_sound();
  EXPECT_EQ(life.payments().totals("s").waiting, 1);
}

// Two units go back before the payment of all five: their price goes back, part by part.
TEST(SaleLife, SV18_APaymentOfWhatWasDueBeforeUnitsWereTakenBackPays) {
  for (const bool is_late : {false, true}) {
    Life life;
    const auto order = *life.buy("ann", "r", 5).order;
    life.work();
    for (const auto* const key : {"k1", "k2"})
      life.sale().cancel_units(life.orders(), {"ann"}, {"r"}, 1, key);
    if (is_late) life.pass(33min), life.sale().expire(life.orders());
    EXPECT_EQ(life.pay(order, "another", 5 * 1499 - 1).state, PaymentState::flagged);
    EXPECT_EQ(life.pay(order, "of all").state, PaymentState::applied);
    const auto back = life.payments().refunds_of("s", order.id);
    ASSERT_EQ(back.size(), 2u);
    EXPECT_EQ(back[0].part, "0-1499");
    EXPECT_EQ(back[1].part, "1499-2998");
    EXPECT_EQ(life.left(), 6);
    life.expect_sound();
  }
}

TEST(SaleLife, UnitsOfAnUnpaidOrderAreCancelledAndTheRestIsDue) {
  Life life;
  const auto order = *life.buy("ann", "r", 5).order;
  life.work();
  life.sale().cancel_units(life.orders(), {"ann"}, {"r"}, 2, "k1");
  EXPECT_TRUE(life.payments().refunds_of("s", order.id).empty());
  EXPECT_EQ(life.payments().find("s", order.id)->due, 3 * 1499);
  EXPECT_EQ(life.pay(order, "none", 4 * 1499).state, PaymentState::flagged);
  life.expect_sound();
  life.pass(33min);
  life.sale().expire(life.orders());
  EXPECT_EQ(life.left(), 9);
  EXPECT_EQ(life.pay(order, "late", 3 * 1499).state, PaymentState::applied);
  EXPECT_EQ(life.left(), 6);
  life.expect_sound();
}

TEST(SaleLife, V19_TheNextThreeWinWhatThreeLetExpire) {
  Life life;
  for (int i = 0; i < 9; ++i) life.buy(std::to_string(i));
  life.work();
  for (int i = 0; i < 6; ++i)
    life.pay(*life.orders().find_request("s", {std::to_string(i)}, {"r"}), std::to_string(i));
  EXPECT_EQ(life.buy("late").outcome, SaleOutcome::sold_out);
  life.pass(32min);
  EXPECT_EQ(life.sale().expire(life.orders()), 3u);
  for (const auto* const next : {"x", "y", "z"})
    EXPECT_EQ(life.buy(next).outcome, SaleOutcome::admitted);
  EXPECT_EQ(life.buy("late").outcome, SaleOutcome::sold_out);
  life.expect_sound();
}

TEST(SaleLife, V20_WhoLetsAnOrderExpireMayBuyAgainAsTheLimitSays) {
  Life life;
  const auto first = *life.buy("ann").order;
  life.work();
  life.pass(33min);
  life.sale().expire(life.orders());
  const auto second = life.buy("ann", "r2");
  EXPECT_EQ(second.outcome, SaleOutcome::admitted);
  EXPECT_EQ(second.order->n, 2);
  EXPECT_EQ(life.buy("ann", "r3").outcome, SaleOutcome::already_bought);
  EXPECT_EQ(life.pay(first).state, PaymentState::returned) << "he has another one now";
  EXPECT_EQ(life.left(), 8);
  life.expect_sound();
}

TEST(SaleLife, V21_ReturnsThatUseUpTheNumbersOfADayMakeItFull) {
  auto definition = Life::usual();
  definition.digits = 1;
  Life life{definition};
  for (int i = 0; i < 9; ++i) life.buy(std::to_string(i));
  life.work();
  life.pass(33min);
  EXPECT_EQ(life.sale().expire(life.orders()), 9u);
  EXPECT_EQ(life.buy("late").outcome, SaleOutcome::full);
  EXPECT_EQ(life.sale().status().get().state, SaleState::full);
  life.expect_sound();
}

TEST(SaleLife, V52_DeadlinesAreThoseOfTheDatabasesClock) {
  Life life;
  life.set_database_clock(life.now() - 5min);
  const auto order = *life.buy("ann").order;
  life.work();
  EXPECT_EQ(life.payments().find("s", order.id)->pay_by, life.now() + 25min);
}

TEST(SaleLife, AStoreThatForgetsWhatBecameOfAnOrderLearnsItFromTheDatabase) {
  using Happens = std::function<void(Life&, const SaleOrder&)>;
  const Happens paid_late = [](Life& life, const SaleOrder& order) { life.pay(order); };
  const Happens paid_late_and_refunded = [](Life& life, const SaleOrder& order) {
    life.pay(order);
    life.sale().cancel_units(life.orders(), {"ann"}, {"r"}, 0, "k");
  };
  const Happens paid_late_and_in_part = [](Life& life, const SaleOrder& order) {
    life.pay(order);
    life.sale().cancel_units(life.orders(), {"ann"}, {"r"}, 1, "k");
  };
  const std::vector<std::tuple<Happens, std::int64_t, OrderState>> all{
      {paid_late, 6, OrderState::paid},
      {paid_late_and_refunded, 9, OrderState::refunding},
      {paid_late_and_in_part, 7, OrderState::paid}};
  for (const auto& [happens, left, state] : all) {
    for (const bool saves_before_expiry : {false, true}) {
      SCOPED_TRACE(std::to_string(left) + (saves_before_expiry ? ", all of it" : ""));
      Life life;
      const auto order = *life.buy("ann", "r", 3).order;
      life.work();
      if (saves_before_expiry) life.save();
      life.pass(33min);
      life.sale().expire(life.orders());
      if (!saves_before_expiry) life.save();
      happens(life, order);
      life.come_back();
      recover(life.store(), "s", life.orders());
      life.expect_sound();
      EXPECT_EQ(life.left(), left);
      EXPECT_EQ(life.state(order), state);
    }
  }
}

/// A worker goes on to expire orders in the database while the sale is recovered, and a cancel that
/// began before goes on, too.
TEST(SaleLife, WhatEndsWhileTheSaleIsRecoveredGivesItsUnitsBackOnce) {
  bool is_reached = true;
  for (int steps = 0; is_reached; ++steps) {
    SCOPED_TRACE("at step " + std::to_string(steps));
    Life life;
    const auto ann = *life.buy("ann", "r", 3).order;
    const auto bob = *life.buy("bob", "r", 2).order;
    life.work();
    life.pass(33min);
    is_reached = false;
    life.interrupted(
        steps, [](Store& store, OrderStore& orders) { recover(store, "s", orders); },
        [&] {
          is_reached = true;
          EXPECT_TRUE(life.payments().expire("s", ann.id));
          EXPECT_TRUE(life.orders().end_order("s", bob.id, OrderState::cancelled, "").now);
        });
    life.expect_sound();
    EXPECT_EQ(life.left(), 9);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(SaleLife, ADatabaseThatForgetsPartsAndEndsLearnsThemFromTheStore) {
  // As if the database came back from before them: the store alone knows.
  Life life;
  const auto ann = *life.buy("ann", "r", 5).order;
  const auto bob = *life.buy("bob", "r", 2).order;
  life.work();
  life.pay(ann, "a");
  life.pay(bob, "b");
  sale::Records records{life.store(), life.sale().definition()};
  records.give_back({.order = ann, .seq = 2, .units = 2, .ends = false}).get();
  auto ended = bob;
  ended.state = OrderState::refunding;
  records.give_back({.order = ended, .seq = 2, .units = 2}).get();
  EXPECT_EQ(life.left(), 6);
  recover(life.store(), "s", life.orders());
  life.expect_sound();
  EXPECT_EQ(life.left(), 6);
  EXPECT_EQ(life.payments().find("s", ann.id)->returned, 2);
  EXPECT_EQ(life.state(bob), OrderState::refunding);
  EXPECT_EQ(life.payments().refunds_of("s", bob.id).at(0).amount, 2 * 1499);
}

/// What one process does, and what another must find done when it does the same again.
struct LifeDeed {
  const char* name;
  std::function<void(Sale&, OrderStore&, const SaleOrder&)> act;
  std::int64_t left;  ///< of 9, when it is done
  OrderState state;
};

/// An order of 3 that is brought to where the deed begins.
struct LifeStage {
  const char* name;
  std::function<void(Life&, const SaleOrder&)> prepare;
  std::vector<LifeDeed> deeds;
};

const auto pay_it = [](Sale& sale, OrderStore& orders, const SaleOrder& order) {
  sale.pay(orders, Life::payment(order, "e"));
};

TEST(SaleLife, V16_V17_AProcessMayBeKilledAtAnyStep) {
  const LifeDeed expire{"expire",
                        [](Sale& sale, OrderStore& orders, auto&) { sale.expire(orders); }, 9,
                        OrderState::expired};
  const LifeDeed cancel{"cancel units",
                        [](Sale& sale, OrderStore& orders, auto&) {
                          sale.cancel_units(orders, {"ann"}, {"r"}, 2, "k");
                        },
                        8, OrderState::awaiting};
  auto cancel_paid = cancel;
  cancel_paid.state = OrderState::paid;
  const LifeDeed refund{"cancel all",
                        [](Sale& sale, OrderStore& orders, auto&) {
                          sale.cancel_units(orders, {"ann"}, {"r"}, 0, "k");
                        },
                        9, OrderState::refunding};
  const auto in_time = [](Life&, const SaleOrder&) {};
  const auto overdue = [](Life& life, const SaleOrder&) { life.pass(33min); };
  const auto expired = [](Life& life, const SaleOrder&) {
    life.pass(33min);
    life.sale().expire(life.orders());
  };
  const auto bought_up = [expired](Life& life, const SaleOrder& order) {
    expired(life, order);
    life.buy("bob", "r", 9);
  };
  const auto paid = [](Life& life, const SaleOrder& order) { life.pay(order); };
  const std::vector<LifeStage> stages{
      {"awaiting", in_time, {{"pay", pay_it, 6, OrderState::paid}, cancel}},
      {"overdue", overdue, {expire}},
      {"expired", expired, {{"pay late", pay_it, 6, OrderState::paid}}},
      {"expired and sold", bought_up, {{"pay late", pay_it, 0, OrderState::refunding}}},
      {"paid", paid, {cancel_paid, refund}}};
  int kills = 0;
  for (const auto& stage : stages) {
    for (const auto& deed : stage.deeds) {
      for (const auto* const healer : {"a worker", "the same again", "a recovery"}) {
        bool finished = false;
        for (int steps = 0; !finished; ++steps, ++kills) {
          SCOPED_TRACE(std::string{stage.name} + ": " + deed.name + ", killed at step " +
                       std::to_string(steps) + ", healed by " + healer);
          Life life;
          const auto order = *life.buy("ann", "r", 3).order;
          life.work();
          stage.prepare(life, order);
          finished = life.survives(
              steps, [&](Sale& sale, OrderStore& orders) { deed.act(sale, orders, order); });
          const std::string by = healer;
          if (by == "a worker") life.expect_sound();
          if (by == "a recovery") recover(life.store(), "s", life.orders());
          deed.act(life.sale(), life.orders(), order);  // whoever asked, asks again
          life.expect_sound();
          EXPECT_EQ(life.left(), deed.left);
          EXPECT_EQ(life.state(order), deed.state);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
  EXPECT_GT(kills, 100);
}

TEST(SaleLife, SV05_AnArchiveLeavesNoOrderUnpaidForEver) {
  Life life;
  const auto ann = *life.buy("ann").order;
  const auto bob = *life.buy("bob", "r", 2).order;
  life.work();
  life.pay(bob);
  life.payments().keep(Life::payment({.number = "MT200001010001", .id = 1, .units = 1}, "of none"));
  const auto refused = [&](const std::string& says) {
    try {
      life.sale().archive(life.orders());
      ADD_FAILURE() << says;
    } catch (const Error& error) {
      EXPECT_EQ(error.errc(), Errc::server);
      EXPECT_NE(error.message().find(says), std::string::npos) << error.what();
    }
  };
  refused("1 order(s) await their payment");
  EXPECT_EQ(life.sale().status().get().state, SaleState::closed);
  life.pass(33min);
  life.sale().cancel_units(life.orders(), {"bob"}, {"r"}, 1, "k");
  EXPECT_TRUE(life.sale().archive(life.orders())) << "a worker has ended it";
  EXPECT_EQ(life.state(ann), OrderState::expired);
  EXPECT_TRUE(life.payments().list("s", PaymentState::waiting, 10).empty());
  EXPECT_EQ(life.payments().list("s", PaymentState::flagged, 10).at(0).note,
            "the sale has no such order");
  EXPECT_TRUE(audit(life.store(), life.sale(), life.orders()).ok());
  // What needs the database alone goes on.
  EXPECT_FALSE(life.payments().take_messages("s", 10, 1h).empty());
  EXPECT_EQ(send_refunds(life.store(), life.orders(), "s", [](const Refund&) { return ""; }).done,
            1u);
  EXPECT_EQ(life.pay(ann, "late").state, PaymentState::returned) << "its money goes back";
  EXPECT_EQ(life.state(ann), OrderState::refunding);
}

/// What the database has of a sale.
std::string written(Life& life, const SaleOrder& order) {
  const auto row = life.payments().find("s", order.id);
  auto text = fmt::format("{} changes", life.orders().last_stock_change("s"));
  if (row)
    text += fmt::format(", {} {} {}", to_string(row->order.state), row->version, row->returned);
  for (const auto state : {PaymentState::waiting, PaymentState::asking, PaymentState::applied})
    text += fmt::format(", {}", life.payments().list("s", state, 9).size());
  return text;
}

/// Each verb that writes into the database and asks the store then: the store refuses one of the
/// commands. An Error that says "no effect" is believed, and the wish told anew under another key.
TEST(SaleLife, AFailureOfTheStoreBehindACommitNeverSaysThatNothingHasHappened) {
  using Verb = std::function<void(Sale&, OrderStore&, const SaleOrder&)>;
  const std::vector<std::pair<std::string, Verb>> verbs{
      {"cancel", [](Sale& sale, OrderStore& orders,
                    const SaleOrder&) { sale.cancel(orders, {"ann"}, {"r"}, ""); }},
      {"cancel_units",
       [](Sale& sale, OrderStore& orders, const SaleOrder&) {
         sale.cancel_units(orders, {"ann"}, {"r"}, 1, "key");
       }},
      {"pay late", [](Sale& sale, OrderStore& orders,
                      const SaleOrder& order) { sale.pay(orders, Life::payment(order, "e1")); }},
      {"change_stock",
       [](Sale& sale, OrderStore& orders, const SaleOrder&) { sale.change_stock(orders, 20); }}};
  int inputs = 0;
  for (const auto& [name, verb] : verbs)
    for (int step = 0;; ++step, ++inputs) {
      Life life;
      const auto order = *life.buy("ann", "r", 2).order;
      life.work();
      if (name == "pay late") {
        life.pass(40min);
        life.sale().expire(life.orders());
      }
      const auto before = written(life, order);
      test::FaultyStore store{life.store()};
      auto sale = Sale::load(store, "s").get();
      int left = step;
      store.plan = [&](std::string_view) {
        return left-- == 0 ? test::Fault::refused : test::Fault::none;
      };
      try {
        verb(*sale, life.orders(), order);
      } catch (const Error& failure) {
        if (failure.effect() == Effect::none)
          EXPECT_EQ(written(life, order), before)
              << name << " at step " << step << ": " << failure.what();
      }
      if (left >= 0) break;
    }
  EXPECT_GT(inputs, 12);
}

}  // namespace
}  // namespace sluice
