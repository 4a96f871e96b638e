// Random lives of orders whose database is restored from a backup while the store goes on; then the
// provider tells its payments again, as docs/sale.md asks for. The provider gives money once for
// each key and the receiver drops a message whose id it knows. A person settles some refunds, and
// payments that do not fit, outside: by cash. In the end nobody has goods and their money, nobody
// gets more than he paid, no right payment is flagged, and all money that is to go back has gone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "sale/life.hpp"
#include "sluice/order_messages.hpp"
#include "sluice/payment_provider.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/collected_log.hpp"
#include "support/sanitized.hpp"
#include "support/temp_dir.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Life;

class RestoredLives {
 public:
  RestoredLives(unsigned seed, std::map<std::string, int>& faults)
      : faults_(faults),
        random_(seed),
        life_(definition(), (folder_ / "orders.db").string()),
        messages_(make_messages()) {}

  std::string told;

  std::string rows() {
    std::string all;
    for (const auto& order : life_.orders().page("s", -1, 100)) {
      const auto row = life_.payments().find("s", order.id);
      all += fmt::format("; {} is {}, {} of {} back, version {}", order.buyer.value,
                         to_string(order.state), row->returned, order.units, row->version);
    }
    for (const auto& back : life_.orders().returns("s", -1, 100, false))
      all += fmt::format("; {}:{} {}{}{}", back.order.buyer.value, back.seq, back.units,
                         back.ends ? " ends" : "", back.done ? "" : " not done");
    return all;
  }

  void run() {
    for (int steps = 4 + below(10); steps > 0; --steps) act();
    life_.work();
    life_.back_up_database();
    note("BACKUP");
    for (int steps = 2 + below(14); steps > 0; --steps) act();
    life_.restore_database();
    note("RESTORED");
    recover(life_.store(), "s", life_.orders());
    if (below(2) == 0) act();
    for (const auto& payment : paid_) tell(payment);
    for (const auto& payment : strays_) tell(payment);
    for (int steps = below(8); steps > 0; --steps) act();
    finish();
    check();
  }

 private:
  static SaleDefinition definition() {
    auto sale = Life::usual();
    sale.stock = 5;
    return sale;
  }
  OrderMessages make_messages() {
    static constexpr const char* secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    return {life_.orders(), "s", "https://shop.example/s", WebhookKeys{{secret}},
            [this](const SignedMessage& message) {
              receive(message);
              return Delivery::done;
            }};
  }
  int below(int bound) { return std::uniform_int_distribution{0, bound - 1}(random_); }
  void note(std::string_view what) { told += fmt::format("{}{}", told.empty() ? "" : ", ", what); }
  void say(bool holds, const std::string& what) {
    if (holds) return;
    ++faults_[what];
    note("FAULT: " + what);
  }

  void act() {
    switch (below(12)) {
      case 0: return buy();
      case 1:
      case 2: return pay();
      case 3: return pass();
      case 4: return cancel(1);
      case 5: return cancel(below(3) == 0 ? 0 : 1);
      case 6: return send_refunds();
      case 7: messages().send_due(); return;
      case 8: return settle_refund();
      case 9: return pay_too_little();
      case 10: return settle_payment();
      default: life_.work();
    }
  }

  OrderMessages& messages() { return messages_; }

  void buy() {
    const auto buyer = fmt::format("b{}", bought_.size());
    const auto answer = life_.buy(buyer, "r", 1 + below(3));
    if (answer.outcome != SaleOutcome::admitted) return;
    bought_.push_back(*answer.order);
    note(fmt::format("{} buys {}", buyer, answer.order->units));
    life_.work();
  }
  const SaleOrder* any() {
    return bought_.empty()
               ? nullptr
               : &bought_[static_cast<std::size_t>(below(static_cast<int>(bought_.size())))];
  }
  /// Once for each order, by what it owes, or has owed when it ended.
  void pay() {
    const auto* const order = any();
    if (!order) return;
    const auto row = life_.payments().find("s", order->id);
    if (!row || std::ranges::any_of(paid_, [&](auto& one) { return one.order == order->number; }))
      return;
    auto payment = Life::payment(*order, "pays for " + order->buyer.value);
    payment.amount = (order->units - row->returned) * price;
    paid_.push_back(payment);
    note(fmt::format("{} pays {}", order->buyer.value, payment.amount / price));
    tell(payment);
  }
  void tell(const Payment& payment) {
    note(fmt::format("{} told: {}", payment.event,
                     to_string(life_.sale().pay(life_.orders(), payment).state)));
  }
  void pass() {
    life_.pass(33min);
    if (life_.sale().expire(life_.orders()) > 0) note("expired");
  }
  void cancel(std::int64_t units) {
    const auto* const order = any();
    if (!order) return;
    const auto result = life_.sale().cancel_units(life_.orders(), order->buyer, order->request,
                                                  units, fmt::format("k{}", ++keys_));
    if (result.outcome == UnitsResult::Outcome::cancelled)
      note(fmt::format("{} of {} back", result.units, order->buyer.value));
  }
  void send_refunds() {
    for (const auto* sale : {"s", ""})
      sluice::send_refunds(life_.store(), life_.orders(), sale, [&](const Refund& refund) {
        const auto [given, is_new] = given_.try_emplace(refund_key(refund), refund);
        if (is_new) note(fmt::format("{} gets {}", refund.event, refund.amount));
        say(given->second.amount == refund.amount && given->second.order == refund.order,
            "a key of a refund is of two refunds");
        say(!cash_.contains(refund_key(refund)), "the provider gives what was given by cash");
        return std::string{};
      });
  }

