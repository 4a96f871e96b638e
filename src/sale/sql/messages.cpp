#include <fmt/format.h>

#include <algorithm>

#include "sale/differences.hpp"
#include "sale/order_store_text.hpp"
#include "sale/sql/columns.hpp"
#include "sale/sql/payments.hpp"

namespace sluice::sale {
namespace {

std::vector<OrderMessage> fetch_messages(soci::session& sql, long long sale,
                                         const std::string& where, std::size_t most) {
  const auto size = rows_for(most);
  std::vector<long long> id(size), seq(size), at_us(size), attempts(size), due_us(size);
  std::vector<std::string> type(size), data(size), state(size), note(size), mark(size);
  soci::statement select =
      (sql.prepare << fmt::format(
           "SELECT order_id, seq, type, data, at_us, attempts, CASE WHEN state = 'due' AND "
           "(SELECT messages_off FROM sale_stock WHERE id = it.sale) <> 0 THEN 'stopped' ELSE "
           "state END, note, mark, due_us FROM sale_messages AS it WHERE sale = :s AND {} LIMIT {}",
           where, most),
       soci::use(sale), soci::into(id), soci::into(seq), soci::into(type), soci::into(data),
       soci::into(at_us), soci::into(attempts), soci::into(state), soci::into(note),
       soci::into(mark), soci::into(due_us));
  std::vector<OrderMessage> messages;
  if (!select.execute(true)) return messages;
  for (std::size_t i = 0; i < id.size(); ++i)
    messages.push_back({.order_id = id[i],
                        .seq = seq[i],
                        .type = type[i],
                        .data = data[i],
                        .at = WallTime{std::chrono::microseconds{at_us[i]}},
                        .attempts = attempts[i],
                        .state = state[i],
                        .note = from_column(note[i]),
                        .mark = mark[i],
                        .due = WallTime{std::chrono::microseconds{due_us[i]}}});
  return messages;
}

}  // namespace

long long stopped_at(soci::session& sql, long long sale) {
  long long off = 0;
  sql << "SELECT messages_off FROM sale_stock WHERE id = :s", soci::use(sale), soci::into(off);
  return off;
}

std::vector<OrderMessage> SqlOrderPayments::take_messages(const std::string& sale, std::size_t most,
                                                          std::chrono::seconds lease) {
  std::vector<OrderMessage> messages;
  // Looked at first without a lock: a sender that has nothing to do holds up nobody.
  const auto is_any_due = [&](Connection& at) {
    const auto in_sale = find_sale(at, sale);
    return in_sale &&
           !fetch_messages(at.sql, *in_sale,
                           fmt::format("state = 'due' AND due_us <= {}", dialect().now_us), 1)
                .empty();
  };
  if (!sessions_.guarded(is_any_due)) return messages;
  changing(sale, [&](const SaleTransaction& in) {
    messages.clear();
    if (stopped_at(in.sql(), in.sale()) != 0) return false;
    // In the order of an index, and with words for "due" that no index has: else a database sorts
    // all that are due, or compares each with each, while everybody waits for the sale's row.
    messages = fetch_messages(
        in.sql(), in.sale(),
        fmt::format("state = 'due' AND due_us <= {} AND NOT EXISTS (SELECT 1 FROM sale_messages AS "
                    "earlier WHERE earlier.sale = it.sale AND earlier.order_id = it.order_id AND "
                    "earlier.seq < it.seq AND earlier.state NOT IN ('done', 'dead')) "
                    "ORDER BY due_us, order_id, seq",
                    dialect().now_us),
        most);
    const long long pause = std::chrono::microseconds{lease}.count();
    for (auto& message : messages) {
      const long long id = message.order_id;
      const long long seq = message.seq;
      ++message.attempts;
      in.sql() << fmt::format(
          "UPDATE sale_messages SET attempts = attempts + 1, due_us = {} + :p WHERE sale = :s AND "
          "order_id = :i AND seq = :q",
          dialect().now_us),
          soci::use(pause), soci::use(in.sale()), soci::use(id), soci::use(seq);
    }
    return !messages.empty();
  });
  return messages;
}

/// Writes what became of a message, unless another sender has it. `due_us` is an expression.
bool SqlOrderPayments::note_message(const std::string& sale, const OrderMessage& message,
                                    const std::string& state, const std::string& due_us,
                                    const std::string& note) {
  return changing(sale, [&](const SaleTransaction& in) {
    const long long id = message.order_id;
    const long long seq = message.seq;
    const long long fence = message.attempts;
    const auto why = to_column(shortened(note));
    soci::statement write =
        (in.sql().prepare << fmt::format(
             "UPDATE sale_messages SET state = :t, note = :n, due_us = {} WHERE sale = :s AND "
             "order_id = :i AND seq = :q AND attempts = :f AND state = 'due'",
             due_us),
         soci::use(state), soci::use(why), soci::use(in.sale()), soci::use(id), soci::use(seq),
         soci::use(fence));
    write.execute(true);
    return write.get_affected_rows() == 1;
  });
}

bool SqlOrderPayments::message_sent(const std::string& sale, const OrderMessage& message) {
  return note_message(sale, message, "done", "due_us", {});
}

bool SqlOrderPayments::message_failed(const std::string& sale, const OrderMessage& message,
                                      std::optional<std::chrono::seconds> again_in,
                                      const std::string& why) {
  if (!again_in) return note_message(sale, message, "dead", "due_us", why);
  return note_message(
      sale, message, "due",
      fmt::format("{} + {}", dialect().now_us, std::chrono::microseconds{*again_in}.count()), why);
}

/// Of the row of an order's version that meets the condition.
bool SqlOrderPayments::make_due(const std::string& sale, const std::string& table_and_what,
                                const MessagePlace& place, const std::string& condition) {
  return changing(sale, [&](const SaleTransaction& in) {
    soci::statement make =
        (in.sql().prepare << fmt::format("UPDATE {} due_us = {} WHERE sale = :s AND order_id = {} "
                                         "AND seq = {} AND {}",
                                         table_and_what, dialect().now_us, place.order_id,
                                         place.seq, condition),
         soci::use(in.sale()));
    make.execute(true);
    return make.get_affected_rows() == 1;
  });
}

/// A message that another sender has is sent twice; its receiver knows it by its id.
std::int64_t SqlOrderPayments::resend_message(const std::string& sale, const MessagePlace& place) {
  const auto which = fmt::format("order_id = {} AND seq = {} AND state IN ('due', 'dead')",
                                 place.order_id, place.seq);
  std::int64_t sent = 0;
  changing(sale, [&](const SaleTransaction& in) {
    sent = make_all_due(in, which);
    if (sent > 0) sent = std::max(sent, go_on(in));
    return sent > 0;
  });
  return sent;
}

/// The time of the first refusal stands there. A version before this one wrote 1.
void SqlOrderPayments::stop_messages(const std::string& sale) {
  changing(sale, [&](const SaleTransaction& in) {
    in.sql() << fmt::format(
        "UPDATE sale_stock SET messages_off = {} WHERE id = :s AND messages_off = 0",
        dialect().now_us),
        soci::use(in.sale());
    return true;
  });
}

std::int64_t SqlOrderPayments::make_all_due(const SaleTransaction& in,
                                            const std::string& which) const {
  long long all = 0;
  in.sql() << "SELECT COUNT(*) FROM sale_messages WHERE sale = :s AND " + which,
      soci::use(in.sale()), soci::into(all);
  in.sql() << fmt::format(
      "UPDATE sale_messages SET state = 'due', attempts = 0, due_us = {} WHERE sale = :s AND {}",
      dialect().now_us, which),
      soci::use(in.sale());
  return all;
}

/// Where they were stopped: all that are due go out. Returns how many; 0: they were not stopped.
std::int64_t SqlOrderPayments::go_on(const SaleTransaction& in) const {
  if (stopped_at(in.sql(), in.sale()) == 0) return 0;
  in.sql() << "UPDATE sale_stock SET messages_off = 0 WHERE id = :s", soci::use(in.sale());
  return make_all_due(in, "state = 'due'");
}

std::int64_t SqlOrderPayments::resume_messages(const std::string& sale) {
  std::int64_t sent = 0;
  changing(sale, [&](const SaleTransaction& in) {
    sent = go_on(in);
    return sent > 0;
  });
  return sent;
}

std::int64_t SqlOrderPayments::replay_messages(const std::string& sale) {
  std::int64_t sent = 0;
  changing(sale, [&](const SaleTransaction& in) {
    const auto dead = make_all_due(in, "state = 'dead'");
    sent = std::max(dead, go_on(in));
    return true;
  });
  return sent;
}

std::vector<OrderMessage> SqlOrderPayments::messages(const std::string& sale,
                                                     const std::string& state,
                                                     const MessagePlace& after, std::size_t most) {
  const bool is_failing = state == "failing";
  if (!is_failing && state != "due" && state != "done" && state != "dead")
    throw Error{Errc::bad_argument, "no message is in the state '" + shown(state) + "'"};
  const auto read = [&](Connection& at) -> std::vector<OrderMessage> {
    const auto in_sale = find_sale(at, sale);
    if (!in_sale) return {};
    return fetch_messages(
        at.sql, *in_sale,
        fmt::format("state = '{0}'{1} AND (order_id > {2} OR (order_id = {2} "
                    "AND seq > {3})) ORDER BY order_id, seq",
                    is_failing ? "due" : state, is_failing ? " AND note <> ''" : "", after.order_id,
                    after.seq),
        most);
  };
  return sessions_.guarded(read);
}

std::vector<OrderMessage> SqlOrderPayments::messages_of(const std::string& sale, std::int64_t id) {
  const auto read = [&](Connection& at) -> std::vector<OrderMessage> {
    const auto in_sale = find_sale(at, sale);
    if (!in_sale) return {};
    return fetch_messages(at.sql, *in_sale, fmt::format("order_id = {} ORDER BY seq", id),
                          most_of_order);
  };
  return sessions_.guarded(read);
}

}  // namespace sluice::sale
