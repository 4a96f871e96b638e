/// The life of an order in the database, as one table: from a state, an event, the state that it
/// leads to, and what its transaction notes beside the row. Transitions are made by this table
/// alone (sql/transitions.cpp), conditions in SQL come from it, the audit replays what happened by
/// it, and docs/sale.md shows it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sluice/order_payments.hpp"

namespace sluice::sale {

enum class OrderEvent : std::uint8_t {
  paid,            ///< a payment that fits is applied
  part_cancelled,  ///< some of its units are taken back
  cancelled,       ///< all of them are
  expired,         ///< its deadline and the grace have passed
  taken_again,     ///< paid late: the store had its units
  not_taken,       ///< paid late: it had not
  refunded,        ///< a refund is done
  last_refunded,   ///< the last one of an order that ended is done
};

/// What becomes of its units.
enum class UnitsDo : std::uint8_t { stay, go_back, part_goes_back, are_asked_for, are_taken };
/// What becomes of money: of the payment, or of the price of the units that go back.
enum class MoneyDoes : std::uint8_t { nothing, pays, waits, goes_back, price_goes_back };

struct Transition {
  OrderState from;
  OrderEvent event;
  OrderState to;
  UnitsDo units;
  MoneyDoes money;
  std::string_view message;  ///< its type
};

std::span<const Transition> transitions() noexcept;
/// Null: in that state it does not happen.
const Transition* transition(OrderState from, OrderEvent event) noexcept;

/// What becomes of the payment that the transition is about. REQUIRES: it is about one.
constexpr PaymentState state_after(MoneyDoes money) noexcept {
  if (money == MoneyDoes::waits) return PaymentState::asking;
  return money == MoneyDoes::pays ? PaymentState::applied : PaymentState::returned;
}

// What follows is worked out from the table.

/// Whether an order in that state has its units.
bool has_units(OrderState state) noexcept;
/// Whether one payment of it counts: it paid the order, or went back.
bool has_payment(OrderState state) noexcept;
/// In SQL: "state IN ('awaiting', 'paid')".
std::string states_where(bool (*holds)(OrderState));
/// The same of the states in which an event happens.
std::string states_with(OrderEvent event);

// As docs/sale.md has it.
std::string_view to_string(OrderEvent event) noexcept;
/// "`expired` | a payment that fits | `expired` | its units … | `order.paid_late`".
std::string row_of_page(const Transition& transition);

}  // namespace sluice::sale
