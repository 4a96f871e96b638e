/// SQLite in WAL mode with synchronous=FULL: a committed order survives a power failure. With
/// NORMAL the last transactions before a power failure may be lost although they were acknowledged,
/// so it is not offered.
#include <fmt/format.h>
#include <sqlite3/soci-sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "sale/order_store_sql.hpp"

namespace sluice::sale {
namespace {

constexpr std::string_view in_memory = ":memory:";

/// Which file a path means.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

std::optional<FileIdentity> identity_of(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino};
}

bool is_file(const std::string& path) { return path != in_memory; }

[[noreturn]] void file_gone(const std::string& path, Effect effect) {
  throw Error{
      Errc::database,
      fmt::format(
          "sqlite:{}: the file was deleted or replaced while in use; put it back, the orders wait",
          path),
      effect};
}

/// What the system answered to the call that failed; 0: nothing that is known. SQLite keeps it of
/// most; of those that a COMMIT makes errno still has it.
int system_error(soci::session& session) {
  const int last = errno;
  const auto* const backend = static_cast<soci::sqlite3_session_backend*>(session.get_backend());
  const int kept = backend ? sqlite_api::sqlite3_system_errno(backend->conn_) : 0;
  return kept != 0 ? kept : last;
}

/// SQLite itself knows a full disk only where it writes, and there no quota and no limit of a file.
SqlFailure disk_failure(int error) {
  if (error == 0) return {};
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return {.code = is_full ? Errc::out_of_space : Errc::database, .cause = std::strerror(error)};
}

SqlFailure classify(const soci::soci_error& error, soci::session& session) {
  const auto* const failure = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
  switch (failure ? failure->result() & 0xff : SQLITE_ERROR) {
    case SQLITE_CONSTRAINT: return {.code = Errc::database, .refused = true};
    case SQLITE_BUSY: return {.code = Errc::database, .busy = true};
    case SQLITE_READONLY: return {.code = Errc::read_only};
    case SQLITE_FULL: return {.code = Errc::out_of_space};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return {.code = Errc::corrupt};
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN: return disk_failure(system_error(session));
    default: return {.code = Errc::database};
  }
}

void connect(soci::session& session, const std::string& path) {
  session.open(soci::sqlite3, fmt::format("db=\"{}\"", path));
}

// BIGINT, not INTEGER: SOCI goes by the declared type, and reads an INTEGER as 32 bits.
std::vector<std::string_view> schema() {
  return {
      "CREATE TABLE IF NOT EXISTS sale_stock ("
      "id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, initial BIGINT NOT NULL,"
      " remaining BIGINT NOT NULL CHECK (remaining >= 0))",
      "CREATE TABLE IF NOT EXISTS sale_orders ("
      "sale BIGINT NOT NULL REFERENCES sale_stock (id), id BIGINT NOT NULL, number TEXT "
      "NOT NULL,"
      " buyer TEXT NOT NULL, n BIGINT NOT NULL, units BIGINT NOT NULL CHECK (units > 0),"
      " issued_us BIGINT NOT NULL, request TEXT NOT NULL,"
      " PRIMARY KEY (sale, id), UNIQUE (sale, number), UNIQUE (sale, buyer, n)) WITHOUT "
      "ROWID",
      "CREATE TABLE IF NOT EXISTS sale_returns ("
      "sale BIGINT NOT NULL REFERENCES sale_stock (id), order_id BIGINT NOT NULL,"
      " seq BIGINT NOT NULL, units BIGINT NOT NULL CHECK (units > 0),"
      " done BIGINT NOT NULL, PRIMARY KEY (sale, order_id, seq)) WITHOUT ROWID",
      "CREATE INDEX IF NOT EXISTS sale_returns_pending ON sale_returns (sale, order_id)"
      " WHERE done = 0",
      "CREATE TABLE IF NOT EXISTS sale_changes ("
      "sale BIGINT NOT NULL REFERENCES sale_stock (id), seq BIGINT NOT NULL,"
      " delta BIGINT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (sale, seq)) WITHOUT "
      "ROWID",
      "CREATE TABLE IF NOT EXISTS sale_definitions ("
      "sale BIGINT NOT NULL REFERENCES sale_stock (id), field TEXT NOT NULL,"
      " value TEXT NOT NULL, PRIMARY KEY (sale, field)) WITHOUT ROWID",
      "CREATE TABLE IF NOT EXISTS sale_database ("
      "id BIGINT NOT NULL PRIMARY KEY, identity TEXT NOT NULL) WITHOUT ROWID"};
}

}  // namespace

SqlDialect sqlite_dialect(const std::string& path) {
  if (path.empty() || path.find_first_of("\"\0", 0, 2) != std::string::npos)
    throw Error{Errc::bad_argument,
                "sqlite: needs a path without quotes, as in sqlite:/var/lib/shop/orders.db"};
  auto opened = std::make_shared<std::optional<FileIdentity>>();
  return {
      .description = "sqlite:" + path,
      .connect =
          [path, opened](soci::session& session) {
            connect(session, path);
            *opened = identity_of(path);
          },
      .on_connect = {"PRAGMA busy_timeout = 2000", "PRAGMA journal_mode = WAL",
                     "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON",
                     // Buyers come in random order, so that a batch touches pages all over their
                     // index: keep them in memory (64 MiB at most) and write each back seldom.
                     "PRAGMA cache_size = -65536", "PRAGMA wal_autocheckpoint = 16000"},
      .schema = schema(),
      .columns = {{"sale_stock", "epoch", "BIGINT NOT NULL DEFAULT 0"},
                  {"sale_stock", "changed", "BIGINT NOT NULL DEFAULT 0"},
                  {"sale_orders", "state", "TEXT NOT NULL DEFAULT 'awaiting'"},
                  {"sale_orders", "reason", "TEXT NOT NULL DEFAULT ''"},
                  {"sale_orders", "version", "BIGINT NOT NULL DEFAULT 0"}},
      .request_index =
          "CREATE UNIQUE INDEX IF NOT EXISTS sale_orders_requests ON sale_orders "
          "(sale, buyer, request)",
      .begin = "BEGIN IMMEDIATE",
      .begin_reading = "BEGIN",
      .insert_prefix = "INSERT INTO",
      .insert_suffix = "ON CONFLICT DO NOTHING",
      .classify = classify,
      .check_presence =
          [path, opened] {
            if (is_file(path) && (!*opened || identity_of(path) != *opened))
              file_gone(path, Effect::unknown);
          },
      .check_before_reconnect =
          [path] {
            if (!is_file(path))
              throw Error{Errc::database, "sqlite::memory: was lost with its connection"};
            if (!identity_of(path)) file_gone(path, Effect::none);
          },
  };
}

}  // namespace sluice::sale
