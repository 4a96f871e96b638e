/// Orders as the columns that SOCI binds whole.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "sale/sql/soci.hpp"
#include "sluice/sale.hpp"

namespace sluice::sale {

inline constexpr std::string_view order_columns = "id, number, buyer, n, units, issued_us, request";

/// Throws Error{corrupt} for a state that there is not.
OrderState order_state_of(const std::string& text);

struct Columns {
  std::vector<long long> sale, id, n, units, issued_us;
  std::vector<std::string> number, buyer, request, state;

  void resize(std::size_t size);
  std::size_t size() const noexcept { return id.size(); }
  void set(std::size_t at, const SaleOrder& order);
  SaleOrder order(std::size_t at) const;
};

/// SOCI 4.0 takes the end behind a vector of one row for "no data".
constexpr std::size_t rows_for(std::size_t most) noexcept { return most < 2 ? 2 : most; }

/// Fetches orders of a sale: `where` is a condition with one parameter, `key`.
template <class Key>
std::vector<SaleOrder> fetch(soci::session& sql, std::string_view where, long long sale,
                             const Key& key, std::size_t most) {
  Columns rows;
  rows.resize(rows_for(most));
  soci::statement select =
      (sql.prepare << fmt::format("SELECT {}, state FROM sale_orders WHERE sale = :s AND {}",
                                  order_columns, where),
       soci::use(sale), soci::use(key), soci::into(rows.id), soci::into(rows.number),
       soci::into(rows.buyer), soci::into(rows.n), soci::into(rows.units),
       soci::into(rows.issued_us), soci::into(rows.request), soci::into(rows.state));
  std::vector<SaleOrder> orders;
  if (!select.execute(true)) return orders;
  orders.reserve(rows.id.size());
  for (std::size_t i = 0; i < rows.id.size(); ++i) orders.push_back(rows.order(i));
  return orders;
}

}  // namespace sluice::sale
