#include "sale/sql/sibling_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "sale/buckets/bucket_name.hpp"
#include "sale/definition.hpp"
#include "sale/order_store_text.hpp"

namespace sluice::sale {
namespace {

/// Which bucket this is; empty: it is a sale without any.
std::optional<BucketPlace> bucket_place(Connection& at, const SqlDialect& dialect,
                                        const std::string& sale) {
  if (sale.find(':') == sale.npos) return std::nullopt;
  const long long id = id_of_sale(at, dialect, sale);
  const std::string field{bucket_field};
  std::string text;
  at.sql << "SELECT value FROM sale_definitions WHERE sale = :s AND field = :f", soci::use(id),
      soci::use(field), soci::into(text);
  return at.sql.got_data() ? place_of(from_column(text)) : std::nullopt;
}

/// All buckets of the sale that this one is of, by the ids of their rows; empty: it is none.
std::vector<long long> rows_of_buckets(Connection& at, const SqlDialect& dialect,
                                       const std::string& sale) {
  const auto place = bucket_place(at, dialect, sale);
  if (!place) return {};
  std::vector<long long> rows;
  for (std::int64_t i = 0; i < place->count; ++i)
    rows.push_back(id_of_sale(at, dialect, bucket_name(whole_name(sale), i)));
  std::ranges::sort(rows);
  return rows;
}

struct Row {
  long long id;
  long long remaining;
};

std::vector<Row> lock(Connection& at, const SqlDialect& dialect,
                      const std::vector<long long>& ids) {
  std::vector<Row> rows;
  for (const long long id : ids) {
    long long remaining = 0;
    at.sql << fmt::format("SELECT remaining FROM sale_stock WHERE id = :s {}", dialect.lock_row),
        soci::use(id), soci::into(remaining);
    rows.push_back({.id = id, .remaining = remaining});
  }
  return rows;
}

void move_units(Connection& at, long long row, long long units) {
  at.sql << "UPDATE sale_stock SET remaining = remaining + :u, moved = moved + :m WHERE id = :s",
      soci::use(units), soci::use(units), soci::use(row);
}

}  // namespace

long long locked_with_siblings(Connection& at, const SqlDialect& dialect, const std::string& sale) {
  lock(at, dialect, rows_of_buckets(at, dialect, sale));
  return locked_sale(at, dialect, sale);
}

std::string name_of_whole(Connection& at, const SqlDialect& dialect, const std::string& sale) {
  return bucket_place(at, dialect, sale) ? whole_name(sale) : sale;
}

long long row_of_whole(Connection& at, const SqlDialect& dialect, const std::string& sale) {
  const bool is_bucket = bucket_place(at, dialect, sale).has_value();
  return id_of_sale(at, dialect, is_bucket ? bucket_name(whole_name(sale), 0) : sale);
}

long long left_in_whole(Connection& at, const SqlDialect& dialect, const std::string& sale) {
  const auto remaining = [&](long long id) {
    long long units = 0;
    at.sql << "SELECT remaining FROM sale_stock WHERE id = :s", soci::use(id), soci::into(units);
    return units;
  };
  auto left = remaining(id_of_sale(at, dialect, sale));
  if (left > 0) return left;
  for (const long long id : rows_of_buckets(at, dialect, sale)) left += remaining(id);
  return left;
}

void gather_units(Connection& at, const SqlDialect& dialect, const std::string& sale,
                  std::int64_t units) {
  const auto ids = rows_of_buckets(at, dialect, sale);
  if (ids.empty()) return;
  const auto id = id_of_sale(at, dialect, sale);
  auto rows = lock(at, dialect, ids);
  const auto own = std::ranges::find(rows, id, &Row::id);
  auto lacking = units - own->remaining;
  rows.erase(own);
  std::ranges::sort(rows, std::ranges::greater{}, &Row::remaining);
  long long gathered = 0;
  for (const auto& row : rows) {
    if (lacking <= 0 || row.remaining == 0) break;
    // Half of it, so that the next ones need not ask again.
    const auto moved =
        std::min<long long>(row.remaining, std::max<long long>(lacking, row.remaining / 2));
    move_units(at, row.id, -moved);
    gathered += moved;
    lacking -= moved;
  }
  if (gathered > 0) move_units(at, id, gathered);
}

}  // namespace sluice::sale
