#include "sale/sql/payments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sale/differences.hpp"
#include "sale/order_store_text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/columns.hpp"

namespace sluice::sale {
namespace {

constexpr std::string_view payment_states[] = {"waiting", "asking", "applied", "returned",
                                               "flagged"};

PaymentState payment_state_of(const std::string& text) {
  const auto* const found = std::ranges::find(payment_states, text);
  if (found == std::end(payment_states))
    throw Error{Errc::corrupt, "the database has a payment in the state '" + shown(text) +
                                   "', which this version of Sluice does not know"};
  return static_cast<PaymentState>(found - std::begin(payment_states));
}

constexpr std::string_view payment_columns =
    "provider, event, sale_name, number, amount, currency, state, note, received_us";

/// Fetches payments: `where` has a parameter for each of `keys`.
template <class... Keys>
std::vector<KeptPayment> fetch_payments(soci::session& sql, const std::string& where,
                                        std::size_t most, const Keys&... keys) {
  const auto size = rows_for(most);
  std::vector<std::string> provider(size), event(size), sale(size), number(size), currency(size),
      state(size), note(size);
  std::vector<long long> amount(size), received_us(size);
  soci::statement select{sql};
  (select.exchange(soci::use(keys)), ...);
  for (auto* const column : {&provider, &event, &sale, &number})
    select.exchange(soci::into(*column));
  select.exchange(soci::into(amount));
  for (auto* const column : {&currency, &state, &note}) select.exchange(soci::into(*column));
  select.exchange(soci::into(received_us));
  select.alloc();
  select.prepare(fmt::format("SELECT {} FROM sale_payments WHERE {}", payment_columns, where));
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
                        .received_at = WallTime{std::chrono::microseconds{received_us[i]}}});
  return payments;
}

/// Why a payment does not pay for these units; empty: it does.
std::string misfit(const Payment& payment, const SaleTransaction& sale, const OrderRow& row) {
  if (!sale.terms()) return "the sale takes no payments";
  const auto due = price_of(row.units(), *sale.terms());
  if (payment.currency != sale.terms()->currency || payment.amount != due)
    return fmt::format("{} {} was paid, and {} {} is due", payment.amount, payment.currency, due,
                       sale.terms()->currency);
  return {};
}

}  // namespace

/// Throws Error{bad_argument} for what no database has room for.
bool SqlOrderPayments::keep(const Payment& payment) {
  constexpr std::size_t longest = 128;
  const auto fits = [](const std::string& text) { return !text.empty() && text.size() <= longest; };
  if (!is_provider_name(payment.provider) || !fits(payment.event) || !fits(payment.sale) ||
      !fits(payment.order) || !is_currency(payment.currency) || payment.amount < 1)
    throw Error{Errc::bad_argument,
                fmt::format("payment '{}' of '{}' is none: see Payment for what its fields may be",
                            shown(payment.event), shown(payment.provider))};
  const auto event = to_column(payment.event);
  const auto sale = to_column(payment.sale);
  const auto number = to_column(payment.order);
  const long long amount = payment.amount;
  return sessions_.in_transaction([&](Connection& at) {
    try {
      at.sql << fmt::format(
          "INSERT INTO sale_payments ({}, order_id) VALUES (:p, :e, :s, :o, :a, :c, 'waiting', '', "
          "{}, 0)",
          payment_columns, dialect().now_us),
          soci::use(payment.provider), soci::use(event), soci::use(sale), soci::use(number),
          soci::use(amount), soci::use(payment.currency);
      return true;
    } catch (const soci::soci_error& failure) {
      if (!dialect().classify(failure, at.sql).refused) throw;
      return false;  // it is there: the table has no other constraint
    }
  });
}

