#include "sale/sql/sale_transaction.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/integer.hpp"
#include "sale/order_store_text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/columns.hpp"
#include "sale/sql/sibling_rows.hpp"

namespace sluice::sale {

std::optional<long long> find_sale(Connection& at, const std::string& sale) {
  if (const auto known = at.sale_ids.find(sale); known != at.sale_ids.end()) return known->second;
  long long id = 0;
  const auto name = to_column(sale);
  at.sql << "SELECT id FROM sale_stock WHERE name = :name", soci::use(name), soci::into(id);
  if (!at.sql.got_data()) return std::nullopt;
  at.sale_ids.emplace(sale, id);
  return id;
}

long long id_of_sale(Connection& at, const SqlDialect& dialect, const std::string& sale) {
  if (const auto id = find_sale(at, sale)) return *id;
  throw Error{Errc::database,
              fmt::format("{}: sale '{}' is not in the database yet; its worker enters it",
                          dialect.description, sale)};
}

long long locked_sale(Connection& at, const SqlDialect& dialect, const std::string& sale) {
  const long long id = id_of_sale(at, dialect, sale);
  long long locked = 0;
  at.sql << fmt::format("SELECT id FROM sale_stock WHERE id = :s {}", dialect.lock_row),
      soci::use(id), soci::into(locked);
  if (at.sql.got_data()) return id;
  at.sale_ids.erase(sale);  // somebody has deleted it
  return id_of_sale(at, dialect, sale);
}

std::optional<PaymentTerms> terms_of_sale(soci::session& sql, long long sale) {
  std::string text;
  const std::string field{payment_field};
  sql << "SELECT value FROM sale_definitions WHERE sale = :s AND field = :f", soci::use(sale),
      soci::use(field), soci::into(text);
  if (!sql.got_data()) return std::nullopt;
  return terms_of(from_column(text));
}

SaleTransaction::SaleTransaction(Connection& at, const SqlDialect& dialect, long long sale,
                                 const std::string& name)
    : at_(at), dialect_(dialect), sale_(sale), name_(name), terms_(terms_of_sale(at.sql, sale)) {}

std::optional<OrderRow> SaleTransaction::find(std::int64_t id) const {
  long long returned = 0;
  long long version = 0;
  long long pay_by = 0;
  const long long key = id;
  at_.sql << "SELECT returned, version, pay_by FROM sale_orders WHERE sale = :s AND id = :i",
      soci::use(sale_), soci::use(key), soci::into(returned), soci::into(version),
      soci::into(pay_by);
  if (!at_.sql.got_data()) return std::nullopt;
  auto found = sale::fetch(at_.sql, "id = :k", sale_, key, 1);
  return OrderRow{.order = std::move(found.at(0)),
                  .returned = returned,
                  .version = version,
                  .pay_by_us = pay_by};
}

std::vector<OrderRow> SaleTransaction::find(std::span<const std::int64_t> ids) const {
  std::vector<OrderRow> rows;
  if (ids.empty()) return rows;
  const auto all = fmt::to_string(fmt::join(ids, ","));
  const long long first = ids.front();
  for (auto& order : sale::fetch(at_.sql, fmt::format("id IN (:k, {}) ORDER BY id", all), sale_,
                                 first, ids.size()))
    rows.push_back({.order = std::move(order)});
  const auto size = rows_for(ids.size());
  std::vector<long long> returned(size), version(size), pay_by(size);
  soci::statement select =
      (at_.sql.prepare << fmt::format("SELECT returned, version, pay_by FROM sale_orders WHERE "
                                      "sale = :s AND id IN ({}) ORDER BY id",
                                      all),
       soci::use(sale_), soci::into(returned), soci::into(version), soci::into(pay_by));
  select.execute(true);
  for (std::size_t i = 0; i < rows.size() && i < returned.size(); ++i) {
    rows[i].returned = returned[i];
    rows[i].version = version[i];
    rows[i].pay_by_us = pay_by[i];
  }
  return rows;
}

std::optional<OrderRow> SaleTransaction::find_number(const std::string& number) const {
  long long id = 0;
  at_.sql << "SELECT id FROM sale_orders WHERE sale = :s AND number = :o", soci::use(sale_),
      soci::use(number), soci::into(id);
  if (!at_.sql.got_data()) return std::nullopt;
  return find(id);
}

PayableOrder SaleTransaction::payable(const OrderRow& row) const {
  PayableOrder order{.order = row.order, .returned = row.returned, .version = row.version};
  if (row.pay_by_us > 0) order.pay_by = WallTime{std::chrono::microseconds{row.pay_by_us}};
  if (terms_) order.due = price_of(row.units(), *terms_);
  return order;
}

void SaleTransaction::change(OrderRow& row, OrderState to, std::string_view message,
                             std::int64_t amount, const std::string& reason) const {
  row.order.state = to;
  ++row.version;
  const std::string state{to_string(to)};
  const auto why = to_column(reason);
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
  if (terms_) leave_message(row, message, amount);
}

void SaleTransaction::leave_message(const OrderRow& row, std::string_view type,
                                    std::int64_t amount) const {
  auto data = Json::object({{"sale", name_of_whole(at_, dialect_, name_)},
                            {"order", row.order.number},
                            {"id", fmt::to_string(row.order.id)},
                            {"version", row.version},
                            {"state", to_string(row.order.state)},
                            {"buyer", row.order.buyer.value},
                            {"units", stands(row.order.state) ? row.units() : 0},
                            {"currency", terms_->currency}});
  if (amount > 0) data.add("amount", amount);
  leave_message(sale_, row.order.id, row.version, type, data);
}

void SaleTransaction::leave_message(long long row, long long order, long long seq,
                                    std::string_view type, const Json& data) const {
  const std::string name{type};
  const auto text = data.text();
  at_.sql << fmt::format(
      "INSERT INTO sale_messages (sale, order_id, seq, type, data, at_us, due_us, attempts, state) "
      "VALUES (:s, :i, :q, :t, :d, {0}, {0}, 0, 'due')",
      dialect_.now_us),
      soci::use(row), soci::use(order), soci::use(seq), soci::use(name), soci::use(text);
}

void SaleTransaction::note_return(const OrderRow& row, std::int64_t units, Return kind,
                                  const std::string& cause) const {
  const long long id = row.order.id;
  const long long seq = row.version;
  const long long back = units;
  const long long ends = kind == Return::part ? 0 : 1;
  const long long retake = kind == Return::retake ? 1 : 0;
  const auto why = to_column(cause);
  at_.sql << "INSERT INTO sale_returns (sale, order_id, seq, units, done, ends, retake, cause) "
             "VALUES (:s, :i, :q, :u, 0, :e, :r, :c)",
      soci::use(sale_), soci::use(id), soci::use(seq), soci::use(back), soci::use(ends),
      soci::use(retake), soci::use(why);
}

void SaleTransaction::note_refund(const OrderRow& row, std::int64_t amount,
                                  const std::string& provider, const std::string& event) const {
  const long long id = row.order.id;
  const long long seq = row.version;
  const long long money = amount;
  at_.sql << fmt::format(
      "INSERT INTO sale_refunds (sale, order_id, seq, amount, currency, provider, event, state, "
      "attempts, due_us, note) VALUES (:s, :i, :q, :a, :c, :p, :e, 'asked', 0, {}, '')",
      dialect_.now_us),
      soci::use(sale_), soci::use(id), soci::use(seq), soci::use(money),
      soci::use(terms_->currency), soci::use(provider), soci::use(event);
}

void SaleTransaction::change_stock(std::int64_t units) const {
  tell_if_it_reopens(units);
  const long long more = units;
  // Of two buckets that do this at once, a database may undo one, which is tried again.
  if (units < 0) gather_units(at_, dialect_, name_, -units);
  at_.sql << "UPDATE sale_stock SET remaining = remaining + :u WHERE id = :s", soci::use(more),
      soci::use(sale_);
}

/// The store never has more to sell than the database: where this has nothing left, nothing is
/// sold.
void SaleTransaction::tell_if_it_reopens(std::int64_t units) const {
  if (!terms_ || units <= 0) return;
  if (left_in_whole(at_, dialect_, name_) != 0 || is_over()) return;
  // Of two buckets that get units at once one tells: the other one waits here, and looks again.
  const auto row = row_of_whole(at_, dialect_, name_);
  long long locked = 0;
  at_.sql << fmt::format("SELECT id FROM sale_stock WHERE id = :s {}", dialect_.lock_row),
      soci::use(row), soci::into(locked);
  if (row != sale_ && left_in_whole(at_, dialect_, name_) != 0) return;
  long long told = 0;
  at_.sql << "SELECT COALESCE(MAX(seq), 0) FROM sale_messages WHERE sale = :s AND order_id = 0",
      soci::use(row), soci::into(told);
  leave_message(row, 0, told + 1, "sale.reopened",
                Json::object({{"sale", name_of_whole(at_, dialect_, name_)},
                              {"version", std::int64_t{told + 1}},
                              {"left", units}}));
}

/// Nobody buys any more, whatever is left.
bool SaleTransaction::is_over() const {
  long long over = 0;
  const auto closed = to_column("closed");
  at_.sql << "SELECT COUNT(*) FROM sale_definitions WHERE sale = :s AND field = :f",
      soci::use(sale_), soci::use(closed), soci::into(over);
  if (over != 0) return true;
  const auto closes = to_column("closes");
  std::string at_us;
  at_.sql << "SELECT value FROM sale_definitions WHERE sale = :s AND field = :f", soci::use(sale_),
      soci::use(closes), soci::into(at_us);
  const auto when =
      at_.sql.got_data() ? parse_integer<long long>(from_column(at_us)) : std::nullopt;
  long long now = 0;
  at_.sql << fmt::format("SELECT {}", dialect_.now_us), soci::into(now);
  return when && *when <= now;
}

}  // namespace sluice::sale
