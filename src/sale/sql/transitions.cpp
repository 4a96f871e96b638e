// The transitions of orders (sale/order_life.hpp), each with all that it notes.
#include <fmt/format.h>

#include "sale/order_store_text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/payment_rows.hpp"
#include "sale/sql/sale_transaction.hpp"

namespace sluice::sale {
namespace {

bool is_of_payment(MoneyDoes money) {
  return money == MoneyDoes::pays || money == MoneyDoes::waits || money == MoneyDoes::goes_back;
}

}  // namespace

std::optional<Happened> SaleTransaction::happens(OrderRow& row, const Happening& what) const {
  const auto* const step = transition(row.order.state, what.event);
  if (!step) return std::nullopt;
  const bool is_part = step->units == UnitsDo::part_goes_back;
  const auto units = is_part ? what.units : row.units();
  std::optional<Payment> payment;
  if (what.payment) payment = *what.payment;
  if (step->money == MoneyDoes::price_goes_back && terms_) {
    payment = payment_of(row, PaymentState::applied);
    if (!payment)
      throw Error{Errc::corrupt, fmt::format("{}: order {} of sale '{}' is {}, and has no payment: "
                                             "its money cannot go back, and nothing was changed",
                                             dialect_.description, row.order.number, name_,
                                             sluice::to_string(row.order.state))};
  }
  Happened done;
  if (step->money == MoneyDoes::goes_back) done.refund = price_of(row.units(), *terms_);
  if (step->money == MoneyDoes::price_goes_back && terms_) done.refund = price_of(units, *terms_);
  if (is_part) row.returned += units;
  if (!what.reason.empty() && !is_part) row.reason = what.reason;
  const auto moved = is_of_payment(step->money) ? payment->amount : done.refund + what.amount;
  change(row, *step, moved);
  if (step->units == UnitsDo::go_back || is_part) done.units_back = units;
  if (step->units == UnitsDo::are_taken) done.units_back = -units;
  if (done.units_back > 0 || step->units == UnitsDo::are_asked_for)
    note_return(row, units, step->units, what.cause);
  if (is_of_payment(step->money) && step->money != MoneyDoes::waits) note_overpaid(row, *payment);
  if (done.refund > 0) note_refund(row, row.version, done.refund, *payment);
  if (is_of_payment(step->money)) settle(*payment, state_after(step->money), row.order.id);
  return done;
}

void SaleTransaction::change(OrderRow& row, const Transition& step, std::int64_t amount) const {
  row.order.state = step.to;
  ++row.version;
  const std::string state{sluice::to_string(step.to)};
  const auto why = to_column(row.reason);
  const long long version = row.version;
  const long long returned = row.returned;
  const long long id = row.order.id;
  const long long before = version - 1;
  soci::statement write =
      (at_.sql.prepare << "UPDATE sale_orders SET state = :t, reason = :r, version = :v, "
                          "returned = :u WHERE sale = :s AND id = :i AND version = :b",
       soci::use(state), soci::use(why), soci::use(version), soci::use(returned), soci::use(sale_),
       soci::use(id), soci::use(before));
  write.execute(true);
  if (write.get_affected_rows() != 1)
    throw Error{Errc::database,
                fmt::format("{}: order {} was changed by somebody who does not lock its sale",
                            dialect_.description, row.order.number)};
  if (terms_) leave_message(row, step.message, amount);
}

void SaleTransaction::note_return(const OrderRow& row, std::int64_t units, UnitsDo what,
                                  const std::string& cause) const {
  const long long id = row.order.id;
  const long long seq = row.version;
  const long long back = units;
  const long long ends = what == UnitsDo::part_goes_back ? 0 : 1;
  const long long retake = what == UnitsDo::are_asked_for ? 1 : 0;
  const auto why = to_column(cause);
  at_.sql << "INSERT INTO sale_returns (sale, order_id, seq, units, done, ends, retake, cause) "
             "VALUES (:s, :i, :q, :u, 0, :e, :r, :c)",
      soci::use(sale_), soci::use(id), soci::use(seq), soci::use(back), soci::use(ends),
      soci::use(retake), soci::use(why);
}

/// An order has one payment that counts: all its refunds are of that.
void SaleTransaction::note_refund(const OrderRow& row, std::int64_t seq, std::int64_t amount,
                                  const Payment& payment) const {
  const auto event = to_column(payment.event);
  const long long id = row.order.id;
  const long long of_version = seq;
  const long long money = amount;
  long long before = 0;
  sql() << "SELECT COALESCE(SUM(amount), 0) FROM sale_refunds WHERE sale = :s AND order_id = :i",
      soci::use(sale_), soci::use(id), soci::into(before);
  const auto part = part_of_payment(before, amount, payment.amount);
  at_.sql << fmt::format(
      "INSERT INTO sale_refunds (sale, order_id, seq, amount, currency, provider, event, part, "
      "state, attempts, due_us, note) VALUES (:s, :i, :q, :a, :c, :p, :e, :o, 'asked', 0, {}, '')",
      dialect_.now_us),
      soci::use(sale_), soci::use(id), soci::use(of_version), soci::use(money),
      soci::use(terms_->currency), soci::use(payment.provider), soci::use(event), soci::use(part);
}

/// Part by part, as their price went back where it was paid before them: each has its key.
void SaleTransaction::note_overpaid(const OrderRow& row, const Payment& payment) const {
  const auto parts = parts_of(row);
  const auto excess = payment.amount - price_of(row.units(), *terms_);
  const auto last = parts_worth(excess, parts, *terms_).value_or(0);
  for (const auto& part : std::span{parts}.last(last))
    note_refund(row, part.seq, price_of(part.units, *terms_), payment);
}

std::vector<PartBack> SaleTransaction::parts_of(const OrderRow& row) const {
  std::vector<PartBack> parts;
  const long long id = row.order.id;
  const soci::rowset<soci::row> rows =
      (sql().prepare << "SELECT seq, units FROM sale_returns WHERE sale = :s AND order_id = :i AND "
                        "ends = 0 ORDER BY seq",
       soci::use(sale_), soci::use(id));
  for (const auto& part : rows) parts.push_back({part.get<long long>(0), part.get<long long>(1)});
  return parts;
}

void SaleTransaction::settle(const Payment& payment, PaymentState state, std::int64_t order_id,
                             const std::string& note) const {
  const auto event = to_column(payment.event);
  const std::string to{sluice::to_string(state)};
  const auto why = to_column(note);
  const long long id = order_id;
  sql() << "UPDATE sale_payments SET state = :t, note = :n, order_id = :i "
           "WHERE provider = :p AND event = :e",
      soci::use(to), soci::use(why), soci::use(id), soci::use(payment.provider), soci::use(event);
}

// --- payments that are kept ---

namespace {

/// Of the sale :n, that name the order by its number :o or by its id.
std::string waiting_of_order(const OrderRow& row) {
  return fmt::format("sale_name = :n AND state = 'waiting' AND number IN (:o, '{}')", row.order.id);
}

}  // namespace

bool SaleTransaction::take_up_payments(OrderRow& row) const {
  constexpr std::size_t most = 100;
  const auto name = to_column(name_);
  const auto number = to_column(row.order.number);
  const auto waiting = fetch_payments(
      sql(),
      fmt::format("{} ORDER BY received_us, provider, event LIMIT {}", waiting_of_order(row), most),
      most, name, number);
  for (const auto& kept : waiting) take_up(row, kept.payment);
  return !waiting.empty();
}

void SaleTransaction::take_up(OrderRow& row, const Payment& payment) const {
  auto why = row.reason == held ? row.reason : misfit(payment, row);
  if (why.empty() &&
      (is_asking(row) || !happens(row, {.event = OrderEvent::paid, .payment = &payment})))
    why = fmt::format("the order is {} already", sluice::to_string(row.order.state));
  if (!why.empty()) settle(payment, PaymentState::flagged, row.order.id, why);
}

/// Why a payment does not pay for the order; empty: it does.
std::string SaleTransaction::misfit(const Payment& payment, const OrderRow& row) const {
  if (!terms_) return "the sale takes no payments";
  const auto price = price_of(row.units(), *terms_);
  if (payment.currency == terms_->currency &&
      parts_worth(payment.amount - price, parts_of(row), *terms_))
    return {};  // it costs that, or has cost it
  using enum OrderState;
  if (const auto state = row.order.state; state == paid || state == refunding || state == refunded)
    return fmt::format("the order is {} already", sluice::to_string(state));
  return fmt::format("{} was paid, and {} is due", money_text(payment.amount, payment.currency),
                     money_text(price, terms_->currency));
}

bool SaleTransaction::has_waiting_payment(const OrderRow& row) const {
  const auto name = to_column(name_);
  const auto number = to_column(row.order.number);
  long long waiting = 0;
  sql() << fmt::format("SELECT COUNT(*) FROM sale_payments WHERE {}", waiting_of_order(row)),
      soci::use(name), soci::use(number), soci::into(waiting);
  return waiting > 0;
}

bool SaleTransaction::is_asking(const OrderRow& row) const {
  long long asking = 0;
  const long long id = row.order.id;
  sql() << "SELECT COUNT(*) FROM sale_returns WHERE sale = :s AND order_id = :i AND "
           "retake = 1 AND done = 0",
      soci::use(sale_), soci::use(id), soci::into(asking);
  return asking > 0;
}

std::optional<Payment> SaleTransaction::payment_of(const OrderRow& row, PaymentState state) const {
  const auto name = to_column(name_);
  auto found = fetch_payments(sql(),
                              fmt::format("sale_name = :n AND order_id = {} AND state = '{}' "
                                          "LIMIT 1",
                                          row.order.id, sluice::to_string(state)),
                              1, name);
  if (found.empty()) return std::nullopt;
  return std::move(found.front().payment);
}

}  // namespace sluice::sale
