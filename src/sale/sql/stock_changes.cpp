#include <fmt/format.h>

#include "sale/sql/order_store.hpp"
#include "sale/sql/sibling_rows.hpp"
#include "sale/sums.hpp"

namespace sluice::sale {

std::optional<StockChange> SqlOrderStore::pending(Connection& at, long long sale) {
  long long seq = 0;
  long long delta = 0;
  at.sql << "SELECT seq, delta FROM sale_changes WHERE sale = :s AND state = 'pending'",
      soci::use(sale), soci::into(seq), soci::into(delta);
  if (!at.sql.got_data()) return std::nullopt;
  return StockChange{.seq = seq, .delta = delta};
}

std::optional<StockChange> SqlOrderStore::pending_stock_change(const std::string& sale) {
  return sessions_.guarded([&](Connection& at) { return pending(at, id_of(at, sale)); });
}

std::optional<StockChange> SqlOrderStore::begin_stock_change(const std::string& sale,
                                                             std::int64_t stock) {
  std::optional<StockChange> change;
  sessions_.in_transaction([&](Connection& at) {
    const long long in_sale = locked_id(at, sale);
    change = pending(at, in_sale);
    if (change) return false;
    const auto there = stock_of(at, in_sale);
    const long long has = sum(there.initial, there.changed);
    if (has == stock) return false;
    const long long seq = last_change(at, in_sale) + 1;
    const long long delta = stock - has;
    at.sql << "INSERT INTO sale_changes (sale, seq, delta, state) VALUES (:s, :q, :d, 'pending')",
        soci::use(in_sale), soci::use(seq), soci::use(delta);
    if (delta > 0) {
      SaleTransaction{at, dialect(), in_sale, sale}.tell_if_it_reopens(delta);
      change_stock(at, sale, in_sale, delta);
    }
    change = StockChange{.seq = seq, .delta = delta, .now = true};
    return true;
  });
  return change;
}

void SqlOrderStore::change_stock(Connection& at, const std::string& name, long long sale,
                                 long long delta) const {
  if (delta < 0) gather_units(at, dialect(), name, -delta);
  at.sql << "UPDATE sale_stock SET remaining = remaining + :d, changed = changed + :e "
            "WHERE id = :s",
      soci::use(delta), soci::use(delta), soci::use(sale);
}

void SqlOrderStore::end_stock_change(const std::string& sale, std::int64_t seq, bool applied) {
  sessions_.in_transaction([&](Connection& at) {
    const long long in_sale = locked_id(at, sale);
    const auto change = pending(at, in_sale);
    if (!change || change->seq != seq) return false;  // another process has ended it
    end_change(at, sale, in_sale, *change, applied);
    return true;
  });
}

void SqlOrderStore::end_change(Connection& at, const std::string& name, long long sale,
                               const StockChange& change, bool applied) const {
  const std::string state = applied ? "done" : "refused";
  const long long key = change.seq;
  at.sql << "UPDATE sale_changes SET state = :t WHERE sale = :s AND seq = :q", soci::use(state),
      soci::use(sale), soci::use(key);
  if (change.delta < 0 && applied) change_stock(at, name, sale, change.delta);
  if (change.delta > 0 && !applied) change_stock(at, name, sale, -change.delta);
}

long long SqlOrderStore::last_change(Connection& at, long long sale) {
  long long last = 0;
  at.sql << "SELECT COALESCE(MAX(seq), 0) FROM sale_changes WHERE sale = :s", soci::use(sale),
      soci::into(last);
  return last;
}

std::int64_t SqlOrderStore::last_stock_change(const std::string& sale) {
  return sessions_.guarded([&](Connection& at) { return last_change(at, id_of(at, sale)); });
}

void SqlOrderStore::note_stock_change(const std::string& sale, std::int64_t seq,
                                      std::int64_t stock) {
  sessions_.in_transaction([&](Connection& at) {
    const long long in_sale = locked_id(at, sale);
    if (last_change(at, in_sale) >= seq) return false;
    if (const auto change = pending(at, in_sale)) end_change(at, sale, in_sale, *change, false);
    const auto before = stock_of(at, in_sale);
    const long long key = seq;
    const long long delta = difference(stock, sum(before.initial, before.changed));
    if (delta < 0) gather_units(at, dialect(), sale, -delta);
    const auto there = stock_of(at, in_sale);
    if (sum(there.left, delta) < 0)
      throw Error{Errc::database,
                  fmt::format("{}: sale '{}' has {} units of {} left, so that its stock cannot be "
                              "{}, as change {} of it, which is lost here, has made it",
                              dialect().description, sale, there.left,
                              sum(there.initial, there.changed), stock, seq)};
    at.sql << "INSERT INTO sale_changes (sale, seq, delta, state) VALUES (:s, :q, :d, 'done')",
        soci::use(in_sale), soci::use(key), soci::use(delta);
    change_stock(at, sale, in_sale, delta);
    return true;
  });
}

}  // namespace sluice::sale