std::optional<KeptPayment> SqlOrderPayments::kept(soci::session& sql, const Payment& payment) {
  const auto event = to_column(payment.event);
  // A provider's name has no character that means anything in SQL.
  if (!is_provider_name(payment.provider)) return std::nullopt;
  auto found = fetch_payments(sql, fmt::format("provider = '{}' AND event = :e", payment.provider),
                              1, event);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

/// Notes what became of it.
void SqlOrderPayments::settle(const SaleTransaction& sale, const Payment& payment,
                              PaymentState state, const OrderRow* row, const std::string& note) {
  const auto event = to_column(payment.event);
  const std::string to{to_string(state)};
  const auto why = to_column(note);
  const long long id = row ? row->order.id : 0;
  sale.sql() << "UPDATE sale_payments SET state = :t, note = :n, order_id = :i "
                "WHERE provider = :p AND event = :e",
      soci::use(to), soci::use(why), soci::use(id), soci::use(payment.provider), soci::use(event);
}

PaymentResult SqlOrderPayments::apply(const Payment& asked) {
  PaymentResult result;
  const auto is_known = [&](Connection& at) { return find_sale(at, asked.sale).has_value(); };
  if (!sessions_.guarded(is_known)) return result;
  changing(asked.sale, [&](const SaleTransaction& sale) {
    result = {};
    const auto there = kept(sale.sql(), asked);
    if (!there) return false;
    const auto& payment = there->payment;  // what came first counts
    result.differs = payment != asked;
    if (payment.sale != asked.sale) return false;
    auto row = sale.find_number(payment.order);
    result.state = there->state;
    result.note = there->note;
    if (row) result.order = sale.payable(*row);
    if (there->state != PaymentState::waiting || !row) return false;

    result.note = misfit(payment, sale, *row);
    if (!result.note.empty()) {
      result.state = PaymentState::flagged;
    } else if (row->order.state == OrderState::awaiting) {
      sale.change(*row, OrderState::paid, "order.paid", payment.amount);
      result.state = PaymentState::applied;
    } else if (row->order.state == OrderState::expired && !is_asking(sale, *row)) {
      sale.change(*row, OrderState::expired, "order.paid_late", payment.amount);
      sale.note_return(*row, row->units(), SaleTransaction::Return::retake);
      result.state = PaymentState::asking;
    } else if (row->order.state == OrderState::cancelled) {
      sale.change(*row, OrderState::refunding, "order.refunding", payment.amount,
                  reason_of(sale, *row));
      sale.note_refund(*row, payment.amount, payment.provider, to_column(payment.event));
      result.state = PaymentState::returned;
    } else {
      result.state = PaymentState::flagged;
      result.note = fmt::format("the order is {} already", to_string(row->order.state));
    }
    settle(sale, payment, result.state, &*row, result.note);
    result.order = sale.payable(*row);
    return result.now = true;
  });
  return result;
}

/// A payment that came late waits for the store to say whether units are left.
bool SqlOrderPayments::is_asking(const SaleTransaction& sale, const OrderRow& row) {
  long long asking = 0;
  const long long id = row.order.id;
  sale.sql() << "SELECT COUNT(*) FROM sale_returns WHERE sale = :s AND order_id = :i AND "
                "retake = 1 AND done = 0",
      soci::use(sale.sale()), soci::use(id), soci::into(asking);
  return asking > 0;
}

std::string SqlOrderPayments::reason_of(const SaleTransaction& sale, const OrderRow& row) {
  std::string reason;
  const long long id = row.order.id;
  sale.sql() << "SELECT reason FROM sale_orders WHERE sale = :s AND id = :i",
      soci::use(sale.sale()), soci::use(id), soci::into(reason);
  return from_column(reason);
}

/// The one that an order was paid with, or is to be.
std::optional<Payment> SqlOrderPayments::payment_of(const SaleTransaction& sale,
                                                    const OrderRow& row, PaymentState state) {
  const auto name = to_column(sale.name());
  auto found =
      fetch_payments(sale.sql(),
                     fmt::format("sale_name = :n AND order_id = {} AND state = '{}' LIMIT 1",
                                 row.order.id, to_string(state)),
                     1, name);
  if (found.empty()) return std::nullopt;
  return std::move(found.front().payment);
}

bool SqlOrderPayments::end_retake(const std::string& sale, std::int64_t id, std::int64_t seq,
                                  bool taken) {
  return changing(sale, [&](const SaleTransaction& in) {
    auto row = in.find(id);
    if (!row || row->order.state != OrderState::expired || !is_asking(in, *row)) return false;
    const auto payment = payment_of(in, *row, PaymentState::asking);
    if (!payment) return false;
    const long long key = id;
    const long long of_order = seq;
    if (taken) {
      in.sql() << "UPDATE sale_returns SET done = 1 WHERE sale = :s AND order_id = :i AND seq = :q",
          soci::use(in.sale()), soci::use(key), soci::use(of_order);
      in.change_stock(-row->units());
      in.change(*row, OrderState::paid, "order.paid", payment->amount);
      settle(in, *payment, PaymentState::applied, &*row);
    } else {
      in.sql() << "DELETE FROM sale_returns WHERE sale = :s AND order_id = :i AND seq = :q",
          soci::use(in.sale()), soci::use(key), soci::use(of_order);
      in.change(*row, OrderState::refunding, "order.refunding", payment->amount,
                reason_of(in, *row));
      in.note_refund(*row, payment->amount, payment->provider, to_column(payment->event));
      settle(in, *payment, PaymentState::returned, &*row);
    }
    return true;
  });
}

std::vector<KeptPayment> SqlOrderPayments::list(const std::string& sale, PaymentState state,
                                                std::size_t most,
                                                const std::optional<PaymentPlace>& after) {
  const auto name = to_column(sale);
  const auto order = fmt::format("sale_name = :n AND state = '{}'", to_string(state));
  const auto end = fmt::format("ORDER BY received_us, provider, event LIMIT {}", most);
  const auto read = [&](Connection& at) -> std::vector<KeptPayment> {
    if (!after) return fetch_payments(at.sql, fmt::format("{} {}", order, end), most, name);
    const auto last = kept(at.sql, {.provider = after->provider, .event = after->event});
    if (!last) return {};
    const auto event = to_column(after->event);
    return fetch_payments(
        at.sql,
        fmt::format("{0} AND (received_us > {1} OR (received_us = {1} AND (provider > '{2}' OR "
                    "(provider = '{2}' AND event > :e)))) {3}",
                    order, last->received_at.time_since_epoch().count(), last->payment.provider,
                    end),
        most, name, event);
  };
  return sessions_.guarded(read);
}

std::vector<Payment> SqlOrderPayments::ready(const std::string& sale, std::size_t most) {
  const auto name = to_column(sale);
  const auto read = [&](Connection& at) {
    const auto id = find_sale(at, sale);
    if (!id) return std::vector<KeptPayment>{};
    return fetch_payments(at.sql,
                          fmt::format("sale_name = :n AND state = 'waiting' AND EXISTS (SELECT 1 "
                                      "FROM sale_orders AS its WHERE its.sale = {} AND its.number "
                                      "= sale_payments.number) ORDER BY received_us LIMIT {}",
                                      *id, most),
                          most, name);
  };
  std::vector<Payment> payments;
  for (auto& found : sessions_.guarded(read)) payments.push_back(std::move(found.payment));
  return payments;
}

std::optional<PayableOrder> SqlOrderPayments::find(const std::string& sale, std::int64_t id) {
  std::optional<PayableOrder> order;
  sessions_.in_snapshot([&](Connection& at) {
    const auto in_sale = find_sale(at, sale);
    if (!in_sale) return;
    const SaleTransaction in{at, dialect(), *in_sale, sale};
    if (const auto row = in.find(id)) order = in.payable(*row);
  });
  return order;
}

std::vector<PayableOrder> SqlOrderPayments::find(const std::string& sale,
                                                 std::span<const std::int64_t> ids) {
  std::vector<PayableOrder> orders;
  if (ids.empty()) return orders;
  sessions_.in_snapshot([&](Connection& at) {
    orders.clear();
    const auto in_sale = find_sale(at, sale);
    if (!in_sale) return;
    const SaleTransaction in{at, dialect(), *in_sale, sale};
    for (const auto& row : in.find(ids)) orders.push_back(in.payable(row));
  });
  return orders;
}

// --- deadlines, and units that are cancelled ---

std::vector<std::int64_t> SqlOrderPayments::due(const std::string& sale, std::size_t most) {
  const auto read = [&](Connection& at) -> std::vector<std::int64_t> {
    const auto in_sale = find_sale(at, sale);
    const auto terms = in_sale ? terms_of_sale(at.sql, *in_sale) : std::nullopt;
    if (!terms) return {};
    std::vector<long long> ids(rows_for(most));
    const long long key = *in_sale;
    const long long grace = terms->grace.count();
    soci::statement select =
        (at.sql.prepare << fmt::format("SELECT id FROM sale_orders WHERE sale = :s AND state = "
                                       "'awaiting' AND pay_by > 0 AND pay_by <= {} - :g "
                                       "ORDER BY pay_by LIMIT {}",
                                       dialect().now_us, most),
         soci::use(key), soci::use(grace), soci::into(ids));
    if (!select.execute(true)) return {};
    return {ids.begin(), ids.end()};
  };
  return sessions_.guarded(read);
}

bool SqlOrderPayments::expire(const std::string& sale, std::int64_t id) {
  return expire_all(sale, std::span{&id, 1}) == 1;
}

std::size_t SqlOrderPayments::expire_all(const std::string& sale,
                                         std::span<const std::int64_t> ids) {
  std::size_t expired = 0;
  if (ids.empty()) return expired;
  changing(sale, [&](const SaleTransaction& in) {
    expired = 0;
    if (!in.terms()) return false;
    long long now = 0;
    in.sql() << fmt::format("SELECT {}", dialect().now_us), soci::into(now);
    std::int64_t units = 0;
    for (const auto id : ids)
      if (const auto back = end_unpaid(in, id, now - in.terms()->grace.count()); back > 0) {
        ++expired;
        units += back;
      }
    if (expired == 0) return false;
    in.change_stock(units);
    return true;
  });
  return expired;
}

/// Ends an order whose deadline is no later than `due_us`. Returns its units, which the stock has
/// not got yet; 0: it goes on, or has ended before.
std::int64_t SqlOrderPayments::end_unpaid(const SaleTransaction& in, std::int64_t id,
                                          long long due_us) {
  auto row = in.find(id);
  if (!row || row->order.state != OrderState::awaiting || row->pay_by_us <= 0 ||
      row->pay_by_us > due_us || is_told_of(in, *row))
    return 0;
  in.change(*row, OrderState::expired, "order.expired");
  in.note_return(*row, row->units(), SaleTransaction::Return::end);
  return row->units();
}

/// A payment was kept that nobody has applied yet: it says what becomes of the order.
bool SqlOrderPayments::is_told_of(const SaleTransaction& sale, const OrderRow& row) {
  const auto name = to_column(sale.name());
  const auto number = to_column(row.order.number);
  long long waiting = 0;
  sale.sql() << "SELECT COUNT(*) FROM sale_payments WHERE sale_name = :n AND state = 'waiting' AND "
                "number = :o",
      soci::use(name), soci::use(number), soci::into(waiting);
  return waiting > 0;
}

UnitsResult SqlOrderPayments::cancel_units(const std::string& sale, std::int64_t id,
                                           std::int64_t units, const std::string& key,
                                           const std::string& reason) {
  using Outcome = UnitsResult::Outcome;
  UnitsResult result;
  changing(sale, [&](const SaleTransaction& in) {
    result = {};
    auto row = in.find(id);
    if (!row) return false;
    result.order = in.payable(*row);
    if (is_repeat(in, *row, key, result)) return false;
    const bool is_all = units == 0 || units == row->units();
    result.outcome = !stands(row->order.state) ? Outcome::ended
                     : units > row->units()    ? Outcome::too_many
                                               : Outcome::cancelled;
    if (result.outcome != Outcome::cancelled) return false;
    if (row->version >= most_versions - 10 && !is_all)
      throw Error{Errc::bad_argument,
                  fmt::format("order {} was changed {} times: cancel all of it, or leave it",
                              row->order.number, row->version)};
    cancel(in, *row, is_all ? row->units() : units, key, reason, result);
    return true;
  });
  return result;
}

void SqlOrderPayments::cancel(const SaleTransaction& in, OrderRow& row, std::int64_t units,
                              const std::string& key, const std::string& reason,
                              UnitsResult& result) {
  using Return = SaleTransaction::Return;
  const bool is_all = units == row.units();
  const bool is_paid = row.order.state == OrderState::paid;
  if (is_paid && in.terms()) result.refund = price_of(units, *in.terms());
  if (is_all) {
    const auto to = is_paid ? OrderState::refunding : OrderState::cancelled;
    in.change(row, to, fmt::format("order.{}", to_string(to)), result.refund, reason);
  } else {
    row.returned += units;
    in.change(row, row.order.state, "order.units_cancelled", result.refund);
  }
  in.change_stock(units);
  in.note_return(row, units, is_all ? Return::end : Return::part, key);
  if (is_paid)
    if (const auto payment = payment_of(in, row, PaymentState::applied))
      in.note_refund(row, result.refund, payment->provider, to_column(payment->event));
  result.units = units;
  result.order = in.payable(row);
}

/// This key did it before: what it did.
bool SqlOrderPayments::is_repeat(const SaleTransaction& in, const OrderRow& row,
                                 const std::string& key, UnitsResult& result) {
  const long long id = row.order.id;
  const auto cause = to_column(key);
  long long units = 0;
  long long seq = 0;
  in.sql()
      << "SELECT units, seq FROM sale_returns WHERE sale = :s AND order_id = :i AND cause = :c "
         "AND retake = 0",
      soci::use(in.sale()), soci::use(id), soci::use(cause), soci::into(units), soci::into(seq);
  if (key.empty() || !in.sql().got_data()) return false;
  long long refund = 0;
  in.sql() << "SELECT COALESCE(SUM(amount), 0) FROM sale_refunds WHERE sale = :s AND order_id = :i "
              "AND seq = :q",
      soci::use(in.sale()), soci::use(id), soci::use(seq), soci::into(refund);
  result.outcome = UnitsResult::Outcome::repeated;
  result.units = units;
  result.refund = refund;
  return true;
}

}  // namespace sluice::sale

std::string_view sluice::to_string(PaymentState state) noexcept {
  return sale::payment_states[static_cast<std::size_t>(state)];
}
