/// The schema of an order database, as the steps that have led to it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace sluice::sale {

struct SqlColumn {
  std::string_view table;
  std::string_view name;
  std::string_view type;
};

struct SqlIndex {
  std::string_view name;
  std::string_view table;
  std::string_view columns;
  bool is_unique = false;
  std::string_view condition = {};  ///< of the rows that are in it; some databases take all rows
};

/// One step. Each part does nothing where it was done before, since a database may have lost its
/// power half-way: tables have IF NOT EXISTS, columns and indexes are looked for.
struct Migration {
  long long version;
  std::vector<std::string_view> tables;  ///< with the words of a dialect: {key}, {table} …
  std::vector<SqlColumn> columns;
  std::vector<SqlIndex> indexes;
};

/// All of them, by number. Only ever add one at the end: databases have the others behind them.
std::span<const Migration> migrations();

}  // namespace sluice::sale
