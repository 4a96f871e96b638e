#include "sale/sql/sale_transaction.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/integer.hpp"
#include "base/random.hpp"
#include "sale/order_store_text.hpp"
#include "sale/payment_terms.hpp"
#include "sale/sql/columns.hpp"
#include "sale/sql/schema.hpp"
#include "sale/sql/sibling_rows.hpp"
#include "sale/store_of_sale.hpp"

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
  long long id = id_of_sale(at, dialect, sale);
  long long locked = 0;
  at.sql << fmt::format("SELECT id FROM sale_stock WHERE id = :s {}", dialect.lock_row),
      soci::use(id), soci::into(locked);
  if (!at.sql.got_data()) {
    at.sale_ids.erase(sale);  // somebody has deleted it
    id = id_of_sale(at, dialect, sale);
  }
  count_change(at, dialect, sale, id);
  return id;
}

std::string mark_of(long long epoch, long long commits) {
  return fmt::format("{:016}.{:016}", std::max(epoch, 0LL), std::max(commits, 0LL));
}

SaleLink link_of(Connection& at, const SqlDialect& dialect, long long id) {
  SaleLink link;
  std::string place;
  long long begun = 0;
  long long since_us = 0;
  long long epoch = 0;
  long long commits = 0;
  long long version = 0;
  at.sql << "SELECT store, store_place, store_epoch, store_since_us, epoch, commits, (SELECT "
            "MAX(version) FROM sale_schema) FROM sale_stock WHERE id = :s",
      soci::use(id), soci::into(link.store.id), soci::into(place), soci::into(begun),
      soci::into(since_us), soci::into(epoch), soci::into(commits), soci::into(version);
  need_known_version(version, dialect);
  link.store.place = from_column(place);
  link.store.epoch = begun;
  link.store.since = WallTime{std::chrono::microseconds{since_us}};
  link.mark = mark_of(epoch, commits);
  return link;
}

void count_change(Connection& at, const SqlDialect& dialect, const std::string& sale,
                  long long id) {
  at.sql << "UPDATE sale_stock SET commits = commits + 1 WHERE id = :s", soci::use(id);
  const auto now = link_of(at, dialect, id);
  const auto known = at.links->find(sale);
  if (!known.store.id.empty() && !now.store.id.empty() && now.store.id != known.store.id)
    throw another_store(sale, dialect.description, now.store, known.store);
  if (now.mark <= known.mark) throw Error{Errc::database, rolled_back(sale, dialect.description)};
  at.counted.emplace_back(sale, now.mark);
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
  std::string reason;
  const long long key = id;
  at_.sql
      << "SELECT returned, version, pay_by, reason FROM sale_orders WHERE sale = :s AND id = :i",
      soci::use(sale_), soci::use(key), soci::into(returned), soci::into(version),
      soci::into(pay_by), soci::into(reason);
  if (!at_.sql.got_data()) return std::nullopt;
  auto found = sale::fetch(at_.sql, "id = :k", sale_, key, 1);
  return OrderRow{.order = std::move(found.at(0)),
                  .returned = returned,
                  .version = version,
                  .pay_by_us = pay_by,
                  .reason = from_column(reason)};
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

std::optional<OrderRow> SaleTransaction::find_named(const std::string& name) const {
  long long id = 0;
  const auto number = to_column(name);
  at_.sql << "SELECT id FROM sale_orders WHERE sale = :s AND number = :o", soci::use(sale_),
      soci::use(number), soci::into(id);
  if (at_.sql.got_data()) return find(id);
  const auto named = parse_integer<std::int64_t>(name);
  return named ? find(*named) : std::nullopt;
}

PayableOrder SaleTransaction::payable(const OrderRow& row) const {
  PayableOrder order{.order = row.order, .returned = row.returned, .version = row.version};
  if (row.pay_by_us > 0) order.pay_by = WallTime{std::chrono::microseconds{row.pay_by_us}};
  if (terms_ && has_units(row.order.state)) order.due = price_of(row.units(), *terms_);
  return order;
}

Json message_of(const OrderRow& row, const std::string& whole, const PaymentTerms& terms,
                std::int64_t amount) {
  auto data = Json::object({{"sale", whole},
                            {"order", row.order.number},
                            {"id", fmt::to_string(row.order.id)},
                            {"version", row.version},
                            {"state", sluice::to_string(row.order.state)},
                            {"buyer", row.order.buyer.value},
                            {"units", has_units(row.order.state) ? row.units() : 0},
                            {"currency", terms.currency}});
  if (amount > 0) data.add("amount", amount);
  return data;
}

void SaleTransaction::leave_message(const OrderRow& row, std::string_view type,
                                    std::int64_t amount) const {
  const auto data = message_of(row, name_of_whole(at_, dialect_, name_), *terms_, amount);
  leave_message(sale_, row.order.id, row.version, type, data);
}

void SaleTransaction::leave_message(long long row, long long order, long long seq,
                                    std::string_view type, const Json& data) const {
  const std::string name{type};
  const auto text = data.text();
  constexpr std::size_t size_of_mark = 8;  // of the messages of one version
  const auto mark = random_hex_128().substr(0, size_of_mark);
  at_.sql << fmt::format(
      "INSERT INTO sale_messages (sale, order_id, seq, type, data, mark, at_us, due_us, attempts, "
      "state) VALUES (:s, :i, :q, :t, :d, :m, {0}, {0}, 0, 'due')",
      dialect_.now_us),
      soci::use(row), soci::use(order), soci::use(seq), soci::use(name), soci::use(text),
      soci::use(mark);
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

/// Of the definition, as the database keeps it.
bool SaleTransaction::has_field(const std::string& field) const {
  long long found = 0;
  at_.sql << "SELECT COUNT(*) FROM sale_definitions WHERE sale = :s AND field = :f",
      soci::use(sale_), soci::use(field), soci::into(found);
  return found != 0;
}

/// Nobody buys any more, whatever is left.
bool SaleTransaction::is_over() const {
  if (has_field("closed")) return true;
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
