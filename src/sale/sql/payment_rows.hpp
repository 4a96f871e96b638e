/// Payments as rows of a database.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "sale/order_store_text.hpp"
#include "sale/sql/columns.hpp"
#include "sluice/order_payments.hpp"

namespace sluice::sale {

inline constexpr std::string_view payment_columns =
    "provider, event, sale_name, number, amount, currency, state, note, received_us";

/// Throws Error{corrupt} for a state that there is not.
PaymentState payment_state_of(const std::string& text);

/// Fetches payments: `where` has a parameter for each of `keys`.
template <class... Keys>
std::vector<KeptPayment> fetch_payments(soci::session& sql, const std::string& where,
                                        std::size_t most, const Keys&... keys) {
  const auto size = rows_for(most);
  std::vector<std::string> provider(size), event(size), sale(size), number(size), currency(size),
      state(size), note(size);
  std::vector<long long> amount(size), received_us(size), attempts(size), due_us(size);
  std::vector<std::string> failure(size);
  soci::statement select{sql};
  (select.exchange(soci::use(keys)), ...);
  for (auto* const column : {&provider, &event, &sale, &number})
    select.exchange(soci::into(*column));
  select.exchange(soci::into(amount));
  for (auto* const column : {&currency, &state, &note}) select.exchange(soci::into(*column));
  for (auto* const column : {&received_us, &attempts}) select.exchange(soci::into(*column));
  select.exchange(soci::into(failure));
  select.exchange(soci::into(due_us));
  select.alloc();
  select.prepare(fmt::format("SELECT {}, attempts, failure, due_us FROM sale_payments WHERE {}",
                             payment_columns, where));
  select.define_and_bind();
  std::vector<KeptPayment> payments;
  if (!select.execute(true)) return payments;
  for (std::size_t i = 0; i < provider.size(); ++i)
    payments.push_back({.payment = {.provider = provider[i],
                                    .event = from_column(event[i]),
                                    .sale = from_column(sale[i]),
                                    .order = from_column(number[i]),
                                    .amount = amount[i],
                                    .currency = from_column(currency[i])},
                        .state = payment_state_of(state[i]),
                        .note = from_column(note[i]),
                        .received_at = WallTime{std::chrono::microseconds{received_us[i]}},
                        .attempts = attempts[i],
                        .failure = from_column(failure[i]),
                        .due = WallTime{std::chrono::microseconds{due_us[i]}}});
  return payments;
}

}  // namespace sluice::sale
