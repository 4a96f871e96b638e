/// SQLite in WAL mode with synchronous=FULL: a committed order survives a power failure. With
/// NORMAL the last transactions before a power failure may be lost although they were acknowledged,
/// so it is not offered.
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3/soci-sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "sale/sql/columns.hpp"
#include "sale/sql/schemes.hpp"

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
  return {is_full ? SqlTrouble::full : SqlTrouble::other, std::strerror(error)};
}

SqlFailure classify(const soci::soci_error& error, soci::session& session) {
  const auto* const failure = dynamic_cast<const soci::sqlite3_soci_error*>(&error);
  const int code = failure ? failure->result() & 0xff : SQLITE_ERROR;
  if (code == SQLITE_IOERR || code == SQLITE_CANTOPEN) return disk_failure(system_error(session));
  return {trouble_of(std::to_string(code), &FailureRow::sqlite)};
}

/// SQLite would make it for everybody to read. It gets its name when it is closed: closing a file
/// that this process has open elsewhere would end the locks on it.
void make_private(const std::string& path) {
  if (!is_file(path) || identity_of(path)) return;
  auto draft = path + ".XXXXXX";
  const int file = ::mkostemp(draft.data(), O_CLOEXEC);
  if (file < 0) return;  // SQLite says why
  ::close(file);
  static_cast<void>(::link(draft.c_str(), path.c_str()));  // unless it has come meanwhile
  ::unlink(draft.c_str());
}

void connect(soci::session& session, const std::string& path) {
  make_private(path);
  session.open(soci::sqlite3, fmt::format("db=\"{}\"", path));
}

bool try_lock_schema(soci::session& sql) try {
  sql << "BEGIN IMMEDIATE";
  return true;
} catch (const soci::soci_error& failure) {
  if (classify(failure, sql).trouble != SqlTrouble::undone) throw;
  return false;
}
void unlock_schema(soci::session& sql) { sql << "COMMIT"; }

long long insert_orders(soci::session& sql, const Columns& rows) {
  soci::statement insert =
      (sql.prepare << fmt::format(
           "INSERT INTO sale_orders (sale, {}) VALUES (:s, :i, :o, :b, :n, :u, :t, :r)",
           order_columns),
       soci::use(rows.sale), soci::use(rows.id), soci::use(rows.number), soci::use(rows.buyer),
       soci::use(rows.n), soci::use(rows.units), soci::use(rows.issued_us),
       soci::use(rows.request));
  insert.execute(true);
  return insert.get_affected_rows();
}

}  // namespace

SqlDialect sqlite_dialect(const std::string& url) {
  const auto path = url.substr(std::string_view{"sqlite:"}.size());
  if (path.empty() || path.find_first_of("\"\0", 0, 2) != std::string::npos)
    throw Error{Errc::bad_argument,
                "sqlite: needs a path without quotes, as in sqlite:/var/lib/shop/orders.db"};
  const auto place =
      is_file(path) ? std::filesystem::absolute(path).lexically_normal().string() : path;
  auto opened = std::make_shared<std::optional<FileIdentity>>();
  return {
      .description = "sqlite:" + place,
      .connect =
          [path, opened](soci::session& session, bool) {
            connect(session, path);
            *opened = identity_of(path);
          },
      .on_connect = {"PRAGMA busy_timeout = 1000", "PRAGMA journal_mode = WAL",
                     "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON",
                     // Buyers come in random order, so that a batch touches pages all over their
                     // index: keep them in memory (64 MiB at most) and write each back seldom.
                     "PRAGMA cache_size = -65536", "PRAGMA wal_autocheckpoint = 16000"},
      .words = {.id = "INTEGER PRIMARY KEY",
                .key = "TEXT",
                .word = "TEXT",
                .text = "TEXT",
                .nothing = "''",
                .table = "",
                .rowless = " WITHOUT ROWID"},
      .find_column = "SELECT COUNT(*) FROM pragma_table_info(:t) WHERE name = :c",
      .find_index =
          "SELECT COUNT(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = :t AND name = :i",
      .try_lock_schema = try_lock_schema,
      .unlock_schema = unlock_schema,
      .begin = {"BEGIN IMMEDIATE"},
      .begin_reading = {"BEGIN"},
      .lock_row = "",
      .unless_there = "ON CONFLICT DO NOTHING",
      .now_us = "CAST((julianday('now') - 2440587.5) * 86400000000 AS BIGINT)",
      .insert_orders = insert_orders,
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
      .need_file =
          [path] {
            if (is_file(path) && !identity_of(path)) file_gone(path, Effect::none);
          },
  };
}

}  // namespace sluice::sale
