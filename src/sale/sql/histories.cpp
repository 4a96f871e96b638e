// What the audit replays of orders that are paid for: each message is a transition of the table
// (sale/order_life.hpp), and what transitions note is there: versions, returns, payments, refunds,
// and the words of messages.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/integer.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/payment_rows.hpp"
#include "sale/sql/payments.hpp"
#include "sale/sql/sibling_rows.hpp"

namespace sluice::sale {
namespace {

constexpr std::size_t page_of_orders = 500;

struct Noted {  // of one order
  std::vector<OrderMessage> messages;
  std::map<std::int64_t, OrderReturn> returns;  // by version
  std::map<std::int64_t, Refund> refunds;       // by version
  std::vector<KeptPayment> payments;
};

/// Rows of a page of orders. `query` has its sale, its first id and its last one as parameters.
template <class Visit>
void each_row(soci::session& sql, const std::string& query, const auto& sale, long long first,
              long long last, Visit&& visit) {
  const soci::rowset<soci::row> rows =
      (sql.prepare << query, soci::use(sale), soci::use(first), soci::use(last));
  for (const auto& row : rows) visit(row);
}

std::int64_t number(const soci::row& row, std::size_t column) { return row.get<long long>(column); }
std::string text(const soci::row& row, std::size_t column) { return row.get<std::string>(column); }

/// One in no state has no note, and is found by that.
PaymentState state_or_flagged(const std::string& word) {
  for (const auto state : {PaymentState::asking, PaymentState::applied, PaymentState::returned})
    if (word == sluice::to_string(state)) return state;
  return PaymentState::flagged;
}

using NotedOf = std::map<std::int64_t, Noted>;  // by the order's id

NotedOf read_noted(soci::session& sql, long long sale, const std::string& name, long long first,
                   long long last) {
  NotedOf of;
  each_row(
      sql,
      "SELECT order_id, seq, type, data, attempts, state, at_us, mark FROM sale_messages WHERE "
      "sale = :s AND order_id >= :f AND order_id <= :l ORDER BY order_id, seq",
      sale, first, last, [&](const soci::row& row) {
        of[number(row, 0)].messages.push_back(
            {.seq = number(row, 1),
             .type = text(row, 2),
             .data = text(row, 3),
             .at = WallTime{std::chrono::microseconds{number(row, 6)}},
             .attempts = number(row, 4),
             .state = text(row, 5),
             .mark = text(row, 7)});
      });
  each_row(sql,
           "SELECT order_id, seq, units, done, ends, retake FROM sale_returns WHERE sale = :s AND "
           "order_id >= :f AND order_id <= :l",
           sale, first, last, [&](const soci::row& row) {
             const auto units = number(row, 5) != 0 ? -number(row, 2) : number(row, 2);
             of[number(row, 0)].returns[number(row, 1)] = {
                 .units = units, .done = number(row, 3) != 0, .ends = number(row, 4) != 0};
           });
  each_row(sql,
           "SELECT order_id, seq, amount, currency, provider, event, state, attempts, note, part "
           "FROM sale_refunds WHERE sale = :s AND order_id >= :f AND order_id <= :l",
           sale, first, last, [&](const soci::row& row) {
             of[number(row, 0)].refunds[number(row, 1)] = {.amount = number(row, 2),
                                                           .currency = text(row, 3),
                                                           .provider = text(row, 4),
                                                           .event = text(row, 5),
                                                           .state = text(row, 6),
                                                           .attempts = number(row, 7),
                                                           .note = text(row, 8),
                                                           .part = text(row, 9)};
           });
  each_row(sql,
           "SELECT order_id, provider, event, number, amount, currency, state, note FROM "
           "sale_payments WHERE sale_name = :n AND order_id >= :f AND order_id <= :l AND "
           "state <> 'waiting'",
           name, first, last, [&](const soci::row& row) {
             of[number(row, 0)].payments.push_back({.payment = {.provider = text(row, 1),
                                                                .event = text(row, 2),
                                                                .sale = {},
                                                                .order = text(row, 3),
                                                                .amount = number(row, 4),
                                                                .currency = text(row, 5)},
                                                    .state = state_or_flagged(text(row, 6)),
                                                    .note = text(row, 7)});
           });
  return of;
}

bool is_state(const OrderMessage& message) {
  return message.attempts >= 0 &&
         (message.state == "due" || message.state == "done" || message.state == "dead");
}

/// Orders behind an id, ids rising.
std::vector<OrderRow> order_rows(soci::session& sql, long long sale, long long after,
                                 std::size_t most) {
  const auto page = fmt::format("id > :k ORDER BY id LIMIT {}", most);
  std::vector<OrderRow> rows;
  for (auto& order : fetch(sql, page, sale, after, most))
    rows.push_back({.order = std::move(order)});
  const soci::rowset<soci::row> columns =
      (sql.prepare << "SELECT returned, version, pay_by, reason FROM sale_orders WHERE sale = :s "
                      "AND " +
                          page,
       soci::use(sale), soci::use(after));
  std::size_t next = 0;
  for (const auto& row : columns) {
    auto& to = rows.at(next++);
    to.returned = number(row, 0);
    to.version = number(row, 1);
    to.pay_by_us = number(row, 2);
    to.reason = text(row, 3);
  }
  return rows;
}

/// One order from its beginning.
class History {
 public:
  History(const OrderRow& row, Noted& noted, const std::string& whole, const PaymentTerms& terms)
      : row_(row), noted_(noted), whole_(whole), terms_(terms), now_(row) {
    now_.order.state = OrderState::awaiting;
    now_.returned = now_.version = 0;
  }