  // --- what a person settles outside ---

  void settle_refund() {
    const auto asked = life_.payments().refunds("s", "asked", {}, 10);
    if (asked.empty()) return;
    const auto& refund = asked[static_cast<std::size_t>(below(static_cast<int>(asked.size())))];
    if (given_.contains(refund_key(refund))) return;
    bool is_settled = false;
    attempt(refund, [&](Store& store, OrderStore& orders) {
      is_settled = settle_outside(store, orders, refund, "zoe", "a reason");
    });
    for (const auto& now : life_.payments().refunds_of("s", refund.id))
      is_settled |= now.seq == refund.seq && now.state == "settled";  // as the person sees it
    if (is_settled) refused_.erase(refund_key(refund)), pay_cash(refund);
  }
  /// Not what the order costs, beside what may pay it: it is flagged.
  void pay_too_little() {
    const auto* const order = any();
    if (!order) return;
    const auto stray = Life::payment(*order, fmt::format("stray {}", strays_.size()), 1 + below(9));
    strays_.push_back(stray);
    tell(stray);
  }
  void settle_payment() {
    if (strays_.empty()) return;
    const auto& stray = strays_[static_cast<std::size_t>(below(static_cast<int>(strays_.size())))];
    const bool by_cash = below(2) == 0;
    if (by_cash && given_.contains(refund_key(refund_of(stray)))) return;  // the provider says so
    const PaymentPlace place{stray.provider, stray.event};
    SettledPayment settled;
    attempt(refund_of(stray), [&](Store& store, OrderStore& orders) {
      settled = by_cash ? settle_outside(store, orders, place, "zoe", "a reason")
                        : orders.payments().settle_payment(place, PaymentState::refunding, "zoe",
                                                           "a reason");
    });
    if (settled.payment && settled.payment->state == PaymentState::settled)
      refused_.erase(refund_key(refund_of(stray)));
    if (life_.payments().apply(stray).state == PaymentState::settled) pay_cash(refund_of(stray));
    if (!settled.payment) return;
    note(fmt::format("{} is {}", stray.event, to_string(settled.payment->state)));
  }
  /// In a process that dies at times, and nobody knows whether it was settled; or whose database
  /// refuses it, and it is given as if nobody had asked.
  template <class Deed>
  void attempt(const Refund& refund, const Deed& deed) {
    const auto key = refund_key(refund);
    const auto how = below(4);
    try {
      life_.interrupted(how < 2 ? below(4) : 1000, deed, [&] {
        if (how == 0) throw test::Killed{};
        throw Error{Errc::database, "refused"};
      });
    } catch (const test::Killed&) {
      note("DIES");
      unknown_.insert(key);
    } catch (const Error& failure) {
      note("REFUSED");
      (failure.effect() == Effect::none && !unknown_.contains(key) ? refused_ : unknown_)
          .insert(key);
    }
    if (unknown_.contains(key) || cash_.contains(key)) refused_.erase(key);
  }
  static Refund refund_of(const Payment& payment) {
    return {.sale = "s",
            .order = payment.order,
            .amount = payment.amount,
            .provider = payment.provider,
            .event = payment.event};
  }
  void pay_cash(const Refund& refund) {
    say(!given_.contains(refund_key(refund)), "cash is given for what the provider gave");
    say(!refused_.contains(refund_key(refund)), "what could not be settled is");
    if (cash_.try_emplace(refund_key(refund), refund).second)
      note(fmt::format("{} gets {} by cash", refund.event, refund.amount));
  }

  void receive(const SignedMessage& message) {
    const auto [known, is_new] = received_.try_emplace(message.head.id, message.body);
    say(known->second == message.body, "an id of a message is of two messages");
  }

  void finish() {
    for (int time = 0; time < 3; ++time) {
      life_.expect_sound();
      send_refunds();
      messages().send_due(1000);
      life_.pass(33min);
      life_.sale().expire(life_.orders());
    }
  }

  /// What a process that died had begun to settle is settled, or the provider has given it.
  void settle_what_is_noted() {
    for (const auto& order : bought_)
      for (const auto& refund : life_.payments().refunds_of("s", order.id)) {
        say(refund.state != "asked", "a refund is not done");
        if (refund.state == "settled") pay_cash(refund);
      }
    for (const auto& stray : strays_) {
      const auto state = life_.payments().apply(stray).state;
      say(state != PaymentState::refunding, "a payment that is to go back does not");
      if (state == PaymentState::settled) pay_cash(refund_of(stray));
    }
  }

