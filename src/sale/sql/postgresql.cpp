/// PostgreSQL, 12 and newer, by libpq. Orders go in by arrays: one statement, and one plan, for any
/// number of rows.
#include <fmt/format.h>
#include <postgresql/soci-postgresql.h>

#include "sale/sql/columns.hpp"
#include "sale/sql/schemes.hpp"
#include "sale/sql/server_url.hpp"

namespace sluice::sale {
namespace {

/// A value of a connection string of libpq.
std::string quoted(std::string_view value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

std::string postgresql_connection(const ServerUrl& url) {
  // A machine that vanished is noticed within half a minute, also where nothing is asked of it.
  std::string text =
      "application_name=sluice client_encoding=UTF8 connect_timeout=5 gssencmode=disable "
      "keepalives_idle=10 keepalives_interval=5 keepalives_count=3 tcp_user_timeout=30000";
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {}={}", name, quoted(value));
  };
  add("host", url.host.empty() ? url.socket : url.host);
  add("port", std::to_string(url.port));
  add("user", url.user);
  add("password", url.password);
  add("dbname", url.database);
  add("sslmode", !url.has_tls ? "disable" : url.is_verified ? "verify-full" : "require");
  // Without one libpq takes the file of the user who runs the program, and verifies by that.
  add("sslrootcert", url.has_tls && !url.is_verified ? "/dev/null/none" : url.tls_ca);
  add("sslcert", url.tls_certificate);
  add("sslkey", url.tls_key);
  return text;
}

SqlFailure postgresql_failure(const soci::soci_error& error, soci::session&) {
  const auto* const failure = dynamic_cast<const soci::postgresql_soci_error*>(&error);
  const auto state = failure ? failure->sqlstate() : std::string{};
  const bool was_said = !state.empty() && state.front() != ' ' && state.front() != '\0';
  return {was_said ? trouble_of(state, &FailureRow::postgresql) : SqlTrouble::lost};
}

std::string array_of(const std::vector<long long>& values) {
  return fmt::format("{{{}}}", fmt::join(values, ","));
}

std::string array_of(const std::vector<std::string>& values) {
  std::string text = "{";
  for (const auto& value : values) {
    text += text.size() > 1 ? ",\"" : "\"";
    for (const char c : value) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  return text + "}";
}

long long insert_by_arrays(soci::session& sql, const Columns& rows) {
  const auto sale = array_of(rows.sale), id = array_of(rows.id), number = array_of(rows.number),
             buyer = array_of(rows.buyer), n = array_of(rows.n), units = array_of(rows.units),
             issued = array_of(rows.issued_us), request = array_of(rows.request);
  soci::statement insert =
      (sql.prepare << fmt::format(
           "INSERT INTO sale_orders (sale, {}) SELECT * FROM unnest(CAST(:s AS bigint[]), "
           "CAST(:i AS bigint[]), CAST(:o AS text[]), CAST(:b AS text[]), CAST(:n AS bigint[]), "
           "CAST(:u AS bigint[]), CAST(:t AS bigint[]), CAST(:r AS text[]))",
           order_columns),
       soci::use(sale), soci::use(id), soci::use(number), soci::use(buyer), soci::use(n),
       soci::use(units), soci::use(issued), soci::use(request));
  insert.execute(true);
  return insert.get_affected_rows();
}

void open_postgresql(soci::session& session, const std::string& connection) {
  session.open(soci::postgresql, connection);
  // libpq writes to stderr what a server says unasked, as when it ends.
  auto* const backend = static_cast<soci::postgresql_session_backend*>(session.get_backend());
  PQsetNoticeProcessor(
      backend->conn_, [](void*, const char*) {}, nullptr);
}

int socket_of_postgresql(soci::session& session) {
  return PQsocket(static_cast<soci::postgresql_session_backend*>(session.get_backend())->conn_);
}

bool try_lock_postgresql_schema(soci::session& sql) {
  sql << "BEGIN";
  sql << "SET LOCAL lock_timeout = '600s'";    // for transactions of others to end
  sql << "SET LOCAL statement_timeout = '0'";  // an index of many orders takes long
  int locked = 0;
  sql << "SELECT CAST(pg_try_advisory_xact_lock(8317140253971) AS int)", soci::into(locked);
  if (locked == 1) return true;
  sql << "ROLLBACK";
  sql << "SELECT pg_sleep(0.2)";
  return false;
}
void unlock_postgresql_schema(soci::session& sql) { sql << "COMMIT"; }

}  // namespace

SqlDialect postgresql_dialect(const std::string& text) {
  const auto url = server_url(text, 5432);
  return {
      .description = url.description,
      .connect = [connection = postgresql_connection(url)](
                     soci::session& session, bool) { open_postgresql(session, connection); },
      .on_connect =
          {// A process that stands still with the sale's row in
           // its hands holds up all others.
           "SET idle_in_transaction_session_timeout = '30s'",
           "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
           // What a COMMIT has answered is on disk, and where replicas must have it, on theirs.
           "SELECT set_config('synchronous_commit', 'on', false) WHERE "
           "current_setting('synchronous_commit') IN ('off', 'local')"},
      .limits = {"SET lock_timeout = {0}", "SET statement_timeout = {0}"},
      .socket = socket_of_postgresql,
      .most_sessions = 8,
      .words = {.id = "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
                // "C": an index does not depend on how a library of the system sorts.
                .key = "TEXT COLLATE \"C\"",
                .word = "TEXT COLLATE \"C\"",
                .text = "TEXT",
                .nothing = "''",
                .table = "",
                .rowless = ""},
      .find_column =
          "SELECT COUNT(*) FROM pg_attribute WHERE attrelid = to_regclass(:t) AND "
          "attname = :c AND NOT attisdropped",
      .find_index =
          "SELECT COUNT(*) FROM pg_index WHERE indrelid = to_regclass(:t) AND "
          "indexrelid = to_regclass(:i)",
      .try_lock_schema = try_lock_postgresql_schema,
      .unlock_schema = unlock_postgresql_schema,
      // A COMMIT that waits for a replica and is ended by a limit would be taken for done.
      .begin = {"BEGIN; SET LOCAL statement_timeout = 0"},
      .begin_reading = {"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"},
      .lock_row = "FOR UPDATE",
      .unless_there = "ON CONFLICT DO NOTHING",
      .now_us = "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)",
      .insert_orders = insert_by_arrays,
      .classify = postgresql_failure,
  };
}

}  // namespace sluice::sale
