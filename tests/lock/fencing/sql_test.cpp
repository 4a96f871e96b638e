/// The SQL checkers, on SQLite.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <variant>

#include "sluice/fencing.hpp"
#include "support/sanitized.hpp"

namespace sluice {
namespace {

using Parameters = std::map<std::string, std::variant<std::int64_t, std::string>>;

class Database {
 public:
  Database() { EXPECT_EQ(sqlite3_open(":memory:", &database_), SQLITE_OK); }
  ~Database() { sqlite3_close(database_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// How many rows it changed.
  int run(std::string_view sql, const Parameters& parameters = {}) {
    const auto statement = prepare(sql, parameters);
    EXPECT_EQ(sqlite3_step(statement.get()), SQLITE_DONE) << sqlite3_errmsg(database_);
    return sqlite3_changes(database_);
  }
  /// How many rows it changed with this token, all other parameters NULL; empty: it is no SQL.
  std::optional<int> run_if_it_compiles(std::string_view sql, std::int64_t token) {
    sqlite3_stmt* made = nullptr;
    const int code =
        sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &made, nullptr);
    const Statement statement{made, sqlite3_finalize};
    if (code != SQLITE_OK || !made) return std::nullopt;
    const int before = sqlite3_total_changes(database_);
    if (const int at = sqlite3_bind_parameter_index(made, ":token"); at != 0)
      sqlite3_bind_int64(made, at, token);
    sqlite3_step(made);
    return sqlite3_total_changes(database_) - before;
  }
  std::int64_t number(std::string_view sql) {
    const auto statement = prepare(sql, {});
    EXPECT_EQ(sqlite3_step(statement.get()), SQLITE_ROW) << sqlite3_errmsg(database_);
    return sqlite3_column_int64(statement.get(), 0);
  }

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

  Statement prepare(std::string_view sql, const Parameters& parameters) {
    sqlite3_stmt* made = nullptr;
    EXPECT_EQ(
        sqlite3_prepare_v2(database_, sql.data(), static_cast<int>(sql.size()), &made, nullptr),
        SQLITE_OK)
        << sqlite3_errmsg(database_) << " in " << sql;
    Statement statement{made, sqlite3_finalize};
    EXPECT_EQ(sqlite3_bind_parameter_count(made), static_cast<int>(parameters.size())) << sql;
    for (const auto& [name, value] : parameters) {
      const int at = sqlite3_bind_parameter_index(made, (":" + name).c_str());
      EXPECT_NE(at, 0) << "no :" << name << " in " << sql;
      if (const auto* const number = std::get_if<std::int64_t>(&value)) {
        sqlite3_bind_int64(made, at, *number);
      } else {
        sqlite3_bind_text(made, at, std::get<std::string>(value).c_str(), -1, SQLITE_TRANSIENT);
      }
    }
    return statement;
  }

  sqlite3* database_ = nullptr;
};

class FencedSql : public testing::Test {
 protected:
  FencedSql() {
    database_.run("CREATE TABLE books (id INTEGER PRIMARY KEY, total INTEGER, " +
                  std::string{fenced_sql::column} + ")");
  }
  std::int64_t total() { return database_.number("SELECT total FROM books WHERE id = 1"); }
  std::int64_t token() { return database_.number("SELECT token FROM books WHERE id = 1"); }

