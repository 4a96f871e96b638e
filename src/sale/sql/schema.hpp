/// Brings the schema of a database up to date, forward only. Of several processes that open it at
/// once, one does; the others wait for it, and say so in the log. What one of them has not ended
/// the next one does.
#pragma once

#include "sale/sql/dialect.hpp"

namespace sluice::sale {

/// Throws Error{config_mismatch} where it is newer than this program.
void need_known_version(long long version, const SqlDialect& dialect);
/// The same of the one that the database has.
void need_known_schema(soci::session& sql, const SqlDialect& dialect);

/// Whether there is nothing to change. Throws as migrate().
bool is_up_to_date(soci::session& sql, const SqlDialect& dialect);

/// Throws Error{config_mismatch} where a newer version of Sluice has been there, Error{corrupt}
/// where what is in the database does not fit; soci_error. Asks for no right to change the schema
/// where there is nothing to change.
void migrate(soci::session& sql, const SqlDialect& dialect);

}  // namespace sluice::sale
