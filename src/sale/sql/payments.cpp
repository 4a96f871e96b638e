#include "sale/sql/payments.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sale/differences.hpp"
#include "sale/order_store_text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/payment_rows.hpp"
#include "sale/sql/schema.hpp"

namespace sluice::sale {

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
  std::string refusal;
  const bool is_new = sessions_.in_transaction([&](Connection& at) {
    refusal.clear();
    need_known_schema(at.sql, dialect());
    try {
      at.sql << fmt::format(
          "INSERT INTO sale_payments ({}, order_id) VALUES (:p, :e, :s, :o, :a, :c, 'waiting', '', "
          "{}, 0)",
          payment_columns, dialect().now_us),
          soci::use(payment.provider), soci::use(event), soci::use(sale), soci::use(number),
          soci::use(amount), soci::use(payment.currency);
      return true;
    } catch (const soci::soci_error& failure) {
      if (!dialect().has_refused(failure, at.sql)) throw;
      refusal = failure.get_error_message();
      return false;
    }
  });
  // Most are there already; a constraint or a trigger of somebody else may refuse one, too.
  if (!is_new && !sessions_.guarded([&](Connection& at) { return kept(at.sql, payment); }))
    throw Error{
        Errc::database,
        fmt::format("{}: payment '{}' of '{}' was refused, and is not kept: {}",
                    dialect().description, shown(payment.event), payment.provider, shown(refusal))};
  return is_new;
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

PaymentResult SqlOrderPayments::apply(const Payment& asked) {
  PaymentResult result;
  const auto is_known = [&](Connection& at) { return find_sale(at, asked.sale).has_value(); };
  if (!sessions_.guarded(is_known)) return result;
  changing(asked.sale, [&](const SaleTransaction& sale) {
    result = {};
    auto there = kept(sale.sql(), asked);
    if (!there) return false;
    result.differs = there->payment != asked;  // what came first counts
    if (there->payment.sale != asked.sale) return false;
    auto row = sale.find_named(there->payment.order);
    const bool is_changed =
        row && there->state == PaymentState::waiting && sale.take_up_payments(*row);
    const bool is_orphan = !row && there->state == PaymentState::waiting && sale.is_archived();
    if (is_orphan)
      sale.settle(there->payment, PaymentState::flagged, 0, "the sale has no such order");
    if (is_changed || is_orphan) {
      there = kept(sale.sql(), asked);
      result.now = there->state != PaymentState::waiting;
    }
    result.state = there->state;
    result.note = there->note;
    if (row) result.order = sale.payable(*row);
    return is_changed || is_orphan;
  });
  return result;
}

bool SqlOrderPayments::end_retake(const std::string& sale, std::int64_t id, std::int64_t seq,
                                  bool taken) {
  return changing(sale, [&](const SaleTransaction& in) {
    auto row = in.find(id);
    if (!row || row->order.state != OrderState::expired || !in.is_asking(*row)) return false;
    const auto payment = in.payment_of(*row, PaymentState::asking);
    if (!payment) return false;
    const long long key = id;
    const long long of_order = seq;
    const auto* const end = taken ? "UPDATE sale_returns SET done = 1" : "DELETE FROM sale_returns";
    in.sql() << fmt::format("{} WHERE sale = :s AND order_id = :i AND seq = :q", end),
        soci::use(in.sale()), soci::use(key), soci::use(of_order);
    const auto event = taken ? OrderEvent::taken_again : OrderEvent::not_taken;
    in.change_stock(in.happens(*row, {.event = event, .payment = &*payment})->units_back);
    return true;
  });
}

std::vector<KeptPayment> SqlOrderPayments::list(const std::string& sale, PaymentState state,
                                                std::size_t most,
                                                const std::optional<PaymentPlace>& after) {
  const auto name = to_column(sale);
  const auto which = fmt::format(
      "{} AND state = '{}'", sale.empty() ? "sale_name <> :n" : "sale_name = :n", to_string(state));
  const auto end = fmt::format("ORDER BY received_us, provider, event LIMIT {}", most);
  const auto read = [&](Connection& at) -> std::vector<KeptPayment> {
    if (!after) return fetch_payments(at.sql, fmt::format("{} {}", which, end), most, name);
    const auto last = kept(at.sql, {.provider = after->provider, .event = after->event});
    if (!last) return {};
    const auto event = to_column(after->event);
    return fetch_payments(
        at.sql,
        fmt::format("{0} AND (received_us > {1} OR (received_us = {1} AND (provider > '{2}' OR "
                    "(provider = '{2}' AND event > :e)))) {3}",
                    which, last->received_at.time_since_epoch().count(), last->payment.provider,
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
    const auto fetch_waiting = [&](const std::string& where) {
      return fetch_payments(at.sql,
                            fmt::format("sale_name = :n AND state = 'waiting' AND {} ORDER BY "
                                        "received_us LIMIT {}",
                                        where, most),
                            most, name);
    };
    auto found = fetch_waiting(
        fmt::format("EXISTS (SELECT 1 FROM sale_orders AS its WHERE its.sale = {} AND its.number = "
                    "sale_payments.number)",
                    *id));
    // By ids, of which no index is a text; few wait.
    const SaleTransaction in{at, dialect(), *id, sale};
    for (auto& kept : fetch_waiting("number >= '0' AND number < ':'"))
      if (const auto row = in.find_named(kept.payment.order);
          row && row->order.number != kept.payment.order)
        found.push_back(std::move(kept));
    return found;
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

void SqlOrderPayments::hold(const std::string& sale, std::int64_t id) {
  changing(sale, [&](const SaleTransaction& in) {
    const std::string why{held};
    const long long key = id;
    in.sql() << "UPDATE sale_orders SET reason = :r WHERE sale = :s AND id = :i AND state = "
                "'expired'",
        soci::use(why), soci::use(in.sale()), soci::use(key);
    return true;
  });
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
        (at.sql.prepare << fmt::format("SELECT id FROM sale_orders WHERE sale = :s AND {} AND "
                                       "pay_by > 0 AND pay_by <= {} - :g ORDER BY pay_by LIMIT {}",
                                       states_with(OrderEvent::expired), dialect().now_us, most),
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
/// not got yet; 0: it goes on, or has ended before. A payment that was kept and not applied yet
/// says what becomes of it: the order waits for that.
std::int64_t SqlOrderPayments::end_unpaid(const SaleTransaction& in, std::int64_t id,
                                          long long due_us) {
  auto row = in.find(id);
  if (!row || row->pay_by_us <= 0 || row->pay_by_us > due_us || in.has_waiting_payment(*row))
    return 0;
  const auto done = in.happens(*row, {.event = OrderEvent::expired});
  return done ? done->units_back : 0;
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
    const bool is_changed = in.take_up_payments(*row);
    result.order = in.payable(*row);
    if (is_repeat(in, *row, units, key, result)) return is_changed;
    const bool is_all = units == 0 || units == row->units();
    result.outcome = !has_units(row->order.state) ? Outcome::ended
                     : units > row->units()       ? Outcome::too_many
                                                  : Outcome::cancelled;
    if (result.outcome != Outcome::cancelled) return is_changed;
    if (row->version >= most_versions - 10 && !is_all)
      throw Error{Errc::bad_argument,
                  fmt::format("order {} was changed {} times: cancel all of it, or leave it",
                              row->order.number, row->version)};
    const auto done =
        in.happens(*row, {.event = is_all ? OrderEvent::cancelled : OrderEvent::part_cancelled,
                          .units = units,
                          .cause = key,
                          .reason = reason});
    in.change_stock(done->units_back);
    result.units = done->units_back;
    result.refund = done->refund;
    result.order = in.payable(*row);
    return true;
  });
  return result;
}

/// This key did it before: what it did.
bool SqlOrderPayments::is_repeat(const SaleTransaction& in, const OrderRow& row, std::int64_t asked,
                                 const std::string& key, UnitsResult& result) {
  const long long id = row.order.id;
  const auto cause = to_column(key);
  long long units = 0;
  long long seq = 0;
  long long ends = 0;
  in.sql() << "SELECT units, seq, ends FROM sale_returns WHERE sale = :s AND order_id = :i AND "
              "cause = :c AND retake = 0",
      soci::use(in.sale()), soci::use(id), soci::use(cause), soci::into(units), soci::into(seq),
      soci::into(ends);
  if (key.empty() || !in.sql().got_data()) return false;
  long long refund = 0;
  in.sql() << "SELECT COALESCE(SUM(amount), 0) FROM sale_refunds WHERE sale = :s AND order_id = :i "
              "AND seq = :q",
      soci::use(in.sale()), soci::use(id), soci::use(seq), soci::into(refund);
  const bool is_same = asked == 0 ? ends != 0 : asked == units;
  result.outcome = is_same ? UnitsResult::Outcome::repeated : UnitsResult::Outcome::other_units;
  result.units = units;
  result.refund = refund;
  return true;
}

}  // namespace sluice::sale
