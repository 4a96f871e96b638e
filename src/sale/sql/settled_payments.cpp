// What a person makes of payments that did not pay an order; and the refunds of these, whose queue
// is the payments themselves.
#include <fmt/format.h>

#include "sale/order_store_text.hpp"
#include "sale/sql/payment_rows.hpp"
#include "sale/sql/payments.hpp"

namespace sluice::sale {
namespace {

/// `set`, of one payment that meets the condition. False: it does not.
template <class... Values>
bool change_payment(soci::session& sql, const std::string& set, const std::string& condition,
                    const PaymentPlace& place, const Values&... values) {
  const auto event = to_column(place.event);
  soci::statement change{sql};
  (change.exchange(soci::use(values)), ...);
  change.exchange(soci::use(place.provider));
  change.exchange(soci::use(event));
  change.alloc();
  change.prepare(fmt::format(
      "UPDATE sale_payments SET {} WHERE provider = :p AND event = :e AND {}", set, condition));
  change.define_and_bind();
  change.execute(true);
  return change.get_affected_rows() == 1;
}

PaymentPlace payment_of(const Refund& refund) { return {refund.provider, refund.event}; }

constexpr const char* is_going_back = "state = 'refunding'";

}  // namespace

std::vector<KeptPayment> SqlOrderPayments::payments_of(const std::string& sale,
                                                       const SaleOrder& order) {
  const auto name = to_column(sale);
  const auto number = to_column(order.number);
  // The number alone has no index; few wait, or were settled.
  return sessions_.guarded([&](Connection& at) {
    return fetch_payments(
        at.sql,
        fmt::format("sale_name = :n AND (order_id = {0} OR (order_id = 0 AND state IN ('waiting', "
                    "'flagged', 'refunding', 'refunded', 'settled') AND number IN (:o, '{0}'))) "
                    "ORDER BY received_us, provider, event LIMIT {1}",
                    order.id, most_of_order),
        most_of_order, name, number);
  });
}

std::int64_t SqlOrderPayments::payments_of_no_sale() {
  return sessions_.guarded([](Connection& at) {
    long long found = 0;
    at.sql << "SELECT COUNT(*) FROM sale_payments WHERE state = 'waiting' AND NOT EXISTS (SELECT 1 "
              "FROM sale_stock WHERE sale_stock.name = sale_payments.sale_name)",
        soci::into(found);
    return std::int64_t{found};
  });
}

SettledPayment SqlOrderPayments::settle_payment(const PaymentPlace& place, PaymentState to,
                                                const std::string& who, const std::string& why,
                                                const std::function<bool(PaymentState)>& may) {
  if (to != PaymentState::refunding && to != PaymentState::settled)
    throw Error{Errc::bad_argument, "a payment is settled, or its money goes back"};
  const Payment named{.provider = place.provider, .event = place.event};
  SettledPayment result;
  const auto settle = [&](Connection& at) {
    result = {.now = false, .payment = kept(at.sql, named)};
    if (!result.payment) return false;
    if (may && !may(result.payment->state)) return true;
    result.now = settle_kept(at, *result.payment, to, fmt::format("by {}: {}", who, why),
                             !result.payment->failure.empty());
    if (result.now) result.payment = kept(at.sql, named);
    return true;
  };
  std::string sale;
  const auto is_of_sale = [&](Connection& at) {
    const auto there = kept(at.sql, named);
    if (there) sale = there->payment.sale;
    return there && find_sale(at, sale);
  };
  if (!sessions_.guarded(is_of_sale)) {
    sessions_.in_transaction(settle);
    return result;
  }
  // Under the lock of the sale: an order that comes in is paid, or its payment is settled.
  const auto of_sale = [&](Connection& at) {
    const SaleTransaction in{at, dialect(), locked_sale(at, dialect(), sale), sale};
    const auto there = kept(at.sql, named);
    auto row = there ? in.find_named(there->payment.order) : std::nullopt;
    if (row && there->state == PaymentState::waiting) in.take_up_payments(*row);
    return settle(at);
  };
  sessions_.in_transaction(of_sale);
  return result;
}

bool SqlOrderPayments::settle_kept(Connection& at, const KeptPayment& there, PaymentState to,
                                   const std::string& who_and_why, bool is_in_vain) const {
  const PaymentPlace place{there.payment.provider, there.payment.event};
  const auto due = fmt::format("due_us = {}", dialect().now_us);
  if (there.state == PaymentState::refunding && to == PaymentState::refunding)
    change_payment(at.sql, due, is_going_back, place);
  is_in_vain &= there.state == PaymentState::refunding && to == PaymentState::settled;
  if (there.state != PaymentState::waiting && there.state != PaymentState::flagged && !is_in_vain)
    return false;
  const std::string state{sluice::to_string(to)};
  const auto note = to_column(
      fmt::format("{}{}{} {}", there.note, there.note.empty() ? "" : "; ", state, who_and_why));
  const auto set = "state = :t, note = :n, attempts = 0, failure = '', " + due;
  return change_payment(at.sql, set, fmt::format("state = '{}'", sluice::to_string(there.state)),
                        place, state, note);
}

// --- refunds of payments ---

std::optional<Refund> SqlOrderPayments::take_payment_refund(const std::string& provider,
                                                            std::chrono::seconds lease) {
  const auto which =
      fmt::format("{} AND due_us <= {} AND ('' = :p OR provider = '{}') ORDER BY due_us LIMIT 1",
                  is_going_back, dialect().now_us, provider);
  const auto again =
      fmt::format("due_us = {} + {}", dialect().now_us, std::chrono::microseconds{lease}.count());
  const auto due = fmt::format("{} AND due_us <= {}", is_going_back, dialect().now_us);
  std::optional<Refund> taken;
  sessions_.in_transaction([&](Connection& at) {
    taken.reset();
    const auto found = fetch_payments(at.sql, which, 1, provider);
    if (found.empty()) return false;
    const auto& payment = found.front().payment;
    // Another sender may have taken it meanwhile.
    if (!change_payment(at.sql, again, due, {payment.provider, payment.event})) return false;
    taken = Refund{.sale = payment.sale,
                   .order = payment.order,
                   .amount = payment.amount,
                   .currency = payment.currency,
                   .provider = payment.provider,
                   .event = payment.event,
                   .state = "asked",
                   .attempts = found.front().attempts,
                   .note = found.front().failure};
    return true;
  });
  return taken;
}

bool SqlOrderPayments::payment_refund_done(const Refund& refund, const std::string& settled_by) {
  return sessions_.in_transaction([&](Connection& at) {
    if (!settled_by.empty()) {
      const auto there = kept(at.sql, {.provider = refund.provider, .event = refund.event});
      return there && there->state == PaymentState::refunding &&
             settle_kept(at, *there, PaymentState::settled, settled_by, true);
    }
    return change_payment(
        at.sql, fmt::format("state = 'refunded', failure = '', due_us = {}", dialect().now_us),
        is_going_back, payment_of(refund));
  });
}

void SqlOrderPayments::payment_refund_failed(const Refund& refund, const std::string& why,
                                             std::chrono::seconds again_in) {
  const auto failure = to_column(why);
  const auto later = fmt::format("attempts = attempts + 1, failure = :f, due_us = {} + {}",
                                 dialect().now_us, std::chrono::microseconds{again_in}.count());
  sessions_.in_transaction([&](Connection& at) {
    return change_payment(at.sql, later, is_going_back, payment_of(refund), failure);
  });
}

}  // namespace sluice::sale
