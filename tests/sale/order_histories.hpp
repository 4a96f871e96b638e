/// Random histories of one order each, on the order database alone: recorded late, paid before or
/// after that, by what is due and by other sums, cancelled whole and in parts, expired, taken
/// again, refunded, in every order of these. Whatever happened, a payment of what was due when it
/// came ends applied or given back, never flagged; and each change is one of the table's
/// (order_life.hpp).
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>

#include "sale/life.hpp"
#include "sale/order_life.hpp"

namespace sluice::test {

using namespace std::chrono_literals;

inline constexpr std::int64_t price_of_unit = 500;

/// Histories share a database: each is of an order of its own.
class Histories {
 public:
  /// In an empty database of this kind.
  explicit Histories(sale::SqlDialect dialect) : orders_(with_clock(std::move(dialect))) {
    orders_.add_sale("s", 10'000'000);
    orders_.keep_definition("s", {{"payment", "1800000000 120000000 500 EUR"}});
  }

  /// Faults that the last history has shown, and how often each was seen so far.
  std::map<std::string, int> faults;
  std::string told;            ///< what happened in the last one
  std::set<std::string> seen;  ///< transitions

  /// Histories 1 to `count`. No fault in any.
  void expect_sound(int count) {
    std::map<std::string, std::string> first;
    for (int seed = 1; seed <= count; ++seed) {
      const auto before = faults;
      run(static_cast<unsigned>(seed));
      for (const auto& [fault, times] : faults)
        if (!before.contains(fault)) first[fault] = fmt::format("history {}: {}", seed, told);
    }
    for (const auto& [fault, times] : faults)
      ADD_FAILURE() << fault << " in " << times << " of " << count << "; " << first[fault];
    expect_sums();
  }

  void run(unsigned seed) {
    random_.seed(seed);
    begin(seed);
    for (int step = 3 + below(9); step > 0; --step) act();
    finish();
    check();
  }

  void expect_sums() {
    const auto money = orders_.payments().totals("s");
    EXPECT_EQ(money.odd_payments + money.odd_refunds + money.odd_events, 0);
    EXPECT_EQ(money.odd_deadlines + money.odd_messages, 0);
    EXPECT_EQ(money.waiting + money.asking + money.refunds, 0);
    const auto all = orders_.totals("s");
    EXPECT_EQ(all.odd + all.odd_returns, 0);
    EXPECT_EQ(all.stock.initial - all.stock.left, all.units);
    expect_days();
  }
  /// Days, and orders, add up to the payments that came, to what the provider gave back, and to
  /// what a person settled outside.
  void expect_days() {
    for (const auto offset : {0min, 480min, -720min, 1439min}) {
      std::map<WallTime, std::array<std::int64_t, 3>> days;
      for (const auto& move : moves_) {
        auto& day = days[std::chrono::floor<std::chrono::days>(move.at - offset) + offset];
        day.at(std::size_t(move.where)) += move.amount;
      }
      for (const auto* sale : {"s", ""}) {
        auto left = days;
        for (const auto& row : money().money_by_day(sale, offset))
          if (left[row.day] == std::array{row.paid, row.given_back, row.settled})
            left.erase(row.day);
        EXPECT_TRUE(left.empty()) << left.size() << " of " << days.size() << " days, " << offset;
      }
    }
    std::array<std::int64_t, 3> sums{};
    std::int64_t units = 0;
    std::vector<std::int64_t> ids;
    for (const auto& order : orders_.page("s", -1, 1'000'000)) {
      ids.push_back(order.id);
      units += order.units;
    }
    for (std::size_t i = 0; i < ids.size(); i += 500)
      for (const auto& row :
           money().money_of("s", std::span{ids}.subspan(i, std::min(ids.size() - i, 500UL)))) {
        sums[0] += row.paid;
        sums[1] += row.given_back;
        sums[2] += row.settled;
      }
    for (const auto& move : moves_) sums.at(std::size_t(move.where)) -= move.amount;
    EXPECT_EQ(sums, (std::array<std::int64_t, 3>{}));
    for (const auto& row : money().by_day("s", 0min)) units -= row.units + row.returned;
    EXPECT_EQ(units, 0) << "each unit is counted once";
  }