  void count(PaymentTotals& totals) {
    find_payment();
    for (const auto& message : noted_.messages) happen(message);
    messages_fit_ &= now_.order.state == row_.order.state && now_.version == row_.version &&
                     now_.returned == row_.returned && noted_.returns.empty();
    payments_fit_ &= becomes_.has_value() == (payment_ != nullptr) &&
                     (!becomes_ || *becomes_ == payment_->state);
    refunds_fit_ &= noted_.refunds.empty() && done_ == told_done_;
    totals.odd_messages += messages_fit_ ? 0 : 1;
    totals.odd_payments += payments_fit_ ? 0 : 1;
    totals.odd_refunds += refunds_fit_ ? 0 : 1;
  }

 private:
  /// One counts, or waits for the store; the others are flagged, and say why.
  void find_payment() {
    for (const auto& kept : noted_.payments) {
      const bool is_flagged = kept.state == PaymentState::flagged;
      const auto& name = kept.payment.order;
      payments_fit_ &= (name == row_.order.number || name == fmt::to_string(row_.order.id)) &&
                       is_flagged == !kept.note.empty();
      if (is_flagged) continue;
      payments_fit_ &= !payment_ && kept.payment.currency == terms_.currency;
      payment_ = &kept;
    }
  }

  void happen(const OrderMessage& message) {
    const auto all = transitions();
    const auto step = std::ranges::find_if(all, [&](const Transition& one) {
      return one.from == now_.order.state && one.message == message.type;
    });
    messages_fit_ &= step != all.end() && message.seq == ++now_.version && is_state(message);
    if (step == all.end()) return;
    is_named_ = !message.mark.empty();
    const auto units = take_return(*step, message.seq);
    if (step->units == UnitsDo::part_goes_back) now_.returned += units;
    if (step->units == UnitsDo::part_goes_back && step->money == MoneyDoes::nothing)
      unpaid_parts_.push_back({message.seq, units});
    now_.order.state = step->to;
    if (step->event != OrderEvent::refunded && step->event != OrderEvent::last_refunded) {
      const auto moved = move_money(*step, units, message.seq);
      messages_fit_ &= message.data == message_of(now_, whole_, terms_, moved).text();
    } else {
      messages_fit_ &= std::ranges::any_of(refunds_, [&](std::int64_t amount) {
        return message.data == message_of(now_, whole_, terms_, amount).text();
      });
      ++told_done_;
    }
  }

  /// Units of its return. Of a retake that the store refused nothing is left.
  std::int64_t take_return(const Transition& step, std::int64_t seq) {
    if (step.units == UnitsDo::are_taken) messages_fit_ &= std::exchange(is_taken_, false);
    if (step.units == UnitsDo::stay || step.units == UnitsDo::are_taken) return 0;
    const auto found = noted_.returns.extract(seq);
    const bool is_part = step.units == UnitsDo::part_goes_back;
    const bool is_retake = step.units == UnitsDo::are_asked_for;
    if (found.empty()) {
      messages_fit_ &= is_retake && !has_units(row_.order.state) && has_payment(row_.order.state);
      return 0;
    }
    const auto& back = found.mapped();
    const auto units = is_retake ? -back.units : back.units;
    if (is_retake) is_taken_ = back.done;
    messages_fit_ &= back.ends != is_part &&
                     (is_part ? units > 0 && units < now_.units() : units == now_.units());
    return units;
  }

  /// What its message says of it.
  std::int64_t move_money(const Transition& step, std::int64_t units, std::int64_t seq) {
    const auto paid = payment_ ? payment_->payment.amount : 0;
    const auto price = price_of(units, terms_);
    if (step.money == MoneyDoes::nothing) return 0;
    if (step.money == MoneyDoes::price_goes_back) return take_refund(seq, price);
    becomes_ = state_after(step.money);
    const auto due = price_of(now_.units(), terms_);
    const auto last = parts_worth(paid - due, unpaid_parts_, terms_);
    payments_fit_ &= last.has_value();
    if (step.money == MoneyDoes::waits) return paid;
    for (const auto& part : std::span{unpaid_parts_}.last(last.value_or(0)))
      take_refund(part.seq, price_of(part.units, terms_));
    if (step.money == MoneyDoes::goes_back) take_refund(seq, due);
    return paid;
  }

