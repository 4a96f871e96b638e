/// What becomes of a call whose statement, or whose COMMIT, a database has failed: one table for
/// all databases. docs/sale.md shows it.
#pragma once

#include <string_view>

#include "sluice/error.hpp"

namespace sluice::sale {

enum class SqlTrouble { undone, refused, ended, read_only, full, corrupt, lost, other };

/// Whether the call runs once more before its caller hears of the failure.
enum class OnceMore {
  never,
  as_a_whole,  ///< from the beginning of its transaction, for a while
  elsewhere    ///< in a new session, where this one is of earlier: its server may have gone
};

struct FailureRow {
  SqlTrouble trouble;
  std::string_view what;
  Errc code;
  OnceMore once_more;
  bool is_sure;  ///< after COMMIT, too, nothing has happened. Else its effect is unknown then
  // Codes; of PostgreSQL also the beginnings of some, with a star.
  std::string_view sqlite;
  std::string_view postgresql;
  std::string_view mariadb;
};

/// SQLite: "Result and Error Codes", the primary ones; 10 and 14 are those of row `full` where the
/// system says that there is no room. PostgreSQL: its manual's appendix A. MariaDB and MySQL:
/// "Server Error Message Reference", "Client Error ...", and MariaDB's "Error Codes".
inline constexpr FailureRow failure_rows[] = {
    {SqlTrouble::undone,
     "a deadlock, a lock that was not given in time, or a row that has changed since it was read",
     Errc::database, OnceMore::as_a_whole, true, "5", "40* 55P03", "1020 1205 1213"},
    {SqlTrouble::refused, "a constraint or a trigger refuses the row", Errc::database,
     OnceMore::never, true, "18 19 20", "22* 23* P0001",
     "1048 1062 1264 1366 1406 1451 1452 1644 1690 3819 4025"},
    {SqlTrouble::ended, "the statement took too long, or a person has ended it", Errc::database,
     OnceMore::never, false, "9", "57014", "1317 1969 3024"},
    {SqlTrouble::read_only, "the database takes no writes, as a primary of before a failover",
     Errc::read_only, OnceMore::elsewhere, true, "8", "25006", "1290 1792 1836"},
    {SqlTrouble::full, "the disk is full", Errc::out_of_space, OnceMore::never, false, "13",
     "53100", "1021 1026 1041 1114"},
    {SqlTrouble::corrupt, "the data are damaged", Errc::corrupt, OnceMore::never, false, "11 26",
     "XX001 XX002", "1034 1194 1712"},
    {SqlTrouble::lost,
     "the session has ended, as when the server was stopped or a person has killed it, or there "
     "is none to be had",
     Errc::database, OnceMore::elsewhere, false, "", "08* 25P03 53300 57P0*",
     "1040 1053 1152 1158 1159 1160 1161 1203 1226 1927 2002 2003 2006 2013 2055 4031"},
    {SqlTrouble::other, "anything else; PostgreSQL's 40003 says that nobody knows", Errc::database,
     OnceMore::never, false, "", "40003", ""},
};

constexpr const FailureRow& row_of(SqlTrouble trouble) {
  return failure_rows[static_cast<int>(trouble)];
}

/// By one column of the table. A code itself goes before the beginning of some.
constexpr SqlTrouble trouble_of(std::string_view code, std::string_view FailureRow::*codes) {
  for (const bool is_beginning : {false, true})
    for (const auto& row : failure_rows)
      for (auto rest = row.*codes; !rest.empty();) {
        const auto word = rest.substr(0, rest.find(' '));
        rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : rest.size());
        if (is_beginning == word.ends_with('*') &&
            (is_beginning ? code.starts_with(word.substr(0, word.size() - 1)) : code == word))
          return row.trouble;
      }
  return SqlTrouble::other;
}

}  // namespace sluice::sale
