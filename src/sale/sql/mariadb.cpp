/// MariaDB, 10.5 and newer, and MySQL 8, by MariaDB's Connector/C. Keys are VARBINARY: the
/// collations of text find 'ann' and 'ann ' the same, and MariaDB and MySQL share none that does
/// not.
///
/// An INSERT is plain, never IGNORE, which would cut what is too long and leave out what a foreign
/// key refuses, both with a warning that nobody reads.
#include <fmt/format.h>
#include <mysql/soci-mysql.h>

#include "sale/sql/columns.hpp"
#include "sale/sql/schemes.hpp"
#include "sale/sql/server_url.hpp"

namespace sluice::sale {
namespace {

/// A value of a connection string of SOCI.
std::string soci_quoted(std::string_view value) {
  std::string text = "'";
  for (const char c : value) {
    if (c == '\'' || c == '\\') text += '\\';
    text += c;
  }
  return text + "'";
}

/// SOCI has no word for the verification of a certificate. Connector/C reads it from a host with
/// semicolons, as `mariadb_connect()` gives it.
std::string host_of(const ServerUrl& url) {
  if (!url.has_tls) return url.host;
  std::string text = fmt::format("host={};ssl-enforce=1;ssl-verify-server-cert={}", url.host,
                                 url.is_verified ? 1 : 0);
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.find(';') != std::string::npos)
      throw Error{Errc::bad_argument, "the path of a file of TLS has a ';' in it"};
    if (!value.empty()) text += fmt::format(";{}={}", name, value);
  };
  add("ssl-ca", url.is_verified ? url.tls_ca : "");
  add("ssl-cert", url.tls_certificate);
  add("ssl-key", url.tls_key);
  return text;
}

/// Of tables: an index of many orders takes long. As long waits for it who comes meanwhile.
constexpr int longest_change_s = 24 * 3600;

std::string mariadb_connection(const ServerUrl& url, bool is_patient) {
  auto text = fmt::format("charset=utf8mb4 connect_timeout=5 read_timeout={0} write_timeout={0}",
                          is_patient ? longest_change_s : 60);
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format(" {}={}", name, soci_quoted(value));
  };
  add("host", host_of(url));
  if (!url.host.empty()) add("port", std::to_string(url.port));
  add("unix_socket", url.socket);
  add("user", url.user);
  add("password", url.password);
  add("dbname", url.database);
  return text;
}

SqlFailure mariadb_failure(const soci::soci_error& error, soci::session&) {
  const auto* const failure = dynamic_cast<const soci::mysql_soci_error*>(&error);
  return {trouble_of(std::to_string(failure ? failure->err_num_ : 0), &FailureRow::mariadb)};
}

/// As a literal that no character set and no mode of the server reads otherwise.
void add_bytes(std::string& text, std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  text += ",x'";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  text += '\'';
}

/// SOCI sends a row at a time, so this writes all rows into the statement; they stay far below
/// max_allowed_packet, which is 16 MiB unless it was made less.
long long insert_by_text(soci::session& sql, const Columns& rows) {
  constexpr std::size_t most_rows = 1000;
  long long inserted = 0;
  for (std::size_t first = 0; first < rows.size(); first += most_rows) {
    auto text = fmt::format("INSERT INTO sale_orders (sale, {}) VALUES ", order_columns);
    for (auto i = first; i < std::min(rows.size(), first + most_rows); ++i) {
      text += fmt::format("{}({},{}", i > first ? "," : "", rows.sale[i], rows.id[i]);
      add_bytes(text, rows.number[i]);
      add_bytes(text, rows.buyer[i]);
      text += fmt::format(",{},{},{}", rows.n[i], rows.units[i], rows.issued_us[i]);
      add_bytes(text, rows.request[i]);
      text += ')';
    }
    soci::statement insert = (sql.prepare << text);
    insert.execute(true);
    inserted += insert.get_affected_rows();
  }
  return inserted;
}

int socket_of_mariadb(soci::session& session) {
  return static_cast<int>(
      mysql_get_socket(static_cast<soci::mysql_session_backend*>(session.get_backend())->conn_));
}

constexpr const char* schema_lock = "CONCAT('sluice_sale_', MD5(DATABASE()))";

bool try_lock_mariadb_schema(soci::session& sql) {
  sql << "SET SESSION autocommit = 1 /*M!100300 , SESSION max_statement_time = 0 */";
  int locked = 0;
  sql << fmt::format("SELECT COALESCE(GET_LOCK({}, 1), 0)", schema_lock), soci::into(locked);
  return locked == 1;
}
void unlock_mariadb_schema(soci::session& sql) {
  int unlocked = 0;
  sql << fmt::format("SELECT RELEASE_LOCK({})", schema_lock), soci::into(unlocked);
}

}  // namespace

SqlDialect mariadb_dialect(const std::string& text) {
  // Else the first session does it, and of two threads that open one at once both would.
  [[maybe_unused]] static const int ready = mysql_server_init(0, nullptr, nullptr);
  const auto url = server_url(text, 3306);
  return {
      .description = url.description,
      .connect = [usual = mariadb_connection(url, false), patient = mariadb_connection(url, true)](
                     soci::session& session,
                     bool is_patient) { session.open(soci::mysql, is_patient ? patient : usual); },
      // NOW() is a time of the session's zone, and in autumn an hour of most zones comes twice.
      .on_connect = {"SET SESSION time_zone = '+00:00'",
                     "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
                     "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                     // A process that stands still with the sale's row in its hands holds up all
                     // others. MySQL does not know this, and reads it as a comment.
                     "SET SESSION autocommit = 1 "
                     "/*M!100300 , SESSION idle_transaction_timeout = 30 */"},
      .limits = {"SET SESSION innodb_lock_wait_timeout = {1} "
                 "/*M!100300 , SESSION max_statement_time = {1} */"},
      .socket = socket_of_mariadb,
      .most_sessions = 8,
      .words = {.id = "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
                .key = "VARBINARY(384)",
                .word = "VARBINARY(32)",
                .text = "MEDIUMBLOB",
                .nothing = "('')",
                .table = " ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
                .rowless = " ENGINE=InnoDB ROW_FORMAT=DYNAMIC"},
      .partial_indexes = false,
      .find_column =
          "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = "
          "DATABASE() AND table_name = :t AND column_name = :c",
      .find_index =
          "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = "
          "DATABASE() AND table_name = :t AND index_name = :i",
      .try_lock_schema = try_lock_mariadb_schema,
      .unlock_schema = unlock_mariadb_schema,
      .begin = {"START TRANSACTION"},
      .begin_reading = {"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"},
      .lock_row = "FOR UPDATE",
      .unless_there = "ON DUPLICATE KEY UPDATE {0} = {0}",
      .now_us = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)",
      .insert_orders = insert_by_text,
      .classify = mariadb_failure,
  };
}

}  // namespace sluice::sale
