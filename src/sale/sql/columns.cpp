#include "sale/sql/columns.hpp"

#include "sale/differences.hpp"
#include "sale/order_store_text.hpp"
#include "sale/sql/payment_rows.hpp"
#include "sluice/error.hpp"

namespace sluice::sale {
namespace {

/// A text that Sluice did not write is what it says: it is nobody's id, and an audit names it.
std::string bytes_of(const std::string& column) {
  try {
    return from_column(column);
  } catch (const Error&) {
    return column;
  }
}

}  // namespace

OrderState order_state_of(const std::string& text) {
  for (const auto state : {OrderState::awaiting, OrderState::cancelled, OrderState::paid,
                           OrderState::expired, OrderState::refunding, OrderState::refunded})
    if (text == to_string(state)) return state;
  throw Error{Errc::corrupt, "the database has an order in the state '" + text +
                                 "', which this version of Sluice does not know"};
}

PaymentState payment_state_of(const std::string& text) {
  for (const auto state : {PaymentState::waiting, PaymentState::asking, PaymentState::applied,
                           PaymentState::returned, PaymentState::flagged, PaymentState::refunding,
                           PaymentState::refunded, PaymentState::settled})
    if (text == sluice::to_string(state)) return state;
  throw Error{Errc::corrupt, "the database has a payment in the state '" + shown(text) +
                                 "', which this version of Sluice does not know"};
}

void Columns::resize(std::size_t size) {
  for (auto* const column : {&sale, &id, &n, &units, &issued_us}) column->resize(size);
  for (auto* const column : {&number, &buyer, &request, &state}) column->resize(size);
}

void Columns::set(std::size_t at, const SaleOrder& order) {
  id[at] = order.id;
  number[at] = order.number;
  buyer[at] = to_column(order.buyer.value);
  n[at] = order.n;
  units[at] = order.units;
  issued_us[at] = order.issued_at.time_since_epoch().count();
  request[at] = to_column(order.request.value);
}

SaleOrder Columns::order(std::size_t at) const {
  return {.number = number[at],
          .id = id[at],
          .units = units[at],
          .buyer = {bytes_of(buyer[at])},
          .n = n[at],
          .issued_at = WallTime{std::chrono::microseconds{issued_us[at]}},
          .request = {bytes_of(request[at])},
          .state = order_state_of(state[at])};
}

}  // namespace sluice::sale

std::string_view sluice::to_string(PaymentState state) noexcept {
  constexpr std::string_view names[] = {"waiting", "asking",    "applied",  "returned",
                                        "flagged", "refunding", "refunded", "settled"};
  return names[static_cast<std::size_t>(state)];
}
