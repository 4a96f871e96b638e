#include <fmt/format.h>

#include "sale/differences.hpp"
#include "sale/order_store_text.hpp"
#include "sale/sql/columns.hpp"
#include "sale/sql/payments.hpp"

namespace sluice::sale {
namespace {

std::vector<OrderMessage> fetch_messages(soci::session& sql, long long sale,
                                         const std::string& where, std::size_t most) {
  const auto size = rows_for(most);
  std::vector<long long> id(size), seq(size), at_us(size), attempts(size);
  std::vector<std::string> type(size), data(size), state(size);
  soci::statement select =
      (sql.prepare << fmt::format("SELECT order_id, seq, type, data, at_us, attempts, state FROM "
                                  "sale_messages AS it WHERE sale = :s AND {} LIMIT {}",
                                  where, most),
       soci::use(sale), soci::into(id), soci::into(seq), soci::into(type), soci::into(data),
       soci::into(at_us), soci::into(attempts), soci::into(state));
  std::vector<OrderMessage> messages;
  if (!select.execute(true)) return messages;
  for (std::size_t i = 0; i < id.size(); ++i)
    messages.push_back({.order_id = id[i],
                        .seq = seq[i],
                        .type = type[i],
                        .data = data[i],
                        .at = WallTime{std::chrono::microseconds{at_us[i]}},
                        .attempts = attempts[i],
                        .state = state[i]});
  return messages;
}

}  // namespace

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
    long long off = 0;
    in.sql() << "SELECT messages_off FROM sale_stock WHERE id = :s", soci::use(in.sale()),
        soci::into(off);
    if (off != 0) return false;
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
                                    const std::string& state, const std::string& due_us) {
  return changing(sale, [&](const SaleTransaction& in) {
    const long long id = message.order_id;
    const long long seq = message.seq;
    const long long fence = message.attempts;
    soci::statement note =
        (in.sql().prepare << fmt::format(
             "UPDATE sale_messages SET state = :t, due_us = {} WHERE sale = :s AND order_id = :i "
             "AND seq = :q AND attempts = :f AND state = 'due'",
             due_us),
         soci::use(state), soci::use(in.sale()), soci::use(id), soci::use(seq), soci::use(fence));
    note.execute(true);
    return note.get_affected_rows() == 1;
  });
}

bool SqlOrderPayments::message_sent(const std::string& sale, const OrderMessage& message) {
  return note_message(sale, message, "done", "due_us");
}

bool SqlOrderPayments::message_failed(const std::string& sale, const OrderMessage& message,
                                      std::optional<std::chrono::seconds> again_in) {
  if (!again_in) return note_message(sale, message, "dead", "due_us");
  return note_message(
      sale, message, "due",
      fmt::format("{} + {}", dialect().now_us, std::chrono::microseconds{*again_in}.count()));
}

void SqlOrderPayments::stop_messages(const std::string& sale) {
  changing(sale, [&](const SaleTransaction& in) {
    in.sql() << "UPDATE sale_stock SET messages_off = 1 WHERE id = :s", soci::use(in.sale());
    return true;
  });
}

std::int64_t SqlOrderPayments::replay_messages(const std::string& sale) {
  std::int64_t dead = 0;
  changing(sale, [&](const SaleTransaction& in) {
    in.sql() << "UPDATE sale_stock SET messages_off = 0 WHERE id = :s", soci::use(in.sale());
    soci::statement replay =
        (in.sql().prepare << fmt::format("UPDATE sale_messages SET state = 'due', attempts = 0, "
                                         "due_us = {} WHERE sale = :s AND state = 'dead'",
                                         dialect().now_us),
         soci::use(in.sale()));
    replay.execute(true);
    dead = replay.get_affected_rows();
    return true;
  });
  return dead;
}

std::vector<OrderMessage> SqlOrderPayments::messages(const std::string& sale,
                                                     const std::string& state,
                                                     const MessagePlace& after, std::size_t most) {
  if (state != "due" && state != "done" && state != "dead")
    throw Error{Errc::bad_argument, "no message is in the state '" + shown(state) + "'"};
  const auto read = [&](Connection& at) -> std::vector<OrderMessage> {
    const auto in_sale = find_sale(at, sale);
    if (!in_sale) return {};
    return fetch_messages(at.sql, *in_sale,
                          fmt::format("state = '{}' AND (order_id > {} OR (order_id = {} AND seq > "
                                      "{})) ORDER BY order_id, seq",
                                      state, after.order_id, after.order_id, after.seq),
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