  std::int64_t take_refund(std::int64_t seq, std::int64_t amount) {
    const auto found = noted_.refunds.extract(seq);
    if (found.empty() || !payment_) {
      refunds_fit_ = false;
      return amount;
    }
    const auto& back = found.mapped();
    const bool is_settled = back.state == "settled";
    const bool is_done = is_settled || back.state == "done";
    const auto part = part_of_payment(before_, amount, payment_->payment.amount);
    before_ += amount;
    refunds_fit_ &= back.amount == amount && back.part == (is_named_ ? part : "") &&
                    back.currency == terms_.currency &&
                    back.provider == payment_->payment.provider &&
                    back.event == payment_->payment.event && back.attempts >= 0 &&
                    (is_done ? back.note.empty() != is_settled : back.state == "asked");
    done_ += is_done ? 1 : 0;
    if (is_done) refunds_.push_back(amount);
    return amount;
  }

  const OrderRow& row_;
  Noted& noted_;
  const std::string& whole_;
  const PaymentTerms& terms_;
  OrderRow now_;  // as the messages so far have made it
  const KeptPayment* payment_ = nullptr;
  std::optional<PaymentState> becomes_;  // of the payment
  std::vector<std::int64_t> refunds_;    // amounts of those that are done
  std::vector<PartBack> unpaid_parts_;
  std::int64_t before_ = 0;  // money of the refunds so far
  bool is_named_ = false;    // the last step, by a version that names refunds and messages
  int done_ = 0;             // refunds
  int told_done_ = 0;
  bool is_taken_ = false;  // the last retake
  bool messages_fit_ = true;
  bool payments_fit_ = true;
  bool refunds_fit_ = true;
};

/// It is the database's time of the insert and the window; a day is left for clocks that differ.
bool is_deadline(const OrderRow& row, const Noted& noted, const PaymentTerms& terms,
                 long long now_us) {
  constexpr long long a_day = std::chrono::microseconds{std::chrono::days{1}}.count();
  const auto inserted_us = row.pay_by_us - terms.window.count();
  if (row.pay_by_us <= 0) return row.order.state != OrderState::awaiting && row.pay_by_us == 0;
  if (inserted_us > now_us + a_day ||
      inserted_us + a_day < row.order.issued_at.time_since_epoch().count())
    return false;
  return std::ranges::none_of(noted.messages, [&](const OrderMessage& message) {
    return message.type == "order.expired" && row.reason.empty() &&
           message.at.time_since_epoch().count() < row.pay_by_us + terms.grace.count();
  });
}

/// Those of the sale itself: they say how often it has opened again.
bool are_messages_of_sale(const Noted& noted, const std::string& whole) {
  std::int64_t version = 0;
  return std::ranges::all_of(noted.messages, [&](const OrderMessage& message) {
    const auto begin = fmt::format(R"({{"sale":"{}","version":{},"left":)", whole, ++version);
    return message.seq == version && message.type == "sale.reopened" && is_state(message) &&
           message.data.starts_with(begin) && message.data.ends_with('}') &&
           leading_number<std::int64_t>(message.data.substr(begin.size())) > 0;
  });
}

}  // namespace

void SqlOrderPayments::count_histories(Connection& at, long long sale, const std::string& name,
                                       const PaymentTerms& terms, PaymentTotals& totals) const {
  const auto whole = name_of_whole(at, dialect(), name);
  const auto in_column = to_column(name);
  long long now_us = 0;
  at.sql << fmt::format("SELECT {}", dialect().now_us), soci::into(now_us);
  auto of_sale = read_noted(at.sql, sale, in_column, 0, 0);
  totals.odd_messages += are_messages_of_sale(of_sale[0], whole) ? 0 : 1;
  for (long long after = std::numeric_limits<long long>::min();;) {
    const auto rows = order_rows(at.sql, sale, after, page_of_orders);
    if (rows.empty()) return;
    after = rows.back().order.id;
    auto noted = read_noted(at.sql, sale, in_column, rows.front().order.id, after);
    for (const auto& row : rows) {
      auto& of_order = noted[row.order.id];
      History{row, of_order, whole, terms}.count(totals);
      totals.odd_deadlines += is_deadline(row, of_order, terms, now_us) ? 0 : 1;
    }
    if (rows.size() < page_of_orders) return;  // an id that is no number is behind all others
  }
}

}  // namespace sluice::sale
