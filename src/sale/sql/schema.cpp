#include "sale/sql/schema.hpp"

#include <fmt/format.h>

#include "sale/differences.hpp"
#include "sale/sql/migrations.hpp"
#include "sluice/log.hpp"

namespace sluice::sale {
namespace {

std::string in_words_of(const SqlDialect& dialect, std::string_view text) {
  const auto& words = dialect.words;
  return fmt::format(fmt::runtime(text), fmt::arg("id", words.id), fmt::arg("key", words.key),
                     fmt::arg("word", words.word), fmt::arg("text", words.text),
                     fmt::arg("nothing", words.nothing), fmt::arg("table", words.table),
                     fmt::arg("rowless", words.rowless));
}

bool has_column(soci::session& sql, const SqlDialect& dialect, std::string_view table,
                std::string_view column) {
  const std::string of_table{table};
  const std::string name{column};
  long long found = 0;
  sql << std::string{dialect.find_column}, soci::use(of_table), soci::use(name), soci::into(found);
  return found > 0;
}

long long version_of(soci::session& sql, const SqlDialect& dialect) {
  if (!has_column(sql, dialect, "sale_schema", "version")) return 0;
  long long version = 0;
  sql << "SELECT COALESCE(MAX(version), 0) FROM sale_schema", soci::into(version);
  need_known_version(version, dialect);
  return version;
}

/// False: another process has done what there was to do.
bool lock_outdated(soci::session& sql, const SqlDialect& dialect) {
  for (bool is_told = false; !dialect.try_lock_schema(sql); is_told = true) {
    if (!is_told)
      log(LogLevel::warning, fmt::format("{}: another process is changing its tables, which takes "
                                         "minutes where they are large: this one waits for it",
                                         dialect.description));
    if (is_up_to_date(sql, dialect)) return false;
  }
  return true;
}

/// A file of an older version may have two orders of a request: sales that lost their store sold
/// them both.
[[noreturn]] void refuse_requests(soci::session& sql, const SqlDialect& dialect) {
  long long requests = 0;
  long long id = 0;
  std::string sale, buyer, request, first, last;
  sql << "SELECT COUNT(*) OVER (), sale, name, buyer, request, MIN(number), MAX(number) FROM "
         "sale_orders, sale_stock WHERE sale_stock.id = sale GROUP BY sale, name, buyer, request "
         "HAVING COUNT(*) > 1 ORDER BY sale, buyer, request LIMIT 1",
      soci::into(requests), soci::into(id), soci::into(sale), soci::into(buyer),
      soci::into(request), soci::into(first), soci::into(last);
  throw Error{Errc::corrupt,
              fmt::format("{0}: {1} request(s) have more than one order: in sale '{3}' request "
                          "'{4}' of buyer '{5}' has {6} and {7}. Decide which of them stands, "
                          "and give the other one another request: UPDATE sale_orders SET "
                          "request = '{7}' WHERE sale = {2} AND number = '{7}'",
                          dialect.description, requests, id, shown(sale), shown(request),
                          shown(buyer), shown(first), shown(last))};
}

void add_index(soci::session& sql, const SqlDialect& dialect, const SqlIndex& index) {
  const std::string table{index.table};
  const std::string name{index.name};
  long long found = 0;
  sql << std::string{dialect.find_index}, soci::use(table), soci::use(name), soci::into(found);
  if (found > 0) return;
  const bool is_partial = dialect.partial_indexes && !index.condition.empty();
  try {
    sql << fmt::format("CREATE {}INDEX {} ON {} ({}){}{}", index.is_unique ? "UNIQUE " : "", name,
                       table, index.columns, is_partial ? " WHERE " : "",
                       is_partial ? index.condition : "");
  } catch (const soci::soci_error& failure) {
    if (index.name != "sale_orders_requests" || !dialect.has_refused(failure, sql)) throw;
    sql << "ROLLBACK";  // of what try_lock_schema() began: PostgreSQL answers nothing before
    refuse_requests(sql, dialect);
  }
}

void apply(soci::session& sql, const SqlDialect& dialect, const Migration& migration) {
  for (const auto table : migration.tables) sql << in_words_of(dialect, table);
  for (const auto& column : migration.columns)
    if (!has_column(sql, dialect, column.table, column.name))
      sql << fmt::format("ALTER TABLE {} ADD COLUMN {} {}", column.table, column.name,
                         in_words_of(dialect, column.type));
  for (const auto& index : migration.indexes) add_index(sql, dialect, index);
  const long long version = migration.version;
  sql << "INSERT INTO sale_schema (version) VALUES (:v)", soci::use(version);
}

}  // namespace

void need_known_version(long long version, const SqlDialect& dialect) {
  const auto newest = migrations().back().version;
  if (version > newest)
    throw Error{Errc::config_mismatch,
                fmt::format("{}: its tables are of version {}, made by a newer Sluice; this one "
                            "knows them up to version {}: use the newer program here, too",
                            dialect.description, version, newest)};
}

void need_known_schema(soci::session& sql, const SqlDialect& dialect) {
  long long version = 0;
  sql << "SELECT MAX(version) FROM sale_schema", soci::into(version);
  need_known_version(version, dialect);
}

bool is_up_to_date(soci::session& sql, const SqlDialect& dialect) {
  return version_of(sql, dialect) == migrations().back().version;
}

void migrate(soci::session& sql, const SqlDialect& dialect) {
  if (!lock_outdated(sql, dialect)) return;
  sql << in_words_of(dialect,
                     "CREATE TABLE IF NOT EXISTS sale_schema (version BIGINT NOT NULL PRIMARY "
                     "KEY){rowless}");
  const auto version = version_of(sql, dialect);  // another process may have been here
  for (const auto& migration : migrations())
    if (migration.version > version) apply(sql, dialect, migration);
  dialect.unlock_schema(sql);
}

}  // namespace sluice::sale
