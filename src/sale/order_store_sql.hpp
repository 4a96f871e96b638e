/// An OrderStore on a SQL database. What differs from one database to another stands in a Dialect.
#pragma once

// SOCI without Boost: its headers offer conversions of Boost types where it was built with them. We
// use none, and need no Boost for them. Nothing in SOCI's binary interface depends on it.
#include <soci-config.h>
#undef SOCI_HAVE_BOOST
#undef SOCI_HAVE_BOOST_DATE_TIME
#include <soci.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sale/order_store_text.hpp"
#include "sluice/order_store.hpp"

namespace sluice::sale {

/// What became of a statement that failed.
struct SqlFailure {
  Errc code = Errc::database;
  bool busy = false;     ///< another process has it at this moment, and will let it go
  bool refused = false;  ///< a constraint or trigger refused this row; the database itself is well
  std::string cause = {};  ///< what the system said, where the message does not
};

/// A column that a table got after its first release.
struct SqlColumn {
  std::string_view table;
  std::string_view name;
  std::string_view type;
};

struct SqlDialect {
  std::string description;  ///< "sqlite:/var/lib/shop/orders.db"
  std::function<void(soci::session&)> connect;
  std::vector<std::string_view> on_connect;
  std::vector<std::string_view> schema;
  std::vector<SqlColumn> columns;  ///< added to the tables of `schema` where they are missing
  std::string_view request_index;  ///< by which a request has one order; made where it is missing
  std::string_view begin;          ///< a transaction that will write
  std::string_view begin_reading;  ///< one that sees one instant, and holds up no writer
  std::string_view insert_prefix;  ///< "INSERT INTO" or "INSERT IGNORE INTO": with the suffix, a
                                   ///< repeat is no error
  std::string_view insert_suffix;
  SqlFailure (*classify)(const soci::soci_error&, soci::session&);
  /// Throws Error when what was committed so far is not where it should be any more: a deleted file
  /// takes writes without complaint.
  std::function<void()> check_presence = {};
  /// Throws Error when a connection made again would begin an empty database.
  std::function<void()> check_before_reconnect = {};
};

SqlDialect sqlite_dialect(const std::string& path);

std::unique_ptr<OrderStore> make_sql_order_store(SqlDialect dialect);

}  // namespace sluice::sale