 private:
  struct Told {
    Payment payment;
    bool is_right;  ///< the first one of the sum that was due
    bool is_wrong;
  };

  int below(int bound) { return std::uniform_int_distribution{0, bound - 1}(random_); }
  OrderPayments& money() { return orders_.payments(); }

  void begin(unsigned seed) {
    const auto id = static_cast<std::int64_t>(seed);
    order_ = {.number = fmt::format("MT{}", id),
              .id = id,
              .units = 1 + below(3),
              .buyer = {fmt::format("b{}", id)},
              .n = 1,
              .request = {"r"}};
    price_ = order_.units * price_of_unit;
    payments_.clear();
    keys_ = 0;
    told = fmt::format("{} units", order_.units);
  }

  void act() {
    switch (below(11)) {
      case 0:
      case 1: return record();
      case 2:
      case 3: return tell();
      case 4: return apply();
      case 5: return cancel(1);
      case 6: return below(3) == 0 ? cancel(0) : cancel(1);
      case 7: return end();
      case 8: return pass();
      case 9: return work();
      default: return below(2) == 0 ? give_back() : refund();
    }
  }

  void note(std::string_view what) { told += fmt::format(", {}", what); }

  void record() {
    const auto result = orders_.insert("s", std::vector{order_}, 0);
    if (result.inserted == 1) note("recorded");
  }
  /// A provider tells of a payment, and hears that it is kept.
  void tell() {
    const auto amount = price_ + (below(5) == 0 ? 1 : 0);
    const bool is_first =
        std::ranges::none_of(payments_, [](const Told& one) { return one.is_right; });
    Payment payment{.provider = "acme",
                    .event = fmt::format("{}:{}", order_.id, payments_.size()),
                    .sale = "s",
                    .order = order_.number,
                    .amount = amount,
                    .currency = "EUR"};
    EXPECT_TRUE(money().keep(payment));
    moves_.push_back({clock_.wall(), amount, Where::in});
    payments_.push_back({payment, is_first && amount == price_, amount != price_});
    note(fmt::format("payment {} of {} kept", payments_.size(), amount));
  }
  void apply() {
    if (payments_.empty()) return;
    const auto which = below(static_cast<int>(payments_.size()));
    const auto result = money().apply(payments_[static_cast<std::size_t>(which)].payment);
    note(fmt::format("payment {} {}", which + 1, to_string(result.state)));
  }
  void cancel(std::int64_t units) {
    const auto result =
        money().cancel_units("s", order_.id, units, fmt::format("k{}", ++keys_), "");
    if (result.outcome != UnitsResult::Outcome::cancelled) return;
    note(fmt::format("{} units taken back", result.units));
    if (stands(result.order->order.state)) price_ -= result.units * price_of_unit;
  }
  void end() {
    if (below(4) == 0 && orders_.insert_ended("s", order_, OrderState::cancelled, "", 0).inserted)
      return note("recorded as cancelled");
    if (orders_.end_order("s", order_.id, OrderState::cancelled, "").now) note("cancelled");
  }
  void pass() {
    clock_.advance(below(2) == 0 ? 10min : 33min);
    database_clock_.set(clock_.wall());
    note("time passes");
  }
  void work() {
    for (const auto& payment : money().ready("s", 100)) money().apply(payment);
    if (money().expire_all("s", money().due("s", 100)) > 0) note("expired");
    note("a worker looks");
  }
  void give_back() {
    for (const auto& back : orders_.returns("s", order_.id - 1, 1, true)) {
      if (back.units > 0) {
        orders_.return_done("s", back.order.id, back.seq);
      } else {
        const bool taken = below(2) == 0;
        money().end_retake("s", back.order.id, back.seq, taken);
        note(taken ? "taken again" : "not taken again");
      }
    }
  }
  void refund() {
    const auto give = [&](const Refund& refund) {
      const bool by_hand = below(3) == 0;
      if (money().refund_done(refund, by_hand ? "by ann: cash" : "")) gone(refund.amount, by_hand);
    };
    for (const auto& refund : money().refunds_of("s", order_.id))
      if (refund.state == "asked") give(refund);
    for (const auto& one : payments_) {
      if (!one.is_wrong || below(2) == 0) continue;
      const auto to = below(3) == 0 ? PaymentState::settled : PaymentState::refunding;
      const PaymentPlace place{one.payment.provider, one.payment.event};
      if (money().settle_payment(place, to, "ann", "wrong").now && to == PaymentState::settled)
        gone(one.payment.amount, true);
    }
    while (const auto back = money().take_refund("", "", 1h)) give(*back);
  }
  void gone(std::int64_t amount, bool by_hand) {
    moves_.push_back({clock_.wall(), amount, by_hand ? Where::by_hand : Where::back});
    note(by_hand ? "settled" : "refunded");
  }

