#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "sale/order_store_text.hpp"
#include "sale/sql/columns.hpp"
#include "sale/sql/order_store.hpp"
#include "sale/sql/totals.hpp"

namespace sluice::sale {

std::optional<SaleOrder> SqlOrderStore::find(Connection& at, long long sale, std::int64_t id) {
  const long long key = id;
  auto found = fetch(at.sql, "id = :k", sale, key, 1);
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::vector<SaleOrder> SqlOrderStore::page(const std::string& sale, std::int64_t after,
                                           std::size_t most) {
  return sessions_.guarded([&](Connection& at) {
    const long long key = after;
    return fetch(at.sql, fmt::format("id > :k ORDER BY id LIMIT {}", most), id_or_none(at, sale),
                 key, most);
  });
}

std::vector<SaleOrder> SqlOrderStore::find(Connection& at, long long sale,
                                           std::span<const std::int64_t> ids) {
  if (ids.empty()) return {};
  const long long first = ids.front();
  // No range beside it: SQLite would read all of that for the few.
  return fetch(at.sql, fmt::format("id IN (:k, {})", fmt::join(ids, ",")), sale, first, ids.size());
}

std::vector<SaleOrder> SqlOrderStore::find(const std::string& sale,
                                           std::span<const std::int64_t> ids) {
  return sessions_.guarded([&](Connection& at) { return find(at, id_or_none(at, sale), ids); });
}

/// Whether another order has its id, its number, its place or its request.
bool SqlOrderStore::is_taken(Connection& at, long long sale, const SaleOrder& order) {
  const long long id = order.id;
  const long long n = order.n;
  const auto buyer = to_column(order.buyer.value);
  const auto request = to_column(order.request.value);
  long long rows = 0;
  // Each by its index: for an OR of them SQLite looks at all orders of the sale.
  at.sql << "SELECT COUNT(*) FROM ("
            "SELECT id FROM sale_orders WHERE sale = :s1 AND id = :i UNION "
            "SELECT id FROM sale_orders WHERE sale = :s2 AND number = :o UNION "
            "SELECT id FROM sale_orders WHERE sale = :s3 AND buyer = :b3 AND n = :n "
            "UNION SELECT id FROM sale_orders WHERE sale = :s4 AND buyer = :b4 AND "
            "request = :r) AS found",
      soci::use(sale), soci::use(id), soci::use(sale), soci::use(order.number), soci::use(sale),
      soci::use(buyer), soci::use(n), soci::use(sale), soci::use(buyer), soci::use(request),
      soci::into(rows);
  if (rows == 0) return false;
  auto there = rows == 1 ? find(at, sale, order.id) : std::nullopt;
  if (there) there->state = order.state;
  return there != order;
}

std::vector<bool> SqlOrderStore::are_taken(const std::string& sale,
                                           std::span<const SaleOrder> orders) {
  if (orders.empty()) return {};
  return sessions_.guarded([&](Connection& at) {
    const auto in_sale = id_of(at, sale);
    std::vector<bool> taken;
    for (const auto& order : orders) taken.push_back(is_taken(at, in_sale, order));
    return taken;
  });
}

std::vector<BuyerTotals> SqlOrderStore::totals(const std::string& sale,
                                               std::span<const BuyerId> buyers) {
  if (buyers.empty()) return {};
  return sessions_.guarded([&](Connection& at) {
    std::vector<BuyerTotals> totals;
    const auto in_sale = id_or_none(at, sale);
    std::vector<std::string> names;
    std::string parameters;
    for (const auto& buyer : buyers) {
      parameters += fmt::format("{}:b{}", names.empty() ? "" : ",", names.size());
      names.push_back(to_column(buyer.value));
    }
    const auto size = rows_for(names.size());
    std::vector<std::string> buyer(size);
    std::vector<long long> orders(size), live(size), units(size);
    soci::statement select{at.sql};
    select.exchange(soci::use(in_sale));
    for (const auto& name : names) select.exchange(soci::use(name));
    select.exchange(soci::into(buyer));
    for (auto* const column : {&orders, &live, &units}) select.exchange(soci::into(*column));
    select.alloc();
    select.prepare(
        fmt::format("SELECT buyer, COUNT(*), SUM(CASE WHEN {0} THEN 1 ELSE 0 END), "
                    "SUM(CASE WHEN {0} THEN {2} ELSE 0 END) "
                    "FROM sale_orders WHERE sale = :s AND buyer IN ({1}) GROUP BY buyer",
                    standing, parameters, countable_rest));
    select.define_and_bind();
    if (!select.execute(true)) return totals;
    for (std::size_t i = 0; i < buyer.size(); ++i)
      totals.push_back({.buyer = {from_column(buyer[i])},
                        .orders = orders[i],
                        .live = live[i],
                        .units = units[i]});
    return totals;
  });
}

std::int64_t SqlOrderStore::buyers_above(const std::string& sale, std::int64_t limit) {
  return sessions_.guarded([&](Connection& at) -> std::int64_t {
    long long buyers = 0;
    const long long most = limit;
    const long long id = id_of(at, sale);
    at.sql << fmt::format(
        "SELECT COUNT(*) FROM (SELECT buyer FROM sale_orders WHERE sale = :s AND "
        "{} GROUP BY buyer HAVING COUNT(*) > :m) AS above",
        standing),
        soci::use(id), soci::use(most), soci::into(buyers);
    return buyers;
  });
}

std::optional<SaleOrder> SqlOrderStore::find_number(const std::string& sale,
                                                    const std::string& number) {
  if (number.contains('\0')) return std::nullopt;  // where SOCI would end it
  return sessions_.guarded([&](Connection& at) -> std::optional<SaleOrder> {
    auto found = fetch(at.sql, "number = :k", id_of(at, sale), number, 1);
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  });
}

std::vector<SaleOrder> SqlOrderStore::orders_of(const std::string& sale, const BuyerId& buyer,
                                                std::int64_t after, std::size_t most) {
  return sessions_.guarded([&](Connection& at) {
    const auto of_buyer = to_column(buyer.value);
    return fetch(at.sql, fmt::format("buyer = :k AND id > {} ORDER BY id LIMIT {}", after, most),
                 id_or_none(at, sale), of_buyer, most);
  });
}

std::vector<SaleOrder> SqlOrderStore::newest(const std::string& sale, const OrderQuery& which,
                                             std::size_t most) {
  const auto state = which.state ? fmt::format("AND state = '{}' ", to_string(*which.state)) : "";
  const auto end = fmt::format("{}ORDER BY id DESC LIMIT {}", state, most);
  return sessions_.guarded([&](Connection& at) {
    const auto in_sale = id_or_none(at, sale);
    const long long before = which.before;
    if (!which.buyer) return fetch(at.sql, "id < :k " + end, in_sale, before, most);
    const auto of_buyer = to_column(which.buyer->value);
    return fetch(at.sql, fmt::format("buyer = :k AND id < {} {}", before, end), in_sale, of_buyer,
                 most);
  });
}

std::optional<SaleOrder> SqlOrderStore::find_request(const std::string& sale, const BuyerId& buyer,
                                                     const RequestId& request) {
  return sessions_.guarded([&](Connection& at) -> std::optional<SaleOrder> {
    const long long in_sale = id_of(at, sale);
    const auto of_buyer = to_column(buyer.value);
    const auto of_request = to_column(request.value);
    long long id = 0;
    at.sql << "SELECT id FROM sale_orders WHERE sale = :s AND buyer = :b AND request = :r",
        soci::use(in_sale), soci::use(of_buyer), soci::use(of_request), soci::into(id);
    if (!at.sql.got_data()) return std::nullopt;
    return find(at, in_sale, id);
  });
}

std::vector<std::string> SqlOrderStore::reasons(const std::string& sale,
                                                std::span<const std::int64_t> ids) {
  if (ids.empty()) return {};
  return sessions_.guarded([&](Connection& at) {
    std::vector<std::string> reasons(ids.size());
    const long long in_sale = id_of(at, sale);
    const auto size = rows_for(ids.size());
    std::vector<long long> id(size);
    std::vector<std::string> reason(size);
    soci::statement select =
        (at.sql.prepare << fmt::format("SELECT id, reason FROM sale_orders WHERE sale = :s AND id "
                                       "IN ({})",
                                       fmt::join(ids, ",")),
         soci::use(in_sale), soci::into(id), soci::into(reason));
    if (!select.execute(true)) return reasons;
    std::unordered_map<std::int64_t, std::string> found;
    for (std::size_t i = 0; i < id.size(); ++i) found.emplace(id[i], from_column(reason[i]));
    for (std::size_t i = 0; i < ids.size(); ++i) reasons[i] = found[ids[i]];
    return reasons;
  });
}

std::vector<OrderReturn> SqlOrderStore::returns(const std::string& sale, std::int64_t after,
                                                std::size_t most, bool only_pending) {
  return sessions_.guarded([&](Connection& at) {
    const long long in_sale = id_or_none(at, sale);
    const long long key = after;
    const auto size = most + most_versions;  // so that those of an order are read together
    std::vector<long long> id(size), seq(size), units(size), done(size), ends(size), retake(size);
    soci::statement select =
        (at.sql.prepare << fmt::format("SELECT order_id, seq, units, done, ends, retake FROM "
                                       "sale_returns WHERE sale = :s AND "
                                       "order_id > :k {} ORDER BY order_id, seq LIMIT {}",
                                       only_pending ? "AND done = 0" : "", size),
         soci::use(in_sale), soci::use(key), soci::into(id), soci::into(seq), soci::into(units),
         soci::into(done), soci::into(ends), soci::into(retake));
    if (!select.execute(true)) id.clear();
    if (id.size() == size)  // the last order may have more of them
      for (const auto last = id.back(); !id.empty() && id.back() == last;) id.pop_back();
    auto end = std::min(most, id.size());
    while (end < id.size() && end > 0 && id[end] == id[end - 1]) ++end;
    id.resize(end);
    std::vector<std::int64_t> ids;
    std::ranges::unique_copy(id, std::back_inserter(ids));
    std::unordered_map<std::int64_t, SaleOrder> orders;
    for (auto& order : find(at, in_sale, ids)) orders.emplace(order.id, std::move(order));
    std::vector<OrderReturn> returns;
    for (std::size_t i = 0; i < id.size(); ++i) {
      if (const auto order = orders.find(id[i]); order != orders.end())
        returns.push_back({.order = order->second,
                           .seq = seq[i],
                           .units = retake[i] != 0 ? -units[i] : units[i],
                           .done = done[i] != 0,
                           .ends = ends[i] != 0});
    }
    return returns;
  });
}

}  // namespace sluice::sale