  Database database_;
};

TEST_F(FencedSql, UpdateRefusesASmallerToken) {
  database_.run("INSERT INTO books (id, total) VALUES (1, 0)");
  const auto sql = fenced_sql::update("books", "total = :total", "id = :id");
  EXPECT_EQ(
      sql,
      "UPDATE books SET total = :total\n, token = :token WHERE (id = :id\n) AND token <= :token");
  const std::int64_t recent = (std::int64_t{1} << 53) - 1;
  const auto write = [&](std::int64_t amount, std::int64_t with) {
    return database_.run(sql, {{"total", amount}, {"id", 1}, {"token", with}});
  };
  EXPECT_EQ(write(10, recent - 1), 1);
  EXPECT_EQ(write(11, recent - 1), 1) << "the same hold";
  EXPECT_EQ(write(20, recent), 1);
  EXPECT_EQ(write(12, recent - 1), 0);
  EXPECT_EQ(total(), 20);
  EXPECT_EQ(token(), recent);
}

TEST_F(FencedSql, UpdateKeepsAnOrInItsPlace) {
  database_.run("INSERT INTO books (id, total, token) VALUES (1, 0, 9), (2, 0, 9)");
  const auto sql = fenced_sql::update("books", "total = 1", "id = 1 OR id = 2");
  EXPECT_EQ(database_.run(sql, {{"token", 8}}), 0);
  EXPECT_EQ(database_.run(sql, {{"token", 9}}), 2);
}

TEST_F(FencedSql, UpsertInsertsThenRefusesASmallerToken) {
  const auto sql = fenced_sql::upsert("books", {"id"}, {"total"});
  const auto write = [&](std::int64_t amount, std::int64_t with) {
    return database_.run(sql, {{"id", 1}, {"total", amount}, {"token", with}});
  };
  EXPECT_EQ(write(10, 5), 1);
  EXPECT_EQ(write(11, 6), 1);
  EXPECT_EQ(write(10, 5), 0);
  EXPECT_EQ(write(12, 6), 1);
  EXPECT_EQ(total(), 12);
  EXPECT_EQ(token(), 6);
}

TEST_F(FencedSql, AdvancedFenceRefusesTheTransactionOfASmallerToken) {
  database_.run(fenced_sql::create_fences);
  const auto begin = [&](std::int64_t with) {
    return database_.run(fenced_sql::advance_fence,
                         {{"name", std::string{"books"}}, {"token", with}});
  };
  EXPECT_EQ(begin(5), 1);
  EXPECT_EQ(begin(5), 1);
  EXPECT_EQ(begin(8), 1);
  EXPECT_EQ(begin(7), 0);
  EXPECT_EQ(database_.number("SELECT token FROM sluice_fences WHERE name = 'books'"), 8);
}

TEST(FencedSqlText, WhatIsNoNameIsRefused) {
  for (const std::string_view name : {"", "books; DROP TABLE books", "1st", "a-b", ".a", "b\"x"}) {
    EXPECT_THROW((void)fenced_sql::update(name, "a = 1", "b = 1"), Error) << name;
    EXPECT_THROW((void)fenced_sql::upsert("t", {name}, {"a"}), Error) << name;
    EXPECT_THROW((void)fenced_sql::upsert("t", {"a"}, {name}), Error) << name;
  }
  EXPECT_THROW((void)fenced_sql::update("t", "", "b = 1"), Error);
  EXPECT_THROW((void)fenced_sql::update("t", "a = 1", "  "), Error) << "every row by mistake";
  EXPECT_THROW((void)fenced_sql::upsert("t", {}, {"a"}), Error);
  EXPECT_NO_THROW((void)fenced_sql::update("shop.books_2", "a = 1", "b = 1"));
}

TEST(FencedSqlText, N07_TextThatTakesTheTokenOutOfTheStatementIsRefused) {
  for (const std::string_view assignments : {"total = 5 -- adjust",
                                             "total = 5 /* adjust",
                                             "total = 5 /* adjust */",
                                             "total = 5 # adjust",
                                             "total = 5; DROP TABLE books",
                                             "total = 'it",
                                             "total = \"it",
                                             "total = `it",
                                             "total = [it",
                                             "total = (5",
                                             "total = 5)",
                                             "total = 'a\\', x = '",
                                             "total = $$a",
                                             "total = $q$ a",
                                             "total = 5 \\",
                                             "total = [a ' b]",
                                             "total",
                                             "total 5",
                                             "total == 5",
                                             "= 5",
                                             "total =",
                                             "total = 5,",
                                             "5 = 5",
                                             ", total = 5",
                                             "total >= 5",
                                             "token = 0",
                                             "total = 1, \"Token\" = 0",
                                             "books.token = 0",
                                             "total = ']'--",
                                             "total = '\xff'"})
    EXPECT_THROW((void)fenced_sql::update("books", assignments, "id = 1"), Error) << assignments;
  EXPECT_THROW((void)fenced_sql::update("books", std::string_view{"a = 1\0", 6}, "id = 1"), Error);
  for (const std::string_view where :
       {"1) OR (1", "id = 1 -- one", "id = 1 /*", "id = 1;", "id = '1",
        "id = 1 # (\n) OR (1 = 1 # )\n", "(id = 1", "id = 'a\\' OR 1) OR ('", "id = $$",
        "id = [ ' ] OR 1) OR (1 = [ ' ]"})
    EXPECT_THROW((void)fenced_sql::update("books", "total = 5", where), Error) << where;
}

TEST_F(FencedSql, N07_SqlThatIsWhatItSeemsIsTaken) {
  database_.run("INSERT INTO books (id, total, token) VALUES (1, 0, 9), (2, 0, 9)");
  const auto sql = fenced_sql::update(
      "books", "total = CASE WHEN total > 4 THEN (total - -1) ELSE 5 END, \"id\" = id",
      "id IN (1, 2) AND 'it''s; -- # /*' <> ')' AND [total] = 0");
  EXPECT_EQ(database_.run(sql, {{"token", 8}}), 0);
  EXPECT_EQ(database_.run(sql, {{"token", 9}}), 2);
  EXPECT_EQ(total(), 5);
  for (const std::string_view assignments :
       {"(a, b) = (SELECT 1, 2)", "a[1] = 5", "shop.a = $1, b = $name, `c` = :c", "\"größe\" = 5"})
    EXPECT_NO_THROW((void)fenced_sql::update("books", assignments, "id = 1")) << assignments;
}

/// Pieces of SQL in any order: what is accepted, and SQLite understands, changes no row of a newer
/// token.
TEST_F(FencedSql, N07_NoTextGetsPastTheToken) {
  static constexpr std::string_view pieces[] = {
      "total", "= 5",      "=",   "id",      "1",  "1",   "OR", "AND",   "(",      ")",
      ",",     "'",        "''",  "\"",      "`",  "[",   "]",  "--",    "-",      "/*",
      "*/",    "#",        ";",   "\n",      "$$", "$q$", "\\", "x",     "SELECT", "1=1",
      "WHERE", "1) OR (1", "\\'", "'it''s'", ":q", "$",   "?",  "token", "9",      "IN"};
  database_.run("INSERT INTO books (id, total, token) VALUES (1, 0, 9), (2, 0, 9)");
  std::mt19937 random{7};
  const auto text = [&](std::string begin, unsigned most) {
    for (auto left = random() % most; left > 0; --left)
      (begin += random() % 3 == 0 ? "" : " ") += pieces[random() % std::size(pieces)];
    return begin;
  };
  int accepted = 0;
  for (int round = 0; round < test::rounds(60'000); ++round) {
    const auto assignments = text("total = 5", 6);
    const auto where = text("id = 1", 8);
    std::string sql;
    try {
      sql = fenced_sql::update("books", assignments, where);
    } catch (const Error&) {
      continue;
    }
    if (const auto changed = database_.run_if_it_compiles(sql, 8)) {
      ++accepted;
      ASSERT_EQ(*changed, 0) << sql;
    }
  }
  EXPECT_GT(accepted, 100) << "too few statements were SQL for this to show anything";
}

}  // namespace
}  // namespace sluice
