/// Brings the schema of a database up to date, forward only. Of several processes that open it at
/// once, one does; the others wait for it.
#pragma once

#include "sale/sql/dialect.hpp"

namespace sluice::sale {

/// Whether there is nothing to change. Throws as migrate().
bool is_up_to_date(soci::session& sql, const SqlDialect& dialect);

/// Throws Error{config_mismatch} where a newer version of Sluice has been there, Error{corrupt}
/// where what is in the database does not fit; soci_error. Asks for no right to change the schema
/// where there is nothing to change.
void migrate(soci::session& sql, const SqlDialect& dialect);

}  // namespace sluice::sale
