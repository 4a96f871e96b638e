#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "sale/sql/columns.hpp"
#include "sale/sql/order_store.hpp"
#include "sale/sql/sibling_rows.hpp"

namespace sluice::sale {
namespace {

constexpr const char* belongs_to_another =
    "another order in the database has its id, its number, its place (buyer, n) or its request";

/// Sorted by id, so that all writers touch indexes in one order.
Columns columns_of(long long sale, std::span<const SaleOrder> orders) {
  std::vector<const SaleOrder*> sorted;
  for (const auto& order : orders) sorted.push_back(&order);
  std::ranges::sort(sorted, {}, &SaleOrder::id);
  Columns rows;
  rows.resize(orders.size());
  for (std::size_t i = 0; i < orders.size(); ++i) {
    rows.sale[i] = sale;
    rows.set(i, *sorted[i]);
  }
  return rows;
}

std::int64_t units_of(std::span<const SaleOrder> orders) {
  return std::accumulate(
      orders.begin(), orders.end(), std::int64_t{0},
      [](std::int64_t sum, const SaleOrder& order) { return sum + order.units; });
}

bool is_same(SaleOrder there, const SaleOrder& order) {
  there.state = order.state;  // it may have ended meanwhile
  return there == order;
}

}  // namespace

InsertResult SqlOrderStore::insert(const std::string& sale, std::span<const SaleOrder> orders,
                                   std::int64_t epoch) {
  if (orders.empty()) return {};
  const auto all_together = [&](Connection& at) {
    const auto id = id_of(at, sale);
    if (!insert_together(at, id, orders, epoch)) return false;
    count_change(at, dialect(), sale, id);
    return true;
  };
  if (sessions_.in_transaction(all_together)) return {.inserted = orders.size()};

  // Repeats after a crash, or of another worker that claimed the same orders; or a bucket whose
  // row has too few units.
  InsertResult result;
  const auto those_not_there = [&](Connection& at) {
    const auto id = locked_with_siblings(at, dialect(), sale);
    result = {.stale = epoch_of(at, id) != epoch};
    if (result.stale) return false;
    const auto rest = not_there(at, id, orders, result);
    result.inserted = rest.size();
    gather_units(at, dialect(), sale, units_of(rest));
    return insert_together(at, id, rest, epoch);
  };
  if (sessions_.in_transaction(those_not_there) || result.stale) return result;

  // An order that does not fit: seldom, so it may cost more.
  sessions_.in_transaction([&](Connection& at) {
    const auto id = locked_with_siblings(at, dialect(), sale);
    result = {.stale = epoch_of(at, id) != epoch};
    if (!result.stale) gather_units(at, dialect(), sale, units_of(orders));
    for (std::size_t i = 0; i < orders.size() && !result.stale; ++i)
      if (auto reason = insert_one(at, id, orders[i], epoch, result); !reason.empty())
        result.rejected.push_back({.index = i, .reason = std::move(reason)});
    return !result.stale;
  });
  return result;
}

/// True when every order was new and the stock was enough for all. The stock comes first: whoever
/// inserts before it shares the row of the stock, by the foreign key, with others who want it alone
/// a moment later.
bool SqlOrderStore::insert_together(Connection& at, long long sale,
                                    std::span<const SaleOrder> orders, std::int64_t epoch) const {
  if (orders.empty()) return true;
  if (!take_units(at, sale, units_of(orders), epoch)) return false;
  try {
    return insert_rows(at, sale, orders) == static_cast<long long>(orders.size());
  } catch (const soci::soci_error& failure) {
    if (dialect().has_refused(failure, at.sql)) return false;
    throw;
  }
}

/// With their deadlines, where the sale has some. Returns how many.
long long SqlOrderStore::insert_rows(Connection& at, long long sale,
                                     std::span<const SaleOrder> orders) const {
  const auto rows = columns_of(sale, orders);
  const auto inserted = dialect().insert_orders(at.sql, rows);
  const auto terms = terms_of_sale(at.sql, sale);
  if (!terms) return inserted;
  const long long window = terms->window.count();
  const long long first = rows.id.front();
  const long long last = rows.id.back();
  at.sql << fmt::format(
      "UPDATE sale_orders SET pay_by = {} + :w WHERE sale = :s AND id >= :f AND "
      "id <= :l AND pay_by = 0",
      dialect().now_us),
      soci::use(window), soci::use(sale), soci::use(first), soci::use(last);
  return inserted;
}

bool SqlOrderStore::take_units(Connection& at, long long sale, std::int64_t units,
                               std::int64_t epoch) {
  const long long taken = units;
  const long long in_epoch = epoch;
  soci::statement take =
      (at.sql.prepare
           << "UPDATE sale_stock SET remaining = remaining - :u WHERE id = :s AND remaining >= :v "
              "AND epoch = :e",
       soci::use(taken), soci::use(sale), soci::use(taken), soci::use(in_epoch));
  take.execute(true);
  return take.get_affected_rows() == 1;
}

/// Those whose id the database does not have; `result` gets what the others are.
std::vector<SaleOrder> SqlOrderStore::not_there(Connection& at, long long sale,
                                                std::span<const SaleOrder> orders,
                                                InsertResult& result) {
  std::vector<std::int64_t> ids;
  for (const auto& order : orders) ids.push_back(order.id);
  std::unordered_map<std::int64_t, SaleOrder> there;
  for (auto& order : find(at, sale, ids)) there.emplace(order.id, std::move(order));
  std::vector<SaleOrder> rest;
  for (std::size_t i = 0; i < orders.size(); ++i) {
    const auto found = there.find(orders[i].id);
    if (found == there.end())
      rest.push_back(orders[i]);
    else if (is_same(found->second, orders[i]))
      ++result.repeated;
    else
      result.rejected.push_back({.index = i, .reason = belongs_to_another});
  }
  return rest;
}

/// Why the order can never be in the database; empty: its row is, and counted.
std::string SqlOrderStore::insert_row(Connection& at, long long sale, const SaleOrder& order,
                                      InsertResult& result) const {
  at.sql << "SAVEPOINT one_order";  // PostgreSQL does nothing after an error but go back to it
  try {
    if (insert_rows(at, sale, std::span{&order, 1}) != 1)
      return "the database did not insert it, and gave no reason";
    at.sql << "RELEASE SAVEPOINT one_order";
    ++result.inserted;
    return {};
  } catch (const soci::soci_error& failure) {
    if (!dialect().has_refused(failure, at.sql)) throw;
    at.sql << "ROLLBACK TO SAVEPOINT one_order";
    const auto there = find(at, sale, order.id);
    if (there && is_same(*there, order)) {
      ++result.repeated;
      return {};
    }
    if (is_taken(at, sale, order)) return belongs_to_another;
    return "the database refused it: " + failure.get_error_message();
  }
}

/// Why the order can never be in the database; empty: it is.
std::string SqlOrderStore::insert_one(Connection& at, long long sale, const SaleOrder& order,
                                      std::int64_t epoch, InsertResult& result) const {
  const auto before = result.inserted;
  if (auto reason = insert_row(at, sale, order, result); !reason.empty()) return reason;
  if (result.inserted == before || take_units(at, sale, order.units, epoch)) return {};
  result.inserted = before;
  const long long id = order.id;
  at.sql << "DELETE FROM sale_orders WHERE sale = :s AND id = :i", soci::use(sale), soci::use(id);
  return fmt::format("the database has {} units left, the order has {}", stock_of(at, sale).left,
                     order.units);
}

}  // namespace sluice::sale
