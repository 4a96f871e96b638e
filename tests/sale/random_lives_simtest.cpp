// Random histories of orders: bought, paid in time, late, twice or wrongly, expired, cancelled
// whole and in parts, refunded, while processes die at any step and the store is recovered. At the
// end of each everything adds up: V54.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "sale/life.hpp"
#include "sale/payment_simulator.hpp"
#include "sluice/order_messages.hpp"
#include "sluice/sale_recovery.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using test::Life;

class RandomLives {
 public:
  explicit RandomLives(unsigned seed) : random_(seed), life_(definition(seed)) {}

  void run(int steps) {
    for (int step = 0; step < steps && !testing::Test::HasFailure(); ++step) act();
    finish();
  }

 private:
  static SaleDefinition definition(unsigned seed) {
    auto sale = Life::usual();
    sale.stock = 12;
    sale.limit = static_cast<std::int64_t>(seed % 3);
    return sale;
  }
  int below(int bound) { return std::uniform_int_distribution{0, bound - 1}(random_); }

  /// Half of the processes die, somewhere, or stand still there while others go on.
  template <class Deed>
  void mortal(const Deed& deed, int most_steps = 12) {
    const auto steps = below(2) == 0 ? below(most_steps) : 1000;
    if (is_meanwhile_ || below(2) == 0) {
      life_.survives(steps, deed);
      return;
    }
    try {
      life_.interrupted(steps, deed, [this] {
        is_meanwhile_ = true;
        for (int others = 1 + below(3); others > 0; --others) act();
        is_meanwhile_ = false;
      });
    } catch (const Error&) {  // the sale was recovered meanwhile, say
    }
  }

  void act() {
    switch (below(12)) {
      case 0:
      case 1:
      case 2: return buy();
      case 3:
        if (!is_being_recovered_) life_.work();  // it would wait for that
        return;
      case 4:
      case 5: return pay();
      case 6: return life_.pass(std::chrono::minutes{below(25)});
      case 7: return mortal([](Sale& sale, OrderStore& orders) { sale.expire(orders); });
      case 8: return cancel();
      case 9: return cancel_units();
      case 10: return refund();
      default:
        if (below(4) == 0) save();
        if (below(4) == 0 && !is_being_recovered_) lose();
        mortal([](Sale& sale, OrderStore& orders) { sale.settle(orders); });
    }
  }

  void buy() {
    const auto buyer = fmt::format("b{}", below(8));
    const auto request = fmt::format("r{}", below(4));
    const auto answer = life_.buy(buyer, request, 1 + below(4));
    if (answer.outcome == SaleOutcome::admitted) bought_.push_back(*answer.order);
    EXPECT_GE(life_.left(), 0);
  }

  const SaleOrder* any() {
    return bought_.empty()
               ? nullptr
               : &bought_[static_cast<std::size_t>(below(static_cast<int>(bought_.size())))];
  }

  void pay() {
    const auto* const order = any();
    if (!order) return;
    auto payment = Life::payment(*order, fmt::format("e{}", below(40)));
    if (below(6) == 0) payment.amount -= 1;
    if (below(12) == 0) payment.currency = "USD";
    if (const auto row = life_.payments().find("s", order->id);
        row && row->due > 0 && below(2) == 0)
      payment.amount = row->due;
    const auto told = provider_.pay(payment, life_.now());
    ASSERT_EQ(told, payment);
    mortal([&](Sale& sale, OrderStore& orders) { sale.pay(orders, payment); });
    if (below(3) == 0) mortal([&](Sale& sale, OrderStore& orders) { sale.pay(orders, payment); });
  }

  void cancel() {
    const auto* const order = any();
    if (!order) return;
    mortal([&](Sale& sale, OrderStore& orders) {
      sale.cancel(orders, order->buyer, order->request, "why");
    });
  }

  void cancel_units() {
    const auto* const order = any();
    if (!order) return;
    const auto key = fmt::format("k{}", below(5));
    const auto units = below(3);
    mortal([&](Sale& sale, OrderStore& orders) {
      sale.cancel_units(orders, order->buyer, order->request, units, key);
    });
  }

  void refund() {
    provider_.refuses = below(2);
    provider_.loses_answers = below(2);
    send_refunds(life_.store(), life_.orders(), "s",
                 [&](const Refund& one) { return provider_.refund(one); });
  }

  void save() {
    life_.save();
    is_saved_ = true;
  }

  /// The store loses all, a hash, what is newer than its copy, or nothing, and is recovered.
  void lose() {
    life_.work();
    const auto lost = below(12);
    for (int i = 0; i < std::ssize(Life::keys); ++i)
      if (lost == i || lost == 9) life_.store().run({"DEL", Life::keys[i]}).get();
    if (lost > 9 && is_saved_) life_.come_back();
    is_being_recovered_ = true;
    mortal([](Store& store, OrderStore& orders) { recover(store, "s", orders); }, 60);
    is_being_recovered_ = false;
    recover(life_.store(), "s", life_.orders());
  }

