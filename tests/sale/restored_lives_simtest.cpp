// Random lives of orders whose database is restored from a backup while the store goes on; then the
// provider tells its payments again, as docs/sale.md asks for. The provider gives money once for
// each key and the receiver drops a message whose id it knows. In the end nobody has goods and
// their money, nobody gets more than he paid, and no right payment is flagged.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>

#include "sale/life.hpp"
#include "sluice/order_messages.hpp"
#include "sluice/payment_provider.hpp"
#include "sluice/sale_recovery.hpp"
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
    switch (below(9)) {
      case 0: return buy();
      case 1:
      case 2: return pay();
      case 3: return pass();
      case 4: return cancel(1);
      case 5: return cancel(below(3) == 0 ? 0 : 1);
      case 6: return send_refunds();
      case 7: messages().send_due(); return;
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
    sluice::send_refunds(life_.orders(), "s", [&](const Refund& refund) {
      const auto [given, is_new] = given_.try_emplace(refund_key(refund), refund);
      if (is_new) note(fmt::format("{} gets {}", refund.event.substr(9), refund.amount / price));
      say(given->second.amount == refund.amount && given->second.order == refund.order,
          "a key of a refund is of two refunds");
      return std::string{};
    });
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

  void check() {
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
      for (const auto& [key, refund] : given_)
        if (refund.order == order.number) money -= refund.amount;
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
  std::map<std::string, Refund> given_;
  std::map<std::string, std::string> received_;
  int keys_ = 0;
};

TEST(RestoredDatabase, SV18_NobodyHasGoodsAndTheirMoneyWhateverIsToldAgain) {
  const int histories = test::rounds(200);
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

}  // namespace
}  // namespace sluice
