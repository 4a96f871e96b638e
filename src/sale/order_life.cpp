#include "sale/order_life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::sale {
namespace {

using State = OrderState;
using Event = OrderEvent;
using Units = UnitsDo;
using Money = MoneyDoes;

constexpr State states[] = {State::awaiting, State::cancelled, State::paid,
                            State::expired,  State::refunding, State::refunded};

constexpr Transition life[] = {
    {State::awaiting, Event::paid, State::paid, Units::stay, Money::pays, "order.paid"},
    {State::awaiting, Event::part_cancelled, State::awaiting, Units::part_goes_back, Money::nothing,
     "order.units_cancelled"},
    {State::awaiting, Event::cancelled, State::cancelled, Units::go_back, Money::nothing,
     "order.cancelled"},
    {State::awaiting, Event::expired, State::expired, Units::go_back, Money::nothing,
     "order.expired"},
    {State::paid, Event::part_cancelled, State::paid, Units::part_goes_back, Money::price_goes_back,
     "order.units_cancelled"},
    {State::paid, Event::cancelled, State::refunding, Units::go_back, Money::price_goes_back,
     "order.refunding"},
    {State::paid, Event::refunded, State::paid, Units::stay, Money::nothing,
     "order.units_refunded"},
    {State::cancelled, Event::paid, State::refunding, Units::stay, Money::goes_back,
     "order.refunding"},
    {State::expired, Event::paid, State::expired, Units::are_asked_for, Money::waits,
     "order.paid_late"},
    {State::expired, Event::taken_again, State::paid, Units::are_taken, Money::pays, "order.paid"},
    {State::expired, Event::not_taken, State::refunding, Units::stay, Money::goes_back,
     "order.refunding"},
    {State::refunding, Event::refunded, State::refunding, Units::stay, Money::nothing,
     "order.units_refunded"},
    {State::refunding, Event::last_refunded, State::refunded, Units::stay, Money::nothing,
     "order.refunded"},
};

struct Facts {
  bool is_known = false;
  bool has_units = false;
  bool has_payment = false;

  friend constexpr bool operator==(const Facts&, const Facts&) = default;
};
using AllFacts = std::array<Facts, std::size(states)>;

constexpr Facts after(Facts facts, const Transition& step) {
  if (step.units == Units::go_back) facts.has_units = false;
  if (step.units == Units::are_taken) facts.has_units = true;
  if (step.money == Money::pays || step.money == Money::goes_back) facts.has_payment = true;
  return facts;
}

/// Follows the table from a new order to every state.
constexpr AllFacts facts_of_states() {
  AllFacts all;
  all[static_cast<std::size_t>(State::awaiting)] = {.is_known = true, .has_units = true};
  for (std::size_t round = 0; round < std::size(states); ++round)
    for (const auto& step : life)
      if (const auto& from = all[static_cast<std::size_t>(step.from)]; from.is_known)
        all[static_cast<std::size_t>(step.to)] = after(from, step);
  return all;
}

constexpr auto facts = facts_of_states();
constexpr const Facts& of(State state) { return facts[static_cast<std::size_t>(state)]; }

// A state is reached with the same units and the same payment on every way to it; what the public
// header says of it is what the table does.
static_assert(std::ranges::all_of(life, [](const Transition& step) {
  return of(step.from).is_known && of(step.to) == after(of(step.from), step);
}));
static_assert(std::ranges::all_of(states, [](State state) {
  return of(state).has_units == stands(state);
}));

std::string in_sql(auto&& holds) {
  std::string list;
  int count = 0;
  for (const auto state : states)
    if (holds(state))
      list += fmt::format("{}'{}'", count++ == 0 ? "" : ", ", sluice::to_string(state));
  return count == 1 ? "state = " + list : fmt::format("state IN ({})", list);
}

constexpr std::string_view names_of_events[] = {"a payment that fits",
                                                "some units are taken back",
                                                "all units are taken back",
                                                "`pay_by` and the grace have passed",
                                                "the store had its units still",
                                                "the store had them no more",
                                                "a refund is done",
                                                "the last refund is done"};
constexpr std::string_view names_of_units[] = {"", "its units go back", "these units go back",
                                               "its units are asked for", "its units are taken"};
constexpr std::string_view names_of_money[] = {
    "", "the payment is `applied`", "the payment is `asking`", "the payment is `returned`",
    "their price goes back"};

}  // namespace

std::span<const Transition> transitions() noexcept { return life; }

const Transition* transition(OrderState from, OrderEvent event) noexcept {
  const auto* const found = std::ranges::find_if(
      life, [&](const Transition& step) { return step.from == from && step.event == event; });
  return found == std::end(life) ? nullptr : found;
}

bool has_units(OrderState state) noexcept { return of(state).has_units; }
bool has_payment(OrderState state) noexcept { return of(state).has_payment; }

std::string states_where(bool (*holds)(OrderState)) { return in_sql(holds); }
std::string states_with(OrderEvent event) {
  return in_sql([&](OrderState state) { return transition(state, event) != nullptr; });
}

std::string_view to_string(OrderEvent event) noexcept {
  return names_of_events[static_cast<std::size_t>(event)];
}

std::string row_of_page(const Transition& step) {
  const auto units = names_of_units[static_cast<std::size_t>(step.units)];
  const auto money = names_of_money[static_cast<std::size_t>(step.money)];
  return fmt::format("| `{}` | {} | `{}` | {}{}{} | `{}` |", sluice::to_string(step.from),
                     to_string(step.event), sluice::to_string(step.to), units,
                     units.empty() || money.empty() ? "" : ", ", money, step.message);
}

}  // namespace sluice::sale
