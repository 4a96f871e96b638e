#include <fmt/format.h>

#include <algorithm>

#include "sale/differences.hpp"
#include "sale/order_store_text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/columns.hpp"
#include "sale/sql/payments.hpp"

namespace sluice::sale {
namespace {

/// Throws Error{bad_argument}: no payment has a provider of that name.
std::string due_refunds(std::string_view now_us, const std::string& provider) {
  if (!provider.empty() && !is_provider_name(provider))
    throw Error{Errc::bad_argument, fmt::format("'{}' is no provider's name", shown(provider))};
  return fmt::format(
      "back.state = 'asked' AND back.due_us <= {}{} ORDER BY back.due_us, "
      "back.order_id, back.seq",
      now_us, provider.empty() ? "" : fmt::format(" AND back.provider = '{}'", provider));
}

/// Of UTF-8: not its first byte.
bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

}  // namespace

std::string shortened(const std::string& why) {
  constexpr std::size_t longest_note = 500;
  auto size = std::min(why.size(), longest_note);
  while (size < why.size() && size > 0 && is_inside_character(why[size])) --size;
  return why.substr(0, size);
}

/// `where` has one parameter, the sale.
std::vector<Refund> SqlOrderPayments::fetch_refunds(soci::session& sql, long long in_sale,
                                                    const std::string& sale,
                                                    const std::string& where, std::size_t most) {
  const auto size = rows_for(most);
  std::vector<std::string> number(size), currency(size), provider(size), event(size), state(size),
      note(size), part(size);
  std::vector<long long> id(size), seq(size), amount(size), attempts(size), since_us(size),
      due_us(size);
  // The change that asked for it left a message of its version.
  soci::statement select =
      (sql.prepare << fmt::format(
           "SELECT its.number, back.order_id, back.seq, back.amount, back.currency, "
           "back.provider, back.event, back.state, back.attempts, back.note, back.part, "
           "COALESCE((SELECT at_us FROM sale_messages AS told WHERE told.sale = back.sale AND "
           "told.order_id = back.order_id AND told.seq = back.seq), 0), back.due_us "
           "FROM sale_refunds AS back JOIN sale_orders AS its "
           "ON its.sale = back.sale AND its.id = back.order_id "
           "WHERE back.sale = :s AND {} LIMIT {}",
           where, most),
       soci::use(in_sale), soci::into(number), soci::into(id), soci::into(seq), soci::into(amount),
       soci::into(currency), soci::into(provider), soci::into(event), soci::into(state),
       soci::into(attempts), soci::into(note), soci::into(part), soci::into(since_us),
       soci::into(due_us));
  std::vector<Refund> refunds;
  if (!select.execute(true)) return refunds;
  for (std::size_t i = 0; i < id.size(); ++i)
    refunds.push_back({.sale = sale,
                       .order = number[i],
                       .id = id[i],
                       .seq = seq[i],
                       .amount = amount[i],
                       .currency = currency[i],
                       .provider = provider[i],
                       .event = from_column(event[i]),
                       .state = state[i],
                       .attempts = attempts[i],
                       .note = from_column(note[i]),
                       .part = part[i],
                       .since = WallTime{std::chrono::microseconds{since_us[i]}},
                       .due = WallTime{std::chrono::microseconds{due_us[i]}}});
  return refunds;
}

std::vector<Refund> SqlOrderPayments::fetch_refunds(const std::string& sale,
                                                    const std::string& where, std::size_t most) {
  const auto read = [&](Connection& at) -> std::vector<Refund> {
    const auto in_sale = find_sale(at, sale);
    if (!in_sale) return {};
    return fetch_refunds(at.sql, *in_sale, sale, where, most);
  };
  return sessions_.guarded(read);
}

std::vector<Refund> SqlOrderPayments::refunds(const std::string& sale, std::size_t most) {
  return fetch_refunds(sale, due_refunds(dialect().now_us, {}), most);
}

std::vector<Refund> SqlOrderPayments::refunds(const std::string& sale, const std::string& state,
                                              const MessagePlace& after, std::size_t most) {
  const auto* const which = state == "asked"     ? "back.state = 'asked'"
                            : state == "failing" ? "back.state = 'asked' AND back.note <> ''"
                            : state == "done"    ? "back.state IN ('done', 'settled')"
                                                 : nullptr;
  if (!which) throw Error{Errc::bad_argument, "no refund is in the state '" + shown(state) + "'"};
  return fetch_refunds(sale,
                       fmt::format("{0} AND (back.order_id > {1} OR (back.order_id = {1} AND "
                                   "back.seq > {2})) ORDER BY back.order_id, back.seq",
                                   which, after.order_id, after.seq),
                       most);
}

bool SqlOrderPayments::resend_refund(const std::string& sale, const MessagePlace& place) {
  return make_due(sale, "sale_refunds SET", place, "state = 'asked'");
}

std::optional<Refund> SqlOrderPayments::take_refund(const std::string& sale,
                                                    const std::string& provider,
                                                    std::chrono::seconds lease) {
  std::optional<Refund> taken;
  const auto due_refund = due_refunds(dialect().now_us, provider);
  if (sale.empty()) return take_payment_refund(provider, lease);
  if (fetch_refunds(sale, due_refund, 1).empty()) return taken;
  changing(sale, [&](const SaleTransaction& in) {
    taken.reset();
    auto due = fetch_refunds(in.sql(), in.sale(), sale, due_refund, 1);
    if (due.empty()) return false;
    taken = std::move(due.front());
    const long long id = taken->id;
    const long long seq = taken->seq;
    const long long pause = std::chrono::microseconds{lease}.count();
    in.sql() << fmt::format(
        "UPDATE sale_refunds SET due_us = {} + :p WHERE sale = :s AND order_id = :i AND seq = :q",
        dialect().now_us),
        soci::use(pause), soci::use(in.sale()), soci::use(id), soci::use(seq);
    return true;
  });
  return taken;
}

std::vector<Refund> SqlOrderPayments::refunds_of(const std::string& sale, std::int64_t id) {
  return fetch_refunds(sale, fmt::format("back.order_id = {} ORDER BY back.seq", id),
                       most_of_order);
}

bool SqlOrderPayments::refund_done(const Refund& refund, const std::string& settled_by) {
  if (refund.id == 0) return payment_refund_done(refund, settled_by);
  const std::string state = settled_by.empty() ? "done" : "settled";
  const auto note = to_column(shortened(settled_by));
  return changing(refund.sale, [&](const SaleTransaction& in) {
    auto row = in.find(refund.id);
    const long long id = refund.id;
    const long long seq = refund.seq;
    soci::statement done =
        (in.sql().prepare << fmt::format("UPDATE sale_refunds SET state = :t, note = :n, due_us = "
                                         "{} WHERE sale = :s AND order_id = :i AND seq = :q AND "
                                         "state = 'asked'",
                                         dialect().now_us),
         soci::use(state), soci::use(note), soci::use(in.sale()), soci::use(id), soci::use(seq));
    done.execute(true);
    if (!row || done.get_affected_rows() != 1) return false;
    long long others = 0;
    in.sql() << "SELECT COUNT(*) FROM sale_refunds WHERE sale = :s AND order_id = :i AND state = "
                "'asked'",
        soci::use(in.sale()), soci::use(id), soci::into(others);
    const Happening last{.event = OrderEvent::last_refunded, .amount = refund.amount};
    if (others > 0 || !in.happens(*row, last))
      in.happens(*row, {.event = OrderEvent::refunded, .amount = refund.amount});
    return true;
  });
}

void SqlOrderPayments::refund_failed(const Refund& refund, const std::string& why,
                                     std::chrono::seconds again_in) {
  if (refund.id == 0) return payment_refund_failed(refund, shortened(why), again_in);
  changing(refund.sale, [&](const SaleTransaction& in) {
    const long long id = refund.id;
    const long long seq = refund.seq;
    const long long pause = std::chrono::microseconds{again_in}.count();
    const auto note = to_column(shortened(why));
    in.sql() << fmt::format(
        "UPDATE sale_refunds SET attempts = attempts + 1, due_us = {} + :p, note = :n WHERE sale = "
        ":s AND order_id = :i AND seq = :q AND state = 'asked'",
        dialect().now_us),
        soci::use(pause), soci::use(note), soci::use(in.sale()), soci::use(id), soci::use(seq);
    return true;
  });
}

}  // namespace sluice::sale