  void finish() {
    for (int i = 0; i < 3; ++i) {
      life_.expect_sound();
      life_.pass(48h);
      provider_.refuses = provider_.loses_answers = 0;
      send_refunds(life_.store(), life_.orders(), "s",
                   [&](const Refund& one) { return provider_.refund(one); });
    }
    const auto money = life_.payments().totals("s");
    EXPECT_EQ(money.refunds, 0);
    EXPECT_EQ(money.asking, 0);
    EXPECT_EQ(money.waiting, 0);
    // The provider's own account against the orders: what it has not given back was earned.
    std::int64_t earned = 0;
    for (const auto state : {PaymentState::applied, PaymentState::returned})
      for (const auto& kept : life_.payments().list("s", state, 1000))
        earned += kept.payment.amount;
    std::int64_t due = 0;
    for (const auto& order : life_.orders().page("s", -1, 1000)) {
      EXPECT_NE(order.state, OrderState::awaiting) << "long overdue";
      EXPECT_NE(order.state, OrderState::refunding);
      if (order.state == OrderState::paid) due += life_.payments().find("s", order.id)->due;
    }
    EXPECT_EQ(earned - provider_.given_back(), due);
  }

  std::mt19937 random_;
  Life life_;
  test::PaymentSimulator provider_;
  std::deque<SaleOrder> bought_;  // those who stand still hold on to theirs
  bool is_saved_ = false;
  bool is_meanwhile_ = false;  // somebody stands still
  bool is_being_recovered_ = false;
};

TEST(SaleLives, V54_RandomOnesAddUpHoweverOftenProcessesDie) {
  const int histories = test::rounds(150);
  for (int seed = 1; seed <= histories; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomLives{static_cast<unsigned>(seed)}.run(60);
    if (testing::Test::HasFailure()) return;
  }
}

/// A database that ends each process that brings one order to it.
class PoisonedOrders final : public test::WatchedOrders {
 public:
  using WatchedOrders::WatchedOrders;
  std::function<void(std::span<const SaleOrder>)> tries;

  InsertResult insert(const std::string& sale, std::span<const SaleOrder> orders,
                      std::int64_t epoch) override {
    tries(orders);
    return WatchedOrders::insert(sale, orders, epoch);
  }
};

/// Workers of which each is killed at any step, or dies of the one order that is poison.
class KilledWorkers {
 public:
  explicit KilledWorkers(unsigned seed) : random_(seed), life_(definition()) {}

  /// Those of the first rounds have no time to bring anything in.
  void run(int early_rounds) {
    buy(20);
    const auto poison = life_.buy("poison").order->id;
    for (int round = 0; round < 400 && life_.sale().status().get().waiting > 0; ++round) {
      if (round < 10) buy(below(4));
      work(below(round < early_rounds ? 25 : 400), poison);
      life_.pass(31s);
    }
    const auto letters = life_.sale().dead_letters().get();
    ASSERT_EQ(letters.size(), 1U);
    EXPECT_EQ(letters.front().order->id, poison) << letters.front().reason;
    EXPECT_EQ(std::ssize(life_.orders().page("s", -1, 100)), bought_);
    EXPECT_LE(deaths_, 10);
    EXPECT_GE(deaths_alone_, 1) << letters.front().reason;
    life_.sale().give_back(life_.orders(), letters.front().id, "poison");
    life_.expect_sound();
  }

 private:
  static SaleDefinition definition() {
    auto sale = Life::usual();
    sale.stock = 100;
    return sale;
  }
  int below(int bound) { return std::uniform_int_distribution{0, bound - 1}(random_); }
  void buy(int orders) {
    for (; orders > 0; --orders) life_.buy(fmt::format("b{}", bought_++));
  }

  void work(int steps, std::int64_t poison) {
    bool is_dead = false;  // and does nothing more
    const auto step = [&](std::string_view) {
      is_dead = is_dead || steps-- == 0;
      if (is_dead) throw test::Killed{};
    };
    test::FaultyStore store{life_.store()};
    store.plan = [&](std::string_view call) {
      step(call);
      return test::Fault::none;
    };
    PoisonedOrders orders{life_.orders()};
    orders.before = step;
    orders.tries = [&](std::span<const SaleOrder> some) {
      if (std::ranges::find(some, poison, &SaleOrder::id) == some.end()) return;
      ++deaths_;
      if (some.size() == 1) ++deaths_alone_;
      is_dead = true;
      throw test::Killed{};
    };
    try {
      auto sale = Sale::load(store, "s").get();
      OrderWorker{store, *sale, orders}.drain();
    } catch (const test::Killed&) {
    }
  }

  std::mt19937 random_;
  Life life_;
  int bought_ = 0;
  int deaths_ = 0;        // of the poison
  int deaths_alone_ = 0;  // with nothing beside it
};

TEST(SaleLives, V54_KillsBuryNoOrderAndPoisonIsBuriedAlone) {
  const int histories = test::rounds(40);
  for (int seed = 1; seed <= histories; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    KilledWorkers{static_cast<unsigned>(seed)}.run(seed % 40);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