  void check() {
    settle_what_is_noted();
    for (const auto& order : bought_) {
      std::int64_t money = 0;
      bool is_held = false;  // a person decides
      for (const auto& payment : paid_) {
        if (payment.order != order.number) continue;
        money += payment.amount;
        const auto kept = life_.payments().apply(payment);
        is_held = kept.note.starts_with("held:");
        say(is_held || kept.state == PaymentState::applied || kept.state == PaymentState::returned,
            "a right payment is " + std::string{to_string(kept.state)});
      }
      for (const auto* const back : {&given_, &cash_})
        for (const auto& [key, refund] : *back)
          if (refund.order == order.number && refund.event.starts_with("pays"))
            money -= refund.amount;
      const auto row = life_.payments().find("s", order.id);
      const auto has = row->order.state == OrderState::paid ? order.units - row->returned : 0;
      say(money >= 0, "more is given back than was paid");
      say(money >= has * price, "a buyer has goods and their money");
      say(is_held || money <= has * price, "a buyer has neither goods nor money");
    }
  }

  static constexpr std::int64_t price = 1499;
  std::map<std::string, int>& faults_;
  std::mt19937 random_;
  test::TempDir folder_;
  Life life_;
  OrderMessages messages_;
  std::deque<SaleOrder> bought_;
  std::vector<Payment> paid_;
  std::vector<Payment> strays_;
  std::map<std::string, Refund> given_;  // by the provider
  std::map<std::string, Refund> cash_;
  std::set<std::string> refused_, unknown_;  // keys
  std::map<std::string, std::string> received_;
  int keys_ = 0;
};

TEST(RestoredDatabase, SV18_NobodyHasGoodsAndTheirMoneyWhateverIsToldAgain) {
  const test::CollectedLog log;
  const int histories = test::rounds(150);
  std::map<std::string, int> faults;
  std::map<std::string, std::string> first;
  for (int seed = 1; seed <= histories; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto before = faults;
    RestoredLives lives{static_cast<unsigned>(seed), faults};
    lives.run();
    for (const auto& [fault, times] : faults)
      if (!before.contains(fault)) first[fault] = fmt::format("seed {}: {}", seed, lives.told);
    if (testing::Test::HasFailure()) FAIL() << lives.told << lives.rows();
  }
  for (const auto& [fault, times] : faults)
    ADD_FAILURE() << fault << " in " << times << " of " << histories << "; " << first[fault];
}

/// The store has none of its orders any more, and knows how far its database had come.
TEST(RestoredDatabase, SV18_OfAnArchivedSaleNothingIsGivenBackUntilAPersonAcceptsThat) {
  const test::TempDir folder;
  Life life{Life::usual(), (folder / "orders.db").string()};
  const auto ann = *life.buy("ann", "r", 2).order;
  const auto bob = *life.buy("bob").order;
  life.work();
  life.pay(ann, "of ann");
  life.pay(bob, "of bob");
  const auto cancel = [&](const SaleOrder& order, std::int64_t units) {
    life.sale().cancel_units(life.orders(), order.buyer, order.request, units, "k");
  };
  std::vector<std::string> asked;
  const auto send = [&] {
    return send_refunds(life.store(), life.orders(), "s", [&](const Refund& refund) {
      asked.push_back(refund_key(refund));
      return std::string{};
    });
  };
  cancel(ann, 1);
  life.back_up_database();
  const auto refund = life.payments().refunds_of("s", ann.id).at(0);
  EXPECT_TRUE(settle_outside(life.store(), life.orders(), refund, "zoe", "cash"));
  cancel(bob, 0);
  EXPECT_EQ(send().done, 1U);
  EXPECT_TRUE(life.sale().archive(life.orders()));
  life.restore_database();

  const test::CollectedLog log;
  for (int time = 0; time < 2; ++time) {
    EXPECT_THROW(send(), Error);
    EXPECT_THROW(cancel(bob, 0), Error);
    EXPECT_THROW(life.sale().archive(life.orders()), Error);
    EXPECT_EQ(log.count("has lost what it had committed"), 1U) << log.text();
  }
  EXPECT_EQ(life.buy("cid").outcome, SaleOutcome::closed);
  const auto accept = [](Store& store, OrderStore& orders) { recover(store, "s", orders); };
  const auto is_refused = [&] {
    try {
      send();
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  int steps = 0;
  while (!life.survives(steps, accept) && is_refused()) ++steps;
  EXPECT_GT(steps, 5);
  EXPECT_FALSE(is_refused());
  EXPECT_EQ(life.payments().refunds_of("s", ann.id).at(0).state, "settled");
  cancel(bob, 0);
  EXPECT_EQ(send().done, 1U);
  EXPECT_EQ(std::set(asked.begin(), asked.end()).size(), 1U) << "the same key of the same money";
  EXPECT_FALSE(life.sale().archive(life.orders())) << "it was before";
}

}  // namespace
}  // namespace sluice
