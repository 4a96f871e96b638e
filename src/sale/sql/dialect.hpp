/// What differs from one database to another, in one table. All other files of this folder are
/// written once for all databases.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sale/sql/failures.hpp"
#include "sale/sql/soci.hpp"

namespace sluice::sale {

struct Columns;

/// What became of a statement that failed.
struct SqlFailure {
  SqlTrouble trouble = SqlTrouble::other;
  std::string cause = {};  ///< what the system said, where the message does not
};

/// What {id}, {key} and so on are in a schema that is written once (migrations.cpp).
struct SqlWords {
  std::string_view id;       ///< the type of a key that numbers its rows by itself
  std::string_view key;      ///< of text that is compared byte by byte, up to 384 bytes
  std::string_view word;     ///< the same, up to 32
  std::string_view text;     ///< of long text
  std::string_view nothing;  ///< the empty text as the default of a {text}
  std::string_view table;    ///< behind the bracket of CREATE TABLE
  std::string_view rowless;  ///< the same for one whose rows lie in the order of its primary key
};

struct SqlDialect {
  std::string description;  ///< "sqlite:/var/lib/shop/orders.db"; without a password
  /// Patient: for a change of the schema, which may take many minutes.
  std::function<void(soci::session&, bool is_patient)> connect;
  std::vector<std::string_view> on_connect;
  /// Of waits for locks and of statements that only read, in milliseconds {0} and seconds {1}.
  std::vector<std::string_view> limits = {};
  /// What a session waits for its server at; null: it has no server.
  int (*socket)(soci::session&) = nullptr;
  std::size_t most_sessions = 1;  ///< at the same time, for all threads together

  SqlWords words;
  bool partial_indexes = true;   ///< CREATE INDEX … WHERE
  std::string_view find_column;  ///< how many columns have the name :c in the table :t
  std::string_view find_index;   ///< how many indexes have the name :i on the table :t
  /// Until unlock_schema() no other process changes the schema. What was not unlocked ends with the
  /// session, and is undone where the database can do that. False, after a second at most: another
  /// process has it.
  bool (*try_lock_schema)(soci::session&);
  void (*unlock_schema)(soci::session&);

  std::vector<std::string_view> begin;          ///< a transaction that will write
  std::vector<std::string_view> begin_reading;  ///< one that sees one instant, and holds up no
                                                ///< writer
  std::string_view
      lock_row;  ///< behind a SELECT: the row stays as it is until the transaction ends
  std::string_view unless_there;  ///< behind an INSERT: a repeat is no error; {} is a column
  std::string_view now_us;        ///< the database's clock, in microseconds since 1970
  /// Inserts them all, or throws. Returns how many rows it has inserted.
  long long (*insert_orders)(soci::session&, const Columns&);

  SqlFailure (*classify)(const soci::soci_error&, soci::session&);
  bool has_refused(const soci::soci_error& failure, soci::session& sql) const {
    return classify(failure, sql).trouble == SqlTrouble::refused;
  }
  /// Throws Error when what was committed so far is not where it should be any more: a deleted file
  /// takes writes without complaint.
  std::function<void()> check_presence = {};
  /// Throws Error when a connection made again would begin an empty database.
  std::function<void()> check_before_reconnect = {};
  /// Throws Error where opening it would make a file.
  std::function<void()> need_file = {};
};

}  // namespace sluice::sale