  void finish() {
    record();
    for (int time = 0; time < 2; ++time) {
      work();
      give_back();
      refund();
      clock_.advance(33min);
      database_clock_.set(clock_.wall());
    }
  }

  void check() {
    const auto found = money().find("s", order_.id);
    const auto state = found->order.state;
    const auto say = [&](bool holds, const char* what) {
      if (holds) return;
      ++faults[what];
      note(fmt::format("FAULT: {}", what));
    };
    bool is_paid = false;
    std::int64_t earned = 0;
    for (const auto& one : payments_) {
      const auto kept = money().apply(one.payment);  // says what became of it
      const bool counts =
          kept.state == PaymentState::applied || kept.state == PaymentState::returned;
      is_paid |= one.is_right;
      if (one.is_right) say(counts, "a right payment is flagged");
      if (one.is_wrong) say(!counts, "a wrong payment is not flagged");
      if (counts) earned += one.payment.amount;
    }
    for (const auto& refund : money().refunds_of("s", order_.id)) earned -= refund.amount;
    const auto owes = (order_.units - found->returned) * price_of_unit;
    say(earned == (state == OrderState::paid ? owes : 0), "the money does not add up");
    say(found->due == (stands(state) ? owes : 0), "an order that ended owes something");
    say(!is_paid || state == OrderState::paid || state == OrderState::refunded,
        "an order that was paid ended unpaid");
    say(state != OrderState::awaiting, "an order is still awaiting its payment");
    say(follow() == state, "a change is none of the table's");
  }

  /// Its messages, one after another, are steps of the table. Returns where they lead.
  std::optional<OrderState> follow() {
    auto state = OrderState::awaiting;
    for (const auto& message : money().messages_of("s", order_.id)) {
      const auto step = std::ranges::find_if(sale::transitions(), [&](const auto& one) {
        return one.from == state && one.message == message.type &&
               message.data.contains(fmt::format(R"("state":"{}")", to_string(one.to)));
      });
      if (step == sale::transitions().end()) return std::nullopt;
      seen.insert(sale::row_of_page(*step));
      state = step->to;
    }
    return state;
  }

  sale::SqlDialect with_clock(sale::SqlDialect dialect) const {
    dialect.now_us = database_clock_.text();
    return dialect;
  }

  std::mt19937 random_;
  VirtualClock clock_{WallTime{std::chrono::seconds{1'767'369'597}}};
  test::DatabaseClock database_clock_{clock_.wall()};
  sale::SqlOrderStore orders_;
  SaleOrder order_;
  std::int64_t price_ = 0;  // of the units that it has, or had when it ended
  std::vector<Told> payments_;
  enum class Where : std::uint8_t { in, back, by_hand };
  struct Move {
    WallTime at;
    std::int64_t amount;
    Where where;
  };
  std::vector<Move> moves_;
  int keys_ = 0;
};

}  // namespace sluice::test
